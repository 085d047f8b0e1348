/* tare dataset split: splits TFRecord files. */
#include "base/progress.h"
#include "cli/dataset.h"
#include "datasets/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct split_options {
    struct tare_option_list files;
    const char *prefix, *counts, *fractions, *names, *seed;
    int parts;
    int64_t limit, max_bad;
    bool gzip, quiet;
};

static const struct tare_option rows[] = {
    { .name = "output",
      .letter = 'o',
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct split_options, prefix),
      .placeholder = "PREFIX",
      .help = "prefix of the output files: PREFIX-00000-of-00003.tfrecord …, or PREFIX-NAME.tfrecord with --names",
      .flags = TARE_OPTION_REQUIRED },
    { .name = "parts",
      .kind = TARE_OPTION_INT,
      .offset = offsetof(struct split_options, parts),
      .min = 0,
      .max = 512,
      .help = "split into N parts of equal size" },
    { .name = "count",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct split_options, counts),
      .placeholder = "N,…",
      .help = "number of records of each part; the remaining records form another part" },
    { .name = "fraction",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct split_options, fractions),
      .placeholder = "F,…",
      .help = "fraction of the records in each part, as 0.8,0.1; the remaining records form another part" },
    { .name = "seed",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct split_options, seed),
      .placeholder = "N",
      .help = "assign records to parts at random, reproducibly for the same N (default: in order)" },
    { .name = "names",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct split_options, names),
      .placeholder = "A,…",
      .help = "names of the parts, as train,test" },
    { .name = "gzip",
      .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct split_options, gzip),
      .help = "compress the parts with gzip and append .gz to their names" },
    { .name = "limit",
      .kind = TARE_OPTION_INT64,
      .offset = offsetof(struct split_options, limit),
      .min = 0,
      .max = 1e15,
      .help = "use only the first N records (default: all)" },
    { .name = "max-bad",
      .kind = TARE_OPTION_INT64,
      .offset = offsetof(struct split_options, max_bad),
      .min = 0,
      .max = 1e15,
      .help = "skip up to N invalid records before failing (default: 0)" },
    { .name = "quiet",
      .kind = TARE_OPTION_FLAG,
      .offset = offsetof(struct split_options, quiet),
      .help = "suppress progress on standard error" },
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "FILE",
      .offset = offsetof(struct split_options, files),
      .help = "TFRecord files with any records, or quoted patterns",
      .flags = TARE_OPTION_REQUIRED | TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = {
    "tare dataset split all.tfrecord --fraction 0.8 --names calibration,evaluation --seed 1 -o data/set",
    "tare dataset split 'train-*.tfrecord.gz' --parts 16 -o shards/train",
    NULL,
};
static const struct tare_option_set set = {
    .program = "tare dataset split",
    .summary = "Splits TFRecord files into parts. Records are copied unchanged and keep their order. Prints the number "
               "of records in each part.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status parse_seed(uint64_t *out, const char *text) {
    char *end;
    *out = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end) return TARE_FAIL(TARE_USAGE, "--seed %s: expected an integer", text);
    return TARE_OK;
}

static tare_status run(int argc, char *const *argv) {
    struct split_options options = { 0 };
    struct tare_split_options split = { .common = { .on_bad = tare_dataset_print_bad,
                                                    .progress = tare_dataset_advance,
                                                    .interrupted = &tare_interrupted } };
    struct tare_split_outcome outcome = { 0 };
    struct tare_progress *progress;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    if ((options.parts != 0) + (options.counts != NULL) + (options.fractions != NULL) != 1) {
        status = TARE_FAIL(TARE_USAGE, "expected exactly one of --parts, --count and --fraction");
        goto done;
    }
    if (options.seed) TARE_CHECK(parse_seed(&split.seed, options.seed));
    split.shuffle = options.seed;
    split.parts = options.parts;
    split.counts = options.counts;
    split.fractions = options.fractions;
    split.names = options.names;
    split.compress = options.gzip;
    split.common.limit = options.limit;
    split.common.max_bad = options.max_bad;
    progress = tare_progress_new(&(struct tare_progress_options){
        .label = "counting and copying", .unit = "records", .total = -1, .quiet = options.quiet });
    split.common.progress_arg = progress;
    status = tare_dataset_split(&outcome, options.prefix, options.files.items, options.files.count, &split);
    tare_progress_free(progress);
    for (size_t i = 0; i < outcome.count && status == TARE_OK; i++)
        printf("%s %" PRId64 "\n", outcome.parts[i].path, outcome.parts[i].records);
done:
    tare_split_outcome_free(&outcome);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_dataset_split_command = {
    .name = "split", .summary = "split records by count or fraction, in order or at random", .run = run, .options = &set
};

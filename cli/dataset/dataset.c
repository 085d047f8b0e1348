/* tare dataset: inspects, creates and splits data sets. */
#include "cli/dataset/dataset.h"
#include "base/progress.h"
#include "cli/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct tare_command *const parts[] = { &tare_dataset_info,         &tare_dataset_head,
                                                    &tare_dataset_make_command, &tare_dataset_split_command,
                                                    &tare_dataset_export,       NULL };

void tare_dataset_print_bad(void *arg, const char *text) {
    int64_t *count = arg;
    if (++*count == 1) fprintf(stderr, "tare: left out: %s\n", text);
    tare_command_log_to_file(TARE_LOG_WARNING, text);
}

void tare_dataset_print_bad_count(int64_t count) {
    if (count > 1)
        fprintf(stderr, "tare: %" PRId64 " invalid records left out (--log-file FILE gets all reasons)\n", count);
}

void tare_dataset_advance(void *arg, int64_t records) {
    tare_progress_advance(arg, records);
}

static void print_overview(FILE *out) {
    fprintf(out, "usage: tare dataset PART [ARGUMENT]…\n\n"
                 "Inspects data sets, creates them from arrays, images and tf.Example records, splits them, and writes "
                 "their images as files.\n\n");
    for (size_t i = 0; parts[i]; i++)
        fprintf(out, "  %-6s %s\n", parts[i]->name, parts[i]->summary);
    fprintf(out, "\nRun 'tare dataset PART --help' for the options of a subcommand. docs/calibration-data.md explains "
                 "how to create a data set.\n");
}

static tare_status run(int argc, char *const *argv) {
    const char *names[sizeof parts / sizeof *parts], *nearest;
    if (argc < 1) {
        print_overview(stderr);
        return TARE_FAIL(TARE_USAGE, "dataset: missing subcommand (expected info, head, make, split or export)");
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0) {
        print_overview(stdout);
        return TARE_OK;
    }
    for (size_t i = 0; parts[i]; i++) {
        if (strcmp(argv[0], parts[i]->name) == 0) return parts[i]->run(argc - 1, argv + 1);
        names[i] = parts[i]->name;
        names[i + 1] = NULL;
    }
    nearest = tare_nearest_name(argv[0], names);
    return TARE_FAIL(TARE_USAGE,
                     nearest ? "dataset: unknown subcommand '%s' (did you mean '%s'?)"
                             : "dataset: unknown subcommand '%s' (expected info, head, make, split or export)",
                     argv[0], nearest);
}

static const struct tare_argument arguments[] = {
    { .name = "PART", .help = "info, head, make, split or export", .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare dataset info samples.tfrecord", NULL };
static const struct tare_option_set set = {
    .program = "tare dataset",
    .arguments = arguments,
    .examples = examples,
    .summary = "Inspects data sets (info, head), creates them from arrays, images and tf.Example records (make), "
               "splits them (split), and writes their images as files (export).",
};

const struct tare_command tare_command_dataset = {
    .name = "dataset", .summary = "inspect, create and split data sets", .run = run, .options = &set, .parts = parts
};

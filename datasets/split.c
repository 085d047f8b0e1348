/* Splitting TFRecord files: the first pass counts the records, the second copies each to its part. */
#include "base/alloc.h"
#include "base/control.h"
#include "base/file.h"
#include "base/output.h"
#include "datasets/data_file.h"
#include "datasets/make.h"
#include "datasets/partition.h"
#include "datasets/tfrecord.h"

#include <string.h>
#include <unistd.h>

struct splitter {
    struct tare_split_outcome *out;
    const struct tare_split_options *options;
    struct tare_file_list files;
    struct tare_partition partition;
    uint16_t *parts; /* of each record */
    struct tare_tfrecord_writer **writers;
    int64_t records; /* read in this pass */
    int64_t total;   /* of the first pass */
    bool copies;     /* the second pass */
};

static tare_status write_record(struct splitter *s, const struct tare_tfrecord *record) {
    if (!s->copies) return TARE_OK;
    if (s->records >= s->total) return TARE_FAIL(TARE_IO, "the files grew while they were read");
    return tare_tfrecord_write(s->writers[s->parts[s->records]], record->data, record->size);
}

/* Bad records are reported in the second pass only, so that each is reported once. */
static tare_status pass_over(struct splitter *s, tare_status status) {
    const struct tare_make_options *common = &s->options->common;
    if (status != TARE_CORRUPT || s->out->bad >= common->max_bad) return status;
    s->out->bad++;
    if (s->copies && common->on_bad) common->on_bad(common->on_bad_arg, tare_error_text());
    tare_error_clear();
    return TARE_OK;
}

static tare_status read_file(struct splitter *s, struct tare_tfrecord_reader *reader) {
    const struct tare_make_options *common = &s->options->common;
    while (common->limit <= 0 || s->records < common->limit) {
        struct tare_tfrecord record;
        bool end;
        tare_status status;
        TARE_TRY(tare_flag_check(common->interrupted));
        status = tare_tfrecord_next(&record, &end, reader);
        if (status != TARE_OK) {
            TARE_TRY(pass_over(s, status));
            continue;
        }
        if (end) return TARE_OK;
        TARE_TRY(write_record(s, &record));
        s->records++;
        if (common->progress) common->progress(common->progress_arg, 1);
    }
    return TARE_OK;
}

static tare_status read_all(struct splitter *s) {
    s->records = s->out->bad = 0;
    for (size_t i = 0; i < s->files.count; i++) {
        struct tare_tfrecord_reader *reader;
        tare_status status;
        TARE_TRY(tare_tfrecord_open(&reader, s->files.names[i]));
        status = read_file(s, reader);
        tare_tfrecord_close(reader);
        TARE_TRY(status);
    }
    return TARE_OK;
}

/* ---- parts ---- */

static tare_status make_partition(struct splitter *s) {
    const struct tare_split_options *options = s->options;
    if ((options->parts != 0) + (options->counts != NULL) + (options->fractions != NULL) != 1)
        return TARE_FAIL(TARE_USAGE, "give one of parts, counts and fractions");
    if (options->parts) return tare_partition_equally(&s->partition, s->records, options->parts);
    if (options->counts) return tare_partition_parse_counts(&s->partition, s->records, options->counts);
    return tare_partition_parse_fractions(&s->partition, s->records, options->fractions);
}

/* The i-th of "a,b,c". */
static const char *name_of(struct tare_arena *arena, const char *names, size_t i) {
    while (i-- > 0)
        names += strcspn(names, ",") + 1;
    return tare_arena_strndup(arena, names, strcspn(names, ","));
}

static tare_status check_names(const struct splitter *s) {
    size_t count = 1;
    const char *names = s->options->names;
    if (!names) return TARE_OK;
    if (!*names) return TARE_FAIL(TARE_USAGE, "the list of names is empty");
    for (const char *at = names; *at; at++) {
        count += *at == ',';
        if ((*at == ',' && (at == names || at[1] == ',' || !at[1])) || *at == '/')
            return TARE_FAIL(TARE_USAGE, "'%s' is not a list of names (expected a list like train,test)", names);
    }
    if (count != s->partition.count) return TARE_FAIL(TARE_USAGE, "%zu names for %zu parts", count, s->partition.count);
    return TARE_OK;
}

static tare_status check_apart(const struct tare_file_list *files, const char *path) {
    if (!files) return TARE_OK;
    return tare_output_check_all_apart(path, (const char *const *)files->names, files->count);
}

static tare_status open_part(struct splitter *s, size_t i, const char *prefix) {
    struct tare_split_outcome *out = s->out;
    const char *gz = s->options->compress ? ".gz" : "";
    const char *name = s->options->names ? name_of(&out->arena, s->options->names, i) : NULL;
    if (s->options->names && !name) return TARE_NO_MEMORY;
    out->parts[i].records = s->partition.sizes[i];
    out->parts[i].path =
        name ? tare_arena_printf(&out->arena, "%s-%s.tfrecord%s", prefix, name, gz)
             : tare_arena_printf(&out->arena, "%s-%05zu-of-%05zu.tfrecord%s", prefix, i, s->partition.count, gz);
    if (!out->parts[i].path) return TARE_NO_MEMORY;
    for (size_t k = 0; k < i; k++)
        if (strcmp(out->parts[k].path, out->parts[i].path) == 0)
            return TARE_FAIL(TARE_USAGE, "duplicate part name '%s'", name);
    TARE_TRY(check_apart(&s->files, out->parts[i].path));
    TARE_TRY(check_apart(s->options->origin, out->parts[i].path));
    TARE_TRY(tare_tfrecord_create(&s->writers[i], out->parts[i].path));
    out->count = i + 1;
    return TARE_OK;
}

static tare_status open_parts(struct splitter *s, const char *prefix) {
    size_t count = s->partition.count;
    TARE_TRY(check_names(s));
    s->out->parts = TARE_NEW_ARRAY(&s->out->arena, struct tare_split_part, count + 1);
    s->writers = tare_calloc(count + 1, sizeof(*s->writers));
    s->parts = tare_calloc((size_t)s->records + 1, sizeof *s->parts);
    if (!s->out->parts || !s->writers || !s->parts) return TARE_NO_MEMORY;
    tare_partition_assign(s->parts, &s->partition, s->options->shuffle, s->options->seed);
    for (size_t i = 0; i < count; i++)
        TARE_TRY(open_part(s, i, prefix));
    return TARE_OK;
}

/* If a part cannot be completed, it and the parts before it are removed. */
static tare_status commit_parts(struct splitter *s) {
    for (size_t i = 0; i < s->partition.count; i++) {
        struct tare_tfrecord_writer *writer = s->writers[i];
        tare_status status;
        s->writers[i] = NULL;
        status = tare_tfrecord_commit(writer);
        if (status == TARE_OK) continue;
        for (size_t k = 0; k <= i; k++)
            unlink(s->out->parts[k].path);
        return status;
    }
    return TARE_OK;
}

static tare_status split(struct splitter *s, const char *prefix) {
    TARE_TRY(read_all(s));
    s->total = s->records;
    if (!s->total) return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: no records (expected at least 1)", s->files.names[0]);
    TARE_TRY(make_partition(s));
    TARE_TRY(open_parts(s, prefix));
    s->copies = true;
    TARE_TRY(read_all(s));
    if (s->records != s->total)
        return TARE_FAIL(TARE_IO, "the files changed while they were read (%lld records, then %lld)",
                         (long long)s->total, (long long)s->records);
    return commit_parts(s);
}

static tare_status check_format(const char *path) {
    struct tare_data_file *file;
    tare_status status = TARE_OK;
    TARE_TRY(tare_data_file_open(&file, path, NULL));
    if (strncmp(tare_data_file_format(file), "TFRecord", 8) != 0)
        status = TARE_FAIL(TARE_UNSUPPORTED,
                           "%s: %s cannot be split (expected a TFRecord; convert it with 'tare dataset make')", path,
                           tare_data_file_format(file));
    tare_data_file_close(file);
    return status;
}

static tare_status list_files(struct splitter *s, const char *const *paths, size_t n_paths) {
    const char *once = tare_data_read_once(paths, n_paths);
    if (once)
        return TARE_FAIL(TARE_USAGE, "%s cannot be split: the files are read twice",
                         strcmp(once, "-") == 0 ? "standard input" : once);
    for (size_t i = 0; i < n_paths; i++)
        TARE_TRY(tare_data_files_add(&s->files, paths[i]));
    for (size_t i = 0; i < s->files.count; i++)
        TARE_TRY(check_format(s->files.names[i]));
    return TARE_OK;
}

tare_status tare_dataset_split(struct tare_split_outcome *outcome, const char *prefix, const char *const *paths,
                               size_t n_paths, const struct tare_split_options *options) {
    struct splitter s = { .out = outcome, .options = options };
    tare_status status;
    memset(outcome, 0, sizeof *outcome);
    status = list_files(&s, paths, n_paths);
    if (status == TARE_OK) status = split(&s, prefix);
    for (size_t i = 0; s.writers && i < s.partition.count; i++)
        tare_tfrecord_abort(s.writers[i]);
    tare_free(s.writers);
    tare_free(s.parts);
    tare_file_list_free(&s.files);
    return status;
}

void tare_split_outcome_free(struct tare_split_outcome *outcome) {
    tare_arena_free(&outcome->arena);
    memset(outcome, 0, sizeof *outcome);
}

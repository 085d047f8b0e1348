/* Writes samples to TFRecord files. */
#include "datasets/make.h"
#include "base/control.h"
#include "base/alloc.h"
#include "base/output.h"
#include "datasets/data_file.h"
#include "datasets/source.h"
#include "datasets/tfrecord.h"

#include <string.h>

static tare_status write_sample(struct tare_tfrecord_writer *writer, const struct tare_sample *sample) {
    void *data;
    size_t size;
    tare_status status;
    if (!sample->count) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the sample has no inputs");
    TARE_TRY(tare_sample_encode(&data, &size, sample->keys, sample->values, sample->count));
    status = tare_tfrecord_write(writer, data, size);
    tare_free(data);
    return status;
}

static tare_status write_source(struct tare_make_outcome *outcome, struct tare_tfrecord_writer *writer,
                                struct tare_source *source, const struct tare_make_options *options) {
    for (;;) {
        struct tare_sample sample;
        struct tare_record where;
        bool end;
        tare_status status;
        TARE_TRY(tare_flag_check(options->interrupted));
        TARE_TRY(tare_source_next(&sample, &where, &end, source, NULL, NULL));
        if (end) return TARE_OK;
        status = write_sample(writer, &sample);
        outcome->labelled |= status == TARE_OK && tare_sample_find(&sample, "label");
        tare_sample_reset(&sample);
        if (status == TARE_INVALID_ARGUMENT || status == TARE_UNSUPPORTED) {
            TARE_TRY(tare_source_refuse(source, &where, status));
            continue;
        }
        TARE_TRY(status);
        outcome->records++;
        if (options->progress) options->progress(options->progress_arg, 1);
    }
}

/* `path`: of the first file that was read. */
static tare_status finish(struct tare_tfrecord_writer *writer, const struct tare_make_outcome *outcome,
                          const char *path, tare_status status) {
    if (status == TARE_OK && !outcome->records)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: no records (expected at least 1)", path);
    if (status == TARE_OK) return tare_tfrecord_commit(writer);
    tare_tfrecord_abort(writer);
    return status;
}

tare_status tare_dataset_make(struct tare_make_outcome *outcome, const char *out, const char *const *paths,
                              size_t n_paths, const struct tare_dataset_spec *spec, const char *labels,
                              const struct tare_make_options *options) {
    const struct tare_source_options source_options = { .limit = options->limit,
                                                        .max_bad = options->max_bad,
                                                        .on_bad = options->on_bad,
                                                        .on_bad_arg = options->on_bad_arg,
                                                        .prefetch = 4,
                                                        .spec = spec,
                                                        .labels = labels };
    struct tare_tfrecord_writer *writer = NULL;
    struct tare_source *source = NULL;
    const char *const *files;
    size_t n_files;
    tare_status status;
    *outcome = (struct tare_make_outcome){ 0 };
    TARE_CHECK(tare_source_new(&source, paths, n_paths, &source_options));
    files = tare_source_files(source, &n_files);
    TARE_CHECK(tare_output_check_all_apart(out, files, n_files));
    TARE_CHECK(tare_tfrecord_create(&writer, out));
    status = write_source(outcome, writer, source, options);
    outcome->bad = tare_source_bad(source);
    status = finish(writer, outcome, paths[0], status);
done:
    tare_source_free(source);
    return status;
}

static tare_status write_rows(struct tare_make_outcome *outcome, struct tare_tfrecord_writer *writer,
                              struct tare_data_file *file, const struct tare_dataset_spec *spec,
                              const struct tare_make_options *options) {
    for (;;) {
        struct tare_data_record record;
        struct tare_sample sample;
        bool end;
        tare_status status;
        TARE_TRY(tare_flag_check(options->interrupted));
        if (options->limit > 0 && outcome->records >= options->limit) return TARE_OK;
        TARE_TRY(tare_data_file_next(&record, &end, file));
        if (end) return TARE_OK;
        status = tare_data_file_decode(&sample, file, &record, spec);
        if (status == TARE_OK) status = write_sample(writer, &sample);
        outcome->labelled |= status == TARE_OK && tare_sample_find(&sample, "label");
        tare_sample_reset(&sample);
        TARE_TRY(tare_error_prefix(status, "row %lld", (long long)record.number));
        outcome->records++;
        if (options->progress) options->progress(options->progress_arg, 1);
    }
}

tare_status tare_dataset_make_arrays(struct tare_make_outcome *outcome, const char *out, const char *const *names,
                                     const char *const *paths, size_t n_paths, const struct tare_dataset_spec *spec,
                                     const struct tare_make_options *options) {
    struct tare_tfrecord_writer *writer = NULL;
    struct tare_data_file *file = NULL;
    tare_status status;
    *outcome = (struct tare_make_outcome){ 0 };
    TARE_CHECK(tare_data_file_join(&file, names, paths, n_paths));
    TARE_CHECK(tare_output_check_all_apart(out, paths, n_paths));
    TARE_CHECK(tare_tfrecord_create(&writer, out));
    status = finish(writer, outcome, paths[0], write_rows(outcome, writer, file, spec, options));
done:
    tare_data_file_close(file);
    return status;
}

/* Draws samples from files that are read twice: once to count their records. */
#include "datasets/sampling.h"
#include "base/alloc.h"
#include "datasets/data_file.h"
#include "datasets/partition.h"
#include "datasets/source.h"

static bool count(void *arg, const struct tare_record *where) {
    int64_t *records = arg;
    *records = where->index + 1;
    return false; /* not decoded */
}

static tare_status count_records(int64_t *out, const char *const *paths, size_t n_paths, int64_t rows) {
    const struct tare_source_options options = { .rows = rows, .max_bad = INT64_MAX };
    struct tare_source *source = NULL;
    struct tare_sample sample;
    struct tare_record where;
    bool end;
    *out = 0;
    TARE_TRY(tare_source_new(&source, paths, n_paths, &options));
    const tare_status status = tare_source_next(&sample, &where, &end, source, count, out);
    tare_source_free(source);
    return status;
}

tare_status tare_sampling_draw(struct tare_sampling *out, const char *const *paths, size_t n_paths, int64_t rows,
                               int64_t size, uint64_t seed) {
    struct tare_partition partition = { .count = 2 };
    *out = (struct tare_sampling){ 0 };
    const char *once = tare_data_read_once(paths, n_paths);
    if (once)
        return TARE_FAIL(
            TARE_USAGE, "%s: no sample can be drawn from a pipe, which can be read only once (copy it to a file first)",
            once);
    TARE_TRY(count_records(&out->records, paths, n_paths, rows));
    if (size > out->records)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "%s: a sample of %lld records (expected at most %lld, which the data has)", paths[0],
                         (long long)size, (long long)out->records);
    out->parts = tare_calloc((size_t)out->records + 1, sizeof *out->parts);
    if (!out->parts) return TARE_NO_MEMORY;
    partition.sizes[0] = size;
    partition.sizes[1] = out->records - size;
    tare_partition_assign(out->parts, &partition, true, seed);
    return TARE_OK;
}

bool tare_sampling_has(const struct tare_sampling *sampling, int64_t index) {
    return index < sampling->records && sampling->parts[index] == 0;
}

void tare_sampling_free(struct tare_sampling *sampling) {
    tare_free(sampling->parts);
    *sampling = (struct tare_sampling){ 0 };
}

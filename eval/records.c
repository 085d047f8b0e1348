/* Binds records to the feeds of a signature, joins them on axis 0 and splits outputs by records. */
#include "eval/records.h"
#include "base/alloc.h"
#include "base/tensor/concat_rows.h"
#include "eval/model_inputs.h"

void tare_tensors_reset(struct tare_tensor *tensors, size_t count) {
    for (size_t i = 0; tensors && i < count; i++)
        tare_tensor_reset(&tensors[i]);
}

/* ---- records ---- */

tare_status tare_record_take(struct tare_bound_record *out, const struct tare_signature_edges *edges,
                             struct tare_sample *sample, const struct tare_record *where) {
    struct tare_tensor *values = tare_calloc(edges->n_feeds + edges->n_outputs + 1, sizeof *values);
    tare_status status = values ? tare_bind_record(values, edges->signature, sample, edges->feedback) : TARE_NO_MEMORY;
    if (status != TARE_OK) {
        tare_free(values);
        tare_sample_reset(sample);
        return status;
    }
    *out = (struct tare_bound_record){
        .sample = *sample, .where = *where, .values = values, .outputs = values + edges->n_feeds
    };
    return TARE_OK;
}

void tare_record_reset(struct tare_bound_record *record, const struct tare_signature_edges *edges) {
    tare_tensors_reset(record->values, edges->n_feeds + edges->n_outputs);
    tare_free(record->values);
    tare_sample_reset(&record->sample);
    *record = (struct tare_bound_record){ 0 };
}

/* ---- together ---- */

static int64_t rows_of(const struct tare_bound_record *record) {
    return record->values[0].shape.dims[0];
}

tare_status tare_records_join(struct tare_tensor *joined, int64_t *rows, bool *fits,
                              const struct tare_bound_record *records, size_t count,
                              const struct tare_signature_edges *edges) {
    const struct tare_tensor **values = tare_calloc(count, sizeof *values);
    tare_status status = values ? TARE_OK : TARE_NO_MEMORY;
    *rows = 0;
    *fits = true;
    for (size_t r = 0; r < count && status == TARE_OK; r++) {
        values[r] = records[r].values;
        for (size_t i = 0; i < edges->n_feeds; i++)
            *fits = *fits && values[r][i].dtype && values[r][i].shape.rank > 0;
        if (*fits) *rows += rows_of(&records[r]);
    }
    for (size_t i = 0; i < edges->n_feeds && *fits && status == TARE_OK; i++)
        status = tare_concat_rows(&joined[i], values, count, i, fits, NULL);
    tare_free(values);
    return status;
}

bool tare_records_can_split(const struct tare_tensor *outputs, int64_t rows, const struct tare_signature_edges *edges) {
    for (size_t i = 0; i < edges->n_outputs; i++)
        if (outputs[i].shape.rank < 1 || outputs[i].shape.dims[0] != rows) return false;
    return true;
}

tare_status tare_records_split(struct tare_bound_record *records, size_t count, const struct tare_tensor *outputs,
                               const struct tare_signature_edges *edges) {
    int64_t first = 0;
    for (size_t r = 0; r < count; r++) {
        int64_t rows = rows_of(&records[r]);
        for (size_t i = 0; i < edges->n_outputs; i++)
            TARE_TRY(tare_tensor_share_rows(&records[r].outputs[i], &outputs[i], first, rows));
        first += rows;
    }
    return TARE_OK;
}

tare_status tare_records_locate(tare_status status, const char *const *files, const struct tare_record *first,
                                const struct tare_record *last) {
    const char *file = files[first->file];
    if (status == TARE_OK || status == TARE_INTERRUPTED) return status;
    if (first->file != last->file)
        return tare_error_prefix(status, "%s: record %lld to %s: record %lld", file, (long long)first->number,
                                 files[last->file], (long long)last->number);
    if (first->number != last->number)
        return tare_error_prefix(status, "%s: records %lld to %lld", file, (long long)first->number,
                                 (long long)last->number);
    return tare_error_prefix(status, "%s: record %lld", file, (long long)first->number);
}

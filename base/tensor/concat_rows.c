/* Rows of several tensors in one. */
#include "base/tensor/concat_rows.h"
#include "base/alloc.h"

#include <string.h>

static bool same_row(const struct tare_shape *a, const struct tare_shape *b) {
    if (a->rank != b->rank || a->rank < 1) return false;
    return memcmp(a->dims + 1, b->dims + 1, (size_t)(a->rank - 1) * sizeof *a->dims) == 0;
}

tare_status tare_concat_rows(struct tare_tensor *out, const struct tare_tensor *const *rows, size_t count, size_t i,
                             bool *fits, struct tare_buffer_pool *pool) {
    struct tare_shape shape = rows[0][i].shape;
    size_t bytes = tare_dtype_size(rows[0][i].dtype);
    int64_t at = 0;
    *fits = true;
    for (size_t s = 0; s < count && *fits; s++)
        *fits = same_row(&rows[s][i].shape, &rows[0][i].shape);
    if (!*fits) return TARE_OK;
    shape.dims[0] = 0;
    for (size_t s = 0; s < count; s++)
        if (!tare_add_i64(&shape.dims[0], shape.dims[0], rows[s][i].shape.dims[0]))
            return TARE_FAIL(TARE_SHAPE, "a batch of %zu records is too large", count);
    TARE_TRY(tare_tensor_new_pooled(out, rows[0][i].dtype, &shape, pool));
    for (size_t s = 0; s < count; s++) {
        const struct tare_tensor *part = &rows[s][i];
        if (part->dtype != TARE_DT_STRING) {
            if (part->elements) memcpy((char *)out->data + (size_t)at * bytes, part->data, tare_tensor_bytes(part));
        } else {
            for (int64_t k = 0; k < part->elements; k++) {
                const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, part)[k];
                TARE_TRY(tare_tensor_set_string(out, at + k, text->data, text->size));
            }
        }
        at += part->elements;
    }
    return TARE_OK;
}

/* Joins the samples of a batch on axis 0. */
#include "calib/batch.h"

#include "base/alloc.h"

#include <string.h>

tare_status tare_batch_init(struct tare_batch *batch, size_t room, size_t n_feeds) {
    *batch = (struct tare_batch){ .room = room, .n_feeds = n_feeds };
    batch->samples = tare_calloc(room, sizeof *batch->samples);
    return batch->samples ? TARE_OK : TARE_NO_MEMORY;
}

void tare_batch_drop(struct tare_batch_sample *sample, size_t n_feeds) {
    for (size_t i = 0; sample->feeds && i < n_feeds; i++)
        tare_tensor_reset(&sample->feeds[i]);
    tare_free(sample->feeds);
    *sample = (struct tare_batch_sample){ 0 };
}

void tare_batch_clear(struct tare_batch *batch) {
    for (size_t i = 0; i < batch->count; i++)
        tare_batch_drop(&batch->samples[i], batch->n_feeds);
    batch->count = 0;
}

void tare_batch_free(struct tare_batch *batch) {
    if (batch->samples) tare_batch_clear(batch);
    tare_free(batch->samples);
    *batch = (struct tare_batch){ 0 };
}

bool tare_batch_fits(const struct tare_batch_sample *a, const struct tare_batch_sample *b, size_t n_feeds) {
    for (size_t i = 0; i < n_feeds; i++) {
        const struct tare_tensor *x = &a->feeds[i], *y = &b->feeds[i];
        if (x->dtype != y->dtype) return false;
        if (x->dtype != TARE_DT_INVALID && (x->shape.rank < 1 || !tare_shape_equal(&x->shape, &y->shape))) return false;
    }
    return true;
}

static tare_status join_feed(struct tare_tensor *out, const struct tare_batch *batch, size_t feed,
                             struct tare_buffer_pool *pool) {
    const struct tare_tensor *first = &batch->samples[0].feeds[feed];
    if (first->dtype == TARE_DT_INVALID) return TARE_OK;
    struct tare_shape shape = first->shape;
    if (!tare_mul_i64(&shape.dims[0], shape.dims[0], (int64_t)batch->count))
        return TARE_FAIL(TARE_SHAPE, "a batch of %zu records is too large", batch->count);
    TARE_TRY(tare_tensor_new_pooled(out, first->dtype, &shape, pool));
    size_t bytes = tare_tensor_bytes(first);
    for (size_t s = 0; s < batch->count; s++) {
        const struct tare_tensor *part = &batch->samples[s].feeds[feed];
        if (part->dtype != TARE_DT_STRING) {
            if (bytes > 0) memcpy((char *)out->data + s * bytes, part->data, bytes);
            continue;
        }
        for (int64_t i = 0; i < part->elements; i++) {
            const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, part)[i];
            TARE_TRY(tare_tensor_set_string(out, (int64_t)s * part->elements + i, text->data, text->size));
        }
    }
    return TARE_OK;
}

tare_status tare_batch_join(struct tare_tensor *joined, const struct tare_batch *batch, struct tare_buffer_pool *pool) {
    for (size_t i = 0; i < batch->n_feeds; i++)
        TARE_TRY(join_feed(&joined[i], batch, i, pool));
    return TARE_OK;
}

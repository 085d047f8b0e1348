/* Joins the samples of a batch on axis 0. */
#include "calib/batch.h"

#include "base/alloc.h"
#include "base/tensor/concat_rows.h"

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

tare_status tare_batch_join(struct tare_tensor *joined, const struct tare_batch *batch, struct tare_buffer_pool *pool) {
    const struct tare_tensor **rows = tare_calloc(batch->count, sizeof *rows);
    tare_status status = rows ? TARE_OK : TARE_NO_MEMORY;
    bool fits;
    for (size_t s = 0; s < batch->count && status == TARE_OK; s++)
        rows[s] = batch->samples[s].feeds;
    for (size_t i = 0; i < batch->n_feeds && status == TARE_OK; i++)
        if (rows[0][i].dtype != TARE_DT_INVALID)
            status = tare_concat_rows(&joined[i], rows, batch->count, i, &fits, pool);
    tare_free(rows);
    return status;
}

#include "datasets/joined_sample.h"
#include "base/alloc.h"
#include "base/tensor/concat_rows.h"

/* The values of a key, each with an axis of rows; `views` is reset by the caller. */
static tare_status view_rows(struct tare_tensor *views, const struct tare_sample *samples, size_t count,
                             const char *key) {
    for (size_t s = 0; s < count; s++) {
        const struct tare_tensor *value = tare_sample_find(&samples[s], key);
        const struct tare_shape one = tare_shape_make(1, 1);
        if (!value) return TARE_FAIL(TARE_SHAPE, "row %zu of a batch has no '%s', which the first row has", s, key);
        if (value->shape.rank > 0)
            tare_tensor_share(&views[s], value);
        else
            TARE_TRY(tare_tensor_share_as(&views[s], value, &one));
        if (value->dtype != views[0].dtype)
            return TARE_FAIL(TARE_SHAPE, "'%s' is %s in row %zu of a batch (expected %s, as in the first row)", key,
                             tare_dtype_name(value->dtype), s, tare_dtype_name(views[0].dtype));
    }
    return TARE_OK;
}

static tare_status join_views(struct tare_tensor *out, const struct tare_tensor *views, size_t count, const char *key) {
    const struct tare_tensor **rows = tare_calloc(count, sizeof *rows);
    bool fits = true;
    tare_status status = rows ? TARE_OK : TARE_NO_MEMORY;
    for (size_t s = 0; s < count && rows; s++)
        rows[s] = &views[s];
    if (status == TARE_OK) status = tare_concat_rows(out, rows, count, 0, &fits, NULL);
    tare_free(rows);
    if (status == TARE_OK && !fits)
        status = TARE_FAIL(TARE_SHAPE, "'%s' has other shapes in the rows of a batch than in the first one", key);
    return status;
}

static tare_status join_key(struct tare_tensor *out, const struct tare_sample *samples, size_t count, const char *key) {
    struct tare_tensor *views = tare_calloc(count, sizeof *views);
    tare_status status = views ? view_rows(views, samples, count, key) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = join_views(out, views, count, key);
    for (size_t s = 0; s < count && views; s++)
        tare_tensor_reset(&views[s]);
    tare_free(views);
    return status;
}

static tare_status join(struct tare_sample *out, const struct tare_sample *samples, size_t count) {
    const size_t keys = samples[0].count;
    out->keys = TARE_NEW_ARRAY(&out->arena, const char *, keys + 1);
    out->values = TARE_NEW_ARRAY(&out->arena, struct tare_tensor, keys + 1);
    if (!out->keys || !out->values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < keys; i++) {
        out->keys[i] = tare_arena_strdup(&out->arena, samples[0].keys[i]);
        if (!out->keys[i]) return TARE_NO_MEMORY;
        TARE_TRY(join_key(&out->values[i], samples, count, out->keys[i]));
        out->count++;
    }
    return TARE_OK;
}

tare_status tare_sample_join(struct tare_sample *out, const struct tare_sample *samples, size_t count) {
    *out = (struct tare_sample){ 0 };
    const tare_status status = join(out, samples, count);
    if (status != TARE_OK) tare_sample_reset(out);
    return status;
}

/* Shape arithmetic. */
#include "base/tensor/shape.h"
#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

struct tare_shape tare_shape_scalar(void) {
    return (struct tare_shape){ .rank = 0 };
}

struct tare_shape tare_shape_unknown(void) {
    return (struct tare_shape){ .rank = TARE_UNKNOWN_RANK };
}

tare_status tare_shape_from_dims(struct tare_shape *out, int rank, const int64_t *dims) {
    if (rank < 0 || rank > TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "rank %d is out of range (expected at most %d)", rank, TARE_MAX_RANK);
    *out = (struct tare_shape){ .rank = rank };
    for (int i = 0; i < rank; i++) {
        if (dims[i] < TARE_UNKNOWN_DIM)
            return TARE_FAIL(TARE_SHAPE, "dimension %d is negative (got %lld)", i, (long long)dims[i]);
        out->dims[i] = dims[i];
    }
    return TARE_OK;
}

bool tare_shape_is_known(const struct tare_shape *shape) {
    if (shape->rank < 0) return false;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0) return false;
    return true;
}

bool tare_shape_equal(const struct tare_shape *a, const struct tare_shape *b) {
    return a->rank == b->rank && (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

bool tare_shape_compatible(const struct tare_shape *a, const struct tare_shape *b) {
    if (a->rank < 0 || b->rank < 0) return true;
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i]) return false;
    return true;
}

static tare_status contradiction(const char *what, const struct tare_shape *a, const struct tare_shape *b) {
    char left[TARE_SHAPE_TEXT_SIZE], right[TARE_SHAPE_TEXT_SIZE];
    return TARE_FAIL(TARE_SHAPE, "shapes %s and %s %s", tare_shape_text(left, a), tare_shape_text(right, b), what);
}

tare_status tare_shape_merge(struct tare_shape *out, const struct tare_shape *a, const struct tare_shape *b) {
    if (!tare_shape_compatible(a, b)) return contradiction("are incompatible", a, b);
    struct tare_shape merged = a->rank < 0 ? *b : *a;
    for (int i = 0; i < merged.rank && a->rank >= 0 && b->rank >= 0; i++)
        if (merged.dims[i] < 0) merged.dims[i] = b->dims[i];
    *out = merged;
    return TARE_OK;
}

/* A product without the dims of 0, so that no product of some dims overflows where a tensor is empty. */
static bool dims_fit(int64_t *count, bool *empty, const struct tare_shape *shape) {
    bool fits = true;
    *count = 1;
    *empty = false;
    for (int i = 0; i < shape->rank && fits; i++) {
        if (shape->dims[i] == 0)
            *empty = true;
        else
            fits = tare_mul_i64(count, *count, shape->dims[i]);
    }
    return fits && *count <= INT64_MAX / TARE_MAX_ELEMENT_SIZE;
}

tare_status tare_shape_elements(int64_t *out, const struct tare_shape *shape) {
    char text[TARE_SHAPE_TEXT_SIZE];
    int64_t count;
    bool empty;
    if (!tare_shape_is_known(shape))
        return TARE_FAIL(TARE_SHAPE, "shape %s is not known", tare_shape_text(text, shape));
    if (!dims_fit(&count, &empty, shape))
        return TARE_FAIL(TARE_SHAPE, "shape %s has too many elements", tare_shape_text(text, shape));
    *out = empty ? 0 : count;
    return TARE_OK;
}

static bool broadcast_dim(int64_t *out, int64_t a, int64_t b) {
    if (a == 1) return *out = b, true;
    if (b == 1) return *out = a, true;
    if (a < 0 && b < 0) return *out = TARE_UNKNOWN_DIM, true;
    if (a < 0 || b < 0)
        return *out = a < 0 ? b : a,
               true; /* one is unknown, the known one is not 1: the unknown one must be equal to it or 1 */
    *out = a;
    return a == b;
}

tare_status tare_shape_broadcast(struct tare_shape *out, const struct tare_shape *a, const struct tare_shape *b) {
    struct tare_shape result;
    if (a->rank < 0 || b->rank < 0) {
        *out = tare_shape_unknown();
        return TARE_OK;
    }
    result.rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < result.rank; i++) {
        int ia = i - (result.rank - a->rank), ib = i - (result.rank - b->rank);
        if (!broadcast_dim(&result.dims[i], ia < 0 ? 1 : a->dims[ia], ib < 0 ? 1 : b->dims[ib]))
            return contradiction("do not broadcast", a, b);
    }
    *out = result;
    return TARE_OK;
}

const char *tare_shape_text(char text[TARE_SHAPE_TEXT_SIZE], const struct tare_shape *shape) {
    int used = 0;
    if (shape->rank < 0) return strcpy(text, "<unknown>");
    used = snprintf(text, TARE_SHAPE_TEXT_SIZE, "[");
    for (int i = 0; i < shape->rank && used < TARE_SHAPE_TEXT_SIZE - 24; i++) {
        const char *comma = i ? "," : "";
        if (shape->dims[i] < 0)
            used += snprintf(text + used, TARE_SHAPE_TEXT_SIZE - (size_t)used, "%s?", comma);
        else
            used +=
                snprintf(text + used, TARE_SHAPE_TEXT_SIZE - (size_t)used, "%s%lld", comma, (long long)shape->dims[i]);
    }
    snprintf(text + used, TARE_SHAPE_TEXT_SIZE - (size_t)used, "]");
    return text;
}

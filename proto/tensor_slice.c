/* Boxes inside tensors. */
#include "proto/tensor_slice.h"
#include "base/alloc.h"

#include <inttypes.h>
#include <string.h>

struct tare_slice tare_slice_of_all(const struct tare_shape *whole) {
    struct tare_slice slice;
    memset(&slice, 0, sizeof slice);
    slice.shape = *whole;
    return slice;
}

tare_status tare_slice_check(const struct tare_slice *slice, const struct tare_shape *whole) {
    if (slice->shape.rank != whole->rank)
        return TARE_FAIL(TARE_CORRUPT, "a slice has rank %d (expected %d)", slice->shape.rank, whole->rank);
    for (int d = 0; d < whole->rank; d++) {
        int64_t start = slice->start[d], length = slice->shape.dims[d];
        if (start >= 0 && length >= 0 && start <= whole->dims[d] && length <= whole->dims[d] - start) continue;
        return TARE_FAIL(TARE_CORRUPT,
                         "a slice is outside the tensor (dimension %d: %" PRId64 " from %" PRId64 " of %" PRId64 ")", d,
                         length, start, whole->dims[d]);
    }
    return TARE_OK;
}

/* ---- text ---- */

static bool read_number(int64_t *out, const char **at) {
    int64_t value = 0;
    if (**at < '0' || **at > '9') return false;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (!tare_mul_i64(&value, value, 10) || !tare_add_i64(&value, value, **at - '0')) return false;
    *out = value;
    return true;
}

static bool read_dims(struct tare_shape *whole, const char **at) {
    memset(whole, 0, sizeof *whole);
    while (whole->rank < TARE_MAX_RANK && read_number(&whole->dims[whole->rank], at)) {
        whole->rank++;
        if (*(*at)++ != ' ') return false;
        if (!strchr(*at, ' ')) return true; /* the rest is the slice */
    }
    return false;
}

static bool read_extents(struct tare_slice *out, const struct tare_shape *whole, const char *at) {
    out->shape.rank = whole->rank;
    for (int d = 0; d < whole->rank; d++) {
        if (d && *at++ != ':') return false;
        out->start[d] = 0;
        out->shape.dims[d] = whole->dims[d];
        if (*at == '-') {
            at++;
            continue;
        }
        if (!read_number(&out->start[d], &at) || *at++ != ',' || !read_number(&out->shape.dims[d], &at)) return false;
    }
    return *at == '\0';
}

tare_status tare_slice_parse(struct tare_slice *out, struct tare_shape *whole, const char *text) {
    const char *at = text;
    memset(out, 0, sizeof *out);
    if (!read_dims(whole, &at) || !read_extents(out, whole, at))
        return TARE_FAIL(TARE_CORRUPT, "'%s' is not a slice (expected a string like '100 20 0,50:-')", text);
    return tare_error_prefix(tare_slice_check(out, whole), "slice '%s'", text);
}

/* ---- elements ---- */

bool tare_slice_overlap(struct tare_slice *out, const struct tare_slice *a, const struct tare_slice *b) {
    memset(out, 0, sizeof *out);
    out->shape.rank = a->shape.rank;
    for (int d = 0; d < a->shape.rank; d++) {
        int64_t start = a->start[d] > b->start[d] ? a->start[d] : b->start[d];
        int64_t a_end = a->start[d] + a->shape.dims[d], b_end = b->start[d] + b->shape.dims[d];
        int64_t end = a_end < b_end ? a_end : b_end;
        if (end <= start) return false;
        out->start[d] = start;
        out->shape.dims[d] = end - start;
    }
    return true;
}

/* Flat index in the tensor of `box` of the element at `index` of box `inner`, which is contained in it. */
static int64_t place_of(const struct tare_slice *box, const struct tare_slice *inner, const int64_t *index) {
    int64_t at = 0;
    for (int d = 0; d < box->shape.rank; d++)
        at = at * box->shape.dims[d] + inner->start[d] - box->start[d] + index[d];
    return at;
}

static tare_status copy_run(struct tare_tensor *target, int64_t to, const struct tare_tensor *source, int64_t from,
                            int64_t count) {
    size_t element = tare_dtype_size(target->dtype);
    if (target->dtype != TARE_DT_STRING) {
        memcpy((char *)target->data + (size_t)to * element, (const char *)source->data + (size_t)from * element,
               (size_t)count * element);
        return TARE_OK;
    }
    for (int64_t k = 0; k < count; k++) {
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, source)[from + k];
        TARE_TRY(tare_tensor_set_string(target, to + k, text->data, text->size));
    }
    return TARE_OK;
}

tare_status tare_slice_copy(struct tare_tensor *target, const struct tare_slice *to, const struct tare_tensor *source,
                            const struct tare_slice *from) {
    struct tare_slice shared;
    int rank = to->shape.rank;
    int64_t index[TARE_MAX_RANK] = { 0 }, elements, run;
    if (!tare_slice_overlap(&shared, to, from)) return TARE_OK;
    TARE_TRY(tare_shape_elements(&elements, &shared.shape));
    run = rank ? shared.shape.dims[rank - 1] : 1;
    for (int64_t done = 0; done < elements; done += run) {
        TARE_TRY(copy_run(target, place_of(to, &shared, index), source, place_of(from, &shared, index), run));
        for (int d = rank - 2; d >= 0 && ++index[d] == shared.shape.dims[d]; d--)
            index[d] = 0;
    }
    return TARE_OK;
}

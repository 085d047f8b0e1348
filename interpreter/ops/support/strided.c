/* The slice specification of StridedSlice. */
#include "interpreter/ops/support/strided.h"

#include "base/alloc.h"
#include "base/clamp.h"

enum { GATHER_NEW = -1, GATHER_SHRUNK = -2, MAX_ENTRIES = 32 };

/* The specification with one entry a dimension of the sliced tensor. */
struct dense_spec {
    int rank;
    int64_t begin[TARE_MAX_RANK], end[TARE_MAX_RANK], step[TARE_MAX_RANK];
    bool begin_known[TARE_MAX_RANK], end_known[TARE_MAX_RANK], step_known[TARE_MAX_RANK];
    bool whole_begin[TARE_MAX_RANK], whole_end[TARE_MAX_RANK], shrink[TARE_MAX_RANK];
    int gather[MAX_ENTRIES + TARE_MAX_RANK]; /* an input dimension, or GATHER_… */
    int gathers;
};

struct masks {
    int64_t begin, end, ellipsis, new_axis, shrink;
};

static bool bit(int64_t mask, int i) {
    return mask >> i & 1;
}

static void read(int64_t *value, bool *known, const struct tare_tensor *tensor, int i, int64_t fallback) {
    *known = tensor;
    *value = tensor ? tare_tensor_get_i64(tensor, i) : fallback;
}

static tare_status add_entry(struct dense_spec *dense, int at, int i, const struct masks *masks,
                             const struct tare_tensor *begin, const struct tare_tensor *end,
                             const struct tare_tensor *strides) {
    if (at >= dense->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Index out of range using input dim %d; input has only %d dims", at,
                         dense->rank);
    read(&dense->begin[at], &dense->begin_known[at], begin, i, 0);
    read(&dense->end[at], &dense->end_known[at], end, i, 0);
    read(&dense->step[at], &dense->step_known[at], strides, i, 1);
    dense->whole_begin[at] = bit(masks->begin, i);
    dense->whole_end[at] = bit(masks->end, i);
    dense->shrink[at] = bit(masks->shrink, i);
    dense->gather[dense->gathers++] = dense->shrink[at] ? GATHER_SHRUNK : at;
    return TARE_OK;
}

static void add_whole(struct dense_spec *dense, int at) {
    dense->begin[at] = dense->end[at] = 0;
    dense->step[at] = 1;
    dense->begin_known[at] = dense->end_known[at] = dense->step_known[at] = true;
    dense->whole_begin[at] = dense->whole_end[at] = true;
    dense->gather[dense->gathers++] = at;
}

/* Spreads the sparse entries over the dimensions; an ellipsis (there is one at the end when none is written) takes what
 * the others leave. */
static tare_status spread(struct dense_spec *dense, const struct masks *masks, int length,
                          const struct tare_tensor *begin, const struct tare_tensor *end,
                          const struct tare_tensor *strides) {
    int at = 0, behind = 0; /* entries after the ellipsis that use a dimension */
    bool seen = false;
    for (int i = 0; i < length; i++) {
        if (bit(masks->ellipsis, i)) {
            if (seen) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Multiple ellipses in slice spec not allowed");
            seen = true;
        } else if (seen && !bit(masks->new_axis, i)) {
            behind++;
        }
    }
    for (int i = 0; i < length; i++) {
        if (bit(masks->ellipsis, i)) {
            while (at < dense->rank - behind)
                add_whole(dense, at++);
        } else if (bit(masks->new_axis, i)) {
            dense->gather[dense->gathers++] = GATHER_NEW;
        } else {
            TARE_TRY(add_entry(dense, at++, i, masks, begin, end, strides));
        }
    }
    while (!seen && at < dense->rank)
        add_whole(dense, at++);
    if (at < dense->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the slice covers %d of %d dimensions", at, dense->rank);
    return TARE_OK;
}

/* Start, step and count of dimension d. */
static tare_status resolve(struct tare_strided *out, const struct dense_spec *dense, int d, int64_t dim) {
    int64_t step = dense->step[d], begin = dense->begin[d], end = dense->end[d], low, high, length;
    out->step[d] = step;
    out->start[d] = 0;
    out->counts.dims[d] = dense->shrink[d] ? 1 : TARE_UNKNOWN_DIM;
    if (!dense->step_known[d]) return TARE_OK;
    if (step == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "strides[%d] must be non-zero", d);
    if (dense->shrink[d] && step <= 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "only stride 1 allowed on non-range indexing.");
    if (dim == TARE_UNKNOWN_DIM) return TARE_OK;
    if (dense->shrink[d]) {
        int64_t at = begin < 0 ? begin + dim : begin;
        if (!dense->begin_known[d]) return TARE_OK;
        if (at < 0 || at >= dim)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "slice index %lld of dimension %d out of bounds.", (long long)begin,
                             d);
        out->start[d] = at;
        return TARE_OK;
    }
    if ((!dense->whole_begin[d] && !dense->begin_known[d]) || (!dense->whole_end[d] && !dense->end_known[d]))
        return TARE_OK;
    low = step > 0 ? 0 : -1;
    high = step > 0 ? dim : dim - 1;
    begin = dense->whole_begin[d] ? (step > 0 ? low : high) : tare_clamp(begin < 0 ? begin + dim : begin, low, high);
    end = dense->whole_end[d] ? (step > 0 ? high : low) : tare_clamp(end < 0 ? end + dim : end, low, high);
    length = end - begin;
    out->start[d] = begin;
    if (length == 0 || (length < 0) != (step < 0))
        out->counts.dims[d] = 0;
    else if (step == INT64_MIN)
        out->counts.dims[d] = 1;
    else
        out->counts.dims[d] = length / step + (length % step != 0);
    return TARE_OK;
}

static tare_status check_vectors(const struct tare_tensor *begin, const struct tare_tensor *end,
                                 const struct tare_tensor *strides, int64_t length) {
    const struct tare_tensor *all[] = { begin, end, strides };
    for (int i = 0; i < 3; i++)
        if (all[i] && (all[i]->shape.rank != 1 || all[i]->elements != length))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Expected begin, end, and strides to be 1D equal size tensors, but got sizes %lld and "
                             "%lld instead.",
                             (long long)all[i]->elements, (long long)length);
    return TARE_OK;
}

tare_status tare_strided_make(struct tare_strided *out, const struct tare_node *node, const struct tare_shape *in,
                              const struct tare_tensor *begin, const struct tare_tensor *end,
                              const struct tare_tensor *strides, int64_t length) {
    struct dense_spec dense = { .rank = in->rank };
    struct masks masks = { tare_node_int(node, "begin_mask", 0), tare_node_int(node, "end_mask", 0),
                           tare_node_int(node, "ellipsis_mask", 0), tare_node_int(node, "new_axis_mask", 0),
                           tare_node_int(node, "shrink_axis_mask", 0) };
    *out = (struct tare_strided){ .rank = in->rank, .counts = *in, .result = tare_shape_unknown() };
    TARE_TRY(check_vectors(begin, end, strides, length));
    if (length >= MAX_ENTRIES)
        return TARE_FAIL(TARE_UNSUPPORTED, "a slice of %lld entries (expected at most %d)", (long long)length,
                         MAX_ENTRIES - 1);
    if (in->rank == TARE_UNKNOWN_RANK || length < 0) return TARE_OK;
    TARE_TRY(spread(&dense, &masks, (int)length, begin, end, strides));
    for (int d = 0; d < in->rank; d++)
        TARE_TRY(resolve(out, &dense, d, in->dims[d]));
    out->result.rank = 0;
    for (int i = 0; i < dense.gathers; i++) {
        int from = dense.gather[i];
        if (from == GATHER_SHRUNK) continue;
        if (out->result.rank == TARE_MAX_RANK)
            return TARE_FAIL(TARE_SHAPE, "the result has more than %d dimensions", TARE_MAX_RANK);
        out->origin[out->result.rank] = from;
        out->result.dims[out->result.rank++] = from == GATHER_NEW ? 1 : out->counts.dims[from];
    }
    return TARE_OK;
}

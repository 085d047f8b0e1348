/* Segment reductions with sorted and unsorted ids. Real sums and products accumulate in double and are rounded once
 * (docs/numerics.md: reduce-in-double); integers wrap. */
#include "base/alloc.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "base/tensor/number.h"

#include <complex.h>
#include <math.h>
#include <string.h>

enum segment_kind { SEGMENT_SUM, SEGMENT_MEAN, SEGMENT_PROD, SEGMENT_MAX, SEGMENT_MIN };
struct segment_op {
    enum segment_kind kind;
};

typedef _Complex double complex128;

/* An accumulator for any dtype. */
struct running {
    double real;
    uint64_t bits;
    complex128 pair;
};

enum domain { REAL, INTEGER, PAIR };
static enum domain domain_of(int dtype) {
    const enum tare_dtype_class class = tare_dtype_get(dtype)->class;
    return class == TARE_CLASS_FLOAT ? REAL : class == TARE_CLASS_COMPLEX ? PAIR : INTEGER;
}

static bool is_unsigned(int dtype) {
    return tare_dtype_get(dtype)->class == TARE_CLASS_UNSIGNED;
}

/* The result for a segment without rows: 0, 1, or the lowest (highest) value of the dtype. */
static struct running empty_value(enum segment_kind kind, int dtype) {
    struct running value = { 0 };
    const int bits = (int)tare_dtype_size(dtype) * 8;
    if (kind == SEGMENT_PROD) {
        value = (struct running){ 1, 1, 1 };
    } else if (kind == SEGMENT_MAX || kind == SEGMENT_MIN) {
        const uint64_t top = is_unsigned(dtype) ? UINT64_MAX >> (64 - bits) : (UINT64_C(1) << (bits - 1)) - 1;
        const double limit = dtype == TARE_DT_HALF       ? 65504.0
                             : dtype == TARE_DT_BFLOAT16 ? 0x1.fep127
                             : dtype == TARE_DT_FLOAT    ? 0x1.fffffep127
                                                         : 0x1.fffffffffffffp1023;
        value.real = kind == SEGMENT_MAX ? -limit : limit;
        value.bits = kind == SEGMENT_MIN ? top : is_unsigned(dtype) ? 0 : ~top;
    }
    return value;
}

static void add_real(double *to, double x, enum segment_kind kind) {
    switch (kind) {
    case SEGMENT_SUM:
    case SEGMENT_MEAN:
        *to += x;
        break;
    case SEGMENT_PROD:
        *to *= x;
        break;
    case SEGMENT_MAX:
        *to = x > *to || isnan(x) ? x : *to;
        break;
    case SEGMENT_MIN:
        *to = x < *to || isnan(x) ? x : *to;
        break;
    }
}

static void add_integer(uint64_t *to, uint64_t x, enum segment_kind kind, bool has_sign) {
    const uint64_t flip = has_sign ? UINT64_C(1) << 63 : 0; /* maps signed order to unsigned order */
    switch (kind) {
    case SEGMENT_SUM:
    case SEGMENT_MEAN:
        *to += x;
        break;
    case SEGMENT_PROD:
        *to *= x;
        break;
    case SEGMENT_MAX:
        *to = (x ^ flip) > (*to ^ flip) ? x : *to;
        break;
    case SEGMENT_MIN:
        *to = (x ^ flip) < (*to ^ flip) ? x : *to;
        break;
    }
}

static void add_element(struct running *to, const struct tare_tensor *data, int64_t i, enum segment_kind kind) {
    switch (domain_of(data->dtype)) {
    case REAL:
        add_real(&to->real, tare_tensor_get_f64(data, i), kind);
        break;
    case INTEGER:
        add_integer(&to->bits, (uint64_t)tare_tensor_get_i64(data, i), kind, !is_unsigned(data->dtype));
        break;
    case PAIR:
        to->pair =
            kind == SEGMENT_PROD ? to->pair * tare_tensor_get_c128(data, i) : to->pair + tare_tensor_get_c128(data, i);
        break;
    }
}

static void store_running(struct tare_tensor *to, int64_t i, const struct running *value) {
    switch (domain_of(to->dtype)) {
    case REAL:
        tare_tensor_set_f64(to, i, value->real);
        break;
    case INTEGER:
        tare_tensor_set_i64(to, i, (int64_t)value->bits);
        break;
    case PAIR:
        tare_tensor_set_c128(to, i, value->pair);
        break;
    }
}

static void divide(struct running *value, int dtype, int64_t count) {
    if (count == 0) return;
    value->real /= (double)count;
    value->pair /= (double)count;
    value->bits = is_unsigned(dtype) ? value->bits / (uint64_t)count : (uint64_t)((int64_t)value->bits / count);
}

/* ---- the reduction: `data` consists of rows of `inner` elements; each is added to the segment of its id (negative
 * ids are ignored) ---- */

static tare_status reduce_segments(struct tare_kernel *kernel, const struct tare_shape *shape, int64_t rows,
                                   int64_t inner, bool gaps_are_zero) {
    const struct tare_tensor *data = &kernel->inputs[0], *ids = &kernel->inputs[1];
    const enum segment_kind kind = ((const struct segment_op *)kernel->op->aux)->kind;
    TARE_TRY(tare_kernel_output(kernel, 0, data->dtype, shape));
    struct tare_tensor *output = &kernel->outputs[0];
    const int64_t segments = shape->dims[0];
    struct running *values = TARE_NEW_ARRAY(kernel->scratch, struct running, (size_t)output->elements);
    int64_t *counts = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)segments);
    if (!values || !counts) return TARE_NO_MEMORY;
    const struct running empty = empty_value(kind, data->dtype), zero = { 0 };
    for (int64_t i = 0; i < output->elements; i++)
        values[i] = empty;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t id = tare_tensor_get_i64(ids, row);
        if (id < 0) continue;
        counts[id]++;
        for (int64_t k = 0; k < inner; k++)
            add_element(&values[id * inner + k], data, row * inner + k, kind);
    }
    for (int64_t i = 0; i < output->elements; i++) {
        const int64_t count = counts[i / inner];
        if (kind == SEGMENT_MEAN) divide(&values[i], data->dtype, count);
        store_running(output, i, count == 0 && gaps_are_zero && kind != SEGMENT_PROD ? &zero : &values[i]);
    }
    return TARE_OK;
}

/* ---- sorted: ids must not decrease ---- */

static tare_status infer_sorted(struct tare_infer *infer) {
    if (infer->inputs[1].rank >= 0 && infer->inputs[1].rank != 1)
        return TARE_FAIL(TARE_SHAPE, "segment_ids has rank %d (expected 1)", infer->inputs[1].rank);
    if (infer->inputs[0].rank == 0) return TARE_FAIL(TARE_SHAPE, "data is a scalar");
    infer->outputs[0] = infer->inputs[0];
    if (infer->inputs[0].rank < 0) return TARE_OK;
    const struct tare_tensor *ids = infer->input_values[1];
    int64_t *segments = &infer->outputs[0].dims[0];
    *segments = TARE_UNKNOWN_DIM;
    if (ids) {
        const int64_t last = ids->elements ? tare_tensor_get_i64(ids, ids->elements - 1) : -1;
        if (last >= -1 && last < INT64_MAX) *segments = last + 1;
    }
    return TARE_OK;
}

static tare_status check_sorted(const struct tare_tensor *ids) {
    for (int64_t i = 0; i < ids->elements; i++) {
        const int64_t id = tare_tensor_get_i64(ids, i);
        if (id < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment ids must be >= 0 (got %lld)", (long long)id);
        if (i > 0 && id < tare_tensor_get_i64(ids, i - 1))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment ids are not increasing (%lld after %lld)", (long long)id,
                             (long long)tare_tensor_get_i64(ids, i - 1));
    }
    return TARE_OK;
}

static tare_status run_sorted(struct tare_kernel *kernel) {
    const struct tare_tensor *data = &kernel->inputs[0], *ids = &kernel->inputs[1];
    struct tare_shape shape = data->shape;
    int64_t elements;
    if (ids->shape.rank != 1) return TARE_FAIL(TARE_SHAPE, "segment_ids should be a vector");
    if (shape.rank == 0 || shape.dims[0] != ids->elements)
        return TARE_FAIL(TARE_SHAPE, "segment_ids should be the same size as dimension 0 of input");
    TARE_TRY(check_sorted(ids));
    shape.dims[0] = ids->elements ? tare_tensor_get_i64(ids, ids->elements - 1) : -1;
    if (!tare_add_i64(&shape.dims[0], shape.dims[0], 1)) return TARE_FAIL(TARE_SHAPE, "a segment id is too large");
    TARE_TRY(tare_shape_elements(&elements, &shape));
    const int64_t inner = ids->elements ? data->elements / ids->elements : 1;
    return reduce_segments(kernel, &shape, ids->elements, inner, true);
}

/* ---- unsorted: the shape of the ids is a prefix of the shape of the data ---- */

static tare_status unsorted_shape(struct tare_shape *out, const struct tare_shape *data, const struct tare_shape *ids,
                                  int64_t segments) {
    *out = tare_shape_unknown();
    if (data->rank < 0 || ids->rank < 0) return TARE_OK;
    if (ids->rank > data->rank) return TARE_FAIL(TARE_SHAPE, "segment_ids has rank %d, data %d", ids->rank, data->rank);
    for (int d = 0; d < ids->rank; d++) {
        char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
        if (data->dims[d] >= 0 && ids->dims[d] >= 0 && data->dims[d] != ids->dims[d])
            return TARE_FAIL(TARE_SHAPE, "data.shape = %s does not start with segment_ids.shape = %s",
                             tare_shape_text(a, data), tare_shape_text(b, ids));
    }
    if (data->rank - ids->rank + 1 > TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "the result's rank is too high");
    out->rank = 0;
    out->dims[out->rank++] = segments;
    for (int d = ids->rank; d < data->rank; d++)
        out->dims[out->rank++] = data->dims[d];
    return TARE_OK;
}

static tare_status read_segments(int64_t *out, const struct tare_tensor *operand) {
    if (operand->elements != 1) return TARE_FAIL(TARE_SHAPE, "num_segments should be a scalar");
    *out = tare_tensor_get_i64(operand, 0);
    if (*out < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input num_segments == %lld must not be negative.", (long long)*out);
    return TARE_OK;
}

static tare_status infer_unsorted(struct tare_infer *infer) {
    int64_t segments = TARE_UNKNOWN_DIM;
    if (infer->input_values[2]) TARE_TRY(read_segments(&segments, infer->input_values[2]));
    return unsorted_shape(&infer->outputs[0], &infer->inputs[0], &infer->inputs[1], segments);
}

static tare_status run_unsorted(struct tare_kernel *kernel) {
    const struct tare_tensor *data = &kernel->inputs[0], *ids = &kernel->inputs[1];
    struct tare_shape shape;
    int64_t segments = 0, inner = 1, elements;
    TARE_TRY(read_segments(&segments, &kernel->inputs[2]));
    TARE_TRY(unsorted_shape(&shape, &data->shape, &ids->shape, segments));
    TARE_TRY(tare_shape_elements(&elements, &shape));
    for (int64_t i = 0; i < ids->elements; i++) {
        const int64_t id = tare_tensor_get_i64(ids, i);
        if (id >= segments)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment_ids[%lld] = %lld is out of range [0, %lld)", (long long)i,
                             (long long)id, (long long)segments);
    }
    for (int d = ids->shape.rank; d < data->shape.rank; d++)
        inner *= data->shape.dims[d];
    return reduce_segments(kernel, &shape, ids->elements, inner, false);
}

static const struct segment_op sum_op = { SEGMENT_SUM }, mean_op = { SEGMENT_MEAN }, prod_op = { SEGMENT_PROD },
                               max_op = { SEGMENT_MAX }, min_op = { SEGMENT_MIN };

#define SORTED(op_name, table)                                                                                         \
    { .name = op_name, .infer = infer_sorted, .run = run_sorted, .aux = &table, .flags = TARE_OP_REDUCE }
#define UNSORTED(op_name, table)                                                                                       \
    { .name = op_name, .infer = infer_unsorted, .run = run_unsorted, .aux = &table, .flags = TARE_OP_REDUCE }

const struct tare_op tare_ops_segment[] = {
    SORTED("SegmentSum", sum_op),
    SORTED("SegmentMean", mean_op),
    SORTED("SegmentProd", prod_op),
    SORTED("SegmentMax", max_op),
    SORTED("SegmentMin", min_op),
    UNSORTED("UnsortedSegmentSum", sum_op),
    UNSORTED("UnsortedSegmentProd", prod_op),
    UNSORTED("UnsortedSegmentMax", max_op),
    UNSORTED("UnsortedSegmentMin", min_op),
    { 0 },
};

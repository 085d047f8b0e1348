/* Ops over axes: sums, extremes, softmax, positions of extremes, running sums. */
#include "convert/stablehlo/emit/emit.h"

#include <math.h>
#include <string.h>

#define B (&emit->build)

/* The axes of input `k`, sorted, from 0 on. */
static tare_status axes_of(int64_t *axes, size_t *count, struct tare_emit *emit, const struct tare_node *node, size_t k,
                           int rank) {
    bool is_reduced[TARE_MAX_RANK] = { 0 };
    TARE_TRY(tare_emit_in_ints(axes, count, emit, node, k));
    for (size_t i = 0; i < *count; i++)
        is_reduced[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
    *count = 0;
    for (int i = 0; i < rank; i++)
        if (is_reduced[i]) axes[(*count)++] = i;
    return TARE_OK;
}

/* The least (sign -1) or greatest number of a dtype: the neutral element of maximum and minimum. */
static tare_build_value extreme(struct tare_emit *emit, int dtype, int sign) {
    const struct tare_shape scalar = tare_shape_scalar();
    return tare_build_splat(B, dtype, &scalar, sign * (double)INFINITY); /* integers saturate */
}

static tare_build_value neutral(struct tare_emit *emit, const char *name, int dtype) {
    if (strcmp(name, "maximum") == 0) return extreme(emit, dtype, -1);
    if (strcmp(name, "minimum") == 0) return extreme(emit, dtype, 1);
    return tare_build_scalar(B, dtype, strcmp(name, "multiply") == 0 || strcmp(name, "and") == 0);
}

/* The dtype in which numbers of a dtype are added. */
static int wide_dtype(int dtype) {
    return dtype == TARE_DT_BFLOAT16 || dtype == TARE_DT_HALF ? TARE_DT_FLOAT : dtype;
}

/* Sums of 16-bit floats are float32, as TensorFlow's and XLA's. */
static tare_build_value reduced(struct tare_emit *emit, const char *name, tare_build_value x, const int64_t *axes,
                                size_t count) {
    if (!x) return NULL;
    const int dtype = tare_build_dtype(x);
    const bool adds = strcmp(name, "add") == 0 || strcmp(name, "multiply") == 0;
    const int wide = adds ? wide_dtype(dtype) : dtype;
    const tare_build_value first = neutral(emit, name, wide);
    const tare_build_value sum = tare_build_reduce(B, name, tare_build_convert(B, x, wide), first, axes, count);
    return tare_build_convert(B, sum, dtype);
}

static tare_status emit_reduce(struct tare_emit *emit, const struct tare_node *node, const void *name) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), out = tare_emit_out_shape(emit, node, 0);
    int64_t axes[TARE_MAX_RANK];
    size_t count;
    TARE_TRY(axes_of(axes, &count, emit, node, 1, in.rank));
    return tare_emit_set(emit, node, 0,
                         tare_build_reshape(B, reduced(emit, name, tare_emit_in(emit, node, 0), axes, count), &out));
}

static tare_status emit_mean(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), out = tare_emit_out_shape(emit, node, 0);
    const tare_build_value x = tare_emit_in(emit, node, 0);
    int64_t axes[TARE_MAX_RANK], elements = 1;
    size_t count;
    (void)arg;
    TARE_TRY(axes_of(axes, &count, emit, node, 1, in.rank));
    for (size_t i = 0; i < count; i++)
        elements *= in.dims[axes[i]];
    if (!x) return TARE_OK;
    const int dtype = tare_build_dtype(x);
    const int wide = wide_dtype(dtype);
    const tare_build_value sum =
        tare_build_reshape(B, reduced(emit, "add", tare_build_convert(B, x, wide), axes, count), &out);
    const tare_build_value mean =
        tare_build_binary(B, "divide", sum, tare_build_splat(B, wide, &out, (double)elements));
    return tare_emit_set(emit, node, 0, tare_build_convert(B, mean, dtype));
}

/* The value without the last axis, in every element of it. */
static tare_build_value along_last(struct tare_emit *emit, tare_build_value x, const struct tare_shape *shape) {
    int dims[TARE_MAX_RANK];
    for (int i = 0; i + 1 < shape->rank; i++)
        dims[i] = i;
    return tare_build_spread(B, x, shape, dims);
}

/* Short types are computed in float and rounded once, as the op's kernel does (docs/numerics.md: softmax-max-shift). */
static tare_status emit_softmax(struct tare_emit *emit, const struct tare_node *node, const void *is_log) {
    const struct tare_shape shape = tare_emit_in_shape(emit, node, 0);
    const tare_build_value in = tare_emit_in(emit, node, 0);
    const int64_t last = shape.rank - 1;
    if (!in) return TARE_OK;
    const int dtype = tare_build_dtype(in);
    const tare_build_value x = tare_build_convert(B, in, wide_dtype(dtype));
    const tare_build_value shifted =
        tare_build_binary(B, "subtract", x, along_last(emit, reduced(emit, "maximum", x, &last, 1), &shape));
    const tare_build_value powers = tare_build_unary(B, "exponential", shifted);
    const tare_build_value sum = reduced(emit, "add", powers, &last, 1);
    const tare_build_value y =
        is_log ? tare_build_binary(B, "subtract", shifted, along_last(emit, tare_build_unary(B, "log", sum), &shape))
               : tare_build_binary(B, "divide", powers, along_last(emit, sum, &shape));
    return tare_emit_set(emit, node, 0, tare_build_convert(B, y, dtype));
}

/* Pairs of a value and its position are reduced: the better value wins, of equal ones the first. */
static tare_status emit_position(struct tare_emit *emit, const struct tare_node *node, const void *direction) {
    const struct tare_shape in = tare_emit_in_shape(emit, node, 0), out = tare_emit_out_shape(emit, node, 0);
    const int dtype = tare_emit_out_dtype(node, 0);
    const tare_build_value x = tare_emit_in(emit, node, 0);
    struct tare_shlo_block body = { 0 };
    struct tare_build_block block;
    int64_t axis;
    size_t count;
    TARE_TRY(tare_emit_in_ints(&axis, &count, emit, node, 1));
    if (axis < 0) axis += in.rank;
    if (!x) return TARE_OK;
    const tare_build_value initial = extreme(emit, tare_build_dtype(x), strcmp(direction, "GT") == 0 ? -1 : 1);
    const tare_build_value zero = tare_build_scalar(B, dtype, 0), positions = tare_build_iota(B, dtype, &in, (int)axis);
    if (!initial || !zero) return TARE_OK;
    const struct tare_shlo_type *const types[] = { initial->type, zero->type, initial->type, zero->type };
    const tare_build_value args = tare_build_arguments(B, &body, types, 4);
    if (!args) return TARE_OK;
    tare_build_begin(B, &block);
    const tare_build_value is_better = tare_build_compare(B, direction, &args[0], &args[2]);
    const tare_build_value is_equal = tare_build_compare(B, "EQ", &args[0], &args[2]);
    const tare_build_value is_first = tare_build_compare(B, "LT", &args[1], &args[3]);
    const tare_build_value keeps =
        tare_build_binary(B, "or", is_better, tare_build_binary(B, "and", is_equal, is_first));
    const tare_build_value results[] = { tare_build_select(B, keeps, &args[0], &args[2]),
                                         tare_build_select(B, keeps, &args[1], &args[3]) };
    tare_build_end(B, &body, results, 2);
    const struct tare_shlo_type *const out_types[] = { tare_build_type(B, tare_build_dtype(x), &out),
                                                       tare_build_type(B, dtype, &out) };
    const struct tare_build_named attr = { "dimensions", tare_build_ints(B, &axis, 1, 0) };
    const struct tare_shlo_op *op =
        tare_build_op(B, &(struct tare_build_request){ .name = "reduce",
                                                       .operands = (tare_build_value[]){ x, positions, initial, zero },
                                                       .n_operands = 4,
                                                       .attrs = &attr,
                                                       .n_attrs = 1,
                                                       .results = out_types,
                                                       .n_results = 2,
                                                       .regions = &body,
                                                       .n_regions = 1 });
    return tare_emit_set(emit, node, 0, op ? &op->results[1] : NULL);
}

const struct tare_emit_row tare_emit_reductions[] = {
    { "Sum", emit_reduce, "add" },     { "Prod", emit_reduce, "multiply" }, { "Max", emit_reduce, "maximum" },
    { "Min", emit_reduce, "minimum" }, { "All", emit_reduce, "and" },       { "Any", emit_reduce, "or" },
    { "Mean", emit_mean, NULL },       { "Softmax", emit_softmax, NULL },   { "LogSoftmax", emit_softmax, "log" },
    { "ArgMax", emit_position, "GT" }, { "ArgMin", emit_position, "LT" },   { 0 },
};

/* Ops of XLA, which have the attributes of StableHLO's ops as inputs and attributes: what the reader of modules makes
 * of theirs, too. */
#include "convert/stablehlo/emit/emit.h"

#include "interpreter/ops/support/dims_wire.h"

#include <string.h>

#define B (&emit->build)

enum { MOST_OPERANDS = 64 };

/* The integers of a constant input, of which there are at most TARE_MAX_RANK pairs. */
static tare_build_attr list(struct tare_emit *emit, const struct tare_node *node, size_t k, size_t columns) {
    const struct tare_tensor *constant = tare_emit_in_constant(emit, node, k);
    int64_t values[2 * TARE_MAX_RANK];
    if (!constant || constant->elements > 2 * TARE_MAX_RANK) {
        tare_build_fail(
            B, TARE_FAIL(TARE_UNSUPPORTED, "input %zu is computed when the model runs (expected a constant)", k));
        return NULL;
    }
    for (int64_t i = 0; i < constant->elements; i++)
        values[i] = tare_tensor_get_i64(constant, i);
    return tare_build_ints(B, values, (size_t)constant->elements, columns);
}

static const struct tare_shlo_type *out_type(struct tare_emit *emit, const struct tare_node *node, size_t i) {
    const struct tare_shape shape = tare_emit_out_shape(emit, node, i);
    return tare_build_type(B, tare_emit_out_dtype(node, i), &shape);
}

/* The types of scalars with the elements of inputs first … first + count - 1, each `times` times. */
static const struct tare_shlo_type **scalars(struct tare_emit *emit, const tare_build_value *values, size_t count,
                                             size_t times) {
    const struct tare_shape scalar = tare_shape_scalar();
    const struct tare_shlo_type **types = TARE_NEW_ARRAY(&emit->arena, const struct tare_shlo_type *, count *times + 1);
    for (size_t i = 0; types && i < count * times; i++) {
        if (!values[i / times]) return NULL;
        types[i] = tare_build_type(B, tare_build_dtype(values[i / times]), &scalar);
    }
    return types;
}

/* ---- slices ---- */

/* The elements of a vector, as scalars. */
static size_t elements_of(tare_build_value *out, struct tare_emit *emit, tare_build_value vector) {
    const struct tare_shape scalar = tare_shape_scalar();
    const int64_t count = vector ? vector->type->dims[0] : 0, stride = 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t limit = i + 1;
        out[i] = tare_build_reshape(B, tare_build_slice(B, vector, &i, &limit, &stride), &scalar);
    }
    return (size_t)count;
}

tare_build_value tare_emit_dynamic_slice(struct tare_emit *emit, tare_build_value x, tare_build_value first,
                                         const struct tare_shape *sizes) {
    tare_build_value operands[TARE_MAX_RANK + 1] = { x };
    if (!x || !first || !sizes->rank) return x;
    const size_t count = elements_of(operands + 1, emit, first);
    const struct tare_build_named attr = { "slice_sizes", tare_build_ints(B, sizes->dims, (size_t)sizes->rank, 0) };
    const struct tare_shlo_type *type = tare_build_type(B, tare_build_dtype(x), sizes);
    return tare_build_value_of(B, &(struct tare_build_request){ .name = "dynamic_slice",
                                                                .operands = operands,
                                                                .n_operands = 1 + count,
                                                                .attrs = &attr,
                                                                .n_attrs = 1,
                                                                .results = &type,
                                                                .n_results = 1 });
}

static tare_status emit_dynamic_slice(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape sizes = tare_emit_out_shape(emit, node, 0);
    const tare_build_value x = tare_emit_in(emit, node, 0), first = tare_emit_in(emit, node, 1);
    (void)arg;
    return tare_emit_set(emit, node, 0, tare_emit_dynamic_slice(emit, x, first, &sizes));
}

static tare_status emit_dynamic_update_slice(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0), update = tare_emit_in(emit, node, 1),
                           first = tare_emit_in(emit, node, 2);
    tare_build_value operands[TARE_MAX_RANK + 2] = { x, update };
    (void)arg;
    if (!x || !update || !first) return emit->build.status;
    const size_t count = elements_of(operands + 2, emit, first);
    return tare_emit_set(emit, node, 0,
                         count ? tare_build_value_of(B, &(struct tare_build_request){ .name = "dynamic_update_slice",
                                                                                      .operands = operands,
                                                                                      .n_operands = 2 + count,
                                                                                      .results = &x->type,
                                                                                      .n_results = 1 })
                               : update);
}

static tare_status emit_pad(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0), value = tare_emit_in(emit, node, 1);
    int64_t sizes[3][TARE_MAX_RANK];
    size_t count;
    (void)arg;
    for (size_t i = 0; i < 3; i++)
        TARE_TRY(tare_emit_in_ints(sizes[i], &count, emit, node, 2 + i));
    return tare_emit_set(emit, node, 0, tare_build_pad(B, x, value, sizes[0], sizes[1], sizes[2]));
}

/* ---- gather and scatter ---- */

static tare_build_attr field(struct tare_emit *emit, const struct tare_dims_field *fields, int number) {
    return tare_build_ints(B, fields[number - 1].values, fields[number - 1].count, 0);
}

/* Reads xla.GatherDimensionNumbers or xla.ScatterDimensionNumbers, whose fields have the same numbers. */
static tare_status read_fields(struct tare_dims_field fields[6], const struct tare_node *node) {
    for (int i = 0; i < 6; i++)
        fields[i] = (struct tare_dims_field){ .number = i + 1 };
    return tare_dims_read(fields, 6, node, "dimension_numbers");
}

static tare_status emit_gather(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value operands[] = { tare_emit_in(emit, node, 0), tare_emit_in(emit, node, 1) };
    const struct tare_shlo_type *type = out_type(emit, node, 0);
    struct tare_dims_field fields[6];
    (void)arg;
    TARE_TRY(read_fields(fields, node));
    const struct tare_build_named attrs[] = {
        { "collapsed_slice_dims", field(emit, fields, 2) },
        { "index_vector_dim", tare_build_int(B, tare_dims_single(&fields[3])) },
        { "indices_are_sorted", tare_build_bool(B, tare_node_bool(node, "indices_are_sorted", false)) },
        { "offset_dims", field(emit, fields, 1) },
        { "operand_batching_dims", field(emit, fields, 5) },
        { "slice_sizes", list(emit, node, 2, 0) },
        { "start_index_map", field(emit, fields, 3) },
        { "start_indices_batching_dims", field(emit, fields, 6) },
    };
    return tare_emit_set(emit, node, 0,
                         tare_build_value_of(B, &(struct tare_build_request){ .name = "gather",
                                                                              .operands = operands,
                                                                              .n_operands = 2,
                                                                              .attrs = attrs,
                                                                              .n_attrs = sizeof attrs / sizeof *attrs,
                                                                              .results = &type,
                                                                              .n_results = 1 }));
}

static tare_status emit_scatter(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value operands[] = { tare_emit_in(emit, node, 0), tare_emit_in(emit, node, 1),
                                          tare_emit_in(emit, node, 2) };
    const struct tare_shlo_type **types = scalars(emit, operands, 1, 2), *type = out_type(emit, node, 0);
    struct tare_shlo_block body = { 0 };
    struct tare_dims_field fields[6];
    (void)arg;
    if (!types) return emit->build.status;
    TARE_TRY(read_fields(fields, node));
    TARE_TRY(tare_emit_region(&body, emit, tare_node_function(node, "update_computation"), types, NULL, 2));
    const struct tare_build_named attrs[] = {
        { "index_vector_dim", tare_build_int(B, tare_dims_single(&fields[3])) },
        { "indices_are_sorted", tare_build_bool(B, tare_node_bool(node, "indices_are_sorted", false)) },
        { "input_batching_dims", field(emit, fields, 5) },
        { "inserted_window_dims", field(emit, fields, 2) },
        { "scatter_dims_to_operand_dims", field(emit, fields, 3) },
        { "scatter_indices_batching_dims", field(emit, fields, 6) },
        { "unique_indices", tare_build_bool(B, false) },
        { "update_window_dims", field(emit, fields, 1) },
    };
    return tare_emit_set(emit, node, 0,
                         tare_build_value_of(B, &(struct tare_build_request){ .name = "scatter",
                                                                              .operands = operands,
                                                                              .n_operands = 3,
                                                                              .attrs = attrs,
                                                                              .n_attrs = sizeof attrs / sizeof *attrs,
                                                                              .results = &type,
                                                                              .n_results = 1,
                                                                              .regions = &body,
                                                                              .n_regions = 1 }));
}

/* ---- functions over elements ---- */

/* Inputs and as many initial values, and a function of two elements of each. */
static tare_status emit_reduce(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    tare_build_value operands[MOST_OPERANDS];
    const struct tare_shlo_type *results[MOST_OPERANDS / 2];
    struct tare_shlo_block body = { 0 };
    int64_t dims[TARE_MAX_RANK];
    const struct tare_attr *axes = tare_node_list(node, "dimensions_to_reduce");
    const size_t count = axes ? axes->count : 0;
    (void)arg;
    for (size_t i = 0; i < count && i < TARE_MAX_RANK; i++)
        dims[i] = axes->items[i].i;
    if (node->n_inputs > MOST_OPERANDS) return TARE_FAIL(TARE_UNSUPPORTED, "%zu operands", node->n_inputs);
    for (size_t i = 0; i < node->n_inputs; i++)
        operands[i] = tare_emit_in(emit, node, i);
    for (size_t i = 0; i < node->n_outputs; i++)
        results[i] = out_type(emit, node, i);
    const struct tare_shlo_type **types = scalars(emit, operands, node->n_inputs, 1);
    if (!types) return emit->build.status;
    TARE_TRY(tare_emit_region(&body, emit, tare_node_function(node, "reducer"), types, NULL, node->n_inputs));
    const struct tare_build_named attr = { "dimensions", tare_build_ints(B, dims, count, 0) };
    return tare_emit_results(emit, node,
                             tare_build_op(B, &(struct tare_build_request){ .name = "reduce",
                                                                            .operands = operands,
                                                                            .n_operands = node->n_inputs,
                                                                            .attrs = &attr,
                                                                            .n_attrs = 1,
                                                                            .results = results,
                                                                            .n_results = node->n_outputs,
                                                                            .regions = &body,
                                                                            .n_regions = 1 }));
}

static tare_status emit_reduce_window(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value operands[] = { tare_emit_in(emit, node, 0), tare_emit_in(emit, node, 1) };
    const struct tare_shlo_type **types = scalars(emit, operands, 1, 2), *type = out_type(emit, node, 0);
    struct tare_shlo_block body = { 0 };
    (void)arg;
    if (!types) return emit->build.status;
    TARE_TRY(tare_emit_region(&body, emit, tare_node_function(node, "computation"), types, NULL, 2));
    const struct tare_build_named attrs[] = {
        { "base_dilations", list(emit, node, 4, 0) },   { "padding", list(emit, node, 6, 2) },
        { "window_dilations", list(emit, node, 5, 0) }, { "window_dimensions", list(emit, node, 2, 0) },
        { "window_strides", list(emit, node, 3, 0) },
    };
    return tare_emit_set(emit, node, 0,
                         tare_build_value_of(B, &(struct tare_build_request){ .name = "reduce_window",
                                                                              .operands = operands,
                                                                              .n_operands = 2,
                                                                              .attrs = attrs,
                                                                              .n_attrs = 5,
                                                                              .results = &type,
                                                                              .n_results = 1,
                                                                              .regions = &body,
                                                                              .n_regions = 1 }));
}

static tare_status emit_select_and_scatter(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value operands[] = { tare_emit_in(emit, node, 0), tare_emit_in(emit, node, 4),
                                          tare_emit_in(emit, node, 5) };
    const struct tare_shlo_type **types = scalars(emit, operands, 1, 2), *type = out_type(emit, node, 0);
    struct tare_shlo_block bodies[2] = { 0 };
    (void)arg;
    if (!types) return emit->build.status;
    TARE_TRY(tare_emit_region(&bodies[0], emit, tare_node_function(node, "select"), types, NULL, 2));
    TARE_TRY(tare_emit_region(&bodies[1], emit, tare_node_function(node, "scatter"), types, NULL, 2));
    const struct tare_build_named attrs[] = {
        { "padding", list(emit, node, 3, 2) },
        { "window_dimensions", list(emit, node, 1, 0) },
        { "window_strides", list(emit, node, 2, 0) },
    };
    return tare_emit_set(emit, node, 0,
                         tare_build_value_of(B, &(struct tare_build_request){ .name = "select_and_scatter",
                                                                              .operands = operands,
                                                                              .n_operands = 3,
                                                                              .attrs = attrs,
                                                                              .n_attrs = 3,
                                                                              .results = &type,
                                                                              .n_results = 1,
                                                                              .regions = bodies,
                                                                              .n_regions = 2 }));
}

static tare_status emit_sort(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const size_t count = node->n_outputs;
    tare_build_value operands[MOST_OPERANDS];
    const struct tare_shlo_type *results[MOST_OPERANDS];
    struct tare_shlo_block body = { 0 };
    int64_t axis;
    size_t n;
    (void)arg;
    if (count > MOST_OPERANDS) return TARE_FAIL(TARE_UNSUPPORTED, "%zu operands", count);
    TARE_TRY(tare_emit_in_ints(&axis, &n, emit, node, count));
    for (size_t i = 0; i < count; i++) {
        operands[i] = tare_emit_in(emit, node, i);
        results[i] = out_type(emit, node, i);
    }
    const struct tare_shlo_type **types = scalars(emit, operands, count, 2);
    if (!types) return emit->build.status;
    TARE_TRY(tare_emit_region(&body, emit, tare_node_function(node, "comparator"), types, NULL, 2 * count));
    const struct tare_build_named attrs[] = {
        { "dimension", tare_build_int(B, axis) },
        { "is_stable", tare_build_bool(B, tare_node_bool(node, "is_stable", false)) },
    };
    return tare_emit_results(emit, node,
                             tare_build_op(B, &(struct tare_build_request){ .name = "sort",
                                                                            .operands = operands,
                                                                            .n_operands = count,
                                                                            .attrs = attrs,
                                                                            .n_attrs = 2,
                                                                            .results = results,
                                                                            .n_results = count,
                                                                            .regions = &body,
                                                                            .n_regions = 1 }));
}

static tare_status emit_reduce_precision(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const tare_build_value x = tare_emit_in(emit, node, 0);
    const struct tare_build_named attrs[] = {
        { "exponent_bits", tare_build_int32(B, (int32_t)tare_node_int(node, "exponent_bits", 0)) },
        { "mantissa_bits", tare_build_int32(B, (int32_t)tare_node_int(node, "mantissa_bits", 0)) },
    };
    (void)arg;
    if (!x) return TARE_OK;
    return tare_emit_set(emit, node, 0,
                         tare_build_value_of(B, &(struct tare_build_request){ .name = "reduce_precision",
                                                                              .operands = &x,
                                                                              .n_operands = 1,
                                                                              .attrs = attrs,
                                                                              .n_attrs = 2,
                                                                              .results = &x->type,
                                                                              .n_results = 1 }));
}

/* The default algorithm of a CPU is PHILOX; the file says so, so that every device generates the same bits. */
static tare_status emit_random_bits(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    static const char *const algorithms[] = { "PHILOX", "THREE_FRY", "PHILOX" };
    const tare_build_value state = tare_emit_in(emit, node, 1);
    const struct tare_shlo_type *const results[] = { out_type(emit, node, 0), out_type(emit, node, 1) };
    int64_t algorithm;
    size_t n;
    (void)arg;
    TARE_TRY(tare_emit_in_ints(&algorithm, &n, emit, node, 0));
    if (algorithm < 0 || algorithm > 2) return TARE_FAIL(TARE_UNSUPPORTED, "algorithm %lld", (long long)algorithm);
    const struct tare_build_named attr = { "rng_algorithm",
                                           tare_build_enum(B, TARE_VHLO_RNG_ALGORITHM, algorithms[algorithm]) };
    return tare_emit_results(emit, node,
                             tare_build_op(B, &(struct tare_build_request){ .name = "rng_bit_generator",
                                                                            .operands = &state,
                                                                            .n_operands = 1,
                                                                            .attrs = &attr,
                                                                            .n_attrs = 1,
                                                                            .results = results,
                                                                            .n_results = 2 }));
}

/* ---- calls by name ---- */

/* LAPACK's calls describe the memory of their operands, which a graph does not. */
static tare_status emit_call(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const char *target = tare_node_string(node, "call_target_name", "");
    const char *config = tare_node_string(node, "backend_config", "");
    tare_build_value operands[MOST_OPERANDS];
    const struct tare_shlo_type *results[MOST_OPERANDS];
    (void)arg;
    if (strncmp(target, "lapack_", strlen("lapack_")) == 0)
        return TARE_FAIL(TARE_UNSUPPORTED, "a call of %s, for CPUs alone (export the model with platforms=(\"tpu\",))",
                         target);
    if (node->n_inputs > MOST_OPERANDS || node->n_outputs > MOST_OPERANDS)
        return TARE_FAIL(TARE_UNSUPPORTED, "%zu operands", node->n_inputs);
    for (size_t i = 0; i < node->n_inputs; i++)
        operands[i] = tare_emit_in(emit, node, i);
    for (size_t i = 0; i < node->n_outputs; i++)
        results[i] = out_type(emit, node, i);
    const struct tare_build_request request = {
        .operands = operands, .n_operands = node->n_inputs, .results = results, .n_results = node->n_outputs
    };
    return tare_emit_results(emit, node, tare_emit_call(emit, target, config, &request));
}

const struct tare_emit_row tare_emit_xla[] = {
    { "XlaCustomCallV2", emit_call, NULL },
    { "XlaDynamicSlice", emit_dynamic_slice, NULL },
    { "XlaDynamicUpdateSlice", emit_dynamic_update_slice, NULL },
    { "XlaPad", emit_pad, NULL },
    { "XlaGather", emit_gather, NULL },
    { "XlaScatter", emit_scatter, NULL },
    { "XlaVariadicReduceV2", emit_reduce, NULL },
    { "XlaReduceWindow", emit_reduce_window, NULL },
    { "XlaSelectAndScatter", emit_select_and_scatter, NULL },
    { "XlaVariadicSort", emit_sort, NULL },
    { "XlaReducePrecision", emit_reduce_precision, NULL },
    { "XlaRngBitGenerator", emit_random_bits, NULL },
    { 0 },
};

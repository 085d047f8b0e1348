/* XlaDot, XlaConv and their V2 forms, which quantized models use: int8 operands with exact int32 sums, float or
 * bfloat16 operands, and float operands with int8 weights. */
#include "interpreter/kernels/permute.h"
#include "interpreter/ops/support/float_rows.h"
#include "interpreter/ops/support/exact.h"
#include "interpreter/ops/support/few_rows.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/conv_tiling.h"
#include "interpreter/ops/support/epilogue.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/split.h"
#include "interpreter/ops/xla/dot_dims.h"
#include "interpreter/ops/xla/general_conv.h"
#include "interpreter/ops/linalg/product.h"

#include "base/alloc.h"
#include "interpreter/session.h"

#include <string.h>

/* What the geometry of a convolution depends on besides the attributes: the shapes, and the sizes and bytes of the
 * five window parameters. */
enum { WINDOW_PARAMETERS = 5, MOST_PARAMETER_BYTES = 128 };
struct conv_key {
    struct tare_shape lhs, rhs;
    size_t size;
    unsigned char parameters[MOST_PARAMETER_BYTES];
};

/* The geometry of a stage of a tiled run, and what it was computed from: the shapes, and window parameters that are
 * constants, of which `parameters` are shares, so that no other tensor can have their addresses. */
struct kept_stage {
    bool made;
    struct tare_shape lhs, rhs;
    struct tare_tensor parameters[WINDOW_PARAMETERS];
    struct tare_general_conv general; /* of one image */
};

struct xla_state {
    struct tare_weights weights;
    int64_t batch_groups;
    int output_dtype; /* 0: not read yet */
    int dims_rank;    /* of the arrays that `dims` was read for; 0: not read yet */
    struct tare_conv_dims dims;
    struct conv_key key; /* of `general`; size 0: not set */
    struct tare_general_conv general;
    struct kept_stage stage;
    bool has_dot; /* the product's dimensions were read, for operands of these shapes */
    struct tare_dot dot;
    struct tare_shape dot_lhs, dot_rhs;
};

static tare_status prepare_xla(struct tare_kernel *kernel) {
    struct xla_state *state = tare_calloc(1, sizeof *state);
    kernel->state = state;
    if (state) state->weights.owner = kernel->node;
    if (state) state->batch_groups = tare_node_int(kernel->node, "batch_group_count", 1);
    return !state ? TARE_NO_MEMORY : TARE_OK;
}

static void release_xla(void *pointer) {
    struct xla_state *state = pointer;
    if (!state) return;
    tare_weights_reset(&state->weights);
    for (int i = 0; i < WINDOW_PARAMETERS; i++)
        tare_tensor_reset(&state->stage.parameters[i]);
    tare_free(state);
}

static int output_dtype(const struct tare_kernel *kernel) {
    struct xla_state *state = kernel->state;
    const struct tare_node *node = kernel->node;
    if (state->output_dtype == 0)
        state->output_dtype =
            tare_node_type(node, "preferred_element_type", tare_node_type(node, "T", kernel->inputs[0].dtype));
    return state->output_dtype;
}

/* ---- element type of the computation ---- */

enum arithmetic { EXACT, FLOATS, DOUBLES };

static tare_status choose(enum arithmetic *out, int lhs, int rhs, int output) {
    if (tare_floats_dtype(output)) {
        *out = FLOATS;
        return TARE_OK;
    }
    if (output == TARE_DT_DOUBLE) {
        *out = DOUBLES;
        return TARE_OK;
    }
    *out = EXACT;
    if (tare_exact_dtype(output) && tare_exact_dtype(lhs) && tare_exact_dtype(rhs)) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "%s times %s giving %s", tare_dtype_name(lhs), tare_dtype_name(rhs),
                     tare_dtype_name(output));
}

static size_t size_in(enum arithmetic arithmetic) {
    return arithmetic == DOUBLES ? sizeof(double) : sizeof(float);
}

/* Returns the elements converted to double, in scratch. */
static double *doubles_in(struct tare_kernel *kernel, const struct tare_tensor *tensor) {
    double *copy = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)tensor->elements);
    for (int64_t i = 0; copy && i < tensor->elements; i++)
        copy[i] = tare_tensor_get_f64(tensor, i);
    return copy;
}

/* Returns operand `tensor` in the given axis order: unchanged for exact sums, otherwise converted to float or
 * double. */
static const void *operand(struct tare_kernel *kernel, enum arithmetic arithmetic, const struct tare_tensor *tensor,
                           const int *order) {
    const void *data = arithmetic == FLOATS    ? (const void *)tare_floats_in(kernel, tensor)
                       : arithmetic == DOUBLES ? (const void *)doubles_in(kernel, tensor)
                                               : tensor->data;
    if (!data) return NULL;
    const size_t size = arithmetic == EXACT ? tare_dtype_size(tensor->dtype) : size_in(arithmetic);
    return tare_in_order(kernel->scratch, data, size, &tensor->shape, order);
}

/* Whether the packed weights are cached, in which case the weights themselves are not read. */
static bool is_kept(const struct tare_kernel *kernel, int64_t key, bool plain) {
    struct xla_state *state = kernel->state;
    return !plain && tare_weights_find(&state->weights, &kernel->inputs[1], key);
}

static bool is_int8(int dtype) {
    return dtype == TARE_DT_INT8 || dtype == TARE_DT_QINT8;
}

/* The buffer for the result before rounding and reordering: the output's memory if neither is necessary. */
static void *result_room(struct tare_kernel *kernel, enum arithmetic arithmetic, bool in_place) {
    struct tare_tensor *output = &kernel->outputs[0];
    if (in_place && tare_dtype_size(output->dtype) == size_in(arithmetic)) return output->data;
    size_t bytes;
    if (!tare_mul_size(&bytes, (size_t)output->elements, size_in(arithmetic))) return NULL;
    return tare_arena_alloc(kernel->scratch, bytes);
}

/* Converts sums to the output's dtype; integers keep their low bits. */
static void store(struct tare_tensor *output, enum arithmetic arithmetic, const void *values) {
    if (values == output->data) return;
    const size_t size = tare_dtype_size(output->dtype);
    if (arithmetic == FLOATS) {
        tare_floats_to(output->data, output->dtype, values, output->elements);
        return;
    }
    for (int64_t i = 0; i < output->elements; i++)
        memcpy((char *)output->data + (size_t)i * size, (const char *)values + (size_t)i * size_in(arithmetic), size);
}

/* ---- passing the result on ---- */

/* Offers the result to the consumer, if there is one; otherwise, or if it refuses, creates the output. */
static tare_status begin_output(struct tare_kernel *kernel, enum arithmetic arithmetic, int dtype,
                                const struct tare_shape *shape, bool may_pass) {
    const bool lanes = arithmetic == FLOATS || (arithmetic == EXACT && tare_dtype_size(dtype) == sizeof(int32_t));
    if (may_pass && lanes) TARE_TRY(tare_kernel_begin_rows(kernel, shape));
    if (kernel->consumer && kernel->consumer->accepted) return TARE_OK;
    return tare_kernel_output(kernel, 0, dtype, shape);
}

static struct tare_consumer *taking_consumer(const struct tare_kernel *kernel) {
    return kernel->consumer && kernel->consumer->accepted ? kernel->consumer : NULL;
}

/* ---- convolution ---- */

static tare_status vector_of(int64_t values[TARE_MOST_SPATIAL], const struct tare_tensor *tensor, int spatial,
                             const char *what) {
    if (tensor->elements != spatial || tensor->shape.rank != 1)
        return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected %d)", what, (long long)tensor->elements, spatial);
    for (int i = 0; i < spatial; i++)
        values[i] = tare_tensor_get_i64(tensor, i);
    return TARE_OK;
}

static tare_status conv_windows(struct tare_conv_windows *windows, const struct tare_node *node, int spatial,
                                const struct tare_tensor *const inputs[5]) {
    const struct tare_tensor *padding = inputs[1];
    TARE_TRY(vector_of(windows->stride, inputs[0], spatial, "window_strides"));
    TARE_TRY(vector_of(windows->lhs_dilation, inputs[2], spatial, "lhs_dilation"));
    TARE_TRY(vector_of(windows->rhs_dilation, inputs[3], spatial, "rhs_dilation"));
    if (padding->elements != 2 * spatial)
        return TARE_FAIL(TARE_SHAPE, "padding has %lld elements (expected %d)", (long long)padding->elements,
                         2 * spatial);
    for (int i = 0; i < 2 * spatial; i++)
        windows->pad[i / 2][i % 2] = tare_tensor_get_i64(padding, i);
    if (inputs[4]->elements != 1) return TARE_FAIL(TARE_SHAPE, "feature_group_count is not a scalar");
    windows->groups = tare_tensor_get_i64(inputs[4], 0);
    const int64_t batch_groups = tare_node_int(node, "batch_group_count", 1);
    if (batch_groups == 1) return TARE_OK;
    if (windows->groups != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "batch_group_count is %lld and feature_group_count is %lld (expected 1 "
                         "for one of them)",
                         (long long)batch_groups, (long long)windows->groups);
    windows->groups = batch_groups; /* of the operand that regroup returns */
    return TARE_OK;
}

/* The shape of an operand [groups * n, channels] whose batch groups have become groups of channels. */
static tare_status regroup_shape(struct tare_shape *shape, const struct tare_conv_dims *dims, int64_t groups) {
    int64_t *batch = &shape->dims[dims->input_batch], *channels = &shape->dims[dims->input_feature];
    if (groups < 1 || *batch % groups)
        return TARE_FAIL(TARE_SHAPE, "batch_group_count %lld does not divide the batch of %lld", (long long)groups,
                         (long long)*batch);
    if (*channels > INT32_MAX / groups) return TARE_FAIL(TARE_SHAPE, "%lld batch groups", (long long)groups);
    *batch /= groups;
    *channels *= groups;
    return TARE_OK;
}

static tare_status read_dims(struct tare_conv_dims *dims, const struct tare_node *node, int rank) {
    if (rank < 2 || rank > 5) return TARE_FAIL(TARE_SHAPE, "lhs has rank %d (expected 2 to 5)", rank);
    return tare_conv_dims_read(dims, node, "dimension_numbers", rank, TARE_CONV_XLA);
}

static tare_status set_conv(struct tare_general_conv *general, const struct tare_node *node,
                            const struct tare_conv_dims *dims, const struct tare_shape *lhs,
                            const struct tare_shape *rhs, const struct tare_tensor *const inputs[5]) {
    struct tare_conv_windows windows;
    TARE_TRY(conv_windows(&windows, node, dims->spatial, inputs));
    return tare_general_conv_set(general, dims, &windows, lhs, rhs);
}

/* The dimension numbers of an execution, which are read once. */
static tare_status kept_dims(const struct tare_conv_dims **out, const struct tare_kernel *kernel) {
    struct xla_state *state = kernel->state;
    const int rank = kernel->inputs[0].shape.rank;
    *out = &state->dims;
    if (state->dims_rank != 0 && state->dims_rank == rank) return TARE_OK;
    state->dims_rank = 0;
    TARE_TRY(read_dims(&state->dims, kernel->node, rank));
    state->dims_rank = rank;
    return TARE_OK;
}

/* The key of an execution; false if its parameters are too large for one. */
static bool set_key(struct conv_key *key, const struct tare_kernel *kernel, const struct tare_tensor *const inputs[5]) {
    key->lhs = kernel->inputs[0].shape;
    key->rhs = kernel->inputs[1].shape;
    key->size = 0;
    for (int i = 0; i < WINDOW_PARAMETERS; i++) {
        const size_t bytes = tare_tensor_bytes(inputs[i]);
        if (bytes >= MOST_PARAMETER_BYTES - key->size || inputs[i]->splat) return false;
        key->parameters[key->size++] = (unsigned char)bytes;
        if (bytes > 0) memcpy(key->parameters + key->size, inputs[i]->data, bytes);
        key->size += bytes;
    }
    return true;
}

static bool same_key(const struct conv_key *a, const struct conv_key *b) {
    return a->size == b->size && memcmp(a->parameters, b->parameters, a->size) == 0 &&
           tare_shape_equal(&a->lhs, &b->lhs) && tare_shape_equal(&a->rhs, &b->rhs);
}

/* The geometry of an execution, computed again only if the shapes or window parameters have changed. */
static tare_status conv_of(const struct tare_general_conv **general, const struct tare_kernel *kernel,
                           const struct tare_tensor *const inputs[5], int8_t pad_value) {
    struct xla_state *state = kernel->state;
    const struct tare_conv_dims *dims;
    struct conv_key key;
    const bool has_key = set_key(&key, kernel, inputs);
    if (!has_key || !same_key(&key, &state->key)) {
        state->key.size = 0;
        TARE_TRY(kept_dims(&dims, kernel));
        TARE_TRY(
            set_conv(&state->general, kernel->node, dims, &kernel->inputs[0].shape, &kernel->inputs[1].shape, inputs));
        if (has_key) state->key = key;
    }
    state->general.conv.pad_value = pad_value;
    *general = &state->general;
    return TARE_OK;
}

/* Infers batch and channels, which do not depend on the windows. */
static void infer_outer(struct tare_infer *infer, const struct tare_conv_dims *dims) {
    const struct tare_shape *lhs = &infer->inputs[0], *rhs = &infer->inputs[1];
    struct tare_shape *output = &infer->outputs[0];
    output->rank = dims->spatial + 2;
    for (int i = 0; i < output->rank; i++)
        output->dims[i] = TARE_UNKNOWN_DIM;
    const int64_t batch = lhs->dims[dims->input_batch], groups = tare_node_int(infer->node, "batch_group_count", 1);
    output->dims[dims->output_batch] = batch < 0 || groups < 1 ? TARE_UNKNOWN_DIM : batch / groups;
    if (rhs->rank == output->rank) output->dims[dims->output_feature] = rhs->dims[dims->kernel_output];
}

static tare_status infer_xla_conv(struct tare_infer *infer) {
    const struct tare_shape *lhs = &infer->inputs[0], *rhs = &infer->inputs[1];
    struct tare_shape known_lhs = *lhs;
    struct tare_general_conv general;
    struct tare_conv_dims dims;
    if (lhs->rank < 2) return TARE_OK;
    TARE_TRY(read_dims(&dims, infer->node, lhs->rank));
    infer_outer(infer, &dims);
    for (int i = 2; i < 7; i++) {
        if (!infer->input_values[i]) return TARE_OK;
    }
    if (!tare_shape_is_known(rhs) || lhs->dims[dims.input_feature] < 0) return TARE_OK;
    const int64_t groups = tare_node_int(infer->node, "batch_group_count", 1);
    for (int i = 0; i < lhs->rank; i++) /* unknown sizes count as 1, a batch as one of each group; the sizes that depend
                                           on them become unknown again */
        if (lhs->dims[i] < 0) known_lhs.dims[i] = i == dims.input_batch ? groups : 1;
    TARE_TRY(regroup_shape(&known_lhs, &dims, groups));
    TARE_TRY(set_conv(&general, infer->node, &dims, &known_lhs, rhs, infer->input_values + 2));
    infer->outputs[0] = general.output;
    if (lhs->dims[dims.input_batch] < 0) infer->outputs[0].dims[dims.output_batch] = -1;
    for (int i = 0; i < dims.spatial; i++) {
        if (lhs->dims[dims.input_spatial[i]] < 0) infer->outputs[0].dims[dims.output_spatial[i]] = -1;
    }
    return TARE_OK;
}

/* Prepares the weights of a float convolution for the kernel: packed, or as floats for a depthwise one. */
static tare_status float_weights(struct tare_kernel *kernel, float **out, const struct tare_general_conv *general) {
    struct xla_state *state = kernel->state;
    const struct tare_tensor *rhs = &kernel->inputs[1];
    const struct tare_conv *conv = &general->conv;
    const bool depthwise = tare_conv_is_depthwise(conv);
    const int64_t key = tare_exact_key(conv, TARE_DT_FLOAT, TARE_DT_FLOAT);
    *out = tare_weights_find(&state->weights, rhs, key);
    if (*out) return TARE_OK;
    const size_t floats = depthwise ? (size_t)rhs->elements : tare_conv_packed_floats(conv);
    const bool bytes = is_int8(rhs->dtype);
    const void *weights = operand(kernel, bytes ? EXACT : FLOATS, rhs, general->rhs_order);
    if (!weights) return TARE_NO_MEMORY;
    float *packed = tare_weights_make(&state->weights, rhs, key, floats * sizeof(float), kernel->scratch);
    if (!packed) return TARE_NO_MEMORY;
    if (depthwise)
        tare_floats_from(packed, bytes ? TARE_DT_INT8 : TARE_DT_FLOAT, weights, rhs->elements);
    else if (bytes)
        tare_conv_pack_int8(packed, conv, weights);
    else
        tare_conv_pack(packed, conv, weights);
    *out = tare_weights_publish(&state->weights, packed);
    return TARE_OK;
}

static tare_status float_conv(struct tare_kernel *kernel, float *result, const struct tare_general_conv *general,
                              bool plain) {
    const struct tare_conv *conv = &general->conv;
    const float *lhs = operand(kernel, FLOATS, &kernel->inputs[0], general->lhs_order);
    float *weights;
    if (!lhs) return TARE_NO_MEMORY;
    if (plain) {
        const float *rhs = operand(kernel, FLOATS, &kernel->inputs[1], general->rhs_order);
        if (!rhs) return TARE_NO_MEMORY;
        tare_conv_plain_f32(result, conv, lhs, rhs);
        return TARE_OK;
    }
    TARE_TRY(float_weights(kernel, &weights, general));
    /* a float result that is stored in place may be fused with what follows it; one in bfloat16 is rounded later */
    struct tare_gemm_epilogue room;
    const bool may_fuse = result == kernel->outputs[0].data;
    return tare_split_conv(tare_session_op_pool(kernel->session), kernel->scratch, result, conv, lhs, weights,
                           may_fuse ? tare_take_epilogue(&room, kernel) : NULL);
}

static tare_status exact_conv(struct tare_kernel *kernel, int32_t *result, const struct tare_general_conv *general,
                              bool plain) {
    struct xla_state *state = kernel->state;
    const struct tare_tensor *lhs = &kernel->inputs[0], *rhs = &kernel->inputs[1];
    struct tare_exact exact = {
        .lhs_dtype = lhs->dtype,
        .rhs_dtype = rhs->dtype,
        .lhs = operand(kernel, EXACT, lhs, general->lhs_order),
        .weights = &state->weights,
        .source = rhs,
        .scratch = kernel->scratch,
        .threads = tare_session_op_pool(kernel->session),
        .plain = plain,
        .consumer = taking_consumer(kernel),
    };
    const bool without =
        is_kept(kernel, tare_exact_key(&general->conv, lhs->dtype, rhs->dtype), plain) && is_int8(lhs->dtype);
    if (!without) exact.rhs = operand(kernel, EXACT, rhs, general->rhs_order);
    if (!exact.lhs || (!without && !exact.rhs)) return TARE_NO_MEMORY;
    return tare_exact_conv(result, &exact, &general->conv);
}

static tare_status double_conv(struct tare_kernel *kernel, double *result, const struct tare_general_conv *general) {
    const double *lhs = operand(kernel, DOUBLES, &kernel->inputs[0], general->lhs_order);
    const double *rhs = operand(kernel, DOUBLES, &kernel->inputs[1], general->rhs_order);
    if (!lhs || !rhs) return TARE_NO_MEMORY;
    tare_conv_plain_f64(result, &general->conv, lhs, rhs);
    return TARE_OK;
}

/* The float result of a product whose values a consumer takes: `count` elements. */
static tare_status pass_floats(struct tare_kernel *kernel, float **values, int64_t count) {
    size_t bytes;
    if (!tare_mul_size(&bytes, (size_t)count, sizeof **values)) return TARE_NO_MEMORY;
    *values = tare_arena_alloc(kernel->scratch, bytes);
    return !*values ? TARE_NO_MEMORY : TARE_OK;
}

static tare_status pass_conv(struct tare_kernel *kernel, enum arithmetic arithmetic,
                             const struct tare_general_conv *general) {
    float *weights;
    if (arithmetic == EXACT) return exact_conv(kernel, NULL, general, false);
    const float *lhs = operand(kernel, FLOATS, &kernel->inputs[0], general->lhs_order);
    if (!lhs) return TARE_NO_MEMORY;
    TARE_TRY(float_weights(kernel, &weights, general));
    return tare_float_rows_conv(kernel, &general->conv, lhs, weights);
}

static tare_status store_conv(struct tare_kernel *kernel, enum arithmetic arithmetic,
                              const struct tare_general_conv *general, bool plain) {
    const bool stored = tare_general_conv_is_stored(general);
    void *result = result_room(kernel, arithmetic, stored), *ordered = result;
    if (!result) return TARE_NO_MEMORY;
    TARE_TRY(arithmetic == EXACT     ? exact_conv(kernel, result, general, plain)
             : arithmetic == DOUBLES ? double_conv(kernel, result, general)
                                     : float_conv(kernel, result, general, plain));
    if (!stored) {
        ordered = result_room(kernel, arithmetic, true);
        if (!ordered) return TARE_NO_MEMORY;
        tare_general_conv_store(general, ordered, result, size_in(arithmetic));
    }
    store(&kernel->outputs[0], arithmetic, ordered);
    return TARE_OK;
}

/* The padding of the preceding PadV2 as the convolution's own: `padding` with the amounts of the spatial dimensions in
 * `amounts`. False if batch or channels are padded, or the convolution pads as well. */
static bool join_padding(struct tare_tensor *padding, int64_t amounts[2 * TARE_MOST_SPATIAL],
                         const struct tare_kernel *kernel) {
    const struct tare_tensor *outer = kernel->consumer->paddings, *own = &kernel->inputs[3];
    const int rank = kernel->inputs[0].shape.rank, spatial = rank - 2;
    const struct tare_conv_dims *dims;
    if (rank < 3 || rank > 5 || outer->elements != 2 * rank || own->elements != 2 * spatial) return false;
    if (kept_dims(&dims, kernel) != TARE_OK) {
        tare_error_clear(); /* the convolution reports it */
        return false;
    }
    int64_t others = 0;
    for (int side = 0; side < 2; side++) {
        others |= tare_tensor_get_i64(outer, 2 * dims->input_batch + side);
        others |= tare_tensor_get_i64(outer, 2 * dims->input_feature + side);
        for (int i = 0; i < spatial; i++) {
            amounts[2 * i + side] = tare_tensor_get_i64(outer, 2 * dims->input_spatial[i] + side);
            others |= tare_tensor_get_i64(own, 2 * i + side);
            if (amounts[2 * i + side] < 0) return false;
        }
    }
    *padding = (struct tare_tensor){ .dtype = TARE_DT_INT64,
                                     .shape = tare_shape_make(2, (int64_t)spatial, (int64_t)2),
                                     .elements = 2 * spatial,
                                     .data = amounts };
    return others == 0;
}

/* The convolution with the padding that the consumer passes; does nothing if it cannot include it. */
static tare_status run_padded_conv(struct tare_kernel *kernel) {
    int64_t amounts[2 * TARE_MOST_SPATIAL];
    struct tare_tensor padding;
    const struct tare_general_conv *general;
    const struct tare_tensor *lhs = &kernel->inputs[0], *rhs = &kernel->inputs[1];
    const int dtype = output_dtype(kernel);
    if (!is_int8(lhs->dtype) || !is_int8(rhs->dtype) || dtype != TARE_DT_INT32 || lhs->elements == 0 ||
        rhs->elements == 0 || !join_padding(&padding, amounts, kernel))
        return TARE_OK;
    const struct tare_tensor *const inputs[5] = { &kernel->inputs[2], &padding, &kernel->inputs[4], &kernel->inputs[5],
                                                  &kernel->inputs[6] };
    const int8_t pad_value = (int8_t)tare_tensor_get_i64(kernel->consumer->pad_value, 0);
    if (conv_of(&general, kernel, inputs, pad_value) != TARE_OK) {
        tare_error_clear(); /* reported when the steps run one by one */
        return TARE_OK;
    }
    if (!tare_general_conv_is_stored(general) || !tare_exact_pads(&general->conv, lhs->dtype, rhs->dtype))
        return TARE_OK;
    TARE_TRY(tare_kernel_begin_rows(kernel, &general->output));
    return kernel->consumer->accepted ? pass_conv(kernel, EXACT, general) : TARE_OK;
}

static tare_status run_conv_any(struct tare_kernel *kernel, bool plain) {
    const struct tare_tensor *inputs[5];
    const struct tare_general_conv *general;
    enum arithmetic arithmetic;
    if (kernel->consumer && kernel->consumer->paddings) return run_padded_conv(kernel);
    for (int i = 0; i < 5; i++)
        inputs[i] = &kernel->inputs[i + 2];
    const int dtype = output_dtype(kernel);
    TARE_TRY(choose(&arithmetic, kernel->inputs[0].dtype, kernel->inputs[1].dtype, dtype));
    TARE_TRY(conv_of(&general, kernel, inputs, 0));
    const bool is_empty = kernel->inputs[0].elements == 0 || kernel->inputs[1].elements == 0;
    TARE_TRY(begin_output(kernel, arithmetic, dtype, &general->output,
                          !plain && !is_empty && tare_general_conv_is_stored(general)));
    if (taking_consumer(kernel)) return pass_conv(kernel, arithmetic, general);
    struct tare_tensor *output = &kernel->outputs[0];
    if (output->elements == 0) return TARE_OK;
    if (!is_empty) return store_conv(kernel, arithmetic, general, plain);
    memset(output->data, 0, tare_tensor_bytes(output));
    return TARE_OK;
}

/* The left operand with its batch groups as groups of channels, in scratch. */
static tare_status regroup(struct tare_tensor *out, const struct tare_kernel *kernel, int64_t groups) {
    const struct tare_tensor *lhs = &kernel->inputs[0];
    const struct tare_conv_dims *dims;
    struct tare_shape split = { .rank = lhs->shape.rank + 1 };
    int order[6], n = 0;
    TARE_TRY(kept_dims(&dims, kernel));
    *out = (struct tare_tensor){ .dtype = lhs->dtype, .shape = lhs->shape, .elements = lhs->elements };
    TARE_TRY(regroup_shape(&out->shape, dims, groups));
    for (int i = 0; i < lhs->shape.rank; i++) { /* the axes of the operand; after the batch they are one further */
        const int axis = i + (i >= dims->input_batch);
        split.dims[axis] = i == dims->input_batch ? out->shape.dims[i] : lhs->shape.dims[i];
        if (i == dims->input_feature) order[n++] = dims->input_batch;
        order[n++] = axis;
    }
    split.dims[dims->input_batch] = groups;
    out->data = tare_arena_alloc(kernel->scratch, tare_tensor_bytes(lhs) + 1);
    if (!out->data) return TARE_NO_MEMORY;
    if (lhs->elements) tare_permute(out->data, lhs->data, tare_dtype_size(lhs->dtype), n, split.dims, order);
    return TARE_OK;
}

static tare_status run_grouped_conv(struct tare_kernel *kernel, bool plain) {
    const int64_t groups = ((const struct xla_state *)kernel->state)->batch_groups;
    struct tare_tensor inputs[7];
    if (groups == 1) return run_conv_any(kernel, plain);
    struct tare_kernel inner = *kernel;
    if (kernel->consumer && kernel->consumer->paddings) return TARE_OK; /* the steps run one by one */
    memcpy(inputs, kernel->inputs, sizeof inputs);
    inner.inputs = inputs;
    TARE_TRY(regroup(&inputs[0], kernel, groups));
    return run_conv_any(&inner, plain);
}

/* The geometry of an execution whose input has another shape than input 0. */
static tare_status conv_on(const struct tare_general_conv **general, struct tare_kernel *kernel,
                           const struct tare_shape *shape) {
    const struct tare_tensor *const own = kernel->inputs, *windows[WINDOW_PARAMETERS];
    struct tare_tensor operands[] = { { .dtype = TARE_DT_FLOAT, .shape = *shape }, own[1] };
    for (int i = 0; i < WINDOW_PARAMETERS; i++)
        windows[i] = &own[i + 2];
    kernel->inputs = operands;
    const tare_status status = conv_of(general, kernel, windows, 0);
    kernel->inputs = own;
    return status;
}

/* Whether the geometry is that of the last run; comparing addresses is enough for constants. */
static bool is_kept_stage(const struct kept_stage *kept, const struct tare_kernel *kernel,
                          const struct tare_shape *shape) {
    if (!kept->made || !tare_shape_equal(&kept->lhs, shape) || !tare_shape_equal(&kept->rhs, &kernel->inputs[1].shape))
        return false;
    bool same = true;
    for (int i = 0; i < WINDOW_PARAMETERS; i++) {
        const struct tare_tensor *a = &kept->parameters[i], *b = &kernel->inputs[i + 2];
        same = same && a->data == b->data && a->dtype == b->dtype && a->elements == b->elements;
    }
    return same;
}

static void keep_stage(struct kept_stage *kept, const struct tare_kernel *kernel, const struct tare_shape *shape) {
    for (int i = 0; i < WINDOW_PARAMETERS; i++)
        if (!tare_edge_constant(kernel->node->inputs[i + 2])) return;
    for (int i = 0; i < WINDOW_PARAMETERS; i++) {
        tare_tensor_reset(&kept->parameters[i]);
        tare_tensor_share(&kept->parameters[i], &kernel->inputs[i + 2]);
    }
    kept->lhs = *shape;
    kept->rhs = kernel->inputs[1].shape;
    kept->made = true;
}

/* The geometry of a stage; NULL: it cannot be tiled, or is not valid. */
static const struct tare_general_conv *stage_geometry(struct tare_kernel *kernel, const struct tare_shape *shape) {
    struct kept_stage *kept = &((struct xla_state *)kernel->state)->stage;
    const struct tare_general_conv *general;
    if (is_kept_stage(kept, kernel, shape)) return &kept->general;
    kept->made = false;
    if (conv_on(&general, kernel, shape) != TARE_OK || !tare_general_conv_is_stored(general) ||
        !tare_permute_is_identity(general->rank, general->lhs_order))
        return NULL;
    kept->general = *general;
    kept->general.conv.batch = 1;
    if (!tare_tiling_supports(&(struct tare_tiling_stage){ .conv = kept->general.conv })) return NULL;
    keep_stage(kept, kernel, shape);
    return &kept->general;
}

/* A stage of float values, with weights of any dtype. */
static bool xla_conv_stage(struct tare_tiling_stage *stage, struct tare_gemm_epilogue *room, struct tare_kernel *kernel,
                           struct tare_shape *shape) {
    float *weights;
    if (shape->rank != 4 || output_dtype(kernel) != TARE_DT_FLOAT || kernel->inputs[1].elements == 0 ||
        ((const struct xla_state *)kernel->state)->batch_groups != 1)
        return false;
    const struct tare_general_conv *general = stage_geometry(kernel, shape);
    if (!general) return false;
    *stage = (struct tare_tiling_stage){ .conv = general->conv };
    *shape = general->output;
    if (!tare_stage_epilogue(stage, room, kernel, shape)) return false;
    if (float_weights(kernel, &weights, general) != TARE_OK) return false;
    stage->weights = weights;
    return true;
}

static tare_status run_xla_conv(struct tare_kernel *kernel) {
    return run_grouped_conv(kernel, false);
}
static tare_status reference_xla_conv(struct tare_kernel *kernel) {
    return run_grouped_conv(kernel, true);
}

/* ---- product ---- */

static tare_status infer_xla_dot(struct tare_infer *infer) {
    struct tare_dot dot;
    if (infer->inputs[0].rank < 0 || infer->inputs[1].rank < 0) return TARE_OK;
    TARE_TRY(tare_dot_set(&dot, infer->node, &infer->inputs[0], &infer->inputs[1]));
    infer->outputs[0] = dot.output;
    return TARE_OK;
}

static tare_status exact_dot(struct tare_kernel *kernel, int32_t *result, const struct tare_dot *dot, bool plain) {
    struct xla_state *state = kernel->state;
    const struct tare_tensor *lhs = &kernel->inputs[0], *rhs = &kernel->inputs[1];
    struct tare_exact exact = {
        .lhs_dtype = lhs->dtype,
        .rhs_dtype = rhs->dtype,
        .lhs = operand(kernel, EXACT, lhs, dot->lhs_order),
        .weights = &state->weights,
        .source = rhs,
        .scratch = kernel->scratch,
        .threads = tare_session_op_pool(kernel->session),
        .plain = plain,
        .consumer = taking_consumer(kernel),
    };
    const bool is_packed = is_kept(kernel, tare_exact_product_key(lhs->dtype, rhs->dtype), plain) ||
                           (!plain && tare_few_rows_is_packed(&state->weights, rhs, dot->m, dot->n, dot->k));
    const bool without = is_packed && is_int8(lhs->dtype) && dot->batch == 1;
    if (!without) exact.rhs = operand(kernel, EXACT, rhs, dot->rhs_order);
    if (!exact.lhs || (!without && !exact.rhs)) return TARE_NO_MEMORY;
    return tare_exact_product(result, &exact, dot->batch, dot->m, dot->n, dot->k);
}

/* Float rows times int8 weights with the kernels for few rows; *done is false if they are not for the product. */
static tare_status few_rows_dot(struct tare_kernel *kernel, float *result, const struct tare_dot *dot, bool *done) {
    struct xla_state *state = kernel->state;
    const struct tare_tensor *lhs = &kernel->inputs[0], *rhs = &kernel->inputs[1];
    struct tare_few_rows few = { .m = dot->m, .n = dot->n, .k = dot->k };
    *done = false;
    if (dot->batch != 1 || !is_int8(rhs->dtype) || !tare_gemv_is_for(dot->m, dot->n, dot->k)) return TARE_OK;
    few.rhs = operand(kernel, EXACT, rhs, dot->rhs_order);
    const float *a = operand(kernel, FLOATS, lhs, dot->lhs_order);
    if (!few.rhs || !a) return TARE_NO_MEMORY;
    TARE_TRY(tare_few_rows_pack(&few, &state->weights, rhs, 0, kernel->scratch));
    if (!few.packed) return TARE_OK;
    *done = true;
    return tare_few_rows_float(result, a, &few, tare_session_op_pool(kernel->session));
}

static tare_status real_dot(struct tare_kernel *kernel, void *result, const struct tare_dot *dot,
                            enum arithmetic arithmetic, bool plain) {
    bool done = false;
    if (arithmetic == FLOATS && !plain) TARE_TRY(few_rows_dot(kernel, result, dot, &done));
    if (done) return TARE_OK;
    struct xla_state *state = kernel->state;
    const struct tare_tensor *rhs = &kernel->inputs[1];
    struct tare_product product = {
        .pool = plain ? NULL : tare_session_op_pool(kernel->session),
        .dtype = arithmetic == DOUBLES ? TARE_DT_DOUBLE : TARE_DT_FLOAT,
        .batch = dot->batch,
        .m = dot->m,
        .n = dot->n,
        .k = dot->k,
        .a = operand(kernel, arithmetic, &kernel->inputs[0], dot->lhs_order),
        .c = result,
    };
    const bool without = arithmetic == FLOATS && is_kept(kernel, 0, plain);
    if (!without) product.b = operand(kernel, arithmetic, rhs, dot->rhs_order);
    if (!product.a || (!without && !product.b)) return TARE_NO_MEMORY;
    TARE_TRY(tare_product_set_dense(&product, kernel->scratch));
    if (!plain) return tare_product_run(&product, &state->weights, rhs, kernel->scratch);
    tare_product_plain(&product);
    return TARE_OK;
}

static tare_status pass_dot(struct tare_kernel *kernel, enum arithmetic arithmetic, const struct tare_dot *dot) {
    const int64_t count = dot->batch * dot->m * dot->n;
    float *values;
    if (arithmetic == EXACT) return exact_dot(kernel, NULL, dot, false);
    TARE_TRY(pass_floats(kernel, &values, count));
    TARE_TRY(real_dot(kernel, values, dot, arithmetic, false));
    kernel->consumer->take(kernel->consumer, values, 0, count);
    return TARE_OK;
}

/* The dimensions of an execution, computed again only if a shape has changed. */
static tare_status dot_of(const struct tare_dot **out, const struct tare_kernel *kernel) {
    struct xla_state *state = kernel->state;
    const struct tare_shape *lhs = &kernel->inputs[0].shape, *rhs = &kernel->inputs[1].shape;
    *out = &state->dot;
    if (state->has_dot && tare_shape_equal(&state->dot_lhs, lhs) && tare_shape_equal(&state->dot_rhs, rhs))
        return TARE_OK;
    state->has_dot = false;
    TARE_TRY(tare_dot_set(&state->dot, kernel->node, lhs, rhs));
    state->dot_lhs = *lhs, state->dot_rhs = *rhs;
    state->has_dot = true;
    return TARE_OK;
}

static tare_status run_dot_any(struct tare_kernel *kernel, bool plain) {
    const struct tare_dot *dot;
    enum arithmetic arithmetic;
    const int dtype = output_dtype(kernel);
    TARE_TRY(choose(&arithmetic, kernel->inputs[0].dtype, kernel->inputs[1].dtype, dtype));
    TARE_TRY(dot_of(&dot, kernel));
    TARE_TRY(begin_output(kernel, arithmetic, dtype, &dot->output, !plain && dot->k > 0));
    if (taking_consumer(kernel)) return pass_dot(kernel, arithmetic, dot);
    struct tare_tensor *output = &kernel->outputs[0];
    if (output->elements == 0) return TARE_OK;
    if (dot->k == 0) {
        memset(output->data, 0, tare_tensor_bytes(output));
        return TARE_OK;
    }
    void *result = result_room(kernel, arithmetic, true);
    if (!result) return TARE_NO_MEMORY;
    if (arithmetic == EXACT)
        TARE_TRY(exact_dot(kernel, result, dot, plain));
    else
        TARE_TRY(real_dot(kernel, result, dot, arithmetic, plain));
    store(output, arithmetic, result);
    return TARE_OK;
}

static tare_status run_xla_dot(struct tare_kernel *kernel) {
    return run_dot_any(kernel, false);
}
static tare_status reference_xla_dot(struct tare_kernel *kernel) {
    return run_dot_any(kernel, true);
}

#define WINDOWS                                                                                                        \
    "window_strides: Tindices, padding: Tindices, lhs_dilation: Tindices, rhs_dilation: Tindices, "                    \
    "feature_group_count: Tindices"
#define NUMBERS "dimension_numbers: string; precision_config: string"

#define CONV_ROW(op, in, out, list)                                                                                    \
    {                                                                                                                  \
        .name = op, .inputs = in, .outputs = out, .attrs = list, .infer = infer_xla_conv, .run = run_xla_conv,         \
        .prepare = prepare_xla, .release = release_xla, .reference = reference_xla_conv, .run_tiled = tare_run_tiled,  \
        .tiling_stage = xla_conv_stage, .flags = TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS | TARE_OP_EPILOGUE,             \
        .quant = TARE_QUANT_WEIGHTED                                                                                   \
    }
#define ROW(op, in, out, list, form)                                                                                   \
    {                                                                                                                  \
        .name = op, .inputs = in, .outputs = out, .attrs = list, .infer = infer_xla_##form, .run = run_xla_##form,     \
        .prepare = prepare_xla, .release = release_xla, .reference = reference_xla_##form,                             \
        .flags = TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS, .quant = TARE_QUANT_WEIGHTED                                   \
    }

const struct tare_op tare_ops_xla[] = {
    CONV_ROW("XlaConv", "lhs: T, rhs: T, " WINDOWS, "output: T", "T: numbertype; Tindices: {int32, int64}; " NUMBERS),
    CONV_ROW("XlaConvV2", "lhs: LhsT, rhs: RhsT, " WINDOWS, "output: preferred_element_type",
             "LhsT: numbertype; RhsT: numbertype; Tindices: {int32, int64}; " NUMBERS
             "; preferred_element_type: numbertype; batch_group_count: int = 1"),
    ROW("XlaDot", "lhs: T, rhs: T", "output: T", "T: numbertype; " NUMBERS, dot),
    ROW("XlaDotV2", "lhs: LhsT, rhs: RhsT", "output: preferred_element_type",
        "LhsT: numbertype; RhsT: numbertype; " NUMBERS "; preferred_element_type: numbertype", dot),
    { 0 },
};
#undef ROW

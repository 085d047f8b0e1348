/* XlaConv and XlaConvV2, which quantized models use: int8 operands with exact int32 sums, float or bfloat16 operands,
 * and float operands with int8 weights. */
#include "interpreter/kernels/permute.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/conv_tiling.h"
#include "interpreter/ops/support/epilogue.h"
#include "interpreter/ops/support/float_rows.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/split.h"
#include "interpreter/ops/xla/xla_conv_geometry.h"
#include "interpreter/ops/xla/xla_product.h"

#include "base/alloc.h"
#include "interpreter/session.h"

#include <string.h>

struct conv_state {
    struct tare_xla_kept kept;
    int64_t batch_groups;
    struct tare_xla_conv_geometry geometry;
};

static tare_status prepare_conv(struct tare_kernel *kernel) {
    struct conv_state *state = tare_xla_state_new(kernel, sizeof *state);
    kernel->state = state;
    if (state) state->batch_groups = tare_node_int(kernel->node, "batch_group_count", 1);
    return !state ? TARE_NO_MEMORY : TARE_OK;
}

static void release_conv(void *pointer) {
    struct conv_state *state = pointer;
    if (!state) return;
    tare_weights_reset(&state->kept.weights);
    tare_xla_conv_geometry_reset(&state->geometry);
    tare_free(state);
}

static struct tare_xla_conv_geometry *geometry_of(const struct tare_kernel *kernel) {
    return &((struct conv_state *)kernel->state)->geometry;
}

/* Prepares the weights of a float convolution for the kernel: packed, or as floats for a depthwise one. */
static tare_status float_weights(struct tare_kernel *kernel, float **out, const struct tare_general_conv *general) {
    struct conv_state *state = kernel->state;
    const struct tare_tensor *rhs = &kernel->inputs[1];
    const struct tare_conv *conv = &general->conv;
    const bool depthwise = tare_conv_is_depthwise(conv);
    const int64_t key = tare_exact_key(conv, TARE_DT_FLOAT, TARE_DT_FLOAT);
    *out = tare_weights_find(&state->kept.weights, rhs, key);
    if (*out) return TARE_OK;
    const size_t floats = depthwise ? (size_t)rhs->elements : tare_conv_packed_floats(conv);
    const bool bytes = tare_xla_is_int8(rhs->dtype);
    const void *weights = tare_xla_operand(kernel, bytes ? TARE_XLA_EXACT : TARE_XLA_FLOATS, rhs, general->rhs_order);
    if (!weights) return TARE_NO_MEMORY;
    float *packed = tare_weights_make(&state->kept.weights, rhs, key, floats * sizeof(float), kernel->scratch);
    if (!packed) return TARE_NO_MEMORY;
    if (depthwise)
        tare_floats_from(packed, bytes ? TARE_DT_INT8 : TARE_DT_FLOAT, weights, rhs->elements);
    else if (bytes)
        tare_conv_pack_int8(packed, conv, weights);
    else
        tare_conv_pack(packed, conv, weights);
    *out = tare_weights_publish(&state->kept.weights, packed);
    return TARE_OK;
}

static tare_status float_conv(struct tare_kernel *kernel, float *result, const struct tare_general_conv *general,
                              bool plain) {
    const struct tare_conv *conv = &general->conv;
    const float *lhs = tare_xla_operand(kernel, TARE_XLA_FLOATS, &kernel->inputs[0], general->lhs_order);
    float *weights;
    if (!lhs) return TARE_NO_MEMORY;
    if (plain) {
        const float *rhs = tare_xla_operand(kernel, TARE_XLA_FLOATS, &kernel->inputs[1], general->rhs_order);
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
    struct tare_exact_choice *choice = &geometry_of(kernel)->choice;
    struct tare_exact exact;
    tare_exact_choose(choice, &general->conv, tare_xla_left_dtype(kernel), kernel->inputs[1].dtype);
    TARE_TRY(tare_xla_exact(&exact, kernel, general->lhs_order, general->rhs_order,
                            !tare_xla_is_packed(kernel, choice->key, plain), plain));
    exact.choice = choice;
    return tare_exact_conv(result, &exact, &general->conv);
}

/* Dtypes without fast kernels. */
static tare_status plain_conv(struct tare_kernel *kernel, void *result, const struct tare_general_conv *general,
                              enum tare_xla_arithmetic arithmetic) {
    const void *lhs = tare_xla_operand(kernel, arithmetic, &kernel->inputs[0], general->lhs_order);
    const void *rhs = tare_xla_operand(kernel, arithmetic, &kernel->inputs[1], general->rhs_order);
    if (!lhs || !rhs) return TARE_NO_MEMORY;
    if (arithmetic == TARE_XLA_DOUBLES)
        tare_conv_plain_f64(result, &general->conv, lhs, rhs);
    else if (arithmetic == TARE_XLA_LONGS)
        tare_conv_plain_i64(result, &general->conv, lhs, rhs);
    else if (arithmetic == TARE_XLA_COMPLEX64)
        tare_conv_plain_c64(result, &general->conv, lhs, rhs);
    else
        tare_conv_plain_c128(result, &general->conv, lhs, rhs);
    return TARE_OK;
}

static tare_status pass_conv(struct tare_kernel *kernel, enum tare_xla_arithmetic arithmetic,
                             const struct tare_general_conv *general) {
    float *weights;
    if (arithmetic == TARE_XLA_EXACT) return exact_conv(kernel, NULL, general, false);
    const float *lhs = tare_xla_operand(kernel, TARE_XLA_FLOATS, &kernel->inputs[0], general->lhs_order);
    if (!lhs) return TARE_NO_MEMORY;
    TARE_TRY(float_weights(kernel, &weights, general));
    return tare_float_rows_conv(kernel, &general->conv, lhs, weights);
}

static tare_status store_conv(struct tare_kernel *kernel, enum tare_xla_arithmetic arithmetic,
                              const struct tare_general_conv *general, bool plain) {
    const bool stored = tare_general_conv_is_stored(general);
    void *result = tare_xla_result_room(kernel, arithmetic, stored), *ordered = result;
    if (!result) return TARE_NO_MEMORY;
    TARE_TRY(arithmetic == TARE_XLA_EXACT    ? exact_conv(kernel, result, general, plain)
             : arithmetic == TARE_XLA_FLOATS ? float_conv(kernel, result, general, plain)
                                             : plain_conv(kernel, result, general, arithmetic));
    if (!stored) {
        ordered = tare_xla_result_room(kernel, arithmetic, true);
        if (!ordered) return TARE_NO_MEMORY;
        tare_general_conv_store(general, ordered, result, tare_xla_element_size(arithmetic));
    }
    tare_xla_store(&kernel->outputs[0], arithmetic, ordered);
    return TARE_OK;
}

/* The convolution with the padding that the consumer passes; does nothing if it cannot include it. */
static tare_status run_padded_conv(struct tare_kernel *kernel) {
    struct tare_xla_conv_geometry *geometry = geometry_of(kernel);
    const struct tare_tensor *lhs = &kernel->inputs[0], *rhs = &kernel->inputs[1];
    const int dtype = tare_xla_output_dtype(kernel);
    if (!tare_xla_is_int8(lhs->dtype) || !tare_xla_is_int8(rhs->dtype) || dtype != TARE_DT_INT32 ||
        lhs->elements == 0 || rhs->elements == 0)
        return TARE_OK;
    const struct tare_general_conv *general = tare_xla_conv_geometry_padded(geometry, kernel);
    if (!general || !tare_general_conv_is_stored(general) || tare_conv_rows(&general->conv) == 0) return TARE_OK;
    tare_exact_choose(&geometry->choice, &general->conv, lhs->dtype, rhs->dtype);
    if (!geometry->choice.pads) return TARE_OK;
    TARE_TRY(tare_kernel_begin_rows(kernel, &general->output));
    return kernel->consumer->accepted ? pass_conv(kernel, TARE_XLA_EXACT, general) : TARE_OK;
}

static tare_status run_conv_any(struct tare_kernel *kernel, bool plain) {
    const struct tare_general_conv *general;
    enum tare_xla_arithmetic arithmetic;
    if (kernel->consumer && kernel->consumer->paddings) return run_padded_conv(kernel);
    const int dtype = tare_xla_output_dtype(kernel);
    TARE_TRY(tare_xla_choose(&arithmetic, kernel->inputs[0].dtype, kernel->inputs[1].dtype, dtype));
    TARE_TRY(tare_xla_conv_geometry_find(&general, geometry_of(kernel), kernel));
    const bool is_empty = kernel->inputs[0].elements == 0 || kernel->inputs[1].elements == 0;
    TARE_TRY(tare_xla_begin_output(kernel, arithmetic, dtype, &general->output,
                                   !plain && !is_empty && tare_general_conv_is_stored(general)));
    if (tare_xla_taking_consumer(kernel)) return pass_conv(kernel, arithmetic, general);
    if (kernel->consumer && kernel->consumer->joins_halves) return TARE_OK;
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
    TARE_TRY(tare_xla_conv_geometry_dims(&dims, geometry_of(kernel), kernel));
    *out = (struct tare_tensor){ .dtype = lhs->dtype, .shape = lhs->shape, .elements = lhs->elements };
    TARE_TRY(tare_xla_conv_regroup_shape(&out->shape, dims, groups));
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
    const int64_t groups = ((const struct conv_state *)kernel->state)->batch_groups;
    struct tare_tensor inputs[7];
    if (groups == 1) return run_conv_any(kernel, plain);
    struct tare_kernel inner = *kernel;
    if (kernel->consumer && kernel->consumer->paddings) return TARE_OK; /* the steps run one by one */
    memcpy(inputs, kernel->inputs, sizeof inputs);
    inner.inputs = inputs;
    TARE_TRY(regroup(&inputs[0], kernel, groups));
    return run_conv_any(&inner, plain);
}

/* A stage of float values, with weights of any dtype. */
static bool xla_conv_stage(struct tare_tiling_stage *stage, struct tare_gemm_epilogue *room, struct tare_kernel *kernel,
                           struct tare_shape *shape) {
    float *weights;
    if (shape->rank != 4 || tare_xla_output_dtype(kernel) != TARE_DT_FLOAT || kernel->inputs[1].elements == 0 ||
        ((const struct conv_state *)kernel->state)->batch_groups != 1)
        return false;
    const struct tare_general_conv *general = tare_xla_conv_geometry_of_stage(geometry_of(kernel), kernel, shape);
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

#define CONV_ROW(op)                                                                                                   \
    {                                                                                                                  \
        .name = op, .infer = tare_xla_conv_infer, .run = run_xla_conv, .prepare = prepare_conv,                        \
        .release = release_conv, .reference = reference_xla_conv, .run_tiled = tare_run_tiled,                         \
        .tiling_stage = xla_conv_stage, .flags = TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS | TARE_OP_EPILOGUE,             \
        .quant = TARE_QUANT_WEIGHTED                                                                                   \
    }

const struct tare_op tare_ops_xla_conv[] = {
    CONV_ROW("XlaConv"),
    CONV_ROW("XlaConvV2"),
    { 0 },
};
#undef CONV_ROW

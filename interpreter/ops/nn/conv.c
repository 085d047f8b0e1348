/* Convolutions in 1, 2 and 3 dimensions and depthwise convolutions. All variants are converted to channels-last layout
 * and three spatial axes and then run by the kernels of interpreter/kernels/conv.h. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/nn/conv_node.h"
#include "interpreter/ops/support/conv_tiling.h"
#include "interpreter/ops/support/epilogue.h"
#include "interpreter/ops/support/exact.h"
#include "interpreter/ops/support/float_rows.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/split.h"

#include "interpreter/session.h"

#include <string.h>

/* The geometry of a tiled run, and the shapes that it was computed from. */
struct kept_geometry {
    bool made;
    struct tare_shape input, filter, output;
    struct tare_conv conv; /* of one image */
};

struct conv_state {
    struct tare_conv_node node;
    struct kept_geometry kept;
};

static tare_status prepare_conv(struct tare_kernel *kernel) {
    return tare_conv_node_prepare(kernel, sizeof(struct conv_state));
}

static tare_status infer_conv(struct tare_infer *infer) {
    struct tare_window window;
    struct tare_conv conv;
    struct tare_layout input, output = { -1, -1, { 1, -1, -1 } };
    const struct tare_conv_kind *kind = infer->node->def->row->aux;
    const int spatial = kind->spatial;
    const struct tare_shape *filter = &infer->inputs[1];
    TARE_TRY(tare_conv_parse_window(&window, infer->node, spatial));
    if (spatial == 3) output.spatial[0] = -1;
    if (filter->rank >= 0) TARE_TRY(tare_conv_filter_dims(&conv, &input.channels, &output.channels, filter, kind));
    if (infer->inputs[0].rank >= 0) {
        TARE_TRY(tare_layout_of(&input, &infer->inputs[0], &window, "input"));
        output.batch = input.batch;
        for (int i = 3 - spatial; i < 3; i++) {
            int64_t pad;
            const bool same = window.padding == TARE_PAD_SAME;
            const int64_t size = filter->rank >= 0 ? conv.kernel[i] : -1;
            if (input.spatial[i] >= 0 && (same || size >= 0))
                TARE_TRY(
                    tare_window_output(&output.spatial[i], &pad, &window, i, input.spatial[i], size < 1 ? 1 : size));
        }
    }
    infer->outputs[0] = tare_layout_shape(&output, &window);
    return TARE_OK;
}

static void cost_conv(const struct tare_infer *infer, struct tare_cost *cost) {
    tare_conv_cost_of_taps(cost, infer, &infer->outputs[0]);
}

/* Returns the weights as the kernel expects them: packed, or the filter of a depthwise convolution. NULL: out of
 * memory. */
static const float *kernel_weights(struct tare_kernel *kernel, const struct tare_conv *conv) {
    struct tare_weights *weights = &((struct conv_state *)kernel->state)->node.weights;
    const struct tare_tensor *filter = &kernel->inputs[1];
    const bool depthwise = tare_conv_is_depthwise(conv);
    const bool is_aligned = (uintptr_t)filter->data % 64 == 0; /* vectors of constants in a file cross cache lines */
    if (depthwise && filter->dtype == TARE_DT_FLOAT && is_aligned) return filter->data;
    float *made = tare_weights_find(weights, filter, conv->groups);
    if (made) return made;
    const size_t floats = depthwise ? (size_t)filter->elements : tare_conv_packed_floats(conv);
    const float *values = tare_floats_in(kernel, filter);
    if (!values) return NULL;
    made = tare_weights_make(weights, filter, conv->groups, floats * sizeof(float), kernel->scratch);
    if (!made) return NULL;
    if (depthwise)
        memcpy(made, values, floats * sizeof(float));
    else
        tare_conv_pack(made, conv, values);
    return tare_weights_publish(weights, made);
}

/* A bfloat16 result is stored in the output if it may be fused (*stored). */
static tare_status run_floats(struct tare_kernel *kernel, const struct tare_conv *conv, struct tare_conv_arrays *arrays,
                              bool may_fuse, bool *stored) {
    struct tare_gemm_epilogue room;
    const struct tare_gemm_epilogue *epilogue = may_fuse ? tare_take_epilogue(&room, kernel) : NULL;
    const float *weights = kernel_weights(kernel, conv);
    *stored = epilogue && room.rounds;
    if (!weights) return TARE_NO_MEMORY;
    if (*stored) room.to = kernel->outputs[0].data;
    if (epilogue && epilogue->addend && tare_conv_adds_in_place(conv)) {
        tare_add_in_place(kernel, epilogue);
        arrays->output = kernel->outputs[0].data;
    }
    return tare_split_conv(tare_session_op_pool(kernel->session), kernel->scratch, arrays->output, conv, arrays->input,
                           weights, epilogue);
}

/* int32: models quantized with TensorFlow's own ops store int8 values in it. */
static tare_status run_exact(struct tare_kernel *kernel, const struct tare_conv *conv, struct tare_weights *weights,
                             const struct tare_tensor *filter, const struct tare_conv_arrays *arrays,
                             struct tare_consumer *consumer) {
    const struct tare_exact exact = { .lhs_dtype = TARE_DT_INT32,
                                      .rhs_dtype = TARE_DT_INT32,
                                      .lhs = arrays->input,
                                      .rhs = arrays->filter,
                                      .weights = weights,
                                      .source = filter,
                                      .scratch = kernel->scratch,
                                      .threads = tare_session_op_pool(kernel->session),
                                      .consumer = consumer };
    return tare_exact_conv(arrays->output, &exact, conv);
}

/* Passes the result to the consumer that accepted it: int32 sums, or floats before rounding to bfloat16. */
static tare_status pass_forward(struct tare_kernel *kernel, const struct tare_conv *conv) {
    struct conv_state *state = kernel->state;
    const struct tare_tensor *input = &kernel->inputs[0], *filter = &kernel->inputs[1];
    struct tare_conv_arrays arrays = { .input = input->data, .filter = filter->data };
    if (input->dtype == TARE_DT_INT32)
        return run_exact(kernel, conv, &state->node.weights, filter, &arrays, kernel->consumer);
    arrays.input = tare_floats_in(kernel, input);
    const float *weights = kernel_weights(kernel, conv);
    return !weights || !arrays.input ? TARE_NO_MEMORY : tare_float_rows_conv(kernel, conv, arrays.input, weights);
}

static tare_status run_forward(struct tare_kernel *kernel, bool plain) {
    struct conv_state *state = kernel->state;
    const struct tare_tensor *input = &kernel->inputs[0], *filter = &kernel->inputs[1];
    struct tare_conv conv;
    struct tare_layout layout, output;
    struct tare_conv_arrays arrays;
    TARE_TRY(tare_conv_forward_geometry(&conv, &output, &state->node.window, kernel->op->aux, &input->shape,
                                        &filter->shape));
    TARE_TRY(tare_layout_of(&layout, &input->shape, &state->node.window, "input"));
    const struct tare_shape shape = tare_layout_shape(&output, &state->node.window);
    if (!plain && !state->node.window.channels_first) TARE_TRY(tare_kernel_begin_rows(kernel, &shape));
    if (kernel->consumer && kernel->consumer->accepted) return pass_forward(kernel, &conv);
    if (!plain && input->dtype == TARE_DT_BFLOAT16 && kernel->op->run_tiled && tare_run_tiled(kernel, 1) == 1)
        return TARE_OK;
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    TARE_TRY(tare_conv_open_arrays(kernel, &arrays, &state->node.window, input, filter, &layout, plain));
    bool stored = false;
    if (!plain && tare_floats_dtype(input->dtype))
        TARE_TRY(run_floats(kernel, &conv, &arrays, !state->node.window.channels_first, &stored));
    else if (!plain && input->dtype == TARE_DT_INT32)
        TARE_TRY(run_exact(kernel, &conv, &state->node.weights, filter, &arrays, NULL));
    else
        tare_conv_run_plain(&conv, input->dtype, &arrays);
    return stored ? TARE_OK : tare_conv_close_arrays(kernel, &arrays, &state->node.window, &conv);
}

static tare_status run_conv(struct tare_kernel *kernel) {
    return run_forward(kernel, false);
}
static tare_status reference_conv(struct tare_kernel *kernel) {
    return run_forward(kernel, true);
}

/* Small networks take as long to find the geometry of their layers as to compute some of them, so that of the last
 * shapes is kept. NULL: not supported, or an error. */
static const struct kept_geometry *geometry_of(struct conv_state *state, const struct tare_conv_kind *kind,
                                               const struct tare_shape *input, const struct tare_shape *filter) {
    struct kept_geometry *kept = &state->kept;
    struct tare_layout output;
    if (kept->made && tare_shape_equal(&kept->input, input) && tare_shape_equal(&kept->filter, filter)) return kept;
    kept->made = false;
    if (tare_conv_forward_geometry(&kept->conv, &output, &state->node.window, kind, input, filter) != TARE_OK)
        return NULL;
    kept->conv.batch = 1;
    if (!tare_tiling_supports(&(struct tare_tiling_stage){ .conv = kept->conv })) return NULL;
    kept->input = *input;
    kept->filter = *filter;
    kept->output = tare_layout_shape(&output, &state->node.window);
    kept->made = true;
    return kept;
}

static bool conv_stage(struct tare_tiling_stage *stage, struct tare_gemm_epilogue *room, struct tare_kernel *kernel,
                       struct tare_shape *shape) {
    struct conv_state *state = kernel->state;
    const struct tare_conv_kind *kind = kernel->op->aux;
    if (kind->spatial != 2 || state->node.window.channels_first) return false;
    const struct kept_geometry *geometry = geometry_of(state, kind, shape, &kernel->inputs[1].shape);
    if (!geometry) return false;
    *stage = (struct tare_tiling_stage){ .conv = geometry->conv };
    *shape = geometry->output;
    if (!tare_stage_epilogue(stage, room, kernel, shape)) return false;
    stage->weights = kernel_weights(kernel, &stage->conv);
    if (!stage->weights) return false;
    tare_stage_bounds(stage, kernel, &state->node.weights);
    return true;
}

const struct tare_op tare_ops_conv[] = {
    { .name = "Conv2D",
      .infer = infer_conv,
      .run = run_conv,
      .prepare = prepare_conv,
      .release = tare_conv_node_release,
      .reference = reference_conv,
      .run_tiled = tare_run_tiled,
      .tiling_stage = conv_stage,
      .cost = cost_conv,
      .aux = &tare_conv_2d,
      .flags = TARE_OP_EPILOGUE | TARE_OP_ROUNDS | TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS,
      .quant = TARE_QUANT_WEIGHTED },
    { .name = "DepthwiseConv2dNative",
      .infer = infer_conv,
      .run = run_conv,
      .prepare = prepare_conv,
      .release = tare_conv_node_release,
      .reference = reference_conv,
      .run_tiled = tare_run_tiled,
      .tiling_stage = conv_stage,
      .cost = cost_conv,
      .aux = &tare_conv_depthwise_2d,
      .flags = TARE_OP_EPILOGUE | TARE_OP_ROUNDS | TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS,
      .quant = TARE_QUANT_WEIGHTED },
    { .name = "Conv3D",
      .infer = infer_conv,
      .run = run_conv,
      .prepare = prepare_conv,
      .release = tare_conv_node_release,
      .reference = reference_conv,
      .cost = cost_conv,
      .aux = &tare_conv_3d,
      .flags = TARE_OP_EPILOGUE | TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS,
      .quant = TARE_QUANT_WEIGHTED },
    { 0 },
};

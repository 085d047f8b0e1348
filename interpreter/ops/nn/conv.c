/* Convolutions in 1, 2 and 3 dimensions, depthwise convolutions, and their transposes (the gradients with respect to
 * the input, which models use as deconvolutions). All variants are converted to channels-last layout and three
 * spatial axes and then run by the kernels of interpreter/kernels/conv.h. */
#include "interpreter/kernels/conv.h"
#include "interpreter/ops/support/float_rows.h"
#include "interpreter/ops/support/exact.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/epilogue.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/conv_tiling.h"
#include "interpreter/ops/support/split.h"
#include "interpreter/ops/support/weights.h"
#include "interpreter/ops/support/window.h"

#include "base/alloc.h"
#include "interpreter/session.h"

#include <math.h>
#include <string.h>

/* The geometry of a tiled run, and the shapes that it was computed from. */
struct kept_geometry {
    bool made;
    struct tare_shape input, filter, output;
    struct tare_conv conv; /* of one image */
};

struct conv_state {
    struct tare_window window;
    struct tare_weights weights;
    struct kept_geometry kept;
};

/* The rows' aux. */
struct conv_kind {
    int spatial;
    bool depthwise; /* filter dimensions: spatial…, channels, outputs per channel */
};
static const struct conv_kind kind_2d = { 2, false }, kind_3d = { 3, false }, kind_depthwise = { 2, true };

static tare_status parse_window(struct tare_window *window, const struct tare_node *node, int spatial) {
    TARE_TRY(tare_window_parse(window, node, spatial));
    if (window->stride_of_batch != 1 || window->stride_of_channels != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "strides along batch or channels");
    return TARE_OK;
}

static tare_status prepare_conv(struct tare_kernel *kernel) {
    struct conv_state *state = tare_calloc(1, sizeof *state);
    if (!state) return TARE_NO_MEMORY;
    const tare_status status =
        parse_window(&state->window, kernel->node, ((const struct conv_kind *)kernel->op->aux)->spatial);
    if (status != TARE_OK) {
        tare_free(state);
        return status;
    }
    state->weights.owner = kernel->node;
    kernel->state = state;
    return TARE_OK;
}

static void release_conv(void *pointer) {
    struct conv_state *state = pointer;
    if (!state) return;
    tare_weights_reset(&state->weights);
    tare_free(state);
}

/* ---- geometry ---- */

/* Reads filter dimensions spatial…, in (channels that one output uses), out. Unknown dimensions are -1. */
static tare_status filter_dims(struct tare_conv *conv, int64_t *in, int64_t *out, const struct tare_shape *filter,
                               const struct conv_kind *kind) {
    const int spatial = kind->spatial;
    if (filter->rank != spatial + 2)
        return TARE_FAIL(TARE_SHAPE, "filter has rank %d (expected %d)", filter->rank, spatial + 2);
    conv->kernel[0] = 1;
    for (int i = 0; i < spatial; i++)
        conv->kernel[3 - spatial + i] = filter->dims[i];
    *in = filter->dims[spatial];
    *out = filter->dims[spatial + 1];
    if (kind->depthwise) {
        if (*in < 0 || *out < 0)
            *out = -1;
        else if (!tare_mul_i64(out, *in, *out))
            return TARE_FAIL(TARE_SHAPE, "filter too large");
        *in = 1;
    }
    return TARE_OK;
}

static tare_status forward_geometry(struct tare_conv *conv, struct tare_layout *output,
                                    const struct tare_window *window, const struct conv_kind *kind,
                                    const struct tare_shape *input_shape, const struct tare_shape *filter_shape) {
    struct tare_layout input;
    int64_t filter_in;
    *conv = (struct tare_conv){ .base_dilation = { 1, 1, 1 }, .groups = 1 };
    TARE_TRY(tare_layout_of(&input, input_shape, window, "input"));
    TARE_TRY(filter_dims(conv, &filter_in, &conv->out_channels, filter_shape, kind));
    if (kind->depthwise && filter_shape->dims[2] != input.channels)
        return TARE_FAIL(TARE_SHAPE, "filter has %lld channels (expected the input's %lld)",
                         (long long)filter_shape->dims[2], (long long)input.channels);
    conv->batch = input.batch;
    conv->in_channels = input.channels;
    if (input.channels > 0) {
        if (filter_in < 1 || input.channels % filter_in != 0)
            return TARE_FAIL(TARE_SHAPE, "input has %lld channels (expected a multiple of the filter's %lld)",
                             (long long)input.channels, (long long)filter_in);
        conv->groups = input.channels / filter_in;
    }
    for (int i = 0; i < 3; i++) {
        conv->in[i] = input.spatial[i];
        conv->stride[i] = window->stride[i];
        conv->dilation[i] = window->dilation[i];
        TARE_TRY(tare_window_output(&conv->out[i], &conv->pad[i], window, i, conv->in[i], conv->kernel[i]));
        output->spatial[i] = conv->out[i];
    }
    output->batch = conv->batch;
    output->channels = conv->out_channels;
    return tare_conv_check(conv);
}

static tare_status infer_conv(struct tare_infer *infer) {
    struct tare_window window;
    struct tare_conv conv;
    struct tare_layout input, output = { -1, -1, { 1, -1, -1 } };
    const struct conv_kind *kind = infer->node->def->row->aux;
    const int spatial = kind->spatial;
    const struct tare_shape *filter = &infer->inputs[1];
    TARE_TRY(parse_window(&window, infer->node, spatial));
    if (spatial == 3) output.spatial[0] = -1;
    if (filter->rank >= 0) TARE_TRY(filter_dims(&conv, &input.channels, &output.channels, filter, kind));
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

/* Counts one multiplication for each element of `shape`, tap of the filter and channel that is summed over. */
static void cost_of_taps(struct tare_cost *cost, const struct tare_infer *infer, const struct tare_shape *shape) {
    int64_t elements, weights;
    const struct tare_shape *filter = &infer->inputs[1];
    if (tare_shape_elements(&elements, shape) != TARE_OK || tare_shape_elements(&weights, filter) != TARE_OK ||
        filter->rank < 1) {
        tare_error_clear();
        return;
    }
    const struct conv_kind *kind = infer->node->def->row->aux;
    int64_t channels = filter->dims[filter->rank - 1];
    if (kind->depthwise) channels *= filter->dims[filter->rank - 2];
    if (channels > 0) cost->macs = (double)elements * (double)(weights / channels);
}

static void cost_conv(const struct tare_infer *infer, struct tare_cost *cost) {
    cost_of_taps(cost, infer, &infer->outputs[0]);
}

/* ---- execution ---- */

/* Computes channels-last output from channels-last input; the element type follows from the dtype (half and bfloat16
 * as float). */
struct conv_arrays {
    void *output;
    const void *input, *filter;
};

/* Returns the weights as the kernel expects them: packed, or the filter of a depthwise convolution. NULL: out of
 * memory. */
static const float *kernel_weights(struct tare_kernel *kernel, const struct tare_conv *conv) {
    struct tare_weights *weights = &((struct conv_state *)kernel->state)->weights;
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
static tare_status run_floats(struct tare_kernel *kernel, const struct tare_conv *conv, struct conv_arrays *arrays,
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
                             const struct tare_tensor *filter, const struct conv_arrays *arrays,
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

static void run_plain(const struct tare_conv *conv, int dtype, const struct conv_arrays *arrays) {
    if (dtype == TARE_DT_DOUBLE)
        tare_conv_plain_f64(arrays->output, conv, arrays->input, arrays->filter);
    else if (dtype == TARE_DT_INT32)
        tare_conv_plain_i32(arrays->output, conv, arrays->input, arrays->filter);
    else
        tare_conv_plain_f32(arrays->output, conv, arrays->input, arrays->filter);
}

/* Prepares input and filter as floats (or unchanged; the filter only if `plain`), and an output buffer if the result is
 * written channels-last. */
static tare_status open_arrays(struct tare_kernel *kernel, struct conv_arrays *arrays, const struct tare_window *window,
                               const struct tare_tensor *input, const struct tare_tensor *filter,
                               const struct tare_layout *layout, bool plain) {
    const bool as_floats = tare_floats_dtype(input->dtype);
    const size_t size = as_floats ? sizeof(float) : tare_dtype_size(input->dtype);
    arrays->input = as_floats ? tare_floats_in(kernel, input) : input->data;
    arrays->filter = as_floats && plain ? tare_floats_in(kernel, filter) : filter->data;
    if (!arrays->input || !arrays->filter) return TARE_NO_MEMORY;
    arrays->input = tare_window_input(kernel, window, layout, arrays->input, size);
    arrays->output = as_floats ? tare_floats_out(kernel, 0) : kernel->outputs[0].data;
    if (window->channels_first)
        arrays->output = tare_arena_alloc(kernel->scratch, (size_t)kernel->outputs[0].elements * size);
    return !arrays->input || !arrays->output ? TARE_NO_MEMORY : TARE_OK;
}

/* Converts the channels-last result to output 0. */
static tare_status close_arrays(struct tare_kernel *kernel, const struct conv_arrays *arrays,
                                const struct tare_window *window, const struct tare_conv *conv) {
    struct tare_tensor *output = &kernel->outputs[0];
    const bool as_floats = tare_floats_dtype(output->dtype);
    float *result = arrays->output;
    if (window->channels_first) {
        void *target = as_floats ? tare_floats_out(kernel, 0) : output->data;
        if (!target) return TARE_NO_MEMORY;
        tare_layout_to_first(target, arrays->output, conv->batch, conv->out_channels,
                             conv->out[0] * conv->out[1] * conv->out[2],
                             as_floats ? sizeof(float) : tare_dtype_size(output->dtype));
        result = target;
    }
    if (as_floats) tare_floats_round(kernel, 0, result);
    return TARE_OK;
}

/* Passes the result to the consumer that accepted it: int32 sums, or floats before rounding to bfloat16. */
static tare_status pass_forward(struct tare_kernel *kernel, const struct tare_conv *conv) {
    struct conv_state *state = kernel->state;
    const struct tare_tensor *input = &kernel->inputs[0], *filter = &kernel->inputs[1];
    struct conv_arrays arrays = { .input = input->data, .filter = filter->data };
    if (input->dtype == TARE_DT_INT32)
        return run_exact(kernel, conv, &state->weights, filter, &arrays, kernel->consumer);
    arrays.input = tare_floats_in(kernel, input);
    const float *weights = kernel_weights(kernel, conv);
    return !weights || !arrays.input ? TARE_NO_MEMORY : tare_float_rows_conv(kernel, conv, arrays.input, weights);
}

static tare_status run_forward(struct tare_kernel *kernel, bool plain) {
    struct conv_state *state = kernel->state;
    const struct tare_tensor *input = &kernel->inputs[0], *filter = &kernel->inputs[1];
    struct tare_conv conv;
    struct tare_layout layout, output;
    struct conv_arrays arrays;
    TARE_TRY(forward_geometry(&conv, &output, &state->window, kernel->op->aux, &input->shape, &filter->shape));
    TARE_TRY(tare_layout_of(&layout, &input->shape, &state->window, "input"));
    const struct tare_shape shape = tare_layout_shape(&output, &state->window);
    if (!plain && !state->window.channels_first) TARE_TRY(tare_kernel_begin_rows(kernel, &shape));
    if (kernel->consumer && kernel->consumer->accepted) return pass_forward(kernel, &conv);
    if (!plain && input->dtype == TARE_DT_BFLOAT16 && kernel->op->run_tiled && tare_run_tiled(kernel, 1) == 1)
        return TARE_OK;
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    TARE_TRY(open_arrays(kernel, &arrays, &state->window, input, filter, &layout, plain));
    bool stored = false;
    if (!plain && tare_floats_dtype(input->dtype))
        TARE_TRY(run_floats(kernel, &conv, &arrays, !state->window.channels_first, &stored));
    else if (!plain && input->dtype == TARE_DT_INT32)
        TARE_TRY(run_exact(kernel, &conv, &state->weights, filter, &arrays, NULL));
    else
        run_plain(&conv, input->dtype, &arrays);
    return stored ? TARE_OK : close_arrays(kernel, &arrays, &state->window, &conv);
}

static tare_status run_conv(struct tare_kernel *kernel) {
    return run_forward(kernel, false);
}
static tare_status reference_conv(struct tare_kernel *kernel) {
    return run_forward(kernel, true);
}

/* Small networks take as long to find the geometry of their layers as to compute some of them, so that of the last
 * shapes is kept. NULL: not supported, or an error. */
static const struct kept_geometry *geometry_of(struct conv_state *state, const struct conv_kind *kind,
                                               const struct tare_shape *input, const struct tare_shape *filter) {
    struct kept_geometry *kept = &state->kept;
    struct tare_layout output;
    if (kept->made && tare_shape_equal(&kept->input, input) && tare_shape_equal(&kept->filter, filter)) return kept;
    kept->made = false;
    if (forward_geometry(&kept->conv, &output, &state->window, kind, input, filter) != TARE_OK) return NULL;
    kept->conv.batch = 1;
    if (!tare_tiling_supports(&(struct tare_tiling_stage){ .conv = kept->conv })) return NULL;
    kept->input = *input;
    kept->filter = *filter;
    kept->output = tare_layout_shape(&output, &state->window);
    kept->made = true;
    return kept;
}

static bool conv_stage(struct tare_tiling_stage *stage, struct tare_gemm_epilogue *room, struct tare_kernel *kernel,
                       struct tare_shape *shape) {
    struct conv_state *state = kernel->state;
    const struct conv_kind *kind = kernel->op->aux;
    if (kind->spatial != 2 || state->window.channels_first) return false;
    const struct kept_geometry *geometry = geometry_of(state, kind, shape, &kernel->inputs[1].shape);
    if (!geometry) return false;
    *stage = (struct tare_tiling_stage){ .conv = geometry->conv };
    *shape = geometry->output;
    if (!tare_stage_epilogue(stage, room, kernel, shape)) return false;
    stage->weights = kernel_weights(kernel, &stage->conv);
    if (!stage->weights) return false;
    tare_stage_bounds(stage, kernel, &state->weights);
    return true;
}

/* ---- transposed convolutions ---- */

/* The gradient with respect to the input is a convolution of the dilated outputs with the flipped filter, with input
 * and output channels exchanged within each group. */
static tare_status transposed_geometry(struct tare_conv *conv, struct tare_conv *forward,
                                       const struct tare_window *window, const struct conv_kind *kind,
                                       const struct tare_shape *input_shape, const struct tare_shape *filter,
                                       const struct tare_shape *gradient_shape) {
    struct tare_layout output, gradient;
    TARE_TRY(forward_geometry(forward, &output, window, kind, input_shape, filter));
    TARE_TRY(tare_layout_of(&gradient, gradient_shape, window, "out_backprop"));
    bool same = gradient.batch == output.batch && gradient.channels == output.channels;
    for (int i = 0; i < 3; i++)
        same = same && gradient.spatial[i] == output.spatial[i];
    if (!same) {
        char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
        const struct tare_shape wanted_shape = tare_layout_shape(&output, window);
        return TARE_FAIL(TARE_SHAPE, "out_backprop has shape %s (expected %s)", tare_shape_text(got, gradient_shape),
                         tare_shape_text(expected, &wanted_shape));
    }
    *conv = *forward;
    conv->in_channels = forward->out_channels;
    conv->out_channels = forward->in_channels;
    for (int i = 0; i < 3; i++) {
        conv->in[i] = forward->out[i];
        conv->out[i] = forward->in[i];
        conv->stride[i] = 1;
        conv->base_dilation[i] = forward->stride[i];
        conv->pad[i] = (forward->kernel[i] - 1) * forward->dilation[i] - forward->pad[i];
    }
    return tare_conv_check(conv);
}

/* Reverses the taps and transposes [in, out] of each group to [out, in]. */
static void flip_filter(void *to, const void *from, const struct tare_conv *forward, size_t size) {
    const int64_t taps = forward->kernel[0] * forward->kernel[1] * forward->kernel[2], groups = forward->groups;
    const int64_t in = forward->in_channels / groups, out = forward->out_channels / groups;
    const int64_t tap_size = groups * in * out;
    for (int64_t tap = 0; tap < taps; tap++) {
        char *turned = (char *)to + (size_t)(tap * tap_size) * size;
        const char *tap_from = (const char *)from + (size_t)((taps - 1 - tap) * tap_size) * size;
        for (int64_t o = 0; o < out; o++)
            for (int64_t i = 0; i < groups * in; i++, turned += size)
                memcpy(turned, tap_from + (size_t)((i % in * groups + i / in) * out + o) * size, size);
    }
}

/* Prepares the flipped filter for the kernel: packed for the matrix product, or unpacked for a depthwise
 * convolution. */
static tare_status make_flipped(struct tare_kernel *kernel, float **made, const struct tare_conv *conv,
                                const struct tare_conv *forward, const struct tare_tensor *filter, const void *values) {
    struct tare_weights *weights = &((struct conv_state *)kernel->state)->weights;
    const bool depthwise = tare_conv_is_depthwise(conv);
    *made = tare_weights_find(weights, filter, conv->groups);
    if (*made) return TARE_OK;
    const size_t floats = depthwise ? (size_t)filter->elements : tare_conv_packed_floats(conv);
    *made = tare_weights_make(weights, filter, conv->groups, floats * sizeof(float), kernel->scratch);
    if (!*made) return TARE_NO_MEMORY;
    float *flipped = depthwise ? *made : tare_arena_alloc(kernel->scratch, (size_t)filter->elements * sizeof(float));
    if (!flipped) return TARE_NO_MEMORY;
    flip_filter(flipped, values, forward, sizeof(float));
    if (!depthwise) tare_conv_pack(*made, conv, flipped);
    *made = tare_weights_publish(weights, *made);
    return TARE_OK;
}

/* Computed as XlaConvV2 does (interpreter/ops/xla/xla_conv.c), so that both produce the same bits. */
static tare_status run_transposed_arrays(struct tare_kernel *kernel, const struct tare_conv *conv,
                                         const struct tare_conv *forward, const struct conv_arrays *arrays,
                                         bool plain) {
    const struct tare_tensor *filter = &kernel->inputs[1];
    const bool depthwise = tare_conv_is_depthwise(conv);
    if (plain || !tare_floats_dtype(filter->dtype)) {
        const size_t size = tare_floats_dtype(filter->dtype) ? sizeof(float) : tare_dtype_size(filter->dtype);
        struct conv_arrays flipped = *arrays;
        void *values = tare_arena_alloc(kernel->scratch, (size_t)filter->elements * size);
        if (!values) return TARE_NO_MEMORY;
        flip_filter(values, arrays->filter, forward, size);
        flipped.filter = values;
        run_plain(conv, filter->dtype, &flipped);
        return TARE_OK;
    }
    const size_t floats = depthwise ? tare_conv_depthwise_scratch(conv) : tare_conv_dense_scratch(conv);
    float *flipped, *scratch = tare_arena_alloc(kernel->scratch, floats * sizeof(float));
    if (!scratch) return TARE_NO_MEMORY;
    TARE_TRY(make_flipped(kernel, &flipped, conv, forward, filter, arrays->filter));
    if (depthwise)
        tare_conv_depthwise(arrays->output, conv, arrays->input, flipped, NULL, scratch);
    else
        tare_conv_dense(arrays->output, conv, arrays->input, flipped, NULL, scratch);
    return TARE_OK;
}

/* input_sizes may contain only the spatial sizes; batch and channels then come from the other inputs. */
static tare_status sizes_to_shape(struct tare_shape *shape, const struct tare_tensor *sizes,
                                  const struct tare_window *window, const struct tare_shape *filter,
                                  const struct tare_shape *gradient) {
    const int rank = window->spatial + 2;
    if (sizes->shape.rank != 1 || (sizes->elements != rank && sizes->elements != window->spatial))
        return TARE_FAIL(TARE_SHAPE, "input_sizes has %lld elements (expected %d)", (long long)sizes->elements, rank);
    int64_t dims[TARE_MAX_RANK];
    const bool whole = sizes->elements == rank;
    if (!whole) {
        if (filter->rank != rank || gradient->rank != rank) return TARE_FAIL(TARE_SHAPE, "expected rank %d", rank);
        dims[0] = gradient->dims[0];
        dims[window->channels_first ? 1 : rank - 1] = filter->dims[window->spatial];
    }
    for (int i = 0; i < (int)sizes->elements; i++) {
        const int64_t dim = tare_tensor_get_i64(sizes, i);
        if (dim < 0)
            return TARE_FAIL(TARE_SHAPE, "input_sizes contains %lld (expected non-negative sizes)", (long long)dim);
        dims[whole ? i : (window->channels_first ? 2 : 1) + i] = dim;
    }
    return tare_shape_from_dims(shape, rank, dims);
}

static tare_status run_transposed(struct tare_kernel *kernel, bool plain) {
    struct conv_state *state = kernel->state;
    const struct tare_tensor *filter = &kernel->inputs[1], *gradient = &kernel->inputs[2];
    struct tare_conv conv, forward;
    struct tare_layout layout;
    struct tare_shape shape;
    struct conv_arrays arrays;
    TARE_TRY(sizes_to_shape(&shape, &kernel->inputs[0], &state->window, &filter->shape, &gradient->shape));
    TARE_TRY(transposed_geometry(&conv, &forward, &state->window, kernel->op->aux, &shape, &filter->shape,
                                 &gradient->shape));
    TARE_TRY(tare_layout_of(&layout, &gradient->shape, &state->window, "out_backprop"));
    TARE_TRY(tare_kernel_output(kernel, 0, gradient->dtype, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    TARE_TRY(open_arrays(kernel, &arrays, &state->window, gradient, filter, &layout, true));
    TARE_TRY(run_transposed_arrays(kernel, &conv, &forward, &arrays, plain));
    return close_arrays(kernel, &arrays, &state->window, &conv);
}

static tare_status run_conv_transposed(struct tare_kernel *kernel) {
    return run_transposed(kernel, false);
}
static tare_status reference_conv_transposed(struct tare_kernel *kernel) {
    return run_transposed(kernel, true);
}

static tare_status infer_transposed(struct tare_infer *infer) {
    struct tare_window window;
    const struct conv_kind *kind = infer->node->def->row->aux;
    const int spatial = kind->spatial;
    const struct tare_shape *sizes = &infer->inputs[0], *filter = &infer->inputs[1], *gradient = &infer->inputs[2];
    /* sizes with channels permit groups, whose number the filter alone does not determine */
    const bool has_channels = kind->depthwise || (sizes->rank == 1 && sizes->dims[0] == spatial);
    TARE_TRY(parse_window(&window, infer->node, spatial));
    if (infer->input_values[0])
        return sizes_to_shape(&infer->outputs[0], infer->input_values[0], &window, filter, gradient);
    struct tare_layout layout = { -1, -1, { spatial == 3 ? -1 : 1, -1, -1 } };
    if (gradient->rank == spatial + 2) layout.batch = gradient->dims[0];
    if (filter->rank == spatial + 2 && has_channels) layout.channels = filter->dims[spatial];
    infer->outputs[0] = tare_layout_shape(&layout, &window);
    return TARE_OK;
}

static void cost_transposed(const struct tare_infer *infer, struct tare_cost *cost) {
    cost_of_taps(cost, infer, &infer->inputs[2]);
}

#define ATTRS_2D                                                                                                       \
    "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; "                   \
    "padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; "                                      \
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]"
#define ATTRS_DEPTHWISE                                                                                                \
    "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "                 \
    "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]"
#define ATTRS_3D                                                                                                       \
    "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; "                        \
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]"

const struct tare_op tare_ops_conv[] = {
    { .name = "Conv2D",
      .inputs = "input: T, filter: T",
      .outputs = "output: T",
      .attrs = ATTRS_2D,
      .infer = infer_conv,
      .run = run_conv,
      .prepare = prepare_conv,
      .release = release_conv,
      .reference = reference_conv,
      .run_tiled = tare_run_tiled,
      .tiling_stage = conv_stage,
      .cost = cost_conv,
      .aux = &kind_2d,
      .flags = TARE_OP_EPILOGUE | TARE_OP_ROUNDS | TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS,
      .quant = TARE_QUANT_WEIGHTED },
    { .name = "DepthwiseConv2dNative",
      .inputs = "input: T, filter: T",
      .outputs = "output: T",
      .attrs = ATTRS_DEPTHWISE,
      .infer = infer_conv,
      .run = run_conv,
      .prepare = prepare_conv,
      .release = release_conv,
      .reference = reference_conv,
      .run_tiled = tare_run_tiled,
      .tiling_stage = conv_stage,
      .cost = cost_conv,
      .aux = &kind_depthwise,
      .flags = TARE_OP_EPILOGUE | TARE_OP_ROUNDS | TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS,
      .quant = TARE_QUANT_WEIGHTED },
    { .name = "Conv3D",
      .inputs = "input: T, filter: T",
      .outputs = "output: T",
      .attrs = ATTRS_3D,
      .infer = infer_conv,
      .run = run_conv,
      .prepare = prepare_conv,
      .release = release_conv,
      .reference = reference_conv,
      .cost = cost_conv,
      .aux = &kind_3d,
      .flags = TARE_OP_EPILOGUE | TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS,
      .quant = TARE_QUANT_WEIGHTED },
    { .name = "Conv2DBackpropInput",
      .inputs = "input_sizes: int32, filter: T, out_backprop: T",
      .outputs = "output: T",
      .attrs = ATTRS_2D,
      .infer = infer_transposed,
      .run = run_conv_transposed,
      .prepare = prepare_conv,
      .release = release_conv,
      .reference = reference_conv_transposed,
      .cost = cost_transposed,
      .aux = &kind_2d,
      .flags = TARE_OP_PRODUCT },
    { .name = "Conv3DBackpropInputV2",
      .inputs = "input_sizes: Tshape, filter: T, out_backprop: T",
      .outputs = "output: T",
      .attrs = ATTRS_3D "; Tshape: {int32, int64} = DT_INT32",
      .infer = infer_transposed,
      .run = run_conv_transposed,
      .prepare = prepare_conv,
      .release = release_conv,
      .reference = reference_conv_transposed,
      .cost = cost_transposed,
      .aux = &kind_3d,
      .flags = TARE_OP_PRODUCT },
    { .name = "DepthwiseConv2dNativeBackpropInput",
      .inputs = "input_sizes: int32, filter: T, out_backprop: T",
      .outputs = "output: T",
      .attrs = ATTRS_DEPTHWISE,
      .infer = infer_transposed,
      .run = run_conv_transposed,
      .prepare = prepare_conv,
      .release = release_conv,
      .reference = reference_conv_transposed,
      .cost = cost_transposed,
      .aux = &kind_depthwise },
    { 0 },
};

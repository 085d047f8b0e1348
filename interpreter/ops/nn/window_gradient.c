/* Gradients of sliding-window ops: of convolutions with respect to the filter and the input, of pooling with respect
 * to the input. Plain loops in double, rounded once. Gradients of filters have a fast loop for float32 with the
 * channels last. */
#include "interpreter/inference/infer.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/support/window.h"

#include <string.h>

/* ---- an array in any layout, by batch, position and channel ---- */

struct view {
    struct tare_layout layout;
    int64_t batch, channel, spatial[3]; /* strides */
};

static tare_status view_of(struct view *view, const struct tare_shape *shape, const struct tare_window *window,
                           const char *what) {
    TARE_TRY(tare_layout_of(&view->layout, shape, window, what));
    int64_t steps[TARE_MAX_RANK], step = 1;
    for (int d = shape->rank - 1; d >= 0; d--) {
        steps[d] = step;
        step *= shape->dims[d];
    }
    view->batch = steps[0];
    view->channel = steps[window->channels_first ? 1 : shape->rank - 1];
    view->spatial[0] = 0;
    for (int i = 0; i < window->spatial; i++)
        view->spatial[3 - window->spatial + i] = steps[(window->channels_first ? 2 : 1) + i];
    return TARE_OK;
}

/* Parameters shared by all loops: the window over `in` and the output. */
struct sweep {
    struct tare_window window;
    struct view in, out;
    int64_t size[3], pad[3];
};

/* Checks that the gradient has the `expected` output sizes. */
static tare_status check_sweep(struct sweep *s) {
    for (int i = 0; i < 3; i++) {
        int64_t expected;
        TARE_TRY(tare_window_output(&expected, &s->pad[i], &s->window, i, s->in.layout.spatial[i], s->size[i]));
        if (expected != s->out.layout.spatial[i])
            return TARE_FAIL(TARE_SHAPE, "out_backprop has %lld elements along a dimension (expected %lld)",
                             (long long)s->out.layout.spatial[i], (long long)expected);
    }
    if (s->in.layout.batch != s->out.layout.batch)
        return TARE_FAIL(TARE_SHAPE, "out_backprop has a batch of %lld (expected %lld)", (long long)s->out.layout.batch,
                         (long long)s->in.layout.batch);
    return TARE_OK;
}

/* An input position and an output position (batch and location) that a cell of the window connects. */
struct meeting {
    int64_t in, out, cell;
};

typedef void meet_function(void *arg, const struct sweep *s, const struct meeting *meeting);

/* Cells [first, last) of the window at output `at` that are inside the input along axis i. */
static void cells_inside(int64_t *first, int64_t *last, const struct sweep *s, int i, int64_t at) {
    const int64_t start = at * s->window.stride[i] - s->pad[i], step = s->window.dilation[i];
    const int64_t left = s->in.layout.spatial[i] - start;
    *first = start < 0 ? (step - 1 - start) / step : 0;
    *last = left <= 0 ? 0 : (left + step - 1) / step;
    if (*last > s->size[i]) *last = s->size[i];
}

/* Calls fn for each cell of the window at one output, in order. */
static void sweep_window(const struct sweep *s, int64_t batch, const int64_t at[3], meet_function *fn, void *arg) {
    int64_t first[3], last[3], k[3];
    for (int i = 0; i < 3; i++)
        cells_inside(&first[i], &last[i], s, i, at[i]);
    for (k[0] = first[0]; k[0] < last[0]; k[0]++)
        for (k[1] = first[1]; k[1] < last[1]; k[1]++)
            for (k[2] = first[2]; k[2] < last[2]; k[2]++) {
                struct meeting m = { batch * s->in.batch, batch * s->out.batch,
                                     (k[0] * s->size[1] + k[1]) * s->size[2] + k[2] };
                for (int i = 0; i < 3; i++) {
                    const int64_t p = at[i] * s->window.stride[i] - s->pad[i] + k[i] * s->window.dilation[i];
                    m.in += p * s->in.spatial[i];
                    m.out += at[i] * s->out.spatial[i];
                }
                fn(arg, s, &m);
            }
}

/* The same for all outputs in order. */
static void sweep_all(const struct sweep *s, meet_function *fn, void *arg) {
    const int64_t *out = s->out.layout.spatial, places = out[0] * out[1] * out[2];
    for (int64_t b = 0; b < s->out.layout.batch; b++)
        for (int64_t place = 0; place < places; place++) {
            const int64_t at[3] = { place / out[2] / out[1], place / out[2] % out[1], place % out[2] };
            sweep_window(s, b, at, fn, arg);
        }
}

/* ---- convolutions ---- */

/* A row's aux. */
struct convolution {
    int spatial;
    bool depthwise, by_filter; /* computes the gradient of the filter; otherwise that of the input */
    bool sizes;                /* the missing operand is described by its shape; otherwise by a tensor of that shape */
};

struct products {
    const struct tare_tensor *dy, *other; /* other: the input or the filter */
    double *sums;
    int64_t in_channels, per_group, out_channels; /* per_group: input channels that one output channel uses */
    bool depthwise, by_filter;
};

static void multiply(void *arg, const struct sweep *s, const struct meeting *m) {
    const struct products *p = arg;
    for (int64_t o = 0; o < p->out_channels; o++) {
        const double dy = tare_tensor_get_f64(p->dy, m->out + o * s->out.channel);
        const int64_t groups = p->in_channels / p->per_group, group = o / (p->out_channels / groups);
        for (int64_t i = 0; i < p->per_group; i++) {
            const int64_t x = m->in + (group * p->per_group + i) * s->in.channel;
            const int64_t w = (m->cell * p->per_group + i) * p->out_channels + o;
            if (p->by_filter)
                p->sums[w] += tare_tensor_get_f64(p->other, x) * dy;
            else
                p->sums[x] += tare_tensor_get_f64(p->other, w) * dy;
        }
    }
}

/* The same for the gradient of a filter without groups, or of a depthwise one, from float32 with the channels last: the
 * products of two floats are exact in double and each sum adds them in the same order, so the bits are the same. */
static void multiply_rows(void *arg, const struct sweep *s, const struct meeting *m) {
    const struct products *p = arg;
    const float *restrict dy = TARE_CONST_DATA(float, p->dy) + m->out;
    const float *restrict x = TARE_CONST_DATA(float, p->other) + m->in;
    const int64_t out_channels = p->out_channels, repeat = out_channels / p->in_channels;
    double *restrict sums = p->sums + m->cell * p->per_group * out_channels;
    (void)s;
    if (p->depthwise) {
        for (int64_t i = 0, o = 0; i < p->in_channels; i++)
            for (int64_t r = 0; r < repeat; r++, o++)
                sums[o] += (double)x[i] * (double)dy[o];
        return;
    }
    for (int64_t i = 0; i < p->per_group; i++, sums += out_channels) {
        const double factor = (double)x[i];
        for (int64_t o = 0; o < out_channels; o++)
            sums[o] += factor * (double)dy[o];
    }
}

static bool has_rows(const struct sweep *s, const struct products *p) {
    return p->by_filter && p->dy->dtype == TARE_DT_FLOAT && p->other->dtype == TARE_DT_FLOAT && s->in.channel == 1 &&
           s->out.channel == 1 && (p->depthwise || p->per_group == p->in_channels);
}

/* Returns the indices of the operand that only has a size and of the operand that is used. */
static void operands(const struct convolution *kind, size_t *sized, size_t *present) {
    *sized = kind->by_filter ? 1 : 0;
    *present = kind->by_filter ? 0 : 1;
}

static tare_status infer_convolution(struct tare_infer *infer) {
    const struct convolution *kind = infer->node->def->row->aux;
    size_t sized, present;
    operands(kind, &sized, &present);
    if (!kind->sizes) {
        infer->outputs[0] = infer->inputs[sized];
        return tare_operand_rank(infer, sized, "the operand", kind->spatial + 2);
    }
    TARE_TRY(tare_infer_shape_input(&infer->outputs[0], infer, sized));
    if (infer->outputs[0].rank >= 0 && infer->outputs[0].rank != kind->spatial + 2)
        return TARE_FAIL(TARE_SHAPE, "the sizes have %d entries (expected %d)", infer->outputs[0].rank,
                         kind->spatial + 2);
    return TARE_OK;
}

static tare_status open_convolution(struct sweep *s, struct products *p, const struct tare_shape *input,
                                    const struct tare_shape *filter, const struct tare_shape *dy) {
    TARE_TRY(view_of(&s->in, input, &s->window, "input"));
    TARE_TRY(view_of(&s->out, dy, &s->window, "out_backprop"));
    if (filter->rank != s->window.spatial + 2)
        return TARE_FAIL(TARE_SHAPE, "filter has rank %d (expected %d)", filter->rank, s->window.spatial + 2);
    s->size[0] = 1;
    for (int i = 0; i < s->window.spatial; i++)
        s->size[3 - s->window.spatial + i] = filter->dims[i];
    TARE_TRY(check_sweep(s));
    const int64_t third = filter->dims[filter->rank - 2], last = filter->dims[filter->rank - 1];
    p->in_channels = s->in.layout.channels;
    p->per_group = p->depthwise ? 1 : third;
    p->out_channels = s->out.layout.channels;
    /* a depthwise filter [.., c, m] is a grouped filter [.., 1, c * m] */
    const bool fits = p->depthwise ? third == p->in_channels && third * last == p->out_channels
                                   : third > 0 && p->in_channels % third == 0 && last == p->out_channels &&
                                         p->in_channels > 0 && last % (p->in_channels / third) == 0;
    if (fits && p->in_channels > 0) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "a filter of %lld and %lld channels between %lld and %lld", (long long)third,
                     (long long)last, (long long)p->in_channels, (long long)p->out_channels);
}

static tare_status run_convolution(struct tare_kernel *kernel) {
    const struct convolution *kind = kernel->op->aux;
    struct sweep s;
    size_t sized, present;
    operands(kind, &sized, &present);
    struct products p = { .dy = &kernel->inputs[2],
                          .other = &kernel->inputs[present],
                          .depthwise = kind->depthwise,
                          .by_filter = kind->by_filter };
    TARE_TRY(tare_operand_output(kernel, 2));
    struct tare_tensor *out = &kernel->outputs[0];
    const struct tare_shape *input = kind->by_filter ? &p.other->shape : &out->shape;
    const struct tare_shape *filter = kind->by_filter ? &out->shape : &p.other->shape;
    TARE_TRY(tare_window_parse(&s.window, kernel->node, kind->spatial));
    p.sums = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)out->elements + 1);
    if (!p.sums) return TARE_NO_MEMORY;
    if (out->elements && p.dy->elements && p.other->elements) {
        TARE_TRY(open_convolution(&s, &p, input, filter, &p.dy->shape));
        sweep_all(&s, has_rows(&s, &p) ? multiply_rows : multiply, &p);
    }
    for (int64_t i = 0; i < out->elements; i++)
        tare_tensor_set_f64(out, i, p.sums[i]);
    return TARE_OK;
}

/* ---- pools ---- */

/* A row's aux. */
struct pool {
    int spatial;
    bool average;
};

static tare_status infer_pool(struct tare_infer *infer) {
    const struct pool *pool = infer->node->def->row->aux;
    if (!pool->average) {
        infer->outputs[0] = infer->inputs[0];
        return tare_operand_rank(infer, 0, "orig_input", pool->spatial + 2);
    }
    TARE_TRY(tare_infer_shape_input(&infer->outputs[0], infer, 0));
    if (infer->outputs[0].rank >= 0 && infer->outputs[0].rank != pool->spatial + 2)
        return TARE_FAIL(TARE_SHAPE, "orig_input_shape has %d entries (expected %d)", infer->outputs[0].rank,
                         pool->spatial + 2);
    return TARE_OK;
}

struct spreading {
    const struct tare_tensor *grad, *input;
    double *sums;
    int64_t *best;   /* for each output element, the input element of the first maximum; -1: none yet */
    int64_t *counts; /* for each output position, the number of cells inside the input */
};

static void find_best(void *arg, const struct sweep *s, const struct meeting *m) {
    const struct spreading *p = arg;
    for (int64_t c = 0; c < s->out.layout.channels; c++) {
        const int64_t out = m->out + c * s->out.channel, in = m->in + c * s->in.channel;
        if (p->best[out] < 0 || tare_tensor_get_f64(p->input, in) > tare_tensor_get_f64(p->input, p->best[out]))
            p->best[out] = in;
    }
}

static void count_cells(void *arg, const struct sweep *s, const struct meeting *m) {
    (void)s;
    ((const struct spreading *)arg)->counts[m->out]++;
}

static void spread(void *arg, const struct sweep *s, const struct meeting *m) {
    const struct spreading *p = arg;
    for (int64_t c = 0; c < s->out.layout.channels; c++)
        p->sums[m->in + c * s->in.channel] +=
            tare_tensor_get_f64(p->grad, m->out + c * s->out.channel) / (double)p->counts[m->out];
}

static tare_status run_pool(struct tare_kernel *kernel) {
    const struct pool *pool = kernel->op->aux;
    struct spreading p = { .grad = &kernel->inputs[kernel->n_inputs - 1], .input = &kernel->inputs[0] };
    struct sweep s;
    TARE_TRY(tare_operand_output(kernel, kernel->n_inputs - 1));
    struct tare_tensor *out = &kernel->outputs[0];
    TARE_TRY(tare_window_parse(&s.window, kernel->node, pool->spatial));
    if (s.window.size_of_batch != 1 || s.window.size_of_channels != 1 || s.window.stride_of_batch != 1 ||
        s.window.stride_of_channels != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "pooling over batch or channels");
    memcpy(s.size, s.window.size, sizeof s.size);
    TARE_TRY(view_of(&s.in, &out->shape, &s.window, "orig_input"));
    TARE_TRY(view_of(&s.out, &p.grad->shape, &s.window, "grad"));
    if (s.in.layout.channels != s.out.layout.channels)
        return TARE_FAIL(TARE_SHAPE, "grad has %lld channels (expected %lld)", (long long)s.out.layout.channels,
                         (long long)s.in.layout.channels);
    TARE_TRY(check_sweep(&s));
    p.sums = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)out->elements + 1);
    p.best = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)p.grad->elements + 1);
    p.counts = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)p.grad->elements + 1);
    if (!p.sums || !p.best || !p.counts) return TARE_NO_MEMORY;
    memset(p.best, 0xff, (size_t)p.grad->elements * sizeof *p.best);
    if (p.grad->elements) sweep_all(&s, pool->average ? count_cells : find_best, &p);
    if (p.grad->elements && pool->average) sweep_all(&s, spread, &p);
    for (int64_t i = 0; !pool->average && i < p.grad->elements; i++)
        if (p.best[i] >= 0) p.sums[p.best[i]] += tare_tensor_get_f64(p.grad, i);
    for (int64_t i = 0; i < out->elements; i++)
        tare_tensor_set_f64(out, i, p.sums[i]);
    return TARE_OK;
}

static const struct convolution filter_2d = { 2, false, true, true }, filter_2d_like = { 2, false, true, false },
                                filter_3d = { 3, false, true, true }, filter_3d_like = { 3, false, true, false },
                                input_2d_like = { 2, false, false, false }, input_3d_like = { 3, false, false, false },
                                depthwise_filter = { 2, true, true, true };
static const struct pool max_2d = { 2, false }, max_3d = { 3, false }, mean_2d = { 2, true }, mean_3d = { 3, true };

const struct tare_op tare_ops_window_gradient[] = {
    { .name = "Conv2DBackpropFilter", .infer = infer_convolution, .run = run_convolution, .aux = &filter_2d },
    { .name = "Conv2DBackpropFilterV2", .infer = infer_convolution, .run = run_convolution, .aux = &filter_2d_like },
    { .name = "Conv3DBackpropFilter", .infer = infer_convolution, .run = run_convolution, .aux = &filter_3d_like },
    { .name = "Conv3DBackpropFilterV2", .infer = infer_convolution, .run = run_convolution, .aux = &filter_3d },
    { .name = "Conv2DBackpropInputV2", .infer = infer_convolution, .run = run_convolution, .aux = &input_2d_like },
    { .name = "Conv3DBackpropInput", .infer = infer_convolution, .run = run_convolution, .aux = &input_3d_like },
    { .name = "DepthwiseConv2dNativeBackpropFilter",
      .infer = infer_convolution,
      .run = run_convolution,
      .aux = &depthwise_filter },
    { .name = "MaxPoolGrad", .infer = infer_pool, .run = run_pool, .aux = &max_2d },
    { .name = "MaxPool3DGrad", .infer = infer_pool, .run = run_pool, .aux = &max_3d },
    { .name = "AvgPoolGrad", .infer = infer_pool, .run = run_pool, .aux = &mean_2d },
    { .name = "AvgPool3DGrad", .infer = infer_pool, .run = run_pool, .aux = &mean_3d },
    { 0 },
};

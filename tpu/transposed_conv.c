/* XlaConvV2 for gradients of convolutions with respect to their input. The geometry is that of tf2xla
 * (MakeXlaBackpropInputConvOp): the output's gradients, `strides` apart, convolved with the reversed filter, whose
 * channels are exchanged by dimension numbers only. */
#include "tpu/transposed_conv.h"
#include "graph/emit.h"
#include "interpreter/inference/model_shapes.h"
#include "interpreter/ops/support/dims_wire.h"
#include "interpreter/ops/support/window.h"
#include "tpu/closure.h"

#include <stdio.h>
#include <string.h>

static const struct kind {
    const char *op;
    int spatial;
    bool depthwise; /* filter dims: spatial…, channels, outputs a channel */
} kinds[] = {
    { "Conv2DBackpropInput", 2, false },
    { "Conv3DBackpropInputV2", 3, false },
    { "DepthwiseConv2dNativeBackpropInput", 2, true },
};

static const struct kind *kind_of(const struct tare_node *node) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!node->dead && strcmp(kinds[i].op, node->op) == 0) return &kinds[i];
    return NULL;
}

static bool has_work(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (kind_of(graph->nodes[i])) return true;
    return false;
}

/* One node to replace. Axes are spatial ones, 0 … spatial-1; unknown sizes are -1. */
struct job {
    struct tare_emit emit;
    struct tare_node *node;
    const struct kind *kind;
    struct tare_window window;
    int64_t input[3], filter[3], gradient[3]; /* spatial sizes */
    int64_t stride[3], dilation[3], explicit_low[3];
    int64_t groups;
    bool whole_sizes; /* input_sizes includes batch and channels */
    struct tare_shape filter_shape;
};

enum { INPUT_SIZES, FILTER, GRADIENT }; /* the op's inputs */

/* ---- known sizes ---- */

static int64_t dim(const struct tare_shape *shape, int axis) {
    return shape->rank > axis ? shape->dims[axis] : TARE_UNKNOWN_DIM;
}

/* The window's three axes are the node's spatial ones at the end. */
static void read_axes(struct job *job, const struct tare_shape *input, const struct tare_shape *gradient) {
    const int n = job->kind->spatial, first = job->window.channels_first ? 2 : 1;
    for (int i = 0; i < n; i++) {
        const int axis = 3 - n + i;
        job->input[i] = dim(input, first + i);
        job->filter[i] = dim(&job->filter_shape, i);
        job->gradient[i] = dim(gradient, first + i);
        job->stride[i] = job->window.stride[axis];
        job->dilation[i] = job->window.dilation[axis];
        job->explicit_low[i] = job->window.explicit_pad[axis][0];
    }
}

/* False where the channels are not known well enough to determine the number of groups. */
static bool read_groups(struct job *job, const struct tare_shape *input) {
    const int n = job->kind->spatial;
    const int64_t channels = dim(input, job->window.channels_first ? 1 : n + 1), seen = dim(&job->filter_shape, n);
    if (job->kind->depthwise) {
        job->groups = seen;
        return seen > 0;
    }
    job->groups = 1;
    if (!job->whole_sizes) return true;
    if (channels < 1 || seen < 1 || channels % seen) return false;
    job->groups = channels / seen;
    return job->groups == 1 ||
           (dim(&job->filter_shape, n + 1) > 0 && dim(&job->filter_shape, n + 1) % job->groups == 0);
}

static bool is_known(const int64_t *sizes, int n) {
    for (int i = 0; i < n; i++)
        if (sizes[i] < 0 || sizes[i] > INT32_MAX) return false;
    return true;
}

/* Whether the sizes are consistent: inconsistent ones would be padded silently. */
static bool fits(const struct job *job) {
    for (int i = 0; i < job->kind->spatial; i++) {
        int64_t out, pad;
        if (job->input[i] < 0 || job->filter[i] < 0 || job->gradient[i] < 0) continue;
        if (tare_window_output(&out, &pad, &job->window, 3 - job->kind->spatial + i, job->input[i], job->filter[i]) !=
            TARE_OK) {
            tare_error_clear();
            return false;
        }
        if (out != job->gradient[i]) return false;
    }
    return true;
}

/* *ready is false if the node must stay unchanged. */
static tare_status read_job(struct job *job, bool *ready, struct tare_node *node,
                            const struct tare_model_shapes *shapes) {
    const struct tare_shape sizes = tare_model_shape(shapes, node->inputs[INPUT_SIZES]);
    const struct tare_shape gradient = tare_model_shape(shapes, node->inputs[GRADIENT]);
    struct tare_shape input = tare_model_shape(shapes, (struct tare_edge){ node, 0 });
    *job = (struct job){ .emit = { .graph = node->graph, .prefix = node->name, .status = TARE_OK },
                         .node = node,
                         .kind = kind_of(node) };
    TARE_TRY(tare_window_parse(&job->window, node, job->kind->spatial));
    job->filter_shape = tare_model_shape(shapes, node->inputs[FILTER]);
    job->whole_sizes = sizes.rank != 1 || sizes.dims[0] != job->kind->spatial;
    read_axes(job, &input, &gradient);
    *ready = read_groups(job, &input) && fits(job);
    return TARE_OK;
}

/* ---- the filter ---- */

/* Reverses the taps; with groups, transposes [in / groups, groups, out / groups] to [groups, in / groups, out /
 * groups].
 */
static void reverse(char *to, const char *from, const struct job *job, size_t size) {
    const struct tare_shape *shape = &job->filter_shape;
    const int n = job->kind->spatial;
    const int64_t groups = job->kind->depthwise ? 1 : job->groups, in = shape->dims[n],
                  out = shape->dims[n + 1] / groups;
    int64_t taps = 1;
    for (int i = 0; i < n; i++)
        taps *= shape->dims[i];
    for (int64_t tap = 0; tap < taps; tap++)
        for (int64_t g = 0; g < groups; g++)
            for (int64_t i = 0; i < in; i++) {
                memcpy(to, from + (size_t)((((taps - 1 - tap) * in + i) * groups + g) * out) * size,
                       (size_t)out * size);
                to += (size_t)out * size;
            }
}

static struct tare_edge emit_reversed_constant(struct job *job, const struct tare_tensor *value) {
    struct tare_shape shape = job->filter_shape;
    struct tare_tensor whole = { 0 }, reversed = { 0 };
    struct tare_edge edge = { NULL, 0 };
    tare_status status = tare_tensor_copy(&whole, value); /* a splat is written out */
    if (!job->kind->depthwise) {
        shape.dims[job->kind->spatial] *= job->groups;
        shape.dims[job->kind->spatial + 1] /= job->groups;
    }
    if (status == TARE_OK) status = tare_tensor_new(&reversed, value->dtype, &shape);
    if (status == TARE_OK) {
        reverse(reversed.data, whole.data, job, tare_dtype_size(value->dtype));
        edge = tare_emit_const(&job->emit, "reversed_filter", &reversed);
    } else if (job->emit.status == TARE_OK) {
        job->emit.status = status;
    }
    tare_tensor_reset(&reversed);
    tare_tensor_reset(&whole);
    return edge;
}

/* [k…, in, groups * out] to [k…, groups * in, out]: the groups, adjacent on the last axis, are merged into the
 * previous axis. */
static struct tare_edge emit_regrouped(struct job *job, struct tare_edge filter) {
    const int n = job->kind->spatial;
    const struct tare_shape *shape = &job->filter_shape;
    struct tare_shape apart = { .rank = n + 3 }, together = { .rank = n + 2 };
    int32_t order[6];
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, tare_edge_dtype(filter) },
                                            { "Tperm", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    for (int i = 0; i < n; i++) {
        apart.dims[i] = together.dims[i] = shape->dims[i];
        order[i] = i;
    }
    apart.dims[n] = shape->dims[n];
    apart.dims[n + 1] = job->groups;
    apart.dims[n + 2] = shape->dims[n + 1] / job->groups;
    order[n] = n + 1;
    order[n + 1] = n;
    order[n + 2] = n + 2;
    together.dims[n] = job->groups * shape->dims[n];
    together.dims[n + 1] = apart.dims[n + 2];
    const struct tare_edge inputs[] = { tare_emit_reshape(&job->emit, "filter_groups", filter, &apart),
                                        tare_emit_vector(&job->emit, "filter_order", n + 3, order) };
    const struct tare_edge turned = tare_emit_node(&job->emit, "Transpose", "turned_filter", inputs, 2, attrs);
    return tare_emit_reshape(&job->emit, "regrouped_filter", turned, &together);
}

static struct tare_edge emit_filter(struct job *job) {
    struct tare_edge filter = job->node->inputs[FILTER];
    const struct tare_tensor *constant = tare_edge_constant(filter);
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, tare_edge_dtype(filter) },
                                            { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    int32_t axes[3];
    int count = 0;
    for (int i = 0; i < job->kind->spatial; i++)
        if (job->filter[i] != 1) axes[count++] = i;
    const bool regroups = job->groups > 1 && !job->kind->depthwise;
    if (constant && (count || regroups)) return emit_reversed_constant(job, constant);
    if (count) {
        const struct tare_edge inputs[] = { filter, tare_emit_vector(&job->emit, "filter_axes", count, axes) };
        filter = tare_emit_node(&job->emit, "ReverseV2", "reversed_filter", inputs, 2, attrs);
    }
    return regroups && job->emit.status == TARE_OK ? emit_regrouped(job, filter) : filter;
}

/* ---- padding ---- */

/* The paddings before and after one axis, when all sizes are known. */
static void padding_of(int64_t pad[2], const struct job *job, int i) {
    pad[0] = pad[1] = 0;
    if (tare_window_transposed_padding(pad, &job->window, 3 - job->kind->spatial + i, job->input[i], job->filter[i],
                                       job->gradient[i]) != TARE_OK)
        tare_error_clear(); /* fits() saw to it */
}

static struct tare_edge emit_known_padding(struct job *job) {
    const int n = job->kind->spatial;
    const struct tare_shape shape = { .rank = 2, .dims = { n, 2 } };
    int32_t padding[6];
    for (int i = 0; i < n; i++) {
        int64_t pad[2];
        padding_of(pad, job, i);
        padding[2 * i] = (int32_t)pad[0];
        padding[2 * i + 1] = (int32_t)pad[1];
    }
    return tare_emit_ints(&job->emit, "padding", &shape, padding);
}

static struct tare_edge emit_vector(struct job *job, const char *name, const int64_t *values) {
    int32_t numbers[3];
    for (int i = 0; i < job->kind->spatial; i++)
        numbers[i] = (int32_t)values[i];
    return tare_emit_vector(&job->emit, name, job->kind->spatial, numbers);
}

/* Spatial sizes of an int32 vector that begins them at `first`. */
static struct tare_edge emit_cut(struct job *job, const char *name, struct tare_edge vector, int first) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "Index", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    char begin[64], count[64];
    const int32_t from = first, n = job->kind->spatial;
    snprintf(begin, sizeof begin, "%s/begin", name);
    snprintf(count, sizeof count, "%s/count", name);
    const struct tare_edge inputs[] = { vector, tare_emit_vector(&job->emit, begin, 1, &from),
                                        tare_emit_vector(&job->emit, count, 1, &n) };
    return tare_emit_node(&job->emit, "Slice", name, inputs, 3, attrs);
}

/* Spatial sizes of a tensor; a constant when they are known. */
static struct tare_edge emit_sizes(struct job *job, const char *name, const int64_t *known, struct tare_edge x,
                                   int first) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, tare_edge_dtype(x) },
                                            { "out_type", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    char shape[64];
    if (is_known(known, job->kind->spatial)) return emit_vector(job, name, known);
    snprintf(shape, sizeof shape, "%s/shape", name);
    return emit_cut(job, name, tare_emit_node(&job->emit, "Shape", shape, &x, 1, attrs), first);
}

/* The sizes in input_sizes. */
static struct tare_edge emit_wanted(struct job *job) {
    struct tare_edge sizes = job->node->inputs[INPUT_SIZES];
    if (is_known(job->input, job->kind->spatial)) return emit_vector(job, "expected", job->input);
    if (tare_edge_dtype(sizes) != TARE_DT_INT32) sizes = tare_emit_cast(&job->emit, "sizes", sizes, TARE_DT_INT32);
    return job->whole_sizes ? emit_cut(job, "expected", sizes, job->window.channels_first ? 2 : 1) : sizes;
}

/* The same sums as nodes in the graph. */
static struct tare_edge emit_open_padding(struct job *job) {
    static const int64_t ones[] = { 1, 1, 1 }, twos[] = { 2, 2, 2 }, zeros[] = { 0, 0, 0 };
    struct tare_emit *emit = &job->emit;
    const struct tare_emit_attr of_pack[] = {
        { "N", TARE_EMIT_INT, 2 }, { "T", TARE_EMIT_TYPE, TARE_DT_INT32 }, { "axis", TARE_EMIT_INT, 1 }, { 0 }
    };
    const struct tare_edge one = emit_vector(job, "one", ones);
    const struct tare_edge expected = emit_wanted(job);
    struct tare_edge reach = emit_sizes(job, "filter_sizes", job->filter, job->node->inputs[FILTER], 0), span, low,
                     high;
    span = emit_sizes(job, "sizes", job->gradient, job->node->inputs[GRADIENT], job->window.channels_first ? 2 : 1);
    const struct tare_edge dilations = emit_vector(job, "dilations", job->dilation);
    reach = tare_emit_binary(emit, "Sub", "filter_steps", reach, one);
    reach = tare_emit_binary(emit, "Mul", "reach", reach, dilations);
    const struct tare_edge strides = emit_vector(job, "strides", job->stride);
    span = tare_emit_binary(emit, "Sub", "steps", span, one);
    span = tare_emit_binary(emit, "Mul", "span", span, strides);
    if (job->window.padding == TARE_PAD_SAME) {
        low = tare_emit_binary(emit, "AddV2", "reached", span, reach);
        low = tare_emit_binary(emit, "Sub", "missing", tare_emit_binary(emit, "AddV2", "spanned", low, one), expected);
        low = tare_emit_binary(emit, "Maximum", "total", low, emit_vector(job, "least", zeros));
        low = tare_emit_binary(emit, "FloorDiv", "low", low, emit_vector(job, "two", twos));
    } else {
        low = emit_vector(job, "low", job->window.padding == TARE_PAD_EXPLICIT ? job->explicit_low : zeros);
    }
    low = tare_emit_binary(emit, "Sub", "padding_low", reach, low);
    high = tare_emit_binary(emit, "Sub", "last", expected, one);
    high = tare_emit_binary(emit, "Sub", "behind", tare_emit_binary(emit, "AddV2", "needed", high, reach), low);
    high = tare_emit_binary(emit, "Sub", "padding_high", high, span);
    const struct tare_edge sides[] = { low, high };
    return tare_emit_node(emit, "Pack", "padding", sides, 2, of_pack);
}

static struct tare_edge emit_padding(struct job *job) {
    const int n = job->kind->spatial;
    if (is_known(job->input, n) && is_known(job->filter, n) && is_known(job->gradient, n))
        return emit_known_padding(job);
    return emit_open_padding(job);
}

/* ---- the convolution ---- */

/* Arrays in the layout of the op; the sum is over the filter's output channels. */
static void write_numbers(struct tare_dims_wire *wire, const struct job *job) {
    const int n = job->kind->spatial, first = job->window.channels_first ? 2 : 1, feature = first == 2 ? 1 : n + 1;
    struct tare_conv_dims dims = {
        .spatial = n,
        .input_feature = feature,
        .kernel_input = n + 1,
        .kernel_output = n,
        .output_feature = feature,
    };
    for (int i = 0; i < n; i++) {
        dims.kernel_spatial[i] = i;
        dims.input_spatial[i] = dims.output_spatial[i] = first + i;
    }
    tare_conv_dims_write(wire, &dims, TARE_CONV_XLA);
}

static tare_status add_conv(struct tare_node **out, struct job *job, const struct tare_edge inputs[7]) {
    const int dtype = tare_edge_dtype(inputs[0]);
    const char *name = tare_arena_printf(&job->node->graph->model->arena, "%s/XlaConvV2", job->node->name);
    struct tare_node *node = name ? tare_graph_add(job->node->graph, "XlaConvV2", name) : NULL;
    struct tare_dims_wire numbers;
    if (!node) return TARE_NO_MEMORY;
    for (int i = 0; i < 7; i++)
        TARE_TRY(tare_node_add_input(node, inputs[i]));
    for (size_t i = 0; i < job->node->n_controls; i++)
        TARE_TRY(tare_node_add_control(node, job->node->controls[i]));
    write_numbers(&numbers, job);
    TARE_TRY(tare_node_set_type(node, "LhsT", dtype));
    TARE_TRY(tare_node_set_type(node, "RhsT", dtype));
    TARE_TRY(tare_node_set_type(node, "Tindices", TARE_DT_INT32));
    TARE_TRY(tare_node_set_type(node, "preferred_element_type", dtype));
    TARE_TRY(tare_node_set_int(node, "batch_group_count", 1));
    TARE_TRY(tare_node_set_string(node, "dimension_numbers", numbers.bytes, numbers.size));
    TARE_TRY(tare_node_set_string(node, "precision_config", "", 0));
    node->device = job->node->device;
    *out = node;
    return tare_node_resolve(node);
}

static tare_status lower(struct job *job) {
    static const int64_t ones[] = { 1, 1, 1 };
    struct tare_node *conv;
    const struct tare_edge inputs[] = {
        job->node->inputs[GRADIENT],
        emit_filter(job),
        emit_vector(job, "window_strides", ones),
        emit_padding(job),
        emit_vector(job, "lhs_dilation", job->stride),
        emit_vector(job, "rhs_dilation", job->dilation),
        tare_emit_i32(&job->emit, "feature_group_count", (int32_t)job->groups),
    };
    TARE_TRY(job->emit.status);
    TARE_TRY(add_conv(&conv, job, inputs));
    tare_graph_replace_uses(job->node->graph, (struct tare_edge){ job->node, 0 }, (struct tare_edge){ conv, 0 }, NULL);
    tare_graph_replace_controls(job->node, conv);
    tare_node_remove(job->node);
    return TARE_OK;
}

/* All nodes are read before the first is replaced: shapes are those of the original graph. */
static tare_status lower_graph(size_t *changes, struct tare_arena *arena, struct tare_graph *graph,
                               const struct tare_model_shapes *shapes) {
    struct job *jobs = TARE_NEW_ARRAY(arena, struct job, graph->n_nodes + 1);
    size_t count = 0;
    if (!jobs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        bool ready;
        if (!kind_of(node)) continue;
        TARE_TRY(tare_error_prefix(read_job(&jobs[count], &ready, node, shapes), "%s '%s'", node->op, node->name));
        count += ready;
    }
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare_error_prefix(lower(&jobs[i]), "%s '%s'", jobs[i].node->op, jobs[i].node->name));
    *changes += count;
    tare_graph_sweep(graph);
    return tare_graph_remove_unreachable(graph, NULL); /* filters and sizes that nothing else needs */
}

tare_status tare_tpu_lower_transposed(size_t *changes, struct tare_arena *arena, struct tare_graph_model *model,
                                      struct tare_graph *const *functions, size_t count) {
    struct tare_model_shapes *shapes = NULL;
    struct tare_tpu_closure closure;
    size_t copies;
    bool any = false;
    tare_status status = TARE_OK;
    *changes = 0;
    TARE_TRY(tare_tpu_closure(&closure, arena, functions, count));
    for (size_t m = 0; m < closure.count; m++)
        any |= closure.members[m].changes = has_work(closure.members[m].graph);
    if (!any) return TARE_OK;
    TARE_TRY(tare_tpu_closure_own(&closure, arena, &copies));
    TARE_TRY(tare_model_shapes_new(&shapes, model));
    for (size_t m = 0; m < closure.count && status == TARE_OK; m++)
        if (has_work(closure.members[m].graph)) status = lower_graph(changes, arena, closure.members[m].graph, shapes);
    tare_model_shapes_free(shapes);
    return status;
}

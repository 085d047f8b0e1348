/* The UNIFORM_QUANTIZED op set: static range by UniformQuantizedConvolution and UniformQuantizedDot, whose tensors have
 * quantized dtypes and whose scales are inputs; dynamic range by their hybrid forms, which compute the parameters of
 * each row of the batch.
 *
 * x_q = UniformQuantize(x); acc = UniformQuantizedConvolution(x_q, w_q) + bias_q in qint32, scale s_x * s_w[c];
 * ClipByValue for Relu and Relu6; UniformDequantize, or UniformRequantize where only such layers use it. */
#include "graph/calls.h"
#include "graph/model.h"
#include "quant/layer_index.h"
#include "interpreter/ops/support/dims_wire.h"
#include "quant/variables.h"
#include "quant/table.h"
#include "quant/xla.h"
#include "base/tensor/number.h"

#include <math.h>
#include <stdio.h>

/* ---- nodes ---- */

static struct tare_node *open_node(struct tare_emit *emit, const char *op, const char *name,
                                   const struct tare_edge *inputs, size_t n_inputs) {
    const char *full = tare_arena_printf(&emit->graph->model->arena, "%s/%s", emit->prefix, name);
    struct tare_node *node = full && emit->status == TARE_OK ? tare_graph_add(emit->graph, op, full) : NULL;
    if (!node && emit->status == TARE_OK) emit->status = TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs && emit->status == TARE_OK; i++)
        emit->status = tare_node_add_input(node, inputs[i]);
    return node;
}

static void set_int(struct tare_emit *emit, struct tare_node *node, const char *name, int64_t value) {
    if (emit->status == TARE_OK) emit->status = tare_node_set_int(node, name, value);
}

static void set_type(struct tare_emit *emit, struct tare_node *node, const char *name, int dtype) {
    if (emit->status == TARE_OK) emit->status = tare_node_set_type(node, name, dtype);
}

static void set_text(struct tare_emit *emit, struct tare_node *node, const char *name, const void *data, size_t size) {
    if (emit->status == TARE_OK) emit->status = tare_node_set_string(node, name, data, size);
}

static void set_list(struct tare_emit *emit, struct tare_node *node, const char *name, const int64_t *values,
                     int count) {
    if (emit->status == TARE_OK) emit->status = tare_node_set_int_list(node, name, values, (size_t)count);
}

/* Axis and range of one tensor of a node. */
static void set_limits(struct tare_emit *emit, struct tare_node *node, const char *prefix, int axis, int dtype) {
    char name[64];
    const bool wide = dtype == TARE_DT_QINT32;
    snprintf(name, sizeof name, "%squantization_axis", prefix);
    set_int(emit, node, name, axis);
    snprintf(name, sizeof name, "%squantization_min_val", prefix);
    set_int(emit, node, name, wide ? INT32_MIN : -128);
    snprintf(name, sizeof name, "%squantization_max_val", prefix);
    set_int(emit, node, name, wide ? INT32_MAX : 127);
}

/* A constant of a quantized dtype. */
static struct tare_edge emit_quantized(struct tare_emit *emit, const char *name, int dtype,
                                       const struct tare_shape *shape, const void *values) {
    struct tare_tensor tensor;
    struct tare_edge edge = { NULL, 0 };
    if (emit->status == TARE_OK) emit->status = tare_tensor_from(&tensor, dtype, shape, values);
    if (emit->status != TARE_OK) return edge;
    edge = tare_emit_const(emit, name, &tensor);
    tare_tensor_reset(&tensor);
    return edge;
}

/* A filter, or a matrix. */
static struct tare_shape weight_shape(const struct tare_quant_layer *layer) {
    return layer->product.spatial ? layer->product.arranged
                                  : tare_shape_make(2, layer->product.rows, layer->product.columns);
}

/* Two integers per byte, unpacked at run time: the ops have no 4-bit quantized dtype, but the values fit qint8. */
static struct tare_edge emit_unpacked(struct tare_emit *emit, struct tare_quant_layer *layer,
                                      const struct tare_shape *shape) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_INT8 },
                                            { "type", TARE_EMIT_TYPE, TARE_DT_QINT8 },
                                            { 0 } };
    struct tare_edge w = tare_emit_weight(emit, layer);
    if (!tare_shape_equal(shape, &layer->product.arranged)) w = tare_emit_reshape(emit, "weight/matrix", w, shape);
    return tare_emit_node(emit, "Bitcast", "weight/quantized", &w, 1, attrs);
}

/* The layer's integers, in the variable that held its weight or as a constant. */
static struct tare_edge emit_weight(struct tare_emit *emit, struct tare_quant_layer *layer) {
    const struct tare_shape shape = weight_shape(layer);
    struct tare_tensor value;
    struct tare_edge edge = { NULL, 0 };
    if (layer->quantized.bits == 4) return emit_unpacked(emit, layer, &shape);
    if (!layer->variable) return emit_quantized(emit, "weight", TARE_DT_QINT8, &shape, layer->quantized.values.data);
    if (emit->status == TARE_OK)
        emit->status = tare_tensor_from(&value, TARE_DT_QINT8, &shape, layer->quantized.values.data);
    if (emit->status != TARE_OK) return edge;
    emit->status = tare_quant_store(&edge, layer, &value);
    tare_tensor_reset(&value);
    return edge;
}

/* ---- parameters ---- */

/* Scales and zero points of a tensor as inputs of a node: scalars, or vectors along `axis`. */
struct numbers {
    struct tare_edge scales, zero_points;
    int axis;
};

static struct numbers emit_numbers(struct tare_emit *emit, const char *name, const double *scales, int64_t count,
                                   int32_t zero_point, int axis, struct tare_arena *arena) {
    const struct tare_shape vector = { .rank = 1, .dims = { count } };
    int32_t *zeros = TARE_NEW_ARRAY(arena, int32_t, (size_t)count);
    struct numbers out = { .axis = count == 1 ? -1 : axis };
    char text[64];
    if (!zeros && emit->status == TARE_OK) emit->status = TARE_NO_MEMORY;
    for (int64_t i = 0; zeros && i < count; i++)
        zeros[i] = zero_point;
    snprintf(text, sizeof text, "%s/scales", name);
    out.scales = tare_emit_floats(emit, text, count == 1 ? NULL : &vector, scales);
    snprintf(text, sizeof text, "%s/zero_points", name);
    if (zeros) out.zero_points = tare_emit_ints(emit, text, count == 1 ? NULL : &vector, zeros);
    return out;
}

static struct tare_edge emit_quantize(struct tare_emit *emit, struct tare_edge x, const struct numbers *n) {
    const struct tare_edge inputs[] = { tare_emit_float(emit, "quantize/float", x), n->scales, n->zero_points };
    struct tare_node *node = open_node(emit, "UniformQuantize", "quantize", inputs, 3);
    set_type(emit, node, "Tin", TARE_DT_FLOAT);
    set_type(emit, node, "Tout", TARE_DT_QINT8);
    set_limits(emit, node, "", n->axis, TARE_DT_QINT8);
    return tare_emit_resolved(emit, node);
}

/* ---- products ---- */

static void set_window(struct tare_emit *emit, struct tare_node *node, const struct tare_quant_product *p) {
    int64_t strides[TARE_MOST_WINDOW], dilations[TARE_MOST_WINDOW], bases[TARE_MOST_WINDOW];
    int64_t pads[2 * TARE_MOST_WINDOW];
    struct tare_dims_wire numbers;
    for (int i = 0; i < p->spatial; i++) {
        strides[i] = p->window[i].stride;
        dilations[i] = p->window[i].dilation;
        bases[i] = p->window[i].base;
        pads[2 * i] = p->window[i].low;
        pads[2 * i + 1] = p->window[i].high;
    }
    tare_conv_dims_write(&numbers, &p->dims, TARE_CONV_UNIFORM);
    set_list(emit, node, "window_strides", strides, p->spatial);
    set_text(emit, node, "padding", "EXPLICIT", 8);
    set_list(emit, node, "explicit_padding", pads, 2 * p->spatial);
    set_list(emit, node, "lhs_dilation", bases, p->spatial);
    set_list(emit, node, "rhs_dilation", dilations, p->spatial);
    set_int(emit, node, "batch_group_count", 1);
    set_int(emit, node, "feature_group_count", p->groups);
    set_text(emit, node, "dimension_numbers", numbers.bytes, numbers.size);
}

static struct tare_edge emit_product(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge x,
                                     const struct numbers *left, struct tare_edge w, const struct numbers *right,
                                     const struct numbers *sums) {
    const struct tare_edge inputs[] = {
        x, w, left->scales, left->zero_points, right->scales, right->zero_points, sums->scales, sums->zero_points
    };
    const bool conv = layer->product.spatial > 0;
    struct tare_node *node =
        open_node(emit, conv ? "UniformQuantizedConvolution" : "UniformQuantizedDot", "product", inputs, 8);
    set_type(emit, node, "Tin", TARE_DT_QINT8);
    set_type(emit, node, "Tout", TARE_DT_QINT32);
    if (conv) set_window(emit, node, &layer->product);
    set_limits(emit, node, "lhs_", left->axis, TARE_DT_QINT8);
    set_limits(emit, node, "rhs_", right->axis, TARE_DT_QINT8);
    set_limits(emit, node, "output_", sums->axis, TARE_DT_QINT32);
    return tare_emit_resolved(emit, node);
}

/* ---- bias, activation, output ---- */

static struct tare_edge emit_bias(struct tare_emit *emit, struct tare_arena *arena,
                                  const struct tare_quant_layer *layer, struct tare_edge acc,
                                  const struct numbers *sums, const double *scales) {
    const struct tare_shape vector = { .rank = 1, .dims = { layer->product.columns } };
    const struct tare_shape shape = layer->product.spatial ? layer->product.channel_shape : vector;
    const int32_t *values = tare_quant_bias_integers(arena, layer, scales);
    struct tare_node *node;
    if (!values) {
        emit->status = TARE_NO_MEMORY;
        return acc;
    }
    const struct tare_edge inputs[] = { acc,          emit_quantized(emit, "bias", TARE_DT_QINT32, &shape, values),
                                        sums->scales, sums->zero_points,
                                        sums->scales, sums->zero_points,
                                        sums->scales, sums->zero_points };
    node = open_node(emit, "UniformQuantizedAdd", "add_bias", inputs, 8);
    set_type(emit, node, "T", TARE_DT_QINT32);
    set_limits(emit, node, "lhs_", sums->axis, TARE_DT_QINT32);
    set_limits(emit, node, "rhs_", sums->axis < 0 ? -1 : 0, TARE_DT_QINT32);
    set_limits(emit, node, "output_", sums->axis, TARE_DT_QINT32);
    return tare_emit_resolved(emit, node);
}

/* Relu clamps at 0, Relu6 also at 6 / scale, rounded. */
static struct tare_edge emit_clip(struct tare_emit *emit, struct tare_arena *arena,
                                  const struct tare_quant_layer *layer, struct tare_edge acc,
                                  const struct numbers *sums, const double *scales) {
    const int64_t count = layer->quantized.n_scales;
    const struct tare_shape shape = { .rank = count == 1 ? 0 : 1, .dims = { count } };
    int32_t *low = TARE_NEW_ARRAY(arena, int32_t, (size_t)count), *high = TARE_NEW_ARRAY(arena, int32_t, (size_t)count);
    struct tare_node *node;
    if (!low || !high) {
        emit->status = TARE_NO_MEMORY;
        return acc;
    }
    for (int64_t c = 0; c < count; c++)
        high[c] = layer->activation == TARE_ACTIVATION_RELU6
                      ? (int32_t)fmin(tare_round_half_away(6 / scales[c]), INT32_MAX)
                      : INT32_MAX;
    const struct tare_edge inputs[] = { acc, emit_quantized(emit, "clip/min", TARE_DT_QINT32, &shape, low),
                                        emit_quantized(emit, "clip/max", TARE_DT_QINT32, &shape, high), sums->scales,
                                        sums->zero_points };
    node = open_node(emit, "UniformQuantizedClipByValue", "clip", inputs, 5);
    set_type(emit, node, "T", TARE_DT_QINT32);
    set_limits(emit, node, "", sums->axis, TARE_DT_QINT32);
    return tare_emit_resolved(emit, node);
}

static struct tare_edge emit_real(struct tare_emit *emit, struct tare_edge acc, const struct numbers *sums) {
    const struct tare_edge inputs[] = { acc, sums->scales, sums->zero_points };
    struct tare_node *node = open_node(emit, "UniformDequantize", "dequantize", inputs, 3);
    set_type(emit, node, "Tin", TARE_DT_QINT32);
    set_type(emit, node, "Tout", TARE_DT_FLOAT);
    set_limits(emit, node, "", sums->axis, TARE_DT_QINT32);
    return tare_emit_resolved(emit, node);
}

static struct tare_edge emit_narrow(struct tare_emit *emit, struct tare_arena *arena,
                                    const struct tare_quant_layer *layer, struct tare_edge acc,
                                    const struct numbers *sums) {
    const struct tare_qparams *out = &layer->output_params;
    const struct numbers to = emit_numbers(emit, "requantize", &out->scale, 1, out->zero_point, -1, arena);
    const struct tare_edge inputs[] = { acc, sums->scales, sums->zero_points, to.scales, to.zero_points };
    struct tare_node *node = open_node(emit, "UniformRequantize", "requantize", inputs, 5);
    set_type(emit, node, "Tin", TARE_DT_QINT32);
    set_type(emit, node, "Tout", TARE_DT_QINT8);
    set_limits(emit, node, "input_", sums->axis, TARE_DT_QINT32);
    set_limits(emit, node, "output_", -1, TARE_DT_QINT8);
    return tare_emit_resolved(emit, node);
}

/* ---- layers ---- */

/* UniformQuantizedDot takes matrices: the activation's contracted axes are moved to its end, operands with other
 * numbers of axes are reshaped, and the result is moved back. */
static bool is_matrix_product(const struct tare_quant_product *p) {
    return !p->n_batch && !p->squeezed_left;
}

static bool has_more_axes(const struct tare_quant_layer *layer) {
    return !layer->product.spatial &&
           (layer->product.n_free_left != 1 || layer->product.n_contracted != 1 || layer->product.n_free_right != 1);
}

/* The activation's axes: the free ones, then the contracted ones. Returns true if this is not their order already. */
static bool order_left(int32_t *order, const struct tare_quant_product *p) {
    unsigned contracted = 0;
    int count = 0;
    bool moved = false;
    for (int i = 0; i < p->n_contracted; i++)
        contracted |= 1u << p->left_contracted[i];
    for (int axis = 0; axis < p->n_free_left + p->n_contracted; axis++)
        if (!(contracted >> axis & 1)) order[count++] = axis;
    for (int i = 0; i < p->n_contracted; i++)
        order[count++] = p->left_contracted[i];
    for (int i = 0; i < count; i++)
        moved |= order[i] != i;
    return moved;
}

/* The result's shape as a product of matrices has it, reshaped; false if two of the activation's own axes are known
 * only at run time. */
static bool output_shape(struct tare_shape *out, const struct tare_quant_work *work,
                         const struct tare_quant_layer *layer) {
    const struct tare_shape left = tare_model_shape(work->shapes, layer->input);
    const struct tare_quant_product *p = &layer->product;
    int32_t order[TARE_MAX_RANK];
    int unknown = 0;
    order_left(order, p);
    *out = tare_shape_make(0);
    for (int i = 0; i < p->n_free_left; i++) {
        out->dims[out->rank++] = p->n_free_left == 1 ? -1 : left.rank > order[i] ? left.dims[order[i]] : -1;
        unknown += out->dims[i] < 0;
    }
    for (int i = 0; i < p->n_free_right; i++)
        out->dims[out->rank++] = p->arranged.dims[p->n_contracted + i];
    return unknown <= 1;
}

static struct tare_edge emit_bitcast(struct tare_emit *emit, const char *name, struct tare_edge x, int from, int to) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, from }, { "type", TARE_EMIT_TYPE, to }, { 0 } };
    return tare_emit_node(emit, "Bitcast", name, &x, 1, attrs);
}

/* Transpose, which has no kernel for qint8. */
static struct tare_edge emit_moved(struct tare_emit *emit, const char *name, struct tare_edge x, int rank,
                                   const int32_t *order) {
    const int dtype = emit->status == TARE_OK ? tare_edge_dtype(x) : TARE_DT_FLOAT;
    const bool casts = dtype == TARE_DT_QINT8;
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, casts ? TARE_DT_INT8 : dtype },
                                            { "Tperm", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    if (casts) x = emit_bitcast(emit, "moved/int8", x, TARE_DT_QINT8, TARE_DT_INT8);
    const struct tare_edge inputs[] = { x, tare_emit_vector(emit, "moved/perm", rank, order) };
    x = tare_emit_node(emit, "Transpose", name, inputs, 2, attrs);
    return casts ? emit_bitcast(emit, "moved/qint8", x, TARE_DT_INT8, TARE_DT_QINT8) : x;
}

static struct tare_edge emit_matrix(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge x) {
    const struct tare_quant_product *p = &layer->product;
    const struct tare_shape shape = { .rank = 2, .dims = { -1, p->rows } };
    int32_t order[TARE_MAX_RANK];
    if (p->spatial) return x;
    if (order_left(order, p)) x = emit_moved(emit, "input/moved", x, p->n_free_left + p->n_contracted, order);
    return has_more_axes(layer) ? tare_emit_reshape(emit, "input/matrix", x, &shape) : x;
}

/* The raw result: with the axes that the matrix product has not. */
static struct tare_edge emit_whole(struct tare_emit *emit, const struct tare_quant_work *work,
                                   const struct tare_quant_layer *layer, struct tare_edge y) {
    struct tare_shape shape;
    return has_more_axes(layer) && output_shape(&shape, work, layer)
               ? tare_emit_reshape(emit, "output/whole", y, &shape)
               : y;
}

/* The raw result with the axes of the op's output. */
static struct tare_edge emit_result(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge y) {
    const struct tare_quant_product *p = &layer->product;
    int32_t order[TARE_MAX_RANK];
    if (!p->moves) return y;
    for (int i = 0; i < p->n_free_left + p->n_free_right; i++)
        order[i] = p->result_order[i];
    return emit_moved(emit, "output/moved", y, p->n_free_left + p->n_free_right, order);
}

static const char *plan_form(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    struct tare_shape shape;
    if (layer->kind == TARE_KIND_GATHER) return NULL;
    if (p->pads_late) return "SAME padding with a stride needs a known image size in UNIFORM_QUANTIZED";
    if (!p->spatial && !is_matrix_product(p))
        return "UNIFORM_QUANTIZED has products of two matrices alone, none in batches";
    if (has_more_axes(layer) && !output_shape(&shape, work, layer))
        return "UNIFORM_QUANTIZED has products of matrices alone, and several of its input's axes are not known";
    return NULL;
}

static tare_status plan_static(const char **reason, const struct tare_quant_work *work,
                               struct tare_quant_layer *layer) {
    *reason = plan_form(work, layer);
    return *reason ? TARE_OK : tare_method_static.plan(reason, work, layer); /* which has nothing against tables */
}

static tare_status plan_dynamic(const char **reason, const struct tare_quant_work *work,
                                struct tare_quant_layer *layer) {
    *reason = plan_form(work, layer);
    if (*reason || layer->kind == TARE_KIND_GATHER) return TARE_OK;
    bool compiled;
    TARE_TRY(tare_function_is_compiled(&compiled, layer->op->graph));
    *reason = compiled ? "its function is compiled by XLA (jit_compile), which has no kernel of the hybrid ops of "
                         "UNIFORM_QUANTIZED (op set xla has one)"
                       : tare_quant_check_sums(layer);
    return TARE_OK;
}

static tare_status integer_input(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                 const struct tare_quant_layer *layer, const struct numbers *left) {
    const struct tare_edge real = layer->op->inputs[layer->left];
    const struct tare_quant_shared *shared =
        tare_quant_find_shared(work, &tare_method_uniform_static, real, &layer->left_params);
    struct tare_quant_shared made = { .method = &tare_method_uniform_static,
                                      .real = real,
                                      .params = &layer->left_params };
    if (!shared) {
        made.integer = emit_quantize(emit, real, left);
        TARE_TRY(emit->status);
        TARE_TRY(tare_quant_add_shared(&shared, work, &made));
    }
    *out = shared->integer;
    return TARE_OK;
}

static tare_status rewrite_product(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const struct tare_quantized_weight *q = &layer->quantized;
    const bool conv = layer->product.spatial > 0; /* axes of the channels: */
    const int axis = conv ? layer->product.spatial + 1 : 1, out_axis = conv ? layer->product.dims.output_feature : 1;
    const struct numbers left =
        emit_numbers(&emit, "input", &layer->left_params.scale, 1, layer->left_params.zero_point, -1, work->arena);
    const struct numbers right = emit_numbers(&emit, "weight", q->scales, q->n_scales, 0, axis, work->arena);
    const struct tare_edge w = emit_weight(&emit, layer);
    double *scales = TARE_NEW_ARRAY(work->arena, double, (size_t)q->n_scales);
    const struct tare_quant_shared *added;
    struct numbers sums;
    struct tare_edge y;
    if (!scales) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < q->n_scales; i++)
        scales[i] = layer->left_params.scale * q->scales[i];
    sums = emit_numbers(&emit, "sums", scales, q->n_scales, 0, out_axis, work->arena);
    TARE_TRY(emit.status);
    TARE_TRY(integer_input(&y, work, &emit, layer, &left));
    y = emit_product(&emit, layer, emit_matrix(&emit, layer, y), &left, w, &right, &sums);
    if (layer->bias || layer->bias_real) y = emit_bias(&emit, work->arena, layer, y, &sums, scales);
    if (layer->activation != TARE_ACTIVATION_NONE) y = emit_clip(&emit, work->arena, layer, y, &sums, scales);
    TARE_TRY(emit.status);
    if (layer->has_output_params && tare_quant_only_feeds_integers(work, layer)) {
        struct tare_quant_shared made = { .method = &tare_method_uniform_static,
                                          .real = layer->output,
                                          .params = &layer->output_params };
        made.integer = emit_whole(&emit, work, layer, emit_narrow(&emit, work->arena, layer, y, &sums));
        made.integer = emit_result(&emit, layer, made.integer);
        TARE_TRY(emit.status);
        return tare_quant_add_shared(&added, work, &made);
    }
    y = emit_whole(&emit, work, layer, emit_real(&emit, y, &sums));
    return tare_quant_replace(NULL, &emit, layer->output, emit_result(&emit, layer, y));
}

/* A table is read by integer ops, as in the other op sets. */
static tare_status rewrite_static(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    return layer->kind == TARE_KIND_GATHER ? tare_quant_rewrite_table(layer) : rewrite_product(work, layer);
}

static tare_status rewrite_hybrid(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const struct tare_quantized_weight *q = &layer->quantized;
    const bool conv = layer->product.spatial > 0;
    const struct numbers right =
        emit_numbers(&emit, "weight", q->scales, q->n_scales, 0, conv ? layer->product.spatial + 1 : 1, work->arena);
    const struct tare_edge inputs[] = {
        emit_matrix(&emit, layer, tare_emit_float(&emit, "input/float", layer->op->inputs[layer->left])),
        emit_weight(&emit, layer),
        right.scales,
        right.zero_points,
    };
    struct tare_node *node = open_node(&emit, conv ? "UniformQuantizedConvolutionHybrid" : "UniformQuantizedDotHybrid",
                                       "product", inputs, 4);
    set_type(&emit, node, "Tlhs", TARE_DT_FLOAT);
    set_type(&emit, node, "Trhs", TARE_DT_QINT8);
    set_type(&emit, node, "Tout", TARE_DT_FLOAT);
    if (conv) set_window(&emit, node, &layer->product);
    set_limits(&emit, node, "rhs_", right.axis, TARE_DT_QINT8);
    const struct tare_edge y = emit_whole(&emit, work, layer, tare_emit_resolved(&emit, node));
    return tare_quant_replace(NULL, &emit, (struct tare_edge){ layer->op, 0 },
                              emit_result(&emit, layer, tare_emit_shift(&emit, layer, y)));
}

static tare_status rewrite_dynamic(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    return layer->kind == TARE_KIND_GATHER ? tare_quant_rewrite_table(layer) : rewrite_hybrid(work, layer);
}

enum {
    DYNAMIC_KINDS = 1 << TARE_KIND_CONV2D | 1 << TARE_KIND_DEPTHWISE | 1 << TARE_KIND_MATMUL | 1 << TARE_KIND_XLA_DOT |
                    1 << TARE_KIND_XLA_CONV | 1 << TARE_KIND_TRANSPOSED_CONV,
    OTHER_KINDS = 1 << TARE_KIND_CONV3D | 1 << TARE_KIND_BATCH_MATMUL | 1 << TARE_KIND_EINSUM,
    TABLES = 1 << TARE_KIND_GATHER /* TensorFlow does not quantize them */
};

const struct tare_quant_method tare_method_uniform_static = {
    .name = "static",
    .help = "static range by the UniformQuantized ops",
    .integer_inputs = true,
    .needs_ranges = true,
    .takes_bias = true,
    .kinds = DYNAMIC_KINDS | OTHER_KINDS,
    .kinds_on_request = TABLES,
    .plan = plan_static,
    .rewrite = rewrite_static,
};

const struct tare_quant_method tare_method_uniform_dynamic = {
    .name = "dynamic",
    .help = "dynamic range by the hybrid UniformQuantized ops",
    .integer_inputs = true,
    .kinds = DYNAMIC_KINDS,
    .kinds_on_request = OTHER_KINDS | TABLES,
    .min_elements = TARE_LEAST_WEIGHT,
    .plan = plan_dynamic,
    .rewrite = rewrite_dynamic,
};

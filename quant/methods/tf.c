/* The op set TF: each quantized layer is a call to a function of standard TensorFlow ops on integers, with the scales
 * and zero points as arguments, as TensorFlow's quantizer generates them.
 *
 * static:  quantized_<op>[_with_bias][_and_relu]_fn_N (input i8, filter i8, bias i32, scales, zero points) -> i8, or
 * with _float_output -> float, clamped to the range of the output's int8 type; activations are quantized by
 *          quantize_i8 (x, scale, zero point).
 * dynamic: quantized_<op>_fn_N (input float, filter i8, scale, zero point) -> float.
 * Integers are those of the op set XLA. */
#include "graph/model.h"
#include "quant/dynamic_range.h"
#include "quant/same_scale.h"
#include "quant/table.h"
#include "quant/tf_product.h"
#include "quant/variables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- functions and calls ---- */

/* Arguments of a call: names in the function and the corresponding edges of the caller's graph. */
struct call {
    struct tare_emit *caller;
    struct tare_emit body;
    struct tare_edge given[16], taken[16];
    size_t count;
};

/* The next number for functions with a stem: all smaller ones are in use. */
struct tare_quant_suffix {
    struct tare_quant_suffix *following;
    const char *stem;
    int next;
};

/* There are a few dozen stems at most. */
static struct tare_quant_suffix *suffix_of(struct tare_quant_work *work, const char *stem) {
    struct tare_quant_suffix *suffix = work->function_suffixes;
    while (suffix && strcmp(suffix->stem, stem) != 0)
        suffix = suffix->following;
    if (suffix) return suffix;
    suffix = TARE_NEW(work->arena, struct tare_quant_suffix);
    const char *copy = suffix ? tare_arena_strdup(work->arena, stem) : NULL;
    if (!copy) return NULL;
    *suffix = (struct tare_quant_suffix){ .following = work->function_suffixes, .stem = copy };
    return work->function_suffixes = suffix;
}

/* A function of the model with an unused name: `stem`_0, `stem`_1 … */
static struct tare_graph *add_function(struct tare_quant_work *work, const char *stem) {
    struct tare_quant_suffix *suffix = suffix_of(work, stem);
    while (suffix) {
        const char *name = tare_arena_printf(&work->model->arena, "%s_%d", stem, suffix->next++);
        if (!name) return NULL;
        if (!tare_model_find_function(work->model, name)) return tare_model_add_function(work->model, name);
    }
    return NULL;
}

static void open_call(struct call *call, struct tare_quant_work *work, struct tare_emit *caller, const char *name) {
    struct tare_graph *body = caller->status == TARE_OK ? add_function(work, name) : NULL;
    *call = (struct call){ .caller = caller, .body = { .graph = body, .prefix = "quantized" } };
    call->body.status = body ? TARE_OK : caller->status == TARE_OK ? TARE_NO_MEMORY : caller->status;
}

/* An argument of the function, as an edge of the body. */
static struct tare_edge pass(struct call *call, const char *name, struct tare_edge edge) {
    struct tare_edge argument = { NULL, 0 };
    if (call->body.status == TARE_OK) call->body.status = call->caller->status;
    if (call->body.status != TARE_OK) return argument;
    argument.node = tare_graph_add_arg(call->body.graph, name, tare_edge_dtype(edge));
    if (!argument.node) call->body.status = TARE_NO_MEMORY;
    call->given[call->count] = edge;
    call->taken[call->count++] = argument;
    return argument;
}

static tare_status set_call(struct tare_node *node, const struct tare_graph *callee, const struct tare_edge *inputs,
                            size_t n_inputs) {
    int dtypes[16];
    for (size_t i = 0; i < n_inputs; i++) {
        TARE_TRY(tare_node_add_input(node, inputs[i]));
        dtypes[i] = tare_edge_dtype(inputs[i]);
    }
    TARE_TRY(tare_node_set_func(node, "f", callee->name));
    TARE_TRY(tare_node_set_type_list(node, "Tin", dtypes, n_inputs));
    TARE_TRY(tare_node_set_type_list(node, "Tout", &callee->returns[0].dtype, 1));
    TARE_TRY(tare_node_set_string(node, "config", "", 0));
    TARE_TRY(tare_node_set_string(node, "config_proto", "", 0));
    TARE_TRY(tare_node_set_string(node, "executor_type", "", 0));
    return tare_node_resolve(node);
}

static tare_status emit_call(struct tare_edge *out, struct tare_graph *graph, const char *prefix, const char *name,
                             const struct tare_graph *callee, const struct tare_edge *inputs, size_t n_inputs) {
    const char *full = tare_arena_printf(&graph->model->arena, "%s/%s", prefix, name);
    struct tare_node *node = full ? tare_graph_add(graph, "PartitionedCall", full) : NULL;
    if (!node) return TARE_NO_MEMORY;
    *out = (struct tare_edge){ node, 0 };
    return set_call(node, callee, inputs, n_inputs);
}

/* Ends the body with `result` and calls it. */
static tare_status close_call(struct tare_edge *out, struct call *call, struct tare_edge result) {
    struct tare_graph *body = call->body.graph;
    TARE_TRY(call->caller->status);
    TARE_TRY(call->body.status);
    TARE_TRY(tare_graph_add_return(body, "output", tare_edge_dtype(result), result));
    return emit_call(out, call->caller->graph, call->caller->prefix, "call", body, call->given, call->count);
}

/* ---- quantize_i8 ---- */

/* clip(x / scale + zero point), rounded half to even; for any scale and zero point. */
static struct tare_edge emit_codes(struct tare_emit *emit, struct tare_edge x, struct tare_edge scale,
                                   struct tare_edge zero) {
    struct tare_edge y = tare_emit_binary(emit, "Div", "div", x, scale);
    y = tare_emit_binary(emit, "AddV2", "add", y, zero);
    y = tare_emit_binary(emit, "Maximum", "maximum", y, tare_emit_f32(emit, "qmin", -128));
    y = tare_emit_binary(emit, "Minimum", "minimum", y, tare_emit_f32(emit, "qmax", 127));
    return tare_emit_unary(emit, "Round", "round", y);
}

/* The model's quantize_i8, made once. */
static tare_status quantize_function(struct tare_graph **out, struct tare_quant_work *work) {
    struct tare_graph_model *model = work->model;
    struct tare_graph *f;
    *out = work->quantize_function;
    if (*out) return TARE_OK;
    f = tare_model_find_function(model, "quantize_i8") ? add_function(work, "quantize_i8")
                                                       : tare_model_add_function(model, "quantize_i8");
    if (!f) return TARE_NO_MEMORY;
    struct tare_emit emit = { .graph = f, .prefix = "quantized" };
    const struct tare_edge x = { tare_graph_add_arg(f, "input", TARE_DT_FLOAT), 0 };
    const struct tare_edge scale = { tare_graph_add_arg(f, "scale", TARE_DT_FLOAT), 0 };
    const struct tare_edge zero = { tare_graph_add_arg(f, "zp", TARE_DT_INT32), 0 };
    if (!x.node || !scale.node || !zero.node) return TARE_NO_MEMORY;
    const struct tare_edge q = tare_emit_cast(
        &emit, "cast", emit_codes(&emit, x, scale, tare_emit_cast(&emit, "zero_point", zero, TARE_DT_FLOAT)),
        TARE_DT_INT8);
    TARE_TRY(emit.status);
    TARE_TRY(tare_graph_add_return(f, "output", TARE_DT_INT8, q));
    *out = work->quantize_function = f;
    return TARE_OK;
}

static tare_status quantize(struct tare_edge *out, struct tare_quant_work *work, struct tare_graph *graph,
                            struct tare_edge real, const char *prefix, const struct tare_qparams *params) {
    struct tare_emit emit = { .graph = graph, .prefix = prefix };
    const struct tare_edge inputs[] = { tare_emit_float(&emit, "quantize/float", real),
                                        tare_emit_f32(&emit, "quantize/scale", (float)params->scale),
                                        tare_emit_i32(&emit, "quantize/zero_point", params->zero_point) };
    struct tare_graph *f;
    TARE_TRY(emit.status);
    TARE_TRY(quantize_function(&f, work));
    return emit_call(out, graph, prefix, "quantize", f, inputs, 3);
}

/* ---- weights ---- */

/* 4-bit integers, which the caller unpacks, with the axes that the layer's op expects. */
static struct tare_edge emit_unpacked(struct tare_emit *emit, struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_INT8 },
                                            { "Tperm", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    struct tare_edge inputs[2] = { tare_emit_weight(emit, layer) };
    int32_t perm[TARE_MAX_RANK];
    bool moved = false;
    for (int i = 0; i < p->n_order; i++) {
        int place = 0; /* among the axes that were not dropped */
        for (int other = 0; other < p->n_order; other++)
            place += p->order[other] < p->order[i];
        perm[place] = i;
        moved |= place != i;
    }
    if (moved) {
        inputs[1] = tare_emit_vector(emit, "filter/perm", p->n_order, perm);
        inputs[0] = tare_emit_node(emit, "Transpose", "filter/moved", inputs, 2, attrs);
    }
    return tare_emit_reshape(emit, "filter", inputs[0], &layer->weight->shape);
}

/* The layer's integers with the axes that its op expects. */
static struct tare_edge emit_filter(struct tare_emit *emit, struct tare_quant_layer *layer) {
    struct tare_tensor own;
    if (tare_tf_takes_arranged(layer)) return tare_emit_weight(emit, layer);
    if (layer->quantized.bits == 4) return emit_unpacked(emit, layer);
    if (layer->integers.node || emit->status != TARE_OK) return layer->integers;
    emit->status = tare_quant_restore(&own, &layer->product, &layer->quantized.values, &layer->weight->shape);
    if (emit->status != TARE_OK) return layer->integers;
    if (layer->variable)
        emit->status = tare_quant_store(&layer->integers, layer, &own);
    else
        layer->integers = tare_emit_const(emit, "weight", &own);
    tare_tensor_reset(&own);
    return layer->integers;
}

static struct tare_edge emit_filter_scale(struct tare_emit *emit, const struct tare_quant_layer *layer) {
    return tare_emit_channels(emit, "filter/scale", layer, layer->quantized.scales, layer->quantized.n_scales);
}

static struct tare_edge emit_centred(struct tare_emit *emit, const char *name, struct tare_edge q,
                                     struct tare_edge zero) {
    return tare_emit_binary(emit, "Sub", name, tare_emit_cast(emit, name, q, TARE_DT_INT32), zero);
}

/* ---- outputs of static layers, in the body ---- */

/* sums * (input scale * filter scale / output scale) + zero point, clamped by the activation function, rounded. */
static struct tare_edge emit_requantized(struct tare_emit *emit, const struct tare_quant_layer *layer,
                                         struct tare_edge y, struct tare_edge factor, struct tare_edge scale,
                                         struct tare_edge zero) {
    struct tare_edge low = tare_emit_f32(emit, "qmin", -128), high = tare_emit_f32(emit, "qmax", 127);
    factor = tare_emit_binary(emit, "Div", "rescale", factor, scale);
    zero = tare_emit_cast(emit, "zero_point", zero, TARE_DT_FLOAT);
    if (layer->activation != TARE_ACTIVATION_NONE) low = tare_emit_binary(emit, "Maximum", "low", low, zero);
    if (layer->activation == TARE_ACTIVATION_RELU6)
        high = tare_emit_binary(emit, "Minimum", "high", high,
                                emit_codes(emit, tare_emit_f32(emit, "six", 6), scale, zero));
    y = tare_emit_binary(emit, "Mul", "scaled", y, factor);
    y = tare_emit_binary(emit, "AddV2", "shifted", y, zero);
    y = tare_emit_binary(emit, "Maximum", "maximum", y, low);
    y = tare_emit_binary(emit, "Minimum", "minimum", y, high);
    return tare_emit_cast(emit, "output", tare_emit_unary(emit, "Round", "round", y), TARE_DT_INT8);
}

/* An end of int8 as a real number. */
static struct tare_edge emit_limit(struct tare_emit *emit, const char *name, int32_t code, struct tare_edge scale,
                                   struct tare_edge zero) {
    const struct tare_edge centred = tare_emit_binary(emit, "Sub", name, tare_emit_i32(emit, name, code), zero);
    return tare_emit_binary(emit, "Mul", name, tare_emit_cast(emit, name, centred, TARE_DT_FLOAT), scale);
}

static struct tare_edge emit_dequantized(struct tare_emit *emit, const struct tare_quant_layer *layer,
                                         struct tare_edge y, struct tare_edge factor, struct tare_edge scale,
                                         struct tare_edge zero) {
    struct tare_edge low = emit_limit(emit, "low", -128, scale, zero),
                     high = emit_limit(emit, "high", 127, scale, zero);
    if (layer->activation != TARE_ACTIVATION_NONE) low = tare_emit_unary(emit, "Relu", "low", low);
    if (layer->activation == TARE_ACTIVATION_RELU6)
        high = tare_emit_binary(emit, "Minimum", "high", high, tare_emit_f32(emit, "six", 6));
    y = tare_emit_binary(emit, "Mul", "scaled", y, factor);
    y = tare_emit_binary(emit, "Maximum", "maximum", y, low);
    return tare_emit_binary(emit, "Minimum", "minimum", y, high);
}

/* ---- static ---- */

static const char *const kind_names[TARE_KINDS] = { "conv2d",       "depthwise_conv2d", "conv3d", "matmul",
                                                    "batch_matmul", "einsum",           "gather", "dot_general",
                                                    "convolution",  "conv2d_transpose" };

/* quantized_conv2d_with_bias_and_relu_float_output_fn */
static void name_function(char *out, size_t size, const struct tare_quant_layer *layer, bool has_bias, bool real) {
    static const char *const activations[] = { "", "relu", "relu6" };
    const bool clamps = layer->activation != TARE_ACTIVATION_NONE;
    snprintf(out, size, "quantized_%s%s%s%s%s_fn", kind_names[layer->kind], has_bias ? "_with_bias" : "",
             clamps ? has_bias ? "_and_" : "_with_" : "", activations[layer->activation], real ? "_float_output" : "");
}

static tare_status plan_static(const char **reason, const struct tare_quant_work *work,
                               struct tare_quant_layer *layer) {
    if (layer->kind == TARE_KIND_GATHER) return TARE_OK;
    *reason = tare_tf_refuses(layer);
    if (!*reason) TARE_TRY(tare_method_static.plan(reason, work, layer));
    if (!*reason && !layer->has_output_params && !layer->weight)
        *reason = "its output was not calibrated (did any sample reach it?)";
    return TARE_OK;
}

/* Bounds the sums of any activations, for an output without statistics: a batch normalization that remains after the
 * layer was calibrated in its place. */
static struct tare_qparams widest_output(const struct tare_quant_layer *layer) {
    const struct tare_quantized_weight *q = &layer->quantized;
    double scale = 0, bias = 0, most;
    for (int64_t i = 0; i < q->n_scales; i++)
        scale = fmax(scale, q->scales[i]);
    for (int64_t c = 0; c < layer->product.columns && (layer->bias_real || layer->bias_value); c++)
        bias = fmax(bias, fabs(layer->bias_real ? layer->bias_real[c] : tare_tensor_get_f64(layer->bias_value, c)));
    most = (double)layer->product.rows * 255 * 127 * layer->left_params.scale * scale + bias;
    return (struct tare_qparams){ .scale = most / 127 * 1.001, .zero_point = 0, .qmin = -128, .qmax = 127 };
}

static struct tare_edge pass_bias(struct call *call, struct tare_arena *arena, const struct tare_quant_layer *layer) {
    const struct tare_quantized_weight *q = &layer->quantized;
    double *scales = TARE_NEW_ARRAY(arena, double, (size_t)q->n_scales);
    const int32_t *values;
    for (int64_t i = 0; scales && i < q->n_scales; i++)
        scales[i] = layer->left_params.scale * q->scales[i];
    values = scales ? tare_quant_bias_integers(arena, layer, scales) : NULL;
    if (!values) {
        call->body.status = TARE_NO_MEMORY;
        return (struct tare_edge){ NULL, 0 };
    }
    const struct tare_shape vector = { .rank = 1, .dims = { layer->product.columns } };
    return pass(
        call, "bias",
        tare_emit_ints(call->caller, "bias", layer->product.spatial ? &layer->product.channel_shape : &vector, values));
}

/* The layer as one call, for an output with parameters `out`. */
static tare_status emit_static(struct tare_edge *result, struct tare_quant_work *work, struct tare_emit *emit,
                               struct tare_quant_layer *layer, const struct tare_edge operands[2],
                               const struct tare_qparams *out, bool real) {
    const bool has_bias = layer->bias || layer->bias_real;
    const int32_t w_zero = layer->weight ? 0 : layer->right_params.zero_point;
    char name[96];
    struct call call;
    struct tare_edge y, bias = { NULL, 0 };
    name_function(name, sizeof name, layer, has_bias, real);
    open_call(&call, work, emit, name);
    struct tare_emit *body = &call.body;
    struct tare_edge x = pass(&call, "input", operands[0]), w = pass(&call, "filter", operands[1]);
    if (has_bias) bias = pass_bias(&call, work->arena, layer);
    const struct tare_edge x_scale =
        pass(&call, "input_scale", tare_emit_f32(emit, "input/scale", (float)layer->left_params.scale));
    const struct tare_edge x_zero =
        pass(&call, "input_zp", tare_emit_i32(emit, "input/zero_point", layer->left_params.zero_point));
    const struct tare_edge w_scale =
        pass(&call, "filter_scale",
             layer->weight ? emit_filter_scale(emit, layer)
                           : tare_emit_f32(emit, "filter/scale", (float)layer->right_params.scale));
    const struct tare_edge w_zero_point = pass(&call, "filter_zp", tare_emit_i32(emit, "filter/zero_point", w_zero));
    const struct tare_edge y_scale = pass(&call, "out_scale", tare_emit_f32(emit, "out/scale", (float)out->scale));
    const struct tare_edge y_zero = pass(&call, "out_zp", tare_emit_i32(emit, "out/zero_point", out->zero_point));
    x = emit_centred(body, "input", x, x_zero);
    w = emit_centred(body, "filter", tare_emit_unary(body, "Identity", "filter", w), w_zero_point);
    y = tare_tf_product(body, layer, x, w);
    if (has_bias) y = tare_emit_binary(body, "AddV2", "bias", y, bias);
    y = tare_emit_cast(body, "sums/float", y, TARE_DT_FLOAT);
    const struct tare_edge factor = tare_emit_binary(body, "Mul", "scale", x_scale, w_scale);
    y = real ? emit_dequantized(body, layer, y, factor, y_scale, y_zero)
             : emit_requantized(body, layer, y, factor, y_scale, y_zero);
    return close_call(result, &call, tare_tf_result(body, layer, y));
}

static tare_status rewrite_static(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const struct tare_qparams *expected;
    struct tare_edge operands[2], y;
    if (layer->kind == TARE_KIND_GATHER) return tare_quant_rewrite_table(layer);
    TARE_TRY(tare_quant_integer_form(&operands[0], work, &emit, layer->op->inputs[layer->left], &layer->left_params));
    if (layer->weight)
        operands[1] = emit_filter(&emit, layer);
    else
        TARE_TRY(
            tare_quant_integer_form(&operands[1], work, &emit, layer->op->inputs[layer->right], &layer->right_params));
    TARE_TRY(emit.status);
    TARE_TRY(tare_quant_demanded(&expected, work, layer->output));
    if (expected) {
        TARE_TRY(emit_static(&y, work, &emit, layer, operands, expected, false));
        return tare_quant_share_integers(work, layer->output, y, expected);
    }
    if (!layer->has_output_params) layer->output_params = widest_output(layer);
    TARE_TRY(emit_static(&y, work, &emit, layer, operands, &layer->output_params, true));
    return tare_quant_replace(&layer->replaced, &emit, layer->output, y);
}

/* ---- dynamic ---- */

/* The integers of an activation less the zero point, as int32. */
static struct tare_edge emit_whole_codes(struct tare_emit *emit, struct tare_edge x, struct tare_edge scale,
                                         struct tare_edge zero_point) {
    struct tare_edge q = tare_emit_dynamic_codes(emit, x, scale, zero_point);
    q = tare_emit_cast(emit, "quantize/widen", q, TARE_DT_INT32);
    return tare_emit_binary(emit, "Sub", "quantize/centre", q, zero_point);
}

static tare_status plan_dynamic(const char **reason, const struct tare_quant_work *work,
                                struct tare_quant_layer *layer) {
    (void)work;
    *reason = tare_tf_refuses(layer);
    if (!*reason && layer->kind != TARE_KIND_GATHER) *reason = tare_quant_check_sums(layer);
    return TARE_OK;
}

static tare_status rewrite_dynamic(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_emit emit = { .graph = layer->op->graph, .prefix = layer->op->name };
    const struct tare_shape flat = { .rank = 1, .dims = { -1 } };
    char name[96];
    struct call call;
    struct tare_edge y, x_scale = { NULL, 0 }, x_zero = { NULL, 0 };
    if (layer->kind == TARE_KIND_GATHER) return tare_quant_rewrite_table(layer);
    snprintf(name, sizeof name, "quantized_%s_fn", kind_names[layer->kind]);
    open_call(&call, work, &emit, name);
    struct tare_emit *body = &call.body;
    const struct tare_edge x =
        pass(&call, "input", tare_emit_float(&emit, "input/float", layer->op->inputs[layer->left]));
    struct tare_edge w = pass(&call, "weight", emit_filter(&emit, layer));
    const struct tare_edge w_scale = pass(&call, "weight_scale", emit_filter_scale(&emit, layer));
    const struct tare_edge w_zero = pass(&call, "weight_zp", tare_emit_i32(&emit, "filter/zero_point", 0));
    TARE_TRY(body->status);
    tare_emit_dynamic_parameters(body, tare_emit_reshape(body, "dynamic/flat", x, &flat), (const int32_t[]){ 0 }, 1,
                                 TARE_ZERO_POINT_TRUNCATED, &x_scale, &x_zero);
    w = emit_centred(body, "filter", w, w_zero);
    y = tare_tf_product(body, layer, emit_whole_codes(body, x, x_scale, x_zero), w);
    y = tare_emit_cast(body, "sums/float", y, TARE_DT_FLOAT);
    y = tare_emit_binary(body, "Mul", "scaled", y, tare_emit_binary(body, "Mul", "scale", x_scale, w_scale));
    TARE_TRY(close_call(&y, &call, y));
    y = tare_tf_result(&emit, layer, tare_emit_shift(&emit, layer, y));
    return tare_quant_replace(NULL, &emit, (struct tare_edge){ layer->op, 0 }, y);
}

enum {
    DYNAMIC_KINDS = 1 << TARE_KIND_CONV2D | 1 << TARE_KIND_DEPTHWISE | 1 << TARE_KIND_MATMUL | 1 << TARE_KIND_GATHER |
                    1 << TARE_KIND_XLA_DOT | 1 << TARE_KIND_XLA_CONV | 1 << TARE_KIND_TRANSPOSED_CONV,
    OTHER_KINDS = 1 << TARE_KIND_CONV3D | 1 << TARE_KIND_BATCH_MATMUL | 1 << TARE_KIND_EINSUM
};

const struct tare_quant_method tare_method_tf_static = {
    .name = "static",
    .help = "static range by functions of TensorFlow's ops on integers",
    .needs_ranges = true,
    .takes_bias = true,
    .takes_two_inputs = true,
    .kinds = DYNAMIC_KINDS | OTHER_KINDS,
    .plan = plan_static,
    .quantize = quantize,
    .rewrite = rewrite_static,
};

const struct tare_quant_method tare_method_tf_dynamic = {
    .name = "dynamic",
    .help = "dynamic range by functions of TensorFlow's ops on integers",
    .kinds = DYNAMIC_KINDS,
    .kinds_on_request = OTHER_KINDS,
    .min_elements = TARE_LEAST_WEIGHT,
    .plan = plan_dynamic,
    .rewrite = rewrite_dynamic,
};

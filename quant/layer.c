/* Finding layers, and making their weights.
 *
 * A layer stays float if, in this order:
 *   its form does not fit: dtype, attributes, shapes                         refuse_form and describe below
 *   a recipe, a rule or the caller requests it                               quant/float_layers.c
 *   it is part of a computation for the TPU                                  quant/float_layers.c
 *   the method does not quantize its kind of op, or only on request          quant/float_layers.c
 *   it has no constant weight, or one of too few elements                    quant/float_layers.c
 *   its layout is not one of the op set                                      quant/float_layers.c
 *   the method cannot: no range, sums that may exceed int32, its own limits  plan of quant/methods/
 *   other readers of its variable cannot use the integers                    quant/variables.c
 * The texts of the reasons are where they are decided. */
#include "quant/layer.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "graph/op.h"
#include "quant/emit.h"
#include "quant/layers/weight.h"
#include "quant/selection/entries.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *op;
    enum tare_quant_kind kind;
    size_t left, right;
} ops[] = {
    { "Conv2D", TARE_KIND_CONV2D, 0, 1 },
    { "DepthwiseConv2dNative", TARE_KIND_DEPTHWISE, 0, 1 },
    { "Conv3D", TARE_KIND_CONV3D, 0, 1 },
    { "MatMul", TARE_KIND_MATMUL, 0, 1 },
    { "BatchMatMul", TARE_KIND_BATCH_MATMUL, 0, 1 },
    { "BatchMatMulV2", TARE_KIND_BATCH_MATMUL, 0, 1 },
    { "BatchMatMulV3", TARE_KIND_BATCH_MATMUL, 0, 1 },
    { "Einsum", TARE_KIND_EINSUM, 0, 1 },
    { "GatherV2", TARE_KIND_GATHER, 1, 0 },
    { "Gather", TARE_KIND_GATHER, 1, 0 },
    { "XlaDot", TARE_KIND_XLA_DOT, 0, 1 },
    { "XlaDotV2", TARE_KIND_XLA_DOT, 0, 1 },
    { "XlaConv", TARE_KIND_XLA_CONV, 0, 1 },
    { "XlaConvV2", TARE_KIND_XLA_CONV, 0, 1 },
    { "Conv2DBackpropInput", TARE_KIND_TRANSPOSED_CONV, 2, 1 }, /* its first input is the size of the result */
};

bool tare_quant_multiplies(const struct tare_node *node) {
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(node->op, ops[i].op) == 0) return ops[i].kind != TARE_KIND_GATHER;
    return false;
}

/* ---- what the graph has ---- */

/* The only user of an edge, when it is `op` and takes the edge as input 0; NULL otherwise. */
static struct tare_node *sole_user(struct tare_edge edge, const char *op) {
    struct tare_node *user;
    if (tare_graph_count_uses(edge.node->graph, edge, &user) != 1 || !user || strcmp(user->op, op) != 0) return NULL;
    return tare_edge_equal(user->inputs[0], edge) ? user : NULL;
}

static bool is_conv(const struct tare_quant_layer *layer) {
    return layer->product.spatial > 0;
}

/* A bias is added along the axis of the columns: the last one, or that of a convolution with channels first. */
static void find_bias(struct tare_quant_layer *layer) {
    const bool first = is_conv(layer) && layer->product.dims.output_feature == 1 &&
                       layer->product.channel_shape.rank == layer->product.spatial + 1;
    const bool fits = is_conv(layer)
                          ? first || layer->product.channel_shape.rank == 1
                          : (!layer->product.moves && layer->product.n_free_right == 1 && layer->product.batches == 1);
    struct tare_node *bias = fits ? sole_user(layer->output, "BiasAdd") : NULL;
    const struct tare_tensor *value = bias ? tare_edge_constant(bias->inputs[1]) : NULL;
    if (!value || !tare_quant_takes_dtype(value->dtype) || value->elements != layer->product.columns) return;
    if (strcmp(tare_node_string(bias, "data_format", "NHWC"), first ? "NCHW" : "NHWC") != 0) return;
    layer->bias = bias;
    layer->bias_value = value;
    layer->output = (struct tare_edge){ bias, 0 };
}

static void find_activation(struct tare_quant_layer *layer) {
    static const struct {
        const char *op;
        enum tare_quant_activation activation;
    } kinds[] = { { "Relu", TARE_ACTIVATION_RELU }, { "Relu6", TARE_ACTIVATION_RELU6 } };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !layer->clamp; i++) {
        layer->clamp = sole_user(layer->output, kinds[i].op);
        if (layer->clamp) layer->activation = kinds[i].activation;
    }
    if (layer->clamp) layer->output = (struct tare_edge){ layer->clamp, 0 };
}

static const char OTHER_DTYPES[] = "only float32, bfloat16 and half ops are quantized";

bool tare_quant_takes_dtype(int dtype) {
    return dtype == TARE_DT_FLOAT || dtype == TARE_DT_BFLOAT16 || dtype == TARE_DT_HALF;
}

/* Convolutions by TensorFlow's ops, which have the attribute data_format. */
static bool has_data_format(enum tare_quant_kind kind) {
    return kind <= TARE_KIND_CONV3D || kind == TARE_KIND_TRANSPOSED_CONV;
}

static const char *refuse_form(const struct tare_quant_layer *layer) {
    const struct tare_node *op = layer->op;
    if (layer->weight && !tare_quant_takes_dtype(layer->weight->dtype)) return OTHER_DTYPES;
    if (!tare_quant_takes_dtype(tare_edge_dtype((struct tare_edge){ (struct tare_node *)(uintptr_t)op, 0 })))
        return OTHER_DTYPES;
    if (layer->weight && layer->weight->elements == 0) return "the weight is empty";
    if (layer->kind == TARE_KIND_TRANSPOSED_CONV && strcmp(tare_node_string(op, "data_format", "NHWC"), "NHWC") != 0)
        return "data_format must be NHWC";
    if (!layer->weight && (has_data_format(layer->kind) || layer->kind == TARE_KIND_XLA_CONV))
        return layer->no_weight ? layer->no_weight
                                : "Non-constant weights are not supported at the moment, except matmul and einsum.";
    return NULL;
}

void tare_quant_release_layers(struct tare_quant_layer *layers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tare_tensor_reset(&layers[i].real);
        tare_tensor_reset(&layers[i].quantized.values);
        if (layers[i].held) tare_tensor_reset(layers[i].held);
    }
}

const struct tare_shape *tare_quant_operand(const struct tare_quant_layer *layer) {
    return layer->selection ? &layer->selection->entry : &layer->product.arranged;
}

static tare_status describe(struct tare_quant_layer *layer, struct tare_arena *arena,
                            const struct tare_model_shapes *shapes) {
    const struct tare_shape left = tare_model_shape(shapes, layer->input);
    const struct tare_shape right = layer->selection ? layer->selection->operand
                                    : layer->weight  ? layer->weight->shape
                                                     : tare_model_shape(shapes, layer->second);
    const struct tare_shape result = tare_model_shape(shapes, layer->output);
    tare_status status = tare_quant_describe(&layer->product, layer->op, layer->kind, layer->left, layer->right, &left,
                                             &right, &result, layer->weight);
    if (status == TARE_OK && layer->selection)
        status = tare_quant_select_product(&layer->product, layer->selection, &layer->weight->shape);
    if (status == TARE_OK) return TARE_OK;
    layer->refused = tare_arena_strdup(arena, tare_error_text());
    tare_error_clear();
    return layer->refused ? TARE_OK : TARE_NO_MEMORY;
}

/* `shapes` of the search for a stack of weights; NULL: there is none. */
static tare_status find_operands(struct tare_quant_layer *layer, struct tare_arena *arena,
                                 const struct tare_model_shapes *stacks, const struct tare_model_shapes *shapes,
                                 const struct tare_bindings *bindings) {
    TARE_TRY(tare_quant_find_weight(layer, arena, stacks, bindings));
    layer->input = layer->observed = layer->op->inputs[layer->left];
    layer->second = layer->op->inputs[layer->right];
    layer->output = (struct tare_edge){ layer->op, 0 };
    layer->refused = refuse_form(layer);
    return layer->refused ? TARE_OK : describe(layer, arena, shapes);
}

/* A stack that the product does not fit is no weight: both operands are activations then. */
static tare_status open_layer(struct tare_quant_layer *layer, struct tare_arena *arena,
                              const struct tare_model_shapes *shapes, const struct tare_bindings *bindings) {
    const struct tare_quant_layer found = *layer;
    TARE_TRY(find_operands(layer, arena, shapes, shapes, bindings));
    if (layer->refused && layer->selection) {
        const char *reason = tare_arena_printf(arena, "its weight is chosen from a stack: %s", layer->refused);
        if (!reason) return TARE_NO_MEMORY;
        if (layer->held) tare_tensor_reset(layer->held);
        *layer = found;
        layer->no_weight = reason;
        TARE_TRY(find_operands(layer, arena, NULL, shapes, bindings));
    }
    if (layer->refused || layer->kind == TARE_KIND_GATHER) return TARE_OK;
    if (!layer->selection) find_bias(layer);
    find_activation(layer);
    return TARE_OK;
}

bool tare_quant_takes_operands(const struct tare_node *node) {
    const bool is_table = strncmp(node->op, "Gather", 6) == 0, is_xla = strncmp(node->op, "Xla", 3) == 0;
    if (node->n_inputs < 2) return false;
    return (!(is_table || is_xla) || tare_quant_takes_dtype(tare_edge_dtype(node->inputs[0]))) &&
           (!is_xla || tare_quant_takes_dtype(tare_edge_dtype(node->inputs[1])));
}

static tare_status add_layer(struct tare_quant_layer_list *list, struct tare_arena *arena, struct tare_node *node,
                             const struct tare_model_shapes *shapes, const struct tare_bindings *bindings,
                             size_t kind) {
    struct tare_quant_layer *layer;
    struct tare_shape shape;
    struct tare_node *read;
    if (!tare_quant_takes_operands(node)) return TARE_OK;
    if (ops[kind].kind == TARE_KIND_GATHER && !tare_edge_constant(node->inputs[0]) &&
        !tare_quant_constant_variable(&read, &shape, node->inputs[0], bindings))
        return TARE_OK;
    if (ops[kind].kind == TARE_KIND_EINSUM && node->n_inputs != 2) return TARE_OK;
    if (list->count == list->capacity) {
        const size_t extra = list->capacity ? list->capacity : 16;
        layer = tare_arena_extend(arena, list->layers, list->count, extra, sizeof *layer);
        if (!layer) return TARE_NO_MEMORY;
        list->layers = layer;
        list->capacity += extra;
    }
    layer = &list->layers[list->count++];
    *layer = (struct tare_quant_layer){
        .op = node, .kind = ops[kind].kind, .left = ops[kind].left, .right = ops[kind].right
    };
    return open_layer(layer, arena, shapes, bindings);
}

/* ---- tables that are stacks of weights ---- */

struct chosen_from {
    const struct tare_quant_layer *layers; /* of the graph */
    size_t count;
    const struct tare_node *chooser;
};

static bool is_weight_of(void *arg, const struct tare_use *use) {
    const struct chosen_from *c = arg;
    for (size_t i = 0; i < c->count; i++)
        if (c->layers[i].op == use->user && c->layers[i].selection &&
            tare_quant_chooses_by(c->layers[i].selection, c->chooser))
            return use->input == c->layers[i].right;
    return false;
}

/* Removes the tables, from layer `first` on, of which every entry is the weight of a layer. */
static void drop_stacks(struct tare_quant_layer_list *list, size_t first) {
    struct chosen_from c = { .layers = list->layers + first, .count = list->count - first };
    size_t kept = first;
    bool any = false;
    for (size_t i = first; i < list->count; i++)
        any |= list->layers[i].selection != NULL;
    if (!any) return;
    for (size_t i = first; i < list->count; i++) {
        struct tare_quant_layer *layer = &list->layers[i];
        c.chooser = layer->op;
        layer->is_stack = layer->kind == TARE_KIND_GATHER && tare_quant_only_selects(layer->op, is_weight_of, &c);
    }
    for (size_t i = first; i < list->count; i++) {
        if (list->layers[i].is_stack)
            tare_quant_release_layers(&list->layers[i], 1);
        else
            list->layers[kept++] = list->layers[i];
    }
    list->count = kept;
}

tare_status tare_quant_find_layers(struct tare_quant_layer_list *list, struct tare_arena *arena,
                                   const struct tare_graph *graph, const struct tare_model_shapes *shapes,
                                   const struct tare_bindings *bindings) {
    const size_t first = list->count;
    struct tare_node **order;
    TARE_TRY(tare_graph_order(&order, arena, graph));
    for (size_t i = 0; i < graph->n_nodes && order[i]; i++)
        for (size_t kind = 0; kind < sizeof ops / sizeof *ops; kind++)
            if (strcmp(order[i]->op, ops[kind].op) == 0)
                TARE_TRY(add_layer(list, arena, order[i], shapes, bindings, kind));
    if (list->count == first) return TARE_OK; /* there may be no array */
    drop_stacks(list, first);
    TARE_TRY(tare_quant_find_unfollowed(list, first, arena, graph, shapes, bindings));
    return tare_quant_find_loop(arena, list->layers + first, list->count - first);
}

/* ---- weights ---- */

struct tare_qscheme tare_quant_weight_scheme(const struct tare_quant_setting *setting) {
    return (struct tare_qscheme){ .bits = setting->bits ? setting->bits : 8,
                                  .symmetric = true,
                                  .narrow = setting->format || !setting->full_range,
                                  .format = setting->format };
}

struct tare_qscheme tare_quant_activation_scheme(const struct tare_quant_setting *setting) {
    struct tare_qscheme scheme = tare_qscheme_activation;
    if (setting->format) return tare_quant_weight_scheme(setting);
    scheme.symmetric = setting->symmetric;
    if (setting->activation_bits == 16) {
        scheme = tare_qscheme_wide;
        scheme.headroom = setting->headroom;
    }
    return scheme;
}

tare_status tare_quant_make_real(struct tare_quant_layer *layer) {
    struct tare_tensor narrow;
    tare_status status;
    if (layer->real.dtype != TARE_DT_INVALID) return TARE_OK;
    if (layer->weight->dtype == TARE_DT_FLOAT) return tare_quant_arrange(&layer->real, &layer->product, layer->weight);
    TARE_TRY(tare_quant_arrange(&narrow, &layer->product, layer->weight));
    status = tare_tensor_new(&layer->real, TARE_DT_FLOAT, &narrow.shape);
    for (int64_t i = 0; i < narrow.elements && status == TARE_OK; i++)
        TARE_DATA(float, &layer->real)[i] = (float)tare_tensor_get_f64(&narrow, i);
    tare_tensor_reset(&narrow);
    return status;
}

/* The least scale of the activation, of all iterations. */
static double least_input_scale(const struct tare_quant_layer *layer) {
    double least = layer->left_params.scale;
    for (int64_t i = 0; layer->entries && i < layer->entries->count; i++)
        least = fmin(least, layer->entries->left[i].scale);
    return least;
}

/* bias-fits: the least scale of a column's weight with which bias / (input scale * weight scale) is not above 2^30
 * (2^46 in the int64 accumulators of 16-bit activations); 0: any. */
static double least_scale(const struct tare_quant_layer *layer, int64_t column) {
    const double MOST = tare_quant_integer_dtype(&layer->left_params) == TARE_DT_INT16 ? 0x1p46 : 0x1p30;
    const double scale = least_input_scale(layer);
    double bias, least;
    if (!layer->setting.method->takes_bias || scale <= 0 || (!layer->bias_value && !layer->bias_real)) return 0;
    bias = layer->bias_real ? layer->bias_real[column] : tare_tensor_get_f64(layer->bias_value, column);
    least = fabs(bias) / (scale * MOST);
    return isfinite(least) ? least : 0;
}

bool tare_quant_bias_has_room(const struct tare_quant_layer *layer, const struct tare_quantized_weight *weight) {
    for (int64_t c = 0; c < layer->product.columns; c++)
        if (weight->scales[weight->n_scales == 1 ? 0 : c] < least_scale(layer, c)) return false;
    return true;
}

/* Increases scales that are too small for the bias, as in a channel of zeros. */
static void make_room_for_bias(struct tare_quant_layer *layer) {
    struct tare_quantized_weight *q = &layer->quantized;
    for (int64_t c = 0; c < layer->product.columns; c++) {
        const double least = least_scale(layer, c);
        double *scale = &q->scales[q->n_scales == 1 ? 0 : c];
        if (*scale >= least) continue;
        *scale = least;
        layer->scales_for_bias = true;
    }
}

tare_status tare_quant_make_scales(struct tare_arena *arena, struct tare_quant_layer *layer) {
    const struct tare_quant_setting *setting = &layer->setting;
    const struct tare_qscheme scheme = tare_quant_weight_scheme(setting);
    const struct tare_weight_layout layout = {
        .batches = layer->product.batches,
        .rows = layer->product.rows,
        .columns = layer->product.columns,
        .block = setting->granularity == TARE_PER_BLOCK ? setting->block : 0,
        .per_tensor = setting->granularity == TARE_PER_TENSOR,
    };
    TARE_TRY(tare_quant_make_real(layer));
    if (layer->quantized.n_scales) return TARE_OK;
    return tare_weight_find_scales(&layer->quantized, arena, &layer->real, &layout, &scheme);
}

tare_status tare_quant_make_integers(struct tare_arena *arena, struct tare_quant_layer *layer) {
    const struct tare_qscheme scheme = tare_quant_weight_scheme(&layer->setting);
    if (layer->quantized.values.dtype != TARE_DT_INVALID) return TARE_OK;
    TARE_TRY(tare_quant_make_scales(arena, layer));
    make_room_for_bias(layer);
    return tare_quantize_weight_by_scales(&layer->quantized, &layer->real, &scheme);
}

/* The zero point is subtracted from the integers of activations, which differ from it by up to 255. The bytes of 16-bit
 * activations are summed without it, their sums combined in int64 if necessary. */
const char *tare_quant_check_sums(const struct tare_quant_layer *layer) {
    const int64_t left = layer->setting.activation_bits == 16 ? 128 : 255, right = layer->weight ? 128 : 255;
    return layer->product.rows > INT32_MAX / (left * right) ? "a sum of its products may not fit int32" : NULL;
}

double tare_quant_bias_code(const struct tare_quant_layer *layer, const double *scales, int64_t column) {
    const double real = layer->bias_real ? layer->bias_real[column] : tare_tensor_get_f64(layer->bias_value, column);
    const double q = tare_round_half_away(real / scales[layer->quantized.n_scales == 1 ? 0 : column]);
    return isnan(q) ? 0 : q;
}

const int32_t *tare_quant_bias_integers(struct tare_arena *arena, const struct tare_quant_layer *layer,
                                        const double *scales) {
    const int64_t columns = layer->product.columns;
    int32_t *values = TARE_NEW_ARRAY(arena, int32_t, (size_t)columns);
    for (int64_t c = 0; values && c < columns; c++)
        values[c] = (int32_t)fmin(fmax(tare_quant_bias_code(layer, scales, c), INT32_MIN), INT32_MAX);
    return values;
}

bool tare_quant_same_integers(const struct tare_quant_layer *a, const struct tare_quant_layer *b) {
    if (a->refused || b->refused || !a->weight || !b->weight) return false;
    if (a->variable || b->variable)
        return a->variable == b->variable && tare_quant_same_arrangement(&a->product, &b->product);
    if (!tare_quant_same_weight_settings(&a->setting, &b->setting)) return false;
    if (!a->selection != !b->selection || (a->selection && a->selection->n_indices != b->selection->n_indices))
        return false;
    return a->op->graph == b->op->graph && !a->bias && !b->bias && !a->changed && !b->changed &&
           a->product.batches == b->product.batches && a->product.columns == b->product.columns &&
           tare_quant_same_arrangement(&a->product, &b->product) && tare_tensor_same_bits(a->weight, b->weight);
}

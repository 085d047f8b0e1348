/* Layers of two models side by side. A layer is an op with a weight. Quantization replaces the op LAYER by ops
 * LAYER/PART, of which one is the product, so layers are matched by the name of the op or of the scope above it. */
#include "base/alloc.h"
#include "base/map.h"
#include "eval/model_diff.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/op.h"

#include <math.h>
#include <string.h>

struct found_layer {
    const char *name, *op;
    const struct tare_tensor *weight;
};

/* The layers of one model. */
struct layers {
    struct found_layer *items;
    size_t count, capacity;
    struct tare_map by_name, by_scope; /* name, and scope of the name -> index + 1, as a pointer */
};

/* ---- one model ---- */

/* Whether the op is a product or a lookup with a weight, quantized or not. */
static bool has_weight(const struct tare_node *node) {
    static const char *const quantized[] = { "XlaConvV2",
                                             "XlaDotV2",
                                             "UniformQuantizedConvolution",
                                             "UniformQuantizedConvolutionHybrid",
                                             "UniformQuantizedDot",
                                             "UniformQuantizedDotHybrid",
                                             NULL };
    if (node->def && node->def->row && node->def->row->quant == TARE_QUANT_WEIGHTED) return true;
    for (size_t i = 0; quantized[i]; i++)
        if (strcmp(quantized[i], node->op) == 0) return true;
    return false;
}

/* The constant or variable that an edge has its value from, looking through conversions; NULL: it is computed. */
static const struct tare_tensor *weight_of(const struct tare_bindings *bindings, struct tare_edge edge) {
    static const char *const through[] = { "Identity", "Cast",    "Reshape",    "Transpose",
                                           "Mul",      "Bitcast", "Dequantize", NULL };
    enum { MOST_STEPS = 8 };
    for (int step = 0; step < MOST_STEPS && edge.node; step++) {
        const struct tare_node *node = edge.node;
        const struct tare_variable *variable;
        bool passes = false;
        if (strcmp(node->op, "Const") == 0) return tare_node_tensor(node, "value");
        if (strcmp(node->op, "ReadVariableOp") == 0) {
            variable = tare_bindings_variable(bindings, node->inputs[0], NULL);
            return variable ? &variable->value : NULL;
        }
        for (size_t i = 0; through[i]; i++)
            passes = passes || strcmp(through[i], node->op) == 0;
        if (!passes || !node->n_inputs) return NULL;
        edge = node->inputs[0];
    }
    return NULL;
}

/* "a/b" of "a/b/c"; NULL: the name has no scope. */
static const char *scope_of(struct tare_arena *arena, const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? tare_arena_strndup(arena, name, (size_t)(slash - name)) : NULL;
}

static tare_status add_layer(struct layers *layers, struct tare_arena *arena, const struct tare_bindings *bindings,
                             const struct tare_node *node) {
    const struct tare_tensor *weight = NULL;
    if (!has_weight(node) || tare_map_get(&layers->by_name, node->name)) return TARE_OK;
    for (int i = 1; i >= 0 && (!weight || weight->elements < 2); i--)
        if ((size_t)i < node->n_inputs) weight = weight_of(bindings, node->inputs[i]);
    if (!weight || weight->elements < 2 || weight->dtype == TARE_DT_STRING) return TARE_OK;
    if (!TARE_GROW(layers->items, layers->count, layers->capacity)) return TARE_NO_MEMORY;
    layers->items[layers->count++] = (struct found_layer){ node->name, node->op, weight };
    void *const index = (void *)(uintptr_t)layers->count;
    const char *scope = scope_of(arena, node->name);
    if (!tare_map_set(&layers->by_name, node->name, index)) return TARE_NO_MEMORY;
    if (!scope || tare_map_get(&layers->by_scope, scope)) return TARE_OK;
    return tare_map_set(&layers->by_scope, scope, index) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status find_layers(struct layers *out, struct tare_arena *arena, const struct tare_graph_model *model) {
    struct tare_bindings *bindings = NULL;
    tare_status status;
    bool *live;
    TARE_TRY(tare_model_reachable_functions(&live, arena, model, true));
    TARE_CHECK(tare_bindings_new(&bindings, model));
    for (size_t g = 0; g <= model->n_functions; g++) {
        const struct tare_graph *graph = g < model->n_functions ? model->functions[g] : model->main;
        if (g < model->n_functions && !live[g]) continue;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead) TARE_CHECK(add_layer(out, arena, bindings, graph->nodes[i]));
    }
done:
    tare_bindings_free(bindings);
    return status;
}

static void free_layers(struct layers *layers) {
    tare_map_free(&layers->by_name);
    tare_map_free(&layers->by_scope);
    tare_free(layers->items);
}

/* ---- both ---- */

static const struct found_layer *find(const struct layers *layers, const struct tare_map *map, const char *name) {
    const uintptr_t index = name ? (uintptr_t)tare_map_get(map, name) : 0;
    return index ? &layers->items[index - 1] : NULL;
}

/* The same name, then a part of this layer, then the layer that this one is a part of. */
static const struct found_layer *find_other(const struct layers *others, struct tare_arena *arena,
                                            const struct found_layer *layer) {
    const struct found_layer *other = find(others, &others->by_name, layer->name);
    if (!other) other = find(others, &others->by_scope, layer->name);
    return other ? other : find(others, &others->by_name, scope_of(arena, layer->name));
}

/* Elements of the same residue belong to one output channel: the last axis, of depthwise convolutions the last two. */
static int64_t channels_of(const struct found_layer *layer) {
    const struct tare_shape *shape = &layer->weight->shape;
    const bool depthwise = strncmp(layer->op, "DepthwiseConv2dNative", strlen("DepthwiseConv2dNative")) == 0;
    int64_t count = 1;
    for (int i = shape->rank - 1; i >= 0 && i >= shape->rank - (depthwise ? 2 : 1); i--)
        count *= shape->dims[i];
    return count;
}

/* The products of two weights, by channel. */
struct channel {
    double aa, ab, bb;
};

static double sqnr_of(const struct channel *channels, int64_t count) {
    double signal = 0, noise = 0;
    for (int64_t c = 0; c < count; c++) {
        signal += channels[c].aa;
        noise += fmax(0, channels[c].aa - (channels[c].bb > 0 ? channels[c].ab * channels[c].ab / channels[c].bb : 0));
    }
    return noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}

static bool is_real(int dtype) {
    return tare_dtype_is_floating(dtype) || tare_dtype_is_integer(dtype);
}

static tare_status compare_weights(double *sqnr_db, const struct found_layer *first, const struct found_layer *second) {
    const struct tare_tensor *a = first ? first->weight : NULL, *b = second ? second->weight : NULL;
    *sqnr_db = NAN;
    if (!a || !b || a->dtype == b->dtype || !tare_shape_equal(&a->shape, &b->shape)) return TARE_OK;
    if (!is_real(a->dtype) || !is_real(b->dtype) || !a->elements) return TARE_OK;
    const int64_t count = channels_of(first);
    struct channel *channels = tare_calloc((size_t)count, sizeof *channels);
    if (!channels) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < a->elements; i++) {
        const double x = tare_tensor_get_f64(a, i), y = tare_tensor_get_f64(b, i);
        channels[i % count].aa += x * x;
        channels[i % count].ab += x * y;
        channels[i % count].bb += y * y;
    }
    *sqnr_db = sqnr_of(channels, count);
    tare_free(channels);
    return TARE_OK;
}

static tare_status fill(struct tare_layer_difference *out, struct tare_arena *arena, const struct found_layer *layer,
                        int side) {
    char shape[TARE_SHAPE_TEXT_SIZE];
    if (!layer) return TARE_OK;
    out->ops[side] = tare_arena_strdup(arena, layer->op);
    out->weights[side] = tare_arena_printf(arena, "%s%s", tare_dtype_name(layer->weight->dtype),
                                           tare_shape_text(shape, &layer->weight->shape));
    out->dtypes[side] = layer->weight->dtype;
    out->bytes[side] =
        (int64_t)(layer->weight->splat ? tare_dtype_size(layer->weight->dtype) : tare_tensor_bytes(layer->weight));
    return out->ops[side] && out->weights[side] ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_pair(struct tare_model_diff *out, const struct found_layer *first,
                            const struct found_layer *second) {
    struct tare_arena *arena = &out->arena;
    struct tare_layer_difference *grown = tare_arena_append(arena, out->layers, out->n_layers, sizeof *grown);
    const struct found_layer *named = first && second && strlen(second->name) < strlen(first->name) ? second
                                      : first                                                       ? first
                                                                                                    : second;
    if (!grown) return TARE_NO_MEMORY;
    out->layers = grown;
    grown[out->n_layers] = (struct tare_layer_difference){ .name = tare_arena_strdup(arena, named->name) };
    if (!grown[out->n_layers].name) return TARE_NO_MEMORY;
    TARE_TRY(fill(&grown[out->n_layers], arena, first, 0));
    TARE_TRY(fill(&grown[out->n_layers], arena, second, 1));
    return compare_weights(&grown[out->n_layers++].sqnr_db, first, second);
}

/* The layers of the first model in its order, then those that only the second has. */
static tare_status match(struct tare_model_diff *out, const struct layers sides[2]) {
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < sides[side].count; i++) {
            const struct found_layer *layer = &sides[side].items[i];
            const struct found_layer *other = find_other(&sides[!side], &out->arena, layer);
            if (side == 0) TARE_TRY(add_pair(out, layer, other));
            if (side == 1 && !other) TARE_TRY(add_pair(out, NULL, layer));
        }
    }
    return TARE_OK;
}

tare_status tare_model_diff_layers(struct tare_model_diff *out, const struct tare_graph_model *first,
                                   const struct tare_graph_model *second) {
    struct layers sides[2] = { { 0 }, { 0 } };
    tare_status status = find_layers(&sides[0], &out->arena, first);
    if (status == TARE_OK) status = find_layers(&sides[1], &out->arena, second);
    if (status == TARE_OK) status = match(out, sides);
    free_layers(&sides[0]);
    free_layers(&sides[1]);
    return status;
}

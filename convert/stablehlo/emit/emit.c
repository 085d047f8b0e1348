/* Walks the nodes of the inlined graph in order and calls the rule of each op. */
#include "convert/stablehlo/emit/emit.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "quant/layers/widened_weight.h"
#include "graph/handed_on.h"
#include "graph/inline.h"
#include "interpreter/inference/evaluate.h"
#include "interpreter/inference/infer.h"

#include <stdlib.h>
#include <string.h>

/* Functions in functions that are followed; larger constants than these elements are not computed here. */
enum { MOST_DEPTH = 100, MOST_FOLDED = 1 << 24, LEAST_WEIGHT = 1024 };

/* The row of an op; NULL: StableHLO has no form of it. */
static const struct tare_emit_row *emit_find(const char *op) {
    static const struct tare_emit_row *const tables[] = { tare_emit_elementwise, tare_emit_shapes,   tare_emit_indexing,
                                                          tare_emit_reductions,  tare_emit_products, tare_emit_windows,
                                                          tare_emit_control,     tare_emit_xla,      tare_emit_algebra,
                                                          tare_emit_order,       tare_emit_functions };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct tare_emit_row *row = tables[i]; row->op; row++)
            if (strcmp(row->op, op) == 0) return row;
    return NULL;
}

/* ---- what rules use ---- */

static struct tare_emit_value *value_of(const struct tare_emit *emit, struct tare_edge edge) {
    return tare_node_is_arg(edge.node) ? NULL : &emit->graph->values[edge.node->position][edge.index];
}

/* The name of the node, which needs no escapes in JSON, with a number where another weight has it. */
static const char *weight_name(struct tare_emit *emit, const struct tare_node *node) {
    const char *own = tare_node_name_from(&emit->arena, tare_inlined_name(node->name)), *name = own;
    for (size_t i = 0, suffix = 1; i < emit->n_weights && name; i++)
        if (strcmp(emit->weights[i].name, name) == 0) {
            name = tare_arena_printf(&emit->arena, "%s_%zu", own, suffix++);
            i = (size_t)-1; /* again from the first */
        }
    return name;
}

/* A constant that is an argument of main, which every region may use. */
static tare_build_value weight(struct tare_emit *emit, const struct tare_node *node, const struct tare_tensor *tensor) {
    struct tare_build *build = &emit->build;
    struct tare_shlo_value *value = TARE_NEW(&build->module->arena, struct tare_shlo_value);
    const char *name = weight_name(emit, node);
    if (!value || !name || !TARE_GROW(emit->weights, emit->n_weights, emit->weights_capacity))
        return tare_build_fail(build, TARE_NO_MEMORY);
    *value = (struct tare_shlo_value){ .type = tare_build_type(build, tensor->dtype, &tensor->shape),
                                       .number = build->module->n_values++ };
    if (!value->type) return NULL;
    emit->weights[emit->n_weights++] = (struct tare_emit_weight){ name, value, tensor };
    return value;
}

/* The same for numbers of 4 bits: two in a byte, since files of safetensors have no smaller elements. */
static tare_build_value packed_weight(struct tare_emit *emit, const struct tare_node *node,
                                      const struct tare_tensor *tensor) {
    struct tare_tensor *packed = TARE_NEW(&emit->arena, struct tare_tensor);
    uint8_t *bytes = tare_arena_alloc(&emit->arena, (size_t)tensor->elements / 2);
    const uint8_t *codes = TARE_CONST_DATA(uint8_t, tensor);
    if (!packed || !bytes) return tare_build_fail(&emit->build, TARE_NO_MEMORY);
    for (int64_t i = 0; i < tensor->elements / 2; i++)
        bytes[i] = (uint8_t)((codes[2 * i] & 15) | codes[2 * i + 1] << 4);
    *packed = (struct tare_tensor){
        .dtype = TARE_DT_UINT8, .shape = tensor->shape, .elements = tensor->elements / 2, .data = bytes
    };
    packed->shape.dims[packed->shape.rank - 1] /= 2;
    const tare_build_value argument = weight(emit, node, packed);
    return argument ? tare_build_unpack(&emit->build, argument, &tensor->shape) : NULL;
}

static tare_build_value constant_value(struct tare_emit *emit, const struct tare_node *node,
                                       const struct tare_tensor *constant) {
    const struct tare_shape *shape = &constant->shape;
    if (!emit->weights_apart || constant->splat || constant->elements < LEAST_WEIGHT)
        return tare_build_constant(&emit->build, constant);
    return tare_build_fits_four_bits(constant) && shape->dims[shape->rank - 1] % 2 == 0 && shape->rank < TARE_MAX_RANK
               ? packed_weight(emit, node, constant)
               : weight(emit, node, constant);
}

static tare_build_value edge_value(struct tare_emit *emit, struct tare_edge edge) {
    struct tare_emit_value *value = value_of(emit, edge);
    if (!value) return emit->graph->args[edge.node->position];
    if (!value->value && value->constant.dtype != TARE_DT_INVALID)
        value->value = constant_value(emit, edge.node, &value->constant);
    if (!value->value && emit->build.status == TARE_OK)
        return tare_build_fail(&emit->build, TARE_FAIL(TARE_UNSUPPORTED, "output %d of %s has no StableHLO form",
                                                       edge.index, edge.node->op));
    return value->value;
}

static struct tare_shape edge_shape(const struct tare_emit *emit, struct tare_edge edge) {
    if (tare_node_is_arg(edge.node)) return tare_build_shape(emit->graph->args[edge.node->position]);
    return emit->graph->shapes[edge.node->position][edge.index];
}

tare_build_value tare_emit_in(struct tare_emit *emit, const struct tare_node *node, size_t k) {
    return edge_value(emit, node->inputs[k]);
}

struct tare_shape tare_emit_in_shape(const struct tare_emit *emit, const struct tare_node *node, size_t k) {
    return edge_shape(emit, node->inputs[k]);
}

const struct tare_tensor *tare_emit_in_constant(const struct tare_emit *emit, const struct tare_node *node, size_t k) {
    const struct tare_edge edge = node->inputs[k];
    const struct tare_emit_value *value = value_of(emit, edge);
    if (!value) return emit->graph->arg_constants ? emit->graph->arg_constants[edge.node->position] : NULL;
    return value->constant.dtype != TARE_DT_INVALID ? &value->constant : NULL;
}

tare_status tare_emit_in_ints(int64_t *out, size_t *count, const struct tare_emit *emit, const struct tare_node *node,
                              size_t k) {
    const struct tare_tensor *constant = tare_emit_in_constant(emit, node, k);
    if (!constant)
        return TARE_FAIL(TARE_UNSUPPORTED, "input %zu is computed when the model runs (expected a constant)", k);
    if (constant->elements > TARE_MAX_RANK)
        return TARE_FAIL(TARE_UNSUPPORTED, "input %zu has %lld elements (expected at most %d)", k,
                         (long long)constant->elements, TARE_MAX_RANK);
    *count = (size_t)constant->elements;
    for (size_t i = 0; i < *count; i++)
        out[i] = tare_tensor_get_i64(constant, (int64_t)i);
    return TARE_OK;
}

struct tare_shape tare_emit_out_shape(const struct tare_emit *emit, const struct tare_node *node, size_t i) {
    return emit->graph->shapes[node->position][i];
}

int tare_emit_out_dtype(const struct tare_node *node, size_t i) {
    return tare_dtype_base(node->output_dtypes[i]);
}

tare_status tare_emit_set(struct tare_emit *emit, const struct tare_node *node, size_t i, tare_build_value value) {
    emit->graph->values[node->position][i].value = value;
    if (emit->build.status != TARE_OK) return emit->build.status;
    return value ? TARE_OK : TARE_FAIL(TARE_INTERNAL, "no value");
}

/* ---- constants ---- */

/* Shape, ShapeN, Size and Rank of shapes that are known. */
static tare_status fold_shape(bool *folded, struct tare_emit *emit, const struct tare_node *node,
                              struct tare_emit_value *out) {
    const bool is_shape = tare_node_is(node, "Shape") || tare_node_is(node, "ShapeN"),
               is_size = tare_node_is(node, "Size");
    *folded = false;
    if (!is_shape && !is_size && !tare_node_is(node, "Rank")) return TARE_OK;
    for (size_t i = 0; i < node->n_outputs; i++) {
        const struct tare_shape shape = tare_emit_in_shape(emit, node, i);
        const struct tare_shape own = { .rank = is_shape, .dims = { shape.rank } };
        int64_t elements = shape.rank;
        if (!tare_shape_is_known(&shape)) return TARE_OK;
        if (is_size) TARE_TRY(tare_shape_elements(&elements, &shape));
        TARE_TRY(tare_tensor_new(&out[i].constant, node->output_dtypes[i], &own));
        for (int64_t k = 0; k < out[i].constant.elements; k++)
            tare_tensor_set_i64(&out[i].constant, k, is_shape ? shape.dims[k] : elements);
    }
    *folded = true;
    return TARE_OK;
}

static bool is_small(const struct tare_shape *shape) {
    int64_t elements;
    return tare_shape_is_known(shape) && tare_shape_elements(&elements, shape) == TARE_OK && elements <= MOST_FOLDED;
}

/* Results of calls, branches and loops that are inputs which they hand on. */
static void fold_handed_on(struct tare_emit *emit, const struct tare_node *node, struct tare_emit_value *out) {
    for (size_t i = 0; i < node->n_outputs; i++) {
        const size_t input = tare_call_hands_on(node, i);
        const struct tare_tensor *constant = input == SIZE_MAX ? NULL : tare_emit_in_constant(emit, node, input);
        if (constant) tare_tensor_share(&out[i].constant, constant);
    }
}

/* A pure node on constants. Its kernel's error is the node's own when it is emitted, so that it is forgotten here. */
static tare_status fold_pure(struct tare_emit *emit, const struct tare_node *node, struct tare_emit_value *out) {
    struct tare_tensor *inputs, *outputs;
    if (tare_widens_float8(node)) return TARE_OK;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!tare_emit_in_constant(emit, node, i)) return TARE_OK;
    for (size_t i = 0; i < node->n_outputs; i++)
        if (!is_small(&emit->graph->shapes[node->position][i])) return TARE_OK;
    inputs = TARE_NEW_ARRAY(&emit->arena, struct tare_tensor, node->n_inputs + 1);
    outputs = TARE_NEW_ARRAY(&emit->arena, struct tare_tensor, node->n_outputs + 1);
    if (!inputs || !outputs) return TARE_NO_MEMORY;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < node->n_inputs && status == TARE_OK; i++) {
        const struct tare_tensor *constant = tare_emit_in_constant(emit, node, i);
        if (constant->splat) /* kernels receive none */
            status = tare_tensor_copy(&inputs[i], constant);
        else
            tare_tensor_share(&inputs[i], constant);
    }
    if (status == TARE_OK) status = tare_node_evaluate(node, inputs, outputs);
    for (size_t i = 0; i < node->n_inputs; i++)
        tare_tensor_reset(&inputs[i]);
    if (status == TARE_NO_MEMORY) return status;
    if (status != TARE_OK) tare_error_clear();
    for (size_t i = 0; i < node->n_outputs && status == TARE_OK; i++)
        out[i].constant = outputs[i];
    return TARE_OK;
}

static tare_status fold(struct tare_emit *emit, const struct tare_node *node, struct tare_emit_value *out) {
    bool folded;
    if (out[0].value) return TARE_OK; /* an argument of main, also where it has a default */
    if (tare_node_is(node, "Const")) {
        const struct tare_tensor *value = tare_node_tensor(node, "value");
        if (value) tare_tensor_share(&out[0].constant, value);
        return TARE_OK;
    }
    if (tare_node_is(node, "PlaceholderWithDefault") && tare_emit_in_constant(emit, node, 0)) {
        tare_tensor_share(&out[0].constant, tare_emit_in_constant(emit, node, 0));
        return TARE_OK;
    }
    TARE_TRY(fold_shape(&folded, emit, node, out));
    if (folded) return TARE_OK;
    if (tare_node_is_pure(node)) return fold_pure(emit, node, out);
    fold_handed_on(emit, node, out);
    return TARE_OK;
}

static bool is_constant(const struct tare_emit *emit, const struct tare_node *node) {
    const struct tare_emit_value *values = emit->graph->values[node->position];
    for (size_t i = 0; i < node->n_outputs; i++)
        if (values[i].constant.dtype == TARE_DT_INVALID) return false;
    return node->n_outputs > 0;
}

/* ---- nodes ---- */

/* Marks the nodes that results need: not those behind constants. */
static tare_status mark_needed(bool *needed, struct tare_emit *emit, const struct tare_edge *results, size_t count) {
    const struct tare_graph *graph = emit->graph->graph;
    const struct tare_node **stack = TARE_NEW_ARRAY(&emit->arena, const struct tare_node *, graph->n_nodes + 1);
    size_t depth = 0;
    if (!stack) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct tare_node *node = results[i].node;
        if (tare_node_is_arg(node) || needed[node->position]) continue;
        needed[node->position] = true;
        stack[depth++] = node;
        while (depth) {
            node = stack[--depth];
            if (is_constant(emit, node)) continue;
            for (size_t k = 0; k < node->n_inputs; k++) {
                const struct tare_node *input = node->inputs[k].node;
                if (tare_node_is_arg(input) || needed[input->position]) continue;
                needed[input->position] = true;
                stack[depth++] = input;
            }
        }
    }
    return TARE_OK;
}

static tare_status emit_node(struct tare_emit *emit, const struct tare_node *node) {
    const struct tare_emit_row *row = emit_find(node->op);
    if (is_constant(emit, node) || emit->graph->values[node->position][0].value)
        return TARE_OK; /* or an argument of main */
    if (!row) return TARE_FAIL(TARE_UNSUPPORTED, "the op has no StableHLO form");
    for (size_t i = 0; i < node->n_outputs; i++)
        if (!tare_shape_is_known(&emit->graph->shapes[node->position][i]) && i == 0)
            return TARE_FAIL(TARE_UNSUPPORTED, "the shape of its result is not known before the model runs");
    emit->build.location = node->name;
    TARE_TRY(row->emit(emit, node, row->arg));
    return emit->build.status;
}

/* The ops that have no rule, with their numbers, in one message. */
static tare_status check_ops(const struct tare_emit *emit, const bool *needed) {
    const struct tare_graph *graph = emit->graph->graph;
    struct tare_strbuf list = { 0 };
    tare_status status;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        size_t nodes = 0, before = 0;
        if (!needed[i] || is_constant(emit, node) || tare_node_is(node, "Placeholder") || emit_find(node->op)) continue;
        for (size_t k = 0; k < graph->n_nodes; k++) {
            if (!needed[k] || strcmp(graph->nodes[k]->op, node->op) != 0) continue;
            nodes++;
            before += k < i;
        }
        if (!before) tare_strbuf_printf(&list, "%s%s (%zu)", list.size ? ", " : "", node->op, nodes);
    }
    status = tare_strbuf_status(&list);
    if (status == TARE_OK && list.size)
        status = TARE_FAIL(TARE_UNSUPPORTED, "ops without StableHLO form: %s", list.data);
    tare_strbuf_free(&list);
    return status;
}

/* Translates what the results need of emit->graph, whose constants are found first. */
static tare_status emit_graph(struct tare_emit *emit, const struct tare_edge *results, size_t count) {
    const struct tare_graph *graph = emit->graph->graph;
    bool *needed = TARE_NEW_ARRAY(&emit->arena, bool, graph->n_nodes + 1);
    struct tare_node **order;
    if (!needed) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_order(&order, &emit->arena, graph));
    for (size_t i = 0; i < graph->n_nodes && order[i]; i++)
        TARE_TRY(tare_error_prefix(fold(emit, order[i], emit->graph->values[order[i]->position]), "%s '%s'",
                                   order[i]->op, order[i]->name));
    TARE_TRY(mark_needed(needed, emit, results, count));
    TARE_TRY(check_ops(emit, needed));
    for (size_t i = 0; i < graph->n_nodes && order[i]; i++)
        if (needed[order[i]->position])
            TARE_TRY(tare_error_prefix(emit_node(emit, order[i]), "%s '%s'", order[i]->op, order[i]->name));
    return TARE_OK;
}

/* Makes a graph the one that is translated; NULL: no memory. */
static struct tare_emit_graph *enter(struct tare_emit *emit, const struct tare_graph *graph,
                                     const struct tare_emit_args *args) {
    struct tare_emit_graph *own = TARE_NEW(&emit->arena, struct tare_emit_graph);
    struct tare_emit_value **values = TARE_NEW_ARRAY(&emit->arena, struct tare_emit_value *, graph->n_nodes + 1);
    if (!own || !values) return NULL;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        values[i] = TARE_NEW_ARRAY(&emit->arena, struct tare_emit_value, graph->nodes[i]->n_outputs + 1);
        if (!values[i]) return NULL;
    }
    *own = (struct tare_emit_graph){
        .graph = graph, .args = args->values, .arg_constants = args->constants, .values = values, .next = emit->all
    };
    emit->all = own;
    return own;
}

tare_status tare_emit_function(tare_build_value *results, struct tare_emit *emit, struct tare_graph *function,
                               const struct tare_emit_args *args) {
    struct tare_emit_graph *outer = emit->graph;
    size_t inlined;
    if (emit->depth >= MOST_DEPTH) return TARE_FAIL(TARE_UNSUPPORTED, "functions are nested too deeply");
    TARE_TRY(
        tare_error_prefix(tare_function_inline_calls(&inlined, function, NULL, NULL), "function %s", function->name));
    struct tare_shape *shapes = TARE_NEW_ARRAY(&emit->arena, struct tare_shape, function->n_args + 1);
    struct tare_edge *edges = TARE_NEW_ARRAY(&emit->arena, struct tare_edge, function->n_returns + 1);
    struct tare_emit_graph *own = enter(emit, function, args);
    if (!shapes || !edges || !own) return TARE_NO_MEMORY;
    for (size_t i = 0; i < function->n_args; i++) {
        if (!args->values[i]) return emit->build.status;
        shapes[i] = tare_build_shape(args->values[i]);
    }
    for (size_t i = 0; i < function->n_returns; i++)
        edges[i] = function->returns[i].edge;
    emit->depth++;
    tare_status status =
        args->constants ? tare_graph_infer_shapes_given(&own->shapes, &emit->arena, function, shapes, args->constants)
                        : tare_graph_infer_shapes(&own->shapes, &emit->arena, function, shapes);
    emit->graph = own;
    if (status == TARE_OK) status = emit_graph(emit, edges, function->n_returns);
    for (size_t i = 0; i < function->n_returns && status == TARE_OK; i++) {
        results[i] = edge_value(emit, edges[i]);
        status = emit->build.status;
    }
    emit->graph = outer;
    emit->depth--;
    return tare_error_prefix(status, "function %s", function->name);
}

/* ---- the module ---- */

/* "2,16"; false if it is not a list of sizes. */
static bool read_sizes(struct tare_shape *shape, const char *text) {
    const char *at = text;
    for (shape->rank = 0; *at && shape->rank < TARE_MAX_RANK; shape->rank++) {
        char *end;
        shape->dims[shape->rank] = strtoll(at, &end, 10);
        if (end == at || shape->dims[shape->rank] < 0 || (*end && *end != ',')) return false;
        at = *end ? end + 1 : end;
    }
    return !*at;
}

tare_status tare_emit_check_shapes(const char *const *shapes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *sign = strrchr(shapes[i], '=');
        struct tare_shape shape;
        if (!sign || sign == shapes[i] || !read_sizes(&shape, sign + 1))
            return TARE_FAIL(TARE_USAGE, "--shape %s: expected INPUT=SIZE,SIZE", shapes[i]);
    }
    return TARE_OK;
}

/* Sets *shape to that of "KEY=2,16" for this input; false if no text is for it. */
static bool find_shape(struct tare_shape *shape, const char *key, const char *const *texts, size_t count) {
    const size_t size = strlen(key);
    for (size_t i = 0; i < count; i++)
        if (strncmp(texts[i], key, size) == 0 && texts[i][size] == '=') return read_sizes(shape, texts[i] + size + 1);
    return false;
}

/* Gives the signature's inputs the sizes of one run. A default of an input is replaced by the argument. */
static tare_status fix_shapes(const struct tare_signature *signature, const struct tare_emit_options *options) {
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *input = &signature->inputs[i];
        struct tare_shape shape = input->shape;
        if (!tare_node_is(input->edge.node, "Placeholder") && !tare_node_is(input->edge.node, "PlaceholderWithDefault"))
            return TARE_FAIL(TARE_UNSUPPORTED, "input '%s' is not a dense tensor that is fed", input->key);
        if (!find_shape(&shape, input->key, options->shapes, options->n_shapes) && shape.rank > 0 && shape.dims[0] < 0)
            shape.dims[0] = options->batch;
        if (!tare_shape_is_known(&shape))
            return TARE_FAIL(
                TARE_UNSUPPORTED,
                "input '%s' has an open size besides its first dimension (a module has arguments of one size: "
                "set it with --shape %s=SIZE,SIZE)",
                input->key, input->key);
        TARE_TRY(tare_node_set_shape(input->edge.node, "shape", &shape));
    }
    return TARE_OK;
}

/* The texts name inputs of the signature. */
static tare_status check_shapes(const struct tare_signature *signature, const struct tare_emit_options *options) {
    for (size_t i = 0; i < options->n_shapes; i++) {
        struct tare_shape shape;
        bool found = false;
        for (size_t k = 0; k < signature->n_inputs && !found; k++)
            found = find_shape(&shape, signature->inputs[k].key, &options->shapes[i], 1);
        if (!found)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "--shape %s: expected INPUT=SIZE,SIZE with an input of signature %s", options->shapes[i],
                             signature->key);
    }
    return TARE_OK;
}

static tare_build_attr function_type(struct tare_build *build, struct tare_arena *arena,
                                     const struct tare_shlo_type **inputs, size_t n_inputs,
                                     const tare_build_value *results, size_t n_results) {
    struct tare_shlo_type *type = TARE_NEW(arena, struct tare_shlo_type);
    struct tare_shlo_attr *attr = TARE_NEW(arena, struct tare_shlo_attr);
    const struct tare_shlo_type **outputs = TARE_NEW_ARRAY(arena, const struct tare_shlo_type *, n_results + 1);
    if (!type || !attr || !outputs) {
        tare_build_fail(build, TARE_NO_MEMORY);
        return NULL;
    }
    for (size_t i = 0; i < n_results; i++)
        outputs[i] = results[i]->type;
    *type = (struct tare_shlo_type){ .kind = TARE_SHLO_FUNCTION,
                                     .inputs = { inputs, n_inputs },
                                     .outputs = { outputs, n_results } };
    *attr = (struct tare_shlo_attr){ .kind = TARE_SHLO_ATTR_TYPE, .type = type };
    return attr;
}

/* The names of the signature's tensors as jax.export writes them. */
static tare_build_attr names(struct tare_build *build, struct tare_arena *arena, const struct tare_binding *bindings,
                             size_t count, const char *key) {
    tare_build_attr *items = TARE_NEW_ARRAY(arena, tare_build_attr, count + 1);
    for (size_t i = 0; items && i < count; i++)
        items[i] = tare_build_dictionary(build, key, bindings[i].key);
    return items ? tare_build_array(build, items, count) : NULL;
}

/* Appends the weights to the arguments of main: types, names and values. */
static tare_status add_weights(struct tare_shlo_block *body, const struct tare_shlo_type ***types,
                               const struct tare_binding **inputs, struct tare_emit *emit,
                               const struct tare_signature *signature) {
    const size_t first = signature->n_inputs, count = first + emit->n_weights;
    struct tare_arena *arena = &emit->build.module->arena;
    struct tare_shlo_value *args = TARE_NEW_ARRAY(arena, struct tare_shlo_value, count + 1);
    const struct tare_shlo_type **all = TARE_NEW_ARRAY(arena, const struct tare_shlo_type *, count + 1);
    struct tare_binding *bindings = TARE_NEW_ARRAY(&emit->arena, struct tare_binding, count + 1);
    if (!args || !all || !bindings) return TARE_NO_MEMORY;
    tare_emit_sort_weights(emit->weights, emit->n_weights);
    for (size_t i = 0; i < count; i++) {
        args[i] = i < first ? body->args[i] : *emit->weights[i - first].value; /* values are known by their numbers */
        all[i] = args[i].type;
        bindings[i] = i < first ? signature->inputs[i] : (struct tare_binding){ .key = emit->weights[i - first].name };
    }
    body->args = args;
    body->n_args = count;
    *types = all;
    *inputs = bindings;
    return TARE_OK;
}

/* builtin.module with the functions of the current block. */
static tare_status close_module(struct tare_build *build, struct tare_build_block *block) {
    struct tare_arena *arena = &build->module->arena;
    struct tare_shlo_op *root = TARE_NEW(arena, struct tare_shlo_op);
    struct tare_shlo_op *functions = TARE_NEW_ARRAY(arena, struct tare_shlo_op, block->n_ops + 1);
    if (!root || !functions) return TARE_NO_MEMORY;
    memcpy(functions, block->ops, block->n_ops * sizeof *functions);
    root->regions = TARE_NEW(arena, struct tare_shlo_block);
    if (!root->regions) return TARE_NO_MEMORY;
    root->name = "builtin.module";
    root->n_regions = 1;
    root->regions[0] = (struct tare_shlo_block){ .ops = functions, .n_ops = block->n_ops };
    build->module->root = root;
    return tare_build_remove_dead(build);
}

static tare_status emit_main(struct tare_emit *emit, const struct tare_signature *signature) {
    struct tare_build *build = &emit->build;
    const size_t n_inputs = signature->n_inputs, n_outputs = signature->n_outputs;
    const struct tare_shlo_type **types =
        TARE_NEW_ARRAY(&build->module->arena, const struct tare_shlo_type *, n_inputs + 1);
    struct tare_edge *edges = TARE_NEW_ARRAY(&emit->arena, struct tare_edge, n_outputs + 1);
    tare_build_value *results = TARE_NEW_ARRAY(&emit->arena, tare_build_value, n_outputs + 1);
    struct tare_shlo_block body = { 0 };
    struct tare_build_block block;
    if (!types || !edges || !results) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs; i++) {
        struct tare_shape shape;
        if (!tare_node_shape(signature->inputs[i].edge.node, "shape", &shape))
            return TARE_FAIL(TARE_INTERNAL, "a placeholder without shape");
        types[i] = tare_build_type(build, signature->inputs[i].dtype, &shape);
        if (!types[i]) return tare_error_prefix(build->status, "input '%s'", signature->inputs[i].key);
    }
    const tare_build_value args = tare_build_arguments(build, &body, types, n_inputs);
    if (!args) return build->status;
    for (size_t i = 0; i < n_inputs; i++)
        value_of(emit, signature->inputs[i].edge)->value = &args[i];
    for (size_t i = 0; i < n_outputs; i++) {
        if (!signature->outputs[i].edge.node)
            return TARE_FAIL(TARE_UNSUPPORTED, "output '%s' is not a dense tensor", signature->outputs[i].key);
        edges[i] = signature->outputs[i].edge;
    }
    tare_build_begin(build, &block);
    tare_status status = emit_graph(emit, edges, n_outputs);
    for (size_t i = 0; i < n_outputs && status == TARE_OK; i++) {
        results[i] = edge_value(emit, edges[i]);
        status = build->status;
    }
    tare_build_end(build, &body, results, status == TARE_OK ? n_outputs : 0);
    TARE_TRY(status);
    const struct tare_binding *inputs = signature->inputs;
    if (emit->n_weights) TARE_TRY(add_weights(&body, &types, &inputs, emit, signature));
    const size_t n_args = n_inputs + emit->n_weights;
    const struct tare_build_named attrs[] = {
        { "arg_attrs", names(build, &build->module->arena, inputs, n_args, "jax.arg_info") },
        { "function_type", function_type(build, &build->module->arena, types, n_args, results, n_outputs) },
        { "res_attrs", names(build, &build->module->arena, signature->outputs, n_outputs, "jax.result_info") },
        { "sym_name", tare_build_text(build, "main") },
        { "sym_visibility", tare_build_text(build, "public") },
    };
    tare_build_op(build, &(struct tare_build_request){
                             .name = "func", .attrs = attrs, .n_attrs = 5, .regions = &body, .n_regions = 1 });
    return build->status;
}

static tare_status choose_signature(const struct tare_signature **out, const struct tare_graph_model *model,
                                    const char *key) {
    *out = tare_model_find_signature(model, key ? key : "serving_default");
    if (!*out && !key && model->n_signatures == 1) *out = model->signatures;
    if (*out) return TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND,
                     key ? "the model has no signature '%s'"
                         : "the model has several signatures and no serving_default (choose one with --signature)",
                     key);
}

/* The number at the end of a name, and the length of what is before it; false: it ends otherwise. */
static bool numbered(uint64_t *number, size_t *stem, const char *key) {
    *stem = strlen(key);
    while (*stem && key[*stem - 1] >= '0' && key[*stem - 1] <= '9')
        --*stem;
    *number = strtoull(key + *stem, NULL, 10);
    return key[*stem] != '\0';
}

static int compare_numbers(const void *a, const void *b) {
    uint64_t first, second;
    size_t stem;
    numbered(&first, &stem, ((const struct tare_binding *)a)->key);
    numbered(&second, &stem, ((const struct tare_binding *)b)->key);
    return (first > second) - (first < second);
}

/* Bindings arg0, arg1 … of a function without names keep its order: a SavedModel has arg10 before arg2. */
static void order_numbered(struct tare_binding *bindings, size_t count) {
    uint64_t number;
    size_t stem, first = 0;
    for (size_t i = 0; i < count; i++) {
        if (!numbered(&number, &stem, bindings[i].key)) return;
        if (i == 0) first = stem;
        if (stem != first || strncmp(bindings[i].key, bindings[0].key, stem) != 0) return;
    }
    if (count) qsort(bindings, count, sizeof *bindings, compare_numbers);
}

tare_status tare_emit_prepare(const struct tare_signature **signature, struct tare_arena *arena,
                              struct tare_graph_model *model, const struct tare_emit_options *options) {
    TARE_TRY(choose_signature(signature, model, options->signature));
    order_numbered((*signature)->inputs, (*signature)->n_inputs);
    order_numbered((*signature)->outputs, (*signature)->n_outputs);
    TARE_TRY(check_shapes(*signature, options));
    TARE_TRY(fix_shapes(*signature, options));
    TARE_TRY(tare_model_inline_calls(model));
    return tare_emit_unplace(signature, arena, model, *signature, options->tpu_call);
}

static tare_status emit_signature(struct tare_emit *emit, struct tare_graph_model *model,
                                  const struct tare_emit_options *options) {
    const struct tare_signature *signature;
    struct tare_build_block block = { 0 };
    TARE_TRY(tare_emit_prepare(&signature, &emit->arena, model, options));
    emit->graph = enter(emit, model->main, &(struct tare_emit_args){ 0 });
    if (!emit->graph) return TARE_NO_MEMORY;
    TARE_TRY(tare_graph_infer_shapes(&emit->graph->shapes, &emit->arena, model->main, NULL));
    emit->build.block = &block;
    tare_status status = emit_main(emit, signature);
    if (status == TARE_OK) status = close_module(&emit->build, &block);
    tare_free(block.ops);
    return status;
}

tare_status tare_emit_module(struct tare_shlo_module **out, struct tare_emit *emit, struct tare_graph_model *model,
                             const struct tare_emit_options *options) {
    *out = NULL;
    emit->weights_apart = options->weights_apart;
    TARE_TRY(tare_build_open(&emit->build, options->version));
    const tare_status status = emit_signature(emit, model, options);
    if (status == TARE_OK)
        *out = emit->build.module;
    else
        tare_shlo_free(emit->build.module);
    return status;
}

void tare_emit_free(struct tare_emit *emit) {
    for (struct tare_emit_graph *graph = emit->all; graph; graph = graph->next)
        for (size_t i = 0; i < graph->graph->n_nodes; i++)
            for (size_t k = 0; k < graph->graph->nodes[i]->n_outputs; k++)
                tare_tensor_reset(&graph->values[i][k].constant);
    tare_free(emit->weights);
    tare_arena_free(&emit->arena);
}

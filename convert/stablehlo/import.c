/* Importing modules: functions, regions, values.
 *
 * Each function is lowered once, when it is first called. Values of a module have unique numbers; `edges` maps them to
 * the graph that is being built. A region that becomes a function sees captured values as further arguments: while it
 * is lowered, their numbers map to those arguments. Constants are emitted in each graph that uses them. */
#include "convert/stablehlo/import.h"
#include "base/tensor/narrow.h"
#include "convert/stablehlo/declared.h"
#include "convert/stablehlo/known_index.h"
#include "convert/stablehlo/lower.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "base/stack.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

enum { IN_PROGRESS = 1, DONE = 2 };
enum { MOST_INLINED = 24 }; /* ops of a function that is emitted in place of its calls: relu, clip, _where … */
enum { MOST_NESTED = 250 }; /* calls and regions in each other: each needs a few kB of the stack */

struct function {
    const struct tare_shlo_op *op;
    struct tare_graph *graph;
    int state;
    size_t n_calls; /* ops of the module that call it */
};

struct tare_shlo_importer {
    struct tare_graph_model *model;
    const struct tare_shlo_module *module;
    const char *stem;
    const struct tare_node *caller;
    struct tare_arena arena;
    struct tare_edge *edges;   /* by value number */
    struct tare_map functions; /* name -> struct function */
    uint8_t *defined;          /* by value number: scratch of capture analysis */
    struct tare_known_indices known;
    int depth; /* of the op being lowered */
    struct tare_declarations declarations;
    bool placed; /* the text of the error has the function: its callers are not added */
};

/* ---- constants ---- */

/* Copies bytes of a module, which may be a mapped file, and releases the pages that were read: a large constant is in
 * memory once. It cannot be a view of the file, since MLIR does not align it. */
static void copy_bytes(uint8_t *out, const uint8_t *data, size_t size) {
    enum { PIECE = 8 << 20 };
    for (size_t at = 0; at < size; at += PIECE) {
        const size_t count = size - at < PIECE ? size - at : PIECE;
        memcpy(out + at, data + at, count);
        if (size > PIECE) tare_file_forget(data + at, count);
    }
}

static tare_status constant_tensor(struct tare_tensor *out, const struct tare_shlo_attr *value) {
    const int dtype = tare_shlo_dtype(value->type);
    struct tare_shape shape;
    if (dtype == TARE_DT_INVALID) return TARE_FAIL(TARE_UNSUPPORTED, "a constant of a type without TensorFlow dtype");
    TARE_TRY(tare_shape_from_dims(&shape, (int)value->type->rank, value->type->dims));
    TARE_TRY(tare_tensor_new(out, dtype, &shape));
    const size_t bytes = tare_tensor_bytes(out), count = (size_t)out->elements;
    if (tare_shlo_stored_as_float(value->type)) {
        for (size_t i = 0; i < count; i++)
            TARE_DATA(float, out)[i] = (float)tare_shlo_tensor_real(value, i);
    } else if (dtype == TARE_DT_BOOL) {
        for (size_t i = 0; i < count; i++)
            TARE_DATA(uint8_t, out)[i] = (uint8_t)tare_shlo_tensor_integer(value, i);
    } else if (tare_shlo_tensor_is_splat(value)) {
        for (size_t i = 0; i < count; i++)
            memcpy((char *)out->data + i * value->size, value->data, value->size);
    } else if (bytes) {
        copy_bytes(out->data, value->data, bytes);
    }
    tare_tensor_narrow(out);
    return TARE_OK;
}

struct tare_edge tare_lower_constant(struct tare_lowering *l, const struct tare_shlo_attr *value) {
    struct tare_tensor tensor;
    struct tare_edge edge = { 0 };
    if (value->kind != TARE_SHLO_ATTR_TENSOR) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "a constant that is not a tensor");
        return edge;
    }
    if (l->status == TARE_OK) l->status = constant_tensor(&tensor, value);
    if (l->status != TARE_OK) return edge;
    edge = tare_lower_tensor(l, &tensor);
    tare_tensor_reset(&tensor);
    return edge;
}

struct tare_edge tare_lower_value(struct tare_lowering *l, const struct tare_shlo_value *value) {
    struct tare_edge *edge = &l->importer->edges[value->number];
    if (l->status == TARE_OK && value->op && tare_shlo_op_is(value->op, "constant") &&
        (!edge->node || edge->node->graph != l->graph))
        *edge = tare_lower_constant(l, tare_shlo_op_attr(value->op, "value"));
    if (l->status == TARE_OK && (!edge->node || edge->node->graph != l->graph))
        tare_lower_fail(l, TARE_UNSUPPORTED, "a value of an enclosing function is used where it cannot be passed");
    return *edge;
}

/* ---- rules ---- */

/* NULL when there is no rule. */
static const struct tare_lowering_row *find_rule(const struct tare_shlo_op *op) {
    static const struct tare_lowering_row *const tables[] = { tare_lower_elementwise,  tare_lower_shapes,
                                                              tare_lower_reductions,   tare_lower_products,
                                                              tare_lower_control,      tare_lower_normalization,
                                                              tare_lower_quantization, tare_lower_random,
                                                              tare_lower_structure };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct tare_lowering_row *row = tables[t]; row->name; row++)
            if (tare_shlo_op_is(op, row->name)) return row;
    return NULL;
}

/* ---- bodies ---- */

static void apply_rule(struct tare_lowering *l, const struct tare_lowering_row *row) {
    if (tare_lower_is_elementwise(l->op)) l->status = tare_check_alike(l->op);
    if (l->status != TARE_OK) return;
    l->importer->depth++;
    if (tare_lower_has_quantized(l->op))
        tare_lower_quantized(l, row);
    else if (tare_lower_has_narrow(l->op))
        tare_lower_narrow(l, row);
    else if (!tare_lower_pattern(l))
        row->lower(l, row->arg);
    l->importer->depth--;
}

static tare_status lower_op(struct tare_shlo_importer *im, struct tare_graph *graph, const struct tare_shlo_op *op) {
    const struct tare_lowering_row *row = find_rule(op);
    struct tare_lowering l = { .importer = im, .graph = graph, .op = op };
    if (tare_shlo_op_is(op, "constant")) return TARE_OK; /* emitted where it is used */
    if (!row) return TARE_FAIL(TARE_UNSUPPORTED, "op %s is not supported", op->name);
    if (im->depth == MOST_NESTED)
        return TARE_FAIL(TARE_UNSUPPORTED, "calls and regions are nested more than %d deep", MOST_NESTED);
    TARE_TRY(tare_stack_check());
    l.outputs = TARE_NEW_ARRAY(&im->arena, struct tare_edge, op->n_results + 1);
    if (!l.outputs) return TARE_NO_MEMORY;
    apply_rule(&l, row);
    for (size_t i = 0; i < op->n_results && l.status == TARE_OK; i++) {
        im->edges[op->results[i].number] = l.outputs[i];
        l.status = tare_declare(&im->declarations, l.outputs[i], op->results[i].type, op, i);
    }
    if (l.status == TARE_OK || im->placed) return l.status;
    return tare_error_prefix(l.status, "op %s at byte %zu", op->name, op->offset);
}

static tare_status place(struct tare_shlo_importer *im, tare_status status, const char *name) {
    if (status == TARE_OK || im->placed) return status;
    im->placed = true;
    return tare_error_prefix(status, "function '%s'", name);
}

const struct tare_shlo_module *tare_lower_module(const struct tare_lowering *l) {
    return l->importer->module;
}

int64_t tare_lower_known_index(const struct tare_lowering *l, const struct tare_shlo_value *value) {
    return tare_known_index(&l->importer->known, value);
}

static tare_status add_return(struct tare_graph *graph, const struct tare_shlo_type *type, struct tare_edge edge) {
    char name[32];
    snprintf(name, sizeof name, "%s%zu", type->kind == TARE_SHLO_TOKEN ? TARE_SHLO_TOKEN_NAME : "output_",
             graph->n_returns);
    return tare_graph_add_return(graph, tare_arena_strdup(&graph->model->arena, name), tare_edge_dtype(edge), edge);
}

/* All ops but the terminator, and what it returns: tuples element by element. */
static tare_status lower_body(struct tare_shlo_importer *im, struct tare_graph *graph,
                              const struct tare_shlo_block *block) {
    struct tare_lowering l = { .importer = im, .graph = graph };
    if (!block->n_ops || !tare_shlo_op_is(&block->ops[block->n_ops - 1], "return"))
        return TARE_FAIL(TARE_CORRUPT, "a function or region does not end with a return");
    const struct tare_shlo_op *end = &block->ops[block->n_ops - 1];
    for (size_t i = 0; i + 1 < block->n_ops; i++)
        TARE_TRY(lower_op(im, graph, &block->ops[i]));
    for (size_t i = 0; i < end->n_operands; i++) {
        const struct tare_shlo_type *type = end->operands[i]->type;
        const struct tare_edge edge = tare_lower_value(&l, end->operands[i]);
        TARE_TRY(l.status);
        for (size_t k = 0; k < tare_lower_leaves(type); k++)
            TARE_TRY(add_return(graph, type->kind == TARE_SHLO_TUPLE ? type->inputs.items[k] : type,
                                (struct tare_edge){ edge.node, edge.index + (int)k }));
    }
    return TARE_OK;
}

static tare_status add_tensor(struct tare_edge *out, struct tare_shlo_importer *im, struct tare_graph *graph,
                              const struct tare_shlo_type *type) {
    const int dtype = tare_shlo_dtype(type);
    char name[32];
    if (dtype == TARE_DT_INVALID) return TARE_FAIL(TARE_UNSUPPORTED, "an argument of a type without TensorFlow dtype");
    snprintf(name, sizeof name, "%s%zu", type->kind == TARE_SHLO_TOKEN ? TARE_SHLO_TOKEN_NAME : "arg", graph->n_args);
    *out = (struct tare_edge){ tare_graph_add_arg(graph, name, dtype), 0 };
    return out->node ? tare_declare(&im->declarations, *out, type, NULL, 0) : TARE_NO_MEMORY;
}

/* The elements of a tuple are arguments of their own; together they are the outputs of one node. */
static tare_status add_argument(struct tare_shlo_importer *im, struct tare_graph *graph,
                                const struct tare_shlo_value *value) {
    struct tare_lowering l = { .importer = im, .graph = graph };
    if (value->type->kind != TARE_SHLO_TUPLE) return add_tensor(&im->edges[value->number], im, graph, value->type);
    const size_t count = value->type->inputs.count;
    struct tare_edge *elements = TARE_NEW_ARRAY(&im->arena, struct tare_edge, count + 1);
    if (!elements) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(add_tensor(&elements[i], im, graph, value->type->inputs.items[i]));
    if (count) im->edges[value->number] = tare_lower_end(&l, tare_lower_begin(&l, "IdentityN", elements, count));
    return l.status;
}

static struct tare_graph *new_function(struct tare_shlo_importer *im, const char *name) {
    const char *stem = tare_arena_printf(&im->model->arena, "%s_%s", im->stem, name);
    const char *unused = stem ? tare_model_unused_name(im->model, stem) : NULL;
    return unused ? tare_model_add_function(im->model, unused) : NULL;
}

/* ---- regions ---- */

static void mark_defined(uint8_t *defined, const struct tare_shlo_block *block, uint8_t mark) {
    for (size_t i = 0; i < block->n_args; i++)
        defined[block->args[i].number] = mark;
    for (size_t i = 0; i < block->n_ops; i++) {
        for (size_t k = 0; k < block->ops[i].n_results; k++)
            defined[block->ops[i].results[k].number] = mark;
        for (size_t k = 0; k < block->ops[i].n_regions; k++)
            mark_defined(defined, &block->ops[i].regions[k], mark);
    }
}

/* A value that is captured counts as defined from then on, so that it is added once. */
static bool add_captures(struct tare_shlo_captures *out, struct tare_shlo_importer *im,
                         const struct tare_shlo_block *block) {
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct tare_shlo_op *op = &block->ops[i];
        for (size_t k = 0; k < op->n_operands; k++) {
            struct tare_shlo_value *value = op->operands[k];
            struct tare_shlo_value **grown;
            if (im->defined[value->number] || (value->op && tare_shlo_op_is(value->op, "constant"))) continue;
            grown = tare_arena_append(&im->arena, out->values, out->count, sizeof *grown);
            if (!grown) return false;
            grown[out->count++] = value;
            out->values = grown;
            im->defined[value->number] = 1;
        }
        for (size_t k = 0; k < op->n_regions; k++)
            if (!add_captures(out, im, &op->regions[k])) return false;
    }
    return true;
}

static void mark_captured(uint8_t *defined, const struct tare_shlo_captures *captures, uint8_t mark) {
    for (size_t i = 0; i < captures->count; i++)
        defined[captures->values[i]->number] = mark;
}

void tare_lower_captures(struct tare_shlo_captures *out, struct tare_lowering *l,
                         const struct tare_shlo_block *region) {
    if (l->status != TARE_OK) return;
    mark_captured(l->importer->defined, out, 1); /* of other regions of the op */
    mark_defined(l->importer->defined, region, 1);
    if (!add_captures(out, l->importer, region)) l->status = TARE_NO_MEMORY;
    mark_defined(l->importer->defined, region, 0);
    mark_captured(l->importer->defined, out, 0);
}

static tare_status lower_region(struct tare_graph *graph, struct tare_shlo_importer *im,
                                const struct tare_shlo_block *region, const struct tare_shlo_captures *captures,
                                bool pass_captures) {
    for (size_t i = 0; i < region->n_args; i++)
        TARE_TRY(add_argument(im, graph, &region->args[i]));
    for (size_t i = 0; i < captures->count; i++)
        TARE_TRY(add_argument(im, graph, captures->values[i]));
    const size_t first = graph->n_args - captures->count; /* tuples are several arguments; captures are tensors */
    TARE_TRY(lower_body(im, graph, region));
    for (size_t i = 0; i < captures->count && pass_captures; i++) {
        struct tare_node *arg = graph->args[first + i];
        TARE_TRY(tare_graph_add_return(graph, arg->name, tare_node_type(arg, "T", TARE_DT_INVALID),
                                       (struct tare_edge){ arg, 0 }));
    }
    return TARE_OK;
}

struct tare_graph *tare_lower_region(struct tare_lowering *l, const struct tare_shlo_block *region,
                                     const struct tare_shlo_captures *captures, bool pass_captures) {
    static const struct tare_shlo_captures none;
    struct tare_shlo_importer *im = l->importer;
    struct tare_graph *graph;
    struct tare_edge *outer;
    if (l->status != TARE_OK) return NULL;
    if (!captures) captures = &none;
    graph = new_function(im, strchr(l->op->name, '.') + 1);
    outer = TARE_NEW_ARRAY(&im->arena, struct tare_edge, captures->count + 1);
    if (!graph || !outer) {
        l->status = TARE_NO_MEMORY;
        return NULL;
    }
    for (size_t i = 0; i < captures->count; i++)
        outer[i] = im->edges[captures->values[i]->number];
    l->status = lower_region(graph, im, region, captures, pass_captures);
    for (size_t i = 0; i < captures->count; i++)
        im->edges[captures->values[i]->number] = outer[i];
    return graph;
}

/* ---- functions ---- */

/* Callers of main pass floats for types that are stored as float. */
static tare_status round_arguments(struct tare_shlo_importer *im, struct tare_graph *graph,
                                   const struct tare_shlo_block *body) {
    struct tare_lowering l = { .importer = im, .graph = graph };
    for (size_t i = 0; i < body->n_args; i++) {
        struct tare_edge *edge = &im->edges[body->args[i].number];
        if (tare_shlo_stored_as_float(body->args[i].type))
            *edge = tare_lower_round(&l, *edge, tare_shlo_stored_as_float(body->args[i].type));
    }
    return l.status;
}

static tare_status import_function(struct tare_shlo_importer *im, struct function *f, const char *name) {
    const struct tare_shlo_block *body = &f->op->regions[0];
    if (f->state == DONE) return TARE_OK;
    if (f->state == IN_PROGRESS) return TARE_FAIL(TARE_CORRUPT, "function '%s' calls itself", name);
    f->state = IN_PROGRESS;
    f->graph = new_function(im, name);
    if (!f->graph) return TARE_NO_MEMORY;
    for (size_t i = 0; i < body->n_args; i++)
        TARE_TRY(add_argument(im, f->graph, &body->args[i]));
    if (strcmp(name, "main") == 0) TARE_TRY(round_arguments(im, f->graph, body));
    TARE_TRY(place(im, lower_body(im, f->graph, body), name));
    f->state = DONE;
    return TARE_OK;
}

struct tare_graph *tare_lower_caller_function(struct tare_lowering *l, int64_t index) {
    const struct tare_node *caller = l->importer->caller;
    const struct tare_attr *list = caller ? tare_node_list(caller, "function_list") : NULL;
    if (l->status != TARE_OK) return NULL;
    if (!list || list->kind != TARE_ATTR_FUNC || index < 0 || (size_t)index >= list->count) {
        tare_lower_fail(l, TARE_CORRUPT, "there is no function %lld in the function_list of the call",
                        (long long)index);
        return NULL;
    }
    struct tare_graph *function = tare_model_find_function(l->importer->model, list->items[index].func.name);
    if (!function) tare_lower_fail(l, TARE_CORRUPT, "there is no function '%s'", list->items[index].func.name);
    return function;
}

struct tare_graph *tare_lower_function(struct tare_lowering *l, const char *name) {
    struct function *f = name ? tare_map_get(&l->importer->functions, name) : NULL;
    if (l->status != TARE_OK) return NULL;
    if (!name) name = "(not a string)";
    if (!f)
        tare_lower_fail(l, TARE_CORRUPT, "there is no function '%s'", name);
    else
        l->status = import_function(l->importer, f, name);
    return l->status == TARE_OK ? f->graph : NULL;
}

/* Ops of a block and the regions in it, counted up to a limit. */
static size_t count_ops(const struct tare_shlo_block *block, size_t limit) {
    size_t count = block->n_ops;
    for (size_t i = 0; i < block->n_ops && count <= limit; i++)
        for (size_t k = 0; k < block->ops[i].n_regions; k++)
            count += count_ops(&block->ops[i].regions[k], limit);
    return count;
}

/* A function that calls others is not small: the calls could nest, and inlining it at each of its calls could double
 * the graph at every level. One with a single call is inlined whatever its size. */
static bool is_small(const struct function *f) {
    const struct tare_shlo_block *body = &f->op->regions[0];
    for (size_t i = 0; i < body->n_ops; i++)
        if (tare_shlo_op_is(&body->ops[i], "call") || tare_shlo_op_is(&body->ops[i], "composite")) return false;
    return count_ops(body, MOST_INLINED) <= MOST_INLINED;
}

/* Emits the ops of a block in place of the op, whose outputs are what the block returns. */
static void emit_block(struct tare_lowering *l, const struct tare_shlo_block *block, const char *mistake) {
    const struct tare_shlo_op *end = block->n_ops ? &block->ops[block->n_ops - 1] : NULL;
    if (!end || !tare_shlo_op_is(end, "return") || end->n_operands != l->op->n_results) {
        tare_lower_fail(l, TARE_CORRUPT, "%s", mistake);
        return;
    }
    for (size_t i = 0; i + 1 < block->n_ops && l->status == TARE_OK; i++)
        l->status = lower_op(l->importer, l->graph, &block->ops[i]);
    for (size_t i = 0; i < end->n_operands && l->status == TARE_OK; i++)
        l->outputs[i] = tare_lower_value(l, end->operands[i]);
}

void tare_lower_region_here(struct tare_lowering *l, const struct tare_shlo_block *region) {
    static const char mistake[] = "a region has arguments or other results";
    if (region->n_args) tare_lower_fail(l, TARE_CORRUPT, "%s", mistake);
    if (l->status == TARE_OK) emit_block(l, region, mistake);
}

/* The values of the body have numbers of their own, which refer to the latest call. */
void tare_lower_body_here(struct tare_lowering *l, const struct tare_shlo_block *body) {
    static const char mistake[] = "the called function has other arguments or results";
    if (body->n_args != l->op->n_operands) tare_lower_fail(l, TARE_CORRUPT, "%s", mistake);
    for (size_t i = 0; i < body->n_args && l->status == TARE_OK; i++)
        l->importer->edges[body->args[i].number] = tare_lower_value(l, l->op->operands[i]);
    if (l->status == TARE_OK) emit_block(l, body, mistake);
}

bool tare_lower_inlined(struct tare_lowering *l, const char *name) {
    const struct function *f = tare_map_get(&l->importer->functions, name);
    if (l->status != TARE_OK || !f || f->state || (f->n_calls != 1 && !is_small(f))) return false;
    tare_lower_body_here(l, &f->op->regions[0]);
    l->status = place(l->importer, l->status, name);
    return true;
}

/* ---- modules ---- */

static bool has_rule(const struct tare_shlo_op *op) {
    return tare_shlo_op_is(op, "constant") || tare_shlo_op_is(op, "return") || tare_shlo_op_is(op, "func") ||
           find_rule(op);
}

bool tare_shlo_imports(const struct tare_vhlo_op *op) {
    return has_rule(&(struct tare_shlo_op){ .def = op, .name = op->name });
}

/* Appends each op without a rule once. */
static void list_unsupported(struct tare_strbuf *out, const struct tare_shlo_block *block) {
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct tare_shlo_op *op = &block->ops[i];
        if (!has_rule(op) && !strstr(tare_strbuf_text(out), op->name))
            tare_strbuf_printf(out, "%s%s", out->size ? ", " : "", op->name);
        for (size_t k = 0; k < op->n_regions; k++)
            list_unsupported(out, &op->regions[k]);
    }
}

tare_status tare_shlo_check_ops(const struct tare_shlo_module *module) {
    struct tare_strbuf missing = { 0 };
    tare_status status = TARE_OK;
    list_unsupported(&missing, &module->root->regions[0]);
    if (missing.failed)
        status = TARE_NO_MEMORY;
    else if (missing.size)
        status = TARE_FAIL(TARE_UNSUPPORTED, "StableHLO ops that are not supported: %s", tare_strbuf_text(&missing));
    tare_strbuf_free(&missing);
    return status;
}

static void count_calls(struct tare_shlo_importer *im, const struct tare_shlo_block *block) {
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct tare_shlo_op *op = &block->ops[i];
        const struct tare_shlo_attr *callee = tare_shlo_op_is(op, "call") ? tare_shlo_op_attr(op, "callee") : NULL;
        if (!callee && tare_shlo_op_is(op, "composite")) callee = tare_shlo_op_attr(op, "decomposition");
        const bool is_name = callee && callee->kind == TARE_SHLO_ATTR_STRING;
        struct function *f = is_name ? tare_map_get(&im->functions, callee->text.data) : NULL;
        if (f) f->n_calls++;
        for (size_t k = 0; k < op->n_regions; k++)
            count_calls(im, &op->regions[k]);
    }
}

static tare_status index_functions(struct tare_shlo_importer *im) {
    const struct tare_shlo_block *body = &im->module->root->regions[0];
    for (size_t i = 0; i < body->n_ops; i++) {
        struct function *f = TARE_NEW(&im->arena, struct function);
        if (!f) return TARE_NO_MEMORY;
        if (!tare_shlo_op_is(&body->ops[i], "func")) continue;
        f->op = &body->ops[i];
        const struct tare_shlo_attr *name = tare_shlo_op_attr(f->op, "sym_name");
        if (name->kind != TARE_SHLO_ATTR_STRING) return TARE_FAIL(TARE_CORRUPT, "a function's name is not a string");
        if (!tare_map_set(&im->functions, name->text.data, f)) return TARE_NO_MEMORY;
    }
    count_calls(im, body);
    return TARE_OK;
}

static tare_status import(struct tare_graph **out, struct tare_shlo_importer *im,
                          const struct tare_shlo_import_options *options) {
    struct function *main_function;
    im->edges = TARE_NEW_ARRAY(&im->arena, struct tare_edge, im->module->n_values + 1);
    im->defined = TARE_NEW_ARRAY(&im->arena, uint8_t, im->module->n_values + 1);
    if (!im->edges || !im->defined) return TARE_NO_MEMORY;
    TARE_TRY(tare_shlo_check_ops(im->module));
    TARE_TRY(index_functions(im));
    if (options->has_platform) TARE_TRY(tare_known_indices_make(&im->known, &im->arena, im->module, options->platform));
    main_function = tare_map_get(&im->functions, "main");
    if (!main_function) return TARE_FAIL(TARE_UNSUPPORTED, "the module has no function 'main'");
    TARE_TRY(import_function(im, main_function, "main"));
    TARE_TRY(tare_check_declarations(&im->declarations));
    *out = main_function->graph;
    return TARE_OK;
}

tare_status tare_shlo_import(struct tare_graph **out, struct tare_graph_model *model,
                             const struct tare_shlo_module *module, const struct tare_shlo_import_options *options) {
    struct tare_shlo_importer im = {
        .model = model, .module = module, .stem = options->stem, .caller = options->caller
    };
    im.declarations.arena = &im.arena;
    const tare_status status = import(out, &im, options);
    tare_map_free(&im.declarations.by_graph);
    tare_map_free(&im.functions);
    tare_arena_free(&im.arena);
    return status;
}

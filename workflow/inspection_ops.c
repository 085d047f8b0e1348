/* Counts ops for tare inspect, and helpers shared by text and JSON. */
#include "base/alloc.h"
#include "workflow/inspection.h"
#include "convert/stablehlo/import.h"
#include "convert/stablehlo/summary.h"
#include "eval/function_signature.h"
#include "graph/calls.h"
#include "graph/op.h"
#include "interpreter/session.h"
#include "quant/layer.h"
#include "tpu/compatibility.h"

#include <stdlib.h>
#include <string.h>

/* Inputs of a computation are visited before it. */
static bool stays_outside(const char *op) {
    static const char *const ops[] = {
        "Placeholder", "PlaceholderWithDefault", "PlaceholderV2", "VarHandleOp", "VariableV2", "Variable", NULL
    };
    for (size_t i = 0; ops[i]; i++)
        if (strcmp(ops[i], op) == 0) return true;
    return false;
}

/* Ops that conversion adds around the computation of the TPU; their names begin with TPU. */
static bool is_of_conversion(const char *op) {
    return strncmp(op, "TPU", 3) == 0;
}

static bool is_quantizable(const struct tare_node *node) {
    return node->def && node->def->row && node->def->row->quant == TARE_QUANT_WEIGHTED &&
           tare_quant_takes_operands(node);
}

/* The module of an XlaCallModule node counts with its layers; it is expanded when the model is run. */
static tare_status count_module(struct inspect_ops *ops, const struct tare_node *node) {
    const struct tare_attr *attr = tare_node_find_attr(node, "module");
    struct tare_shlo_summary summary = { 0 };
    struct tare_shlo_module *module;
    struct tare_arena arena = { 0 };
    tare_status status = TARE_CORRUPT;
    if (attr && !attr->is_list && attr->kind == TARE_ATTR_STRING)
        status = tare_shlo_read(&module, (const uint8_t *)attr->items[0].s.data, attr->items[0].s.size);
    if (status == TARE_OK) {
        status = tare_shlo_summarize(&summary, &arena, module);
        if (status == TARE_OK) status = tare_shlo_check_ops(module);
        tare_shlo_free(module);
        tare_arena_free(&arena);
    }
    ops->quantizable += summary.n_products + summary.n_convolutions;
    ops->has_refused_module = ops->has_refused_module || status != TARE_OK;
    if (status != TARE_OK && status != TARE_NO_MEMORY) tare_error_clear();
    return status == TARE_NO_MEMORY ? status : TARE_OK;
}

static tare_status count_node(struct inspect_ops *ops, const struct tare_node *node) {
    struct inspect_op_count *entry = tare_map_get(&ops->by_name, node->op);
    if (!entry) {
        entry = TARE_NEW(&ops->arena, struct inspect_op_count);
        if (!entry || !TARE_GROW(ops->items, ops->count, ops->capacity)) return TARE_NO_MEMORY;
        entry->op = node->op;
        entry->on_tpu = tare_tpu_compiles(node->op) || stays_outside(node->op) || is_of_conversion(node->op) ||
                        tare_model_find_function(node->graph->model, node->op);
        ops->not_on_tpu += !entry->on_tpu;
        ops->items[ops->count++] = entry;
        if (!tare_map_set(&ops->by_name, entry->op, entry)) return TARE_NO_MEMORY;
    }
    entry->count++;
    ops->tpu_calls += strcmp(node->op, "TPUPartitionedCall") == 0;
    ops->quantizable += is_quantizable(node);
    return strcmp(node->op, "XlaCallModule") == 0 ? count_module(ops, node) : TARE_OK;
}

/* Main-graph nodes that the signatures' outputs depend on, and the functions that they call. */
struct walk {
    struct inspect_ops *ops;
    bool *seen;
    struct tare_node **stack;
    size_t depth;
    struct tare_map functions; /* name -> graph, already counted */
};

static void push(struct walk *walk, struct tare_node *node) {
    if (!node || walk->seen[node->position]) return;
    walk->seen[node->position] = true;
    walk->stack[walk->depth++] = node;
}

static tare_status count_function(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct walk *walk = arg;
    (void)node;
    if (tare_map_get(&walk->functions, callee->name)) return TARE_OK;
    if (!tare_map_set(&walk->functions, callee->name, callee)) return TARE_NO_MEMORY;
    for (size_t i = 0; i < callee->n_nodes; i++) {
        TARE_TRY(count_node(walk->ops, callee->nodes[i]));
        TARE_TRY(tare_node_each_function(callee->nodes[i], count_function, walk));
    }
    return TARE_OK;
}

static void push_outputs(struct walk *walk, const struct tare_graph_model *model, const char *only) {
    for (size_t s = 0; s < model->n_signatures; s++) {
        const struct tare_signature *signature = &model->signatures[s];
        if (only && strcmp(signature->key, only) != 0) continue;
        for (size_t i = 0; i < signature->n_outputs; i++)
            push(walk, signature->outputs[i].edge.node);
    }
}

static tare_status count_reached(struct walk *walk, const struct tare_graph_model *model, const char *only) {
    walk->seen = TARE_NEW_ARRAY(&walk->ops->arena, bool, model->main->n_nodes + 1);
    walk->stack = TARE_NEW_ARRAY(&walk->ops->arena, struct tare_node *, model->main->n_nodes + 1);
    if (!walk->seen || !walk->stack) return TARE_NO_MEMORY;
    push_outputs(walk, model, only);
    while (walk->depth) {
        const struct tare_node *node = walk->stack[--walk->depth];
        TARE_TRY(count_node(walk->ops, node));
        TARE_TRY(tare_node_each_function(node, count_function, walk));
        for (size_t i = 0; i < node->n_inputs; i++)
            push(walk, node->inputs[i].node);
        for (size_t i = 0; i < node->n_controls; i++)
            push(walk, node->controls[i]);
    }
    return TARE_OK;
}

static int by_count(const void *a, const void *b) {
    const struct inspect_op_count *x = *(struct inspect_op_count *const *)a, *y = *(struct inspect_op_count *const *)b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->op, y->op);
}

/* Without the line of XlaCallModule, which the interpreter never sees if its module can be expanded. */
static tare_status list_missing(struct inspect_ops *ops, const struct tare_graph_model *model, const char *only) {
    static const char line[] = "XlaCallModule: ";
    struct tare_strbuf all = { 0 };
    tare_status status =
        tare_session_missing_ops(&ops->n_missing, model, only ? tare_model_find_signature(model, only) : NULL, &all);
    const char *found = ops->has_refused_module ? NULL : strstr(tare_strbuf_text(&all), line);
    if (found) {
        const char *end = strchr(found, '\n');
        tare_strbuf_append(&ops->missing, tare_strbuf_text(&all), (size_t)(found - tare_strbuf_text(&all)));
        if (end) tare_strbuf_puts(&ops->missing, end + 1);
        ops->n_missing--;
    } else {
        tare_strbuf_puts(&ops->missing, tare_strbuf_text(&all));
    }
    if (status == TARE_OK) status = tare_strbuf_status(&all);
    tare_strbuf_free(&all);
    return status == TARE_OK ? tare_strbuf_status(&ops->missing) : status;
}

tare_status inspect_ops_count(struct inspect_ops *ops, const struct tare_graph_model *model, const char *only) {
    struct walk walk = { .ops = ops };
    tare_status status = count_reached(&walk, model, only);
    tare_map_free(&walk.functions);
    TARE_TRY(status);
    if (ops->count) qsort(ops->items, ops->count, sizeof *ops->items, by_count);
    return list_missing(ops, model, only);
}

void inspect_ops_free(struct inspect_ops *ops) {
    tare_map_free(&ops->by_name);
    tare_strbuf_free(&ops->missing);
    tare_free(ops->items);
    tare_arena_free(&ops->arena);
    memset(ops, 0, sizeof *ops);
}

tare_status inspect_find_graph(const struct tare_graph **out, const struct tare_graph_model *model, const char *name) {
    struct tare_graph *function;
    TARE_TRY(tare_function_find(&function, model, name));
    *out = function;
    if (!*out && (!*name || strcmp(name, "graph") == 0)) *out = model->main;
    if (*out) return TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND, "%s: --graph: unknown function '%s' (list them with --functions)", model->path,
                     name);
}

void inspect_input_name(struct tare_strbuf *out, struct tare_edge edge) {
    tare_strbuf_puts(out, edge.node->name);
    if (edge.index) tare_strbuf_printf(out, ":%d", edge.index);
}

int64_t inspect_variable_bytes(const struct tare_variable *variable) {
    size_t element = tare_dtype_size(tare_dtype_base(variable->dtype));
    int64_t count, bytes;
    if (variable->dtype == TARE_DT_STRING || !element || !tare_shape_is_known(&variable->shape)) return -1;
    if (tare_shape_elements(&count, &variable->shape) != TARE_OK) {
        tare_error_clear();
        return -1;
    }
    return tare_mul_i64(&bytes, count, (int64_t)element) ? bytes : -1;
}

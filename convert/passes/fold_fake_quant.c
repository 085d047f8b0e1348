/* Rounds the values of kept variables as the FakeQuant ops that read them do, and removes these ops. Training with
 * quantization puts a FakeQuant between a weight and its layer. Where the weight is a constant, constant folding
 * computes it; this pass does the same for variables that stay variables, so that quantization finds the weight and its
 * grid. A variable has one value: it changes only where every use of it is a FakeQuant with the same result. */
#include "convert/pass.h"
#include "base/alloc.h"
#include "base/tensor/spill.h"
#include "graph/bindings.h"
#include "graph/calls.h"
#include "graph/graphs.h"
#include "interpreter/inference/evaluate.h"

#include <string.h>

enum { FAKE_INPUTS = 3, LARGE = 1 << 20 };

/* What is known about a variable. */
struct rounding {
    struct tare_tensor value; /* after FakeQuant; no dtype: no FakeQuant was found yet */
    bool excluded;            /* something else uses the variable's value, or its handle */
};

struct folding {
    struct tare_graph_model *model;
    const struct tare_bindings *bindings;
    struct rounding *roundings; /* one a variable */
};

static struct rounding *rounding_of(const struct folding *f, const struct tare_variable *variable) {
    return &f->roundings[variable - f->model->variables];
}

static bool is_fake_quant(const struct tare_node *node) {
    return strncmp(node->op, "FakeQuantWithMinMax", strlen("FakeQuantWithMinMax")) == 0 && node->n_outputs == 1 &&
           node->n_inputs >= 1 && node->n_inputs <= FAKE_INPUTS && !node->n_controls;
}

/* ---- the value of a FakeQuant ---- */

/* A constant, or the value of a kept variable; NULL: neither. */
static const struct tare_tensor *fixed_value(const struct folding *f, struct tare_edge edge) {
    const struct tare_tensor *constant = tare_edge_constant(edge);
    const struct tare_variable *variable;
    if (constant) return constant;
    while (strcmp(edge.node->op, "Identity") == 0 && edge.node->n_inputs == 1)
        edge = edge.node->inputs[0];
    if (strcmp(edge.node->op, "ReadVariableOp") != 0) return NULL;
    variable = tare_bindings_variable(f->bindings, edge.node->inputs[0], NULL);
    return variable && variable->constant ? &variable->value : NULL;
}

/* The op's result for the variable's value; *known is false if its range is not constant. */
static tare_status compute(struct tare_tensor *out, bool *known, const struct folding *f,
                           const struct tare_node *node) {
    struct tare_tensor inputs[FAKE_INPUTS] = { { 0 } };
    tare_status status = TARE_OK;
    *known = true;
    for (size_t i = 0; i < node->n_inputs && status == TARE_OK && *known; i++) {
        const struct tare_tensor *value = fixed_value(f, node->inputs[i]);
        *known = value != NULL;
        if (value) status = tare_tensor_copy(&inputs[i], value);
    }
    if (status == TARE_OK && *known) {
        status = tare_node_evaluate(node, inputs, out);
        *known = status == TARE_OK;
        status = tare_error_dismiss(status); /* an invalid range: the op fails when it runs */
    }
    for (size_t i = 0; i < FAKE_INPUTS; i++)
        tare_tensor_reset(&inputs[i]);
    return status;
}

static tare_status add_fake_quant(struct rounding *rounding, const struct folding *f, const struct tare_node *node) {
    struct tare_tensor value = { 0 };
    bool known;
    TARE_TRY(compute(&value, &known, f, node));
    if (known && rounding->value.dtype == TARE_DT_INVALID) {
        rounding->value = value;
        return TARE_OK;
    }
    if (!known || !tare_tensor_same_bits(&rounding->value, &value)) rounding->excluded = true;
    tare_tensor_reset(&value);
    return TARE_OK;
}

/* ---- the uses of variables ---- */

/* Visits the uses of a value that was read: each must be a FakeQuant of it, or an Identity with such uses. */
static tare_status add_uses(struct rounding *rounding, const struct folding *f, const struct tare_node *node) {
    size_t visited = 0;
    for (const struct tare_use *use = tare_node_first_use(node); use; use = tare_node_next_use(use)) {
        const struct tare_node *user = use->user;
        if (user->dead) continue;
        visited++;
        if (is_fake_quant(user) && use->input == 0)
            TARE_TRY(add_fake_quant(rounding, f, user));
        else if (strcmp(user->op, "Identity") == 0)
            TARE_TRY(add_uses(rounding, f, user));
        else
            rounding->excluded = true;
    }
    if (tare_graph_count_uses(node->graph, tare_node_output0((struct tare_node *)(uintptr_t)node), NULL) != visited)
        rounding->excluded = true; /* a function or signature returns the value */
    return TARE_OK;
}

/* Calls pass the handle on, and the read in the callee is visited. */
static tare_status passes_handle(bool *out, const struct tare_node *node) {
    struct tare_arena arena = { 0 };
    struct tare_call_site site;
    const tare_status status = tare_call_site(&site, &arena, node);
    *out = (status == TARE_OK && site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER) ||
           strcmp(node->op, "Identity") == 0;
    tare_arena_free(&arena);
    return tare_error_dismiss(status);
}

static tare_status add_handles(const struct folding *f, const struct tare_node *node) {
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_edge edge = node->inputs[i];
        const struct tare_variable *variable;
        bool passes;
        if (tare_edge_dtype(edge) != TARE_DT_RESOURCE) continue;
        variable = tare_bindings_variable(f->bindings, edge, NULL);
        if (!variable || !variable->constant) continue;
        if (strcmp(node->op, "ReadVariableOp") == 0) {
            TARE_TRY(add_uses(rounding_of(f, variable), f, node));
            continue;
        }
        TARE_TRY(passes_handle(&passes, node));
        if (!passes) rounding_of(f, variable)->excluded = true;
    }
    return TARE_OK;
}

static tare_status add_graph(const struct folding *f, const struct tare_graph *graph) {
    TARE_TRY(tare_graph_index_uses(graph));
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (!graph->nodes[n]->dead) TARE_TRY(add_handles(f, graph->nodes[n]));
    return TARE_OK;
}

/* ---- the change ---- */

static void bypass_graph(const struct folding *f, struct tare_graph *graph, size_t *changes) {
    for (size_t n = 0; n < graph->n_nodes; n++) {
        struct tare_node *node = graph->nodes[n];
        const struct tare_variable *variable;
        struct tare_edge read;
        if (node->dead || !is_fake_quant(node)) continue;
        for (read = node->inputs[0]; strcmp(read.node->op, "Identity") == 0 && read.node->n_inputs;)
            read = read.node->inputs[0];
        if (strcmp(read.node->op, "ReadVariableOp") != 0) continue;
        variable = tare_bindings_variable(f->bindings, read.node->inputs[0], NULL);
        if (!variable || rounding_of(f, variable)->value.dtype == TARE_DT_INVALID) continue;
        tare_graph_replace_uses(graph, (struct tare_edge){ node, 0 }, node->inputs[0], NULL);
        tare_node_remove(node);
        ++*changes;
    }
    tare_graph_sweep(graph);
}

static void set_values(struct folding *f) {
    for (size_t v = 0; v < f->model->n_variables; v++) {
        struct tare_variable *variable = &f->model->variables[v];
        struct rounding *rounding = &f->roundings[v];
        if (rounding->value.dtype == TARE_DT_INVALID) continue;
        tare_tensor_reset(&variable->value);
        variable->value = rounding->value;
        if (tare_tensor_bytes(&variable->value) >= LARGE) tare_tensor_spill(&variable->value);
        rounding->value = (struct tare_tensor){ 0 };
    }
}

static tare_status fold(struct folding *f, size_t *changes) {
    struct tare_graph_model *model = f->model;
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(add_graph(f, tare_model_graph(model, i)));
    for (size_t v = 0; v < model->n_variables; v++)
        if (f->roundings[v].excluded) tare_tensor_reset(&f->roundings[v].value);
    for (size_t i = 0; i <= model->n_functions; i++)
        bypass_graph(f, tare_model_graph(model, i), changes);
    set_values(f);
    return TARE_OK;
}

static bool keeps_variables(const struct tare_graph_model *model) {
    for (size_t v = 0; v < model->n_variables; v++)
        if (model->variables[v].constant) return true;
    return false;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    struct folding f = { .model = model };
    struct tare_bindings *bindings;
    tare_status status;
    if (!keeps_variables(model)) return TARE_OK;
    TARE_TRY(tare_bindings_new(&bindings, model));
    f.bindings = bindings;
    f.roundings = tare_calloc(model->n_variables, sizeof *f.roundings);
    status = f.roundings ? fold(&f, changes) : TARE_NO_MEMORY;
    for (size_t v = 0; f.roundings && v < model->n_variables; v++)
        tare_tensor_reset(&f.roundings[v].value);
    tare_free(f.roundings);
    tare_bindings_free(bindings);
    return status;
}

const struct tare_pass tare_pass_fold_fake_quant = {
    .name = "fold_fake_quant",
    .help = "round the values of kept variables as the FakeQuant ops that read them do",
    .run = run,
};

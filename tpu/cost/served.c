/* Signatures are compared where each is one call in the main graph, as TensorFlow 2 writes them. */
#include "tpu/cost/served.h"
#include "graph/attr_text.h"

#include <string.h>

enum { MOST_DEPTH = 64 }; /* of calls; deeper functions are taken for different */

/* ---- functions ---- */

static bool are_alike(const struct tare_graph *a, const struct tare_graph *b, int depth);

static bool is_edge_alike(struct tare_edge a, struct tare_edge b) {
    return a.index == b.index && a.node->position == b.node->position &&
           tare_node_is_arg(a.node) == tare_node_is_arg(b.node);
}

static bool is_attr_alike(const struct tare_node *a, const struct tare_node *b, const struct tare_attr *attr,
                          int depth) {
    const struct tare_attr *other = tare_node_find_attr(b, attr->name);
    const struct tare_graph *one, *two;
    if (!other) return false;
    if (attr->kind != TARE_ATTR_FUNC || attr->is_list) return tare_attr_equal(attr, other);
    one = tare_node_function(a, attr->name);
    two = tare_node_function(b, attr->name);
    return one && two ? are_alike(one, two, depth + 1) : tare_attr_equal(attr, other);
}

static size_t count_attrs(const struct tare_node *node) {
    size_t count = 0;
    for (size_t i = 0; i < node->n_attrs; i++)
        count += node->attrs[i].name[0] != '_';
    return count;
}

static bool is_node_alike(const struct tare_node *a, const struct tare_node *b, int depth) {
    if (strcmp(a->op, b->op) != 0 || a->n_inputs != b->n_inputs || a->dead != b->dead) return false;
    if (count_attrs(a) != count_attrs(b)) return false;
    for (size_t i = 0; i < a->n_inputs; i++)
        if (!is_edge_alike(a->inputs[i], b->inputs[i])) return false;
    for (size_t i = 0; i < a->n_attrs; i++)
        if (a->attrs[i].name[0] != '_' && !is_attr_alike(a, b, &a->attrs[i], depth)) return false;
    return true;
}

static bool are_alike(const struct tare_graph *a, const struct tare_graph *b, int depth) {
    if (a == b) return true;
    if (depth > MOST_DEPTH || a->n_args != b->n_args || a->n_nodes != b->n_nodes || a->n_returns != b->n_returns)
        return false;
    for (size_t i = 0; i < a->n_args; i++)
        if (a->args[i]->output_dtypes[0] != b->args[i]->output_dtypes[0]) return false;
    for (size_t i = 0; i < a->n_nodes; i++)
        if (!is_node_alike(a->nodes[i], b->nodes[i], depth)) return false;
    for (size_t i = 0; i < a->n_returns; i++)
        if (!is_edge_alike(a->returns[i].edge, b->returns[i].edge)) return false;
    return true;
}

bool tare_functions_are_alike(const struct tare_graph *a, const struct tare_graph *b) {
    return are_alike(a, b, 0);
}

/* ---- signatures ---- */

/* The call that computes every output; NULL: not one call. */
static const struct tare_node *call_of(const struct tare_signature *signature) {
    const struct tare_node *call = signature->n_outputs ? signature->outputs[0].edge.node : NULL;
    for (size_t i = 1; i < signature->n_outputs && call; i++)
        if (signature->outputs[i].edge.node != call) call = NULL;
    return call && tare_node_function(call, "f") ? call : NULL;
}

/* The key of the input that the edge comes from; NULL: none. */
static const char *input_key(const struct tare_signature *signature, struct tare_edge edge) {
    for (size_t i = 0; i < signature->n_inputs; i++)
        if (signature->inputs[i].edge.node == edge.node && signature->inputs[i].edge.index == edge.index)
            return signature->inputs[i].key;
    return NULL;
}

static bool is_twin(const struct tare_signature *a, const struct tare_signature *b) {
    const struct tare_node *x = call_of(a), *y = call_of(b);
    if (!x || !y || x == y || x->n_inputs != y->n_inputs || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs)
        return false;
    for (size_t i = 0; i < a->n_outputs; i++)
        if (strcmp(a->outputs[i].key, b->outputs[i].key) != 0 || a->outputs[i].edge.index != b->outputs[i].edge.index)
            return false;
    for (size_t i = 0; i < x->n_inputs; i++) {
        const char *one = input_key(a, x->inputs[i]), *two = input_key(b, y->inputs[i]);
        if (!one != !two || (one && strcmp(one, two) != 0)) return false;
        if (!one && (x->inputs[i].node != y->inputs[i].node || x->inputs[i].index != y->inputs[i].index)) return false;
    }
    return tare_functions_are_alike(tare_node_function(x, "f"), tare_node_function(y, "f"));
}

static bool has_earlier_twin(const struct tare_graph_model *model, size_t s) {
    for (size_t k = 0; k < s; k++)
        if (is_twin(&model->signatures[k], &model->signatures[s])) return true;
    return false;
}

tare_status tare_mark_served(bool **out, struct tare_arena *arena, const struct tare_graph_model *model) {
    const struct tare_graph *main = model->main;
    bool *served = TARE_NEW_ARRAY(arena, bool, main->n_nodes + 1);
    struct tare_node **stack = TARE_NEW_ARRAY(arena, struct tare_node *, main->n_nodes + 1);
    size_t depth = 0;
    if (!served || !stack) return TARE_NO_MEMORY;
    for (size_t s = 0; s < model->n_signatures; s++) {
        if (has_earlier_twin(model, s)) continue;
        for (size_t i = 0; i < model->signatures[s].n_outputs; i++) {
            struct tare_node *node = model->signatures[s].outputs[i].edge.node;
            if (!node || served[node->position]) continue;
            served[node->position] = true;
            stack[depth++] = node;
        }
    }
    while (depth) {
        const struct tare_node *node = stack[--depth];
        for (size_t i = 0; i < node->n_inputs; i++) {
            struct tare_node *before = node->inputs[i].node;
            if (served[before->position]) continue;
            served[before->position] = true;
            stack[depth++] = before;
        }
    }
    *out = served;
    return TARE_OK;
}

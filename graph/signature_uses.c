/* Uses of nodes by signatures: lists by edge for models with many inputs and outputs.
 *
 * Models with few signature edges are searched. For the others the lists are built when they are first needed, in the
 * model's `signature_uses`. Invariant: each edge of a signature is in the list of the edge that it is, because only the
 * functions of this file change signature edges afterwards; other code calls tare_model_forget_signature_uses. Where
 * memory for a list is missing, the lists are dropped and all edges are searched. */
#include "graph/signature_uses.h"

#include "base/alloc.h"
#include "base/control.h"

/* An edge of a signature. */
struct use {
    struct tare_edge *edge;
    struct use *next;
};

struct use_list {
    struct {
        const struct tare_node *node;
        int64_t index; /* of the output; EVERY: the record of the node */
    } key;
    struct use *first;
    int64_t n_indexes; /* of the record: 1 + the greatest index of an edge of the node */
};

enum { EVERY = -1 };

struct tare_signature_uses {
    struct tare_map lists; /* key -> struct use_list */
    const struct tare_signature *signatures;
    size_t n_signatures;
};

void tare_model_each_signature_edge(struct tare_graph_model *model, void (*visit)(void *arg, struct tare_edge *edge),
                                    void *arg) {
    for (size_t s = 0; s < model->n_signatures; s++) {
        struct tare_signature *signature = &model->signatures[s];
        for (int side = 0; side < 2; side++) {
            struct tare_binding *bindings = side ? signature->outputs : signature->inputs;
            size_t count = side ? signature->n_outputs : signature->n_inputs;
            for (size_t i = 0; i < count; i++)
                visit(arg, &bindings[i].edge);
        }
    }
}

void tare_model_forget_signature_uses(struct tare_graph_model *model) {
    if (!model->signature_uses) return;
    tare_map_free(&model->signature_uses->lists);
    tare_free(model->signature_uses);
    model->signature_uses = NULL;
}

/* ---- lists ---- */

static struct use_list *find_list(const struct tare_signature_uses *uses, const struct tare_node *node, int64_t index) {
    const struct use_list wanted = { .key = { node, index } };
    return tare_map_get_n(&uses->lists, (const char *)&wanted.key, sizeof wanted.key);
}

static struct use_list *make_list(struct tare_signature_uses *uses, const struct tare_node *node, int64_t index) {
    struct use_list *list = find_list(uses, node, index);
    if (list) return list;
    list = TARE_NEW(&node->graph->model->arena, struct use_list);
    if (!list) return NULL;
    list->key.node = node;
    list->key.index = index;
    return tare_map_set_n(&uses->lists, (const char *)&list->key, sizeof list->key, list) ? list : NULL;
}

static tare_status add_use(struct tare_signature_uses *uses, struct use *use) {
    const struct tare_edge edge = *use->edge;
    struct use_list *list, *record;
    use->next = NULL;
    if (!edge.node) return TARE_OK;
    list = make_list(uses, edge.node, edge.index);
    record = make_list(uses, edge.node, EVERY);
    if (!list || !record) return TARE_NO_MEMORY;
    use->next = list->first;
    list->first = use;
    if (record->n_indexes <= edge.index) record->n_indexes = edge.index + 1;
    return TARE_OK;
}

struct building {
    struct tare_graph_model *model;
    tare_status status;
};

static void add_edge(void *arg, struct tare_edge *edge) {
    struct building *b = arg;
    struct use *use;
    if (b->status != TARE_OK || !edge->node) return;
    use = TARE_NEW(&b->model->arena, struct use);
    if (use) use->edge = edge;
    b->status = use ? add_use(b->model->signature_uses, use) : TARE_NO_MEMORY;
}

/* Drops the lists after memory has run out: the edges are then searched, with the same result. */
static void do_without(struct tare_graph_model *model, int64_t mark) {
    tare_model_forget_signature_uses(model);
    tare_error_clear();
    tare_control_forgive(mark);
}

/* The lists; NULL: all edges are to be visited. */
static struct tare_signature_uses *uses_of(struct tare_graph_model *model) {
    enum { FEW = 16 };
    struct building b = { model, TARE_OK };
    size_t bindings = 0;
    if (model->signature_uses && model->signature_uses->signatures == model->signatures &&
        model->signature_uses->n_signatures == model->n_signatures)
        return model->signature_uses;
    tare_model_forget_signature_uses(model);
    for (size_t s = 0; s < model->n_signatures; s++)
        bindings += model->signatures[s].n_inputs + model->signatures[s].n_outputs;
    if (bindings <= FEW) return NULL;
    const int64_t mark = tare_control_failures();
    model->signature_uses = tare_calloc(1, sizeof *model->signature_uses);
    if (!model->signature_uses) b.status = TARE_NO_MEMORY;
    if (b.status == TARE_OK) {
        model->signature_uses->signatures = model->signatures;
        model->signature_uses->n_signatures = model->n_signatures;
        tare_model_each_signature_edge(model, add_edge, &b);
    }
    if (b.status != TARE_OK) do_without(model, mark);
    return model->signature_uses;
}

/* Adds uses to the lists of the edges that they are now. */
static void add_uses(struct tare_graph_model *model, struct use *use) {
    const int64_t mark = tare_control_failures();
    tare_status status = TARE_OK;
    for (struct use *next; use && status == TARE_OK; use = next) {
        next = use->next;
        status = add_use(model->signature_uses, use);
    }
    if (status != TARE_OK) do_without(model, mark);
}

/* ---- counting and replacing ---- */

struct search {
    struct tare_edge from, to;
    size_t count;
};

static void count_edge(void *arg, struct tare_edge *edge) {
    struct search *search = arg;
    search->count += tare_edge_equal(*edge, search->from);
}

size_t tare_signatures_count_uses(struct tare_graph_model *model, struct tare_edge edge) {
    const struct tare_signature_uses *uses = uses_of(model);
    struct search search = { .from = edge };
    if (!uses) {
        tare_model_each_signature_edge(model, count_edge, &search);
        return search.count;
    }
    const struct use_list *list = find_list(uses, edge.node, edge.index);
    for (const struct use *use = list ? list->first : NULL; use; use = use->next)
        search.count++;
    return search.count;
}

static void replace_edge(void *arg, struct tare_edge *edge) {
    struct search *search = arg;
    if (!tare_edge_equal(*edge, search->from)) return;
    *edge = search->to;
    search->count++;
}

size_t tare_signatures_replace_uses(struct tare_graph_model *model, struct tare_edge from, struct tare_edge to) {
    const struct tare_signature_uses *uses = uses_of(model);
    struct search search = { from, to, 0 };
    if (!uses) {
        tare_model_each_signature_edge(model, replace_edge, &search);
        return search.count;
    }
    struct use_list *list = find_list(uses, from.node, from.index);
    struct use *moved = list ? list->first : NULL;
    if (list) list->first = NULL;
    for (struct use *use = moved; use; use = use->next) {
        *use->edge = to;
        search.count++;
    }
    add_uses(model, moved);
    return search.count;
}

struct output_change {
    const struct tare_node *node;
    const struct tare_edge *to;
};

static void replace_output(void *arg, struct tare_edge *edge) {
    const struct output_change *change = arg;
    if (edge->node == change->node) *edge = change->to[edge->index];
}

/* Edges may become other outputs of the same node, so all are taken from the lists first. */
static struct use *take_outputs(const struct tare_signature_uses *uses, const struct tare_node *node) {
    const struct use_list *record = find_list(uses, node, EVERY);
    struct use *taken = NULL;
    for (int64_t i = 0; record && i < record->n_indexes; i++) {
        struct use_list *list = find_list(uses, node, i);
        for (struct use *use = list ? list->first : NULL, *next; use; use = next) {
            next = use->next;
            use->next = taken;
            taken = use;
        }
        if (list) list->first = NULL;
    }
    return taken;
}

void tare_signatures_replace_outputs(struct tare_graph_model *model, const struct tare_node *node,
                                     const struct tare_edge *to) {
    const struct tare_signature_uses *uses = uses_of(model);
    struct output_change change = { node, to };
    if (!uses) {
        tare_model_each_signature_edge(model, replace_output, &change);
        return;
    }
    struct use *taken = take_outputs(uses, node);
    for (struct use *use = taken; use; use = use->next)
        *use->edge = to[use->edge->index];
    add_uses(model, taken);
}

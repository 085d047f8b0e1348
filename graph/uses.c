/* Uses of outputs: lists that are built on first need and maintained by every function that changes an edge.
 *
 * Invariant, when graph->has_uses: for each node of the graph and each input k, uses->by_input[k] is an element of the
 * list of inputs[k] (list_of). A node that was swept has no by_input. Each return of a function is in the list of
 * returns of its edge. The inputs and the returns are const in the graph's structs, so that no other file can break
 * this. Linking allocates nothing: lists are allocated when the number of outputs becomes known, and an edge whose
 * index is not that of an output is in the list of output 0. */
#include "graph/uses.h"
#include "graph/signature_uses.h"

#include <string.h>

/* The inputs, which only this file and tare_node_add_input change. */
static struct tare_edge *inputs_of(struct tare_node *node) {
    return (struct tare_edge *)(uintptr_t)node->inputs;
}

/* NULL: the node has no lists. */
static struct tare_use_list *list_of(struct tare_edge edge) {
    struct tare_node_uses *uses = edge.node ? edge.node->uses : NULL;
    if (!uses) return NULL;
    return &uses->lists[edge.index > 0 && (size_t)edge.index < uses->n_lists ? edge.index : 0];
}

static void link_use(struct tare_use *use, struct tare_edge edge) {
    struct tare_use_list *list = list_of(edge);
    use->previous = use->next = NULL;
    if (!list) return;
    use->previous = list->last;
    if (list->last)
        list->last->next = use;
    else
        list->first = use;
    list->last = use;
}

static void unlink_use(struct tare_use *use, struct tare_edge edge) {
    struct tare_use_list *list = list_of(edge);
    if (!list) return;
    if (use->previous)
        use->previous->next = use->next;
    else
        list->first = use->next;
    if (use->next)
        use->next->previous = use->previous;
    else
        list->last = use->previous;
    use->previous = use->next = NULL;
}

static struct tare_edge edge_of(const struct tare_use *use) {
    return use->user->inputs[use->input];
}

/* The first use of output `index` from `use` on. */
static struct tare_use *use_of(const struct tare_use *use, int index) {
    while (use && edge_of(use).index != index)
        use = use->next;
    return (struct tare_use *)(uintptr_t)use;
}

struct tare_use *tare_edge_first_use(struct tare_edge edge) {
    const struct tare_use_list *list = list_of(edge);
    return list ? use_of(list->first, edge.index) : NULL;
}

struct tare_use *tare_edge_next_use(const struct tare_use *use) {
    return use_of(use->next, edge_of(use).index);
}

static struct tare_use *first_from(const struct tare_node_uses *uses, const struct tare_use_list *list) {
    while (list < uses->lists + uses->n_lists && !list->first)
        list++;
    return list < uses->lists + uses->n_lists ? list->first : NULL;
}

struct tare_use *tare_node_first_use(const struct tare_node *node) {
    return node->uses ? first_from(node->uses, node->uses->lists) : NULL;
}

struct tare_use *tare_node_next_use(const struct tare_use *use) {
    const struct tare_edge edge = edge_of(use);
    return use->next ? use->next : first_from(edge.node->uses, list_of(edge) + 1);
}

tare_status tare_node_start_uses(struct tare_node *node) {
    struct tare_arena *arena = &node->graph->model->outputs;
    node->uses = TARE_NEW(arena, struct tare_node_uses);
    if (!node->uses) return TARE_NO_MEMORY;
    node->uses->lists = &node->uses->first;
    node->uses->n_lists = 1;
    node->uses->by_input = TARE_NEW_ARRAY(arena, struct tare_use *, node->inputs_capacity + 1);
    return node->uses->by_input ? tare_node_index_outputs(node) : TARE_NO_MEMORY;
}

static tare_status index_inputs(struct tare_node *node) {
    struct tare_use *uses = TARE_NEW_ARRAY(&node->graph->model->outputs, struct tare_use, node->n_inputs + 1);
    if (!uses) return TARE_NO_MEMORY;
    for (size_t k = 0; k < node->n_inputs; k++) {
        node->uses->by_input[k] = &uses[k];
        uses[k] = (struct tare_use){ .user = node, .input = k };
        link_use(&uses[k], node->inputs[k]);
    }
    return TARE_OK;
}

/* ---- returns ---- */

static struct tare_return *return_of(const struct tare_graph *graph, size_t i) {
    return (struct tare_return *)(uintptr_t)&graph->returns[i];
}

static void link_return(struct tare_graph *graph, size_t i) {
    struct tare_return *ret = return_of(graph, i);
    struct tare_use_list *list = list_of(ret->edge);
    ret->previous = ret->next = 0;
    if (!list) return;
    ret->next = list->first_return;
    if (ret->next) return_of(graph, ret->next - 1)->previous = i + 1;
    list->first_return = i + 1;
}

static void unlink_return(struct tare_graph *graph, size_t i) {
    struct tare_return *ret = return_of(graph, i);
    struct tare_use_list *list = list_of(ret->edge);
    if (!list) return;
    if (ret->previous)
        return_of(graph, ret->previous - 1)->next = ret->next;
    else
        list->first_return = ret->next;
    if (ret->next) return_of(graph, ret->next - 1)->previous = ret->previous;
}

void tare_graph_set_return(struct tare_graph *graph, size_t i, struct tare_edge edge) {
    if (graph->has_uses) unlink_return(graph, i);
    return_of(graph, i)->edge = edge;
    if (graph->has_uses) link_return(graph, i);
}

void tare_graph_set_return_type(struct tare_graph *graph, size_t i, int dtype) {
    return_of(graph, i)->dtype = dtype;
}

void tare_graph_remove_returns(struct tare_graph *graph, const bool *removed) {
    size_t kept = 0;
    for (size_t i = 0; i < graph->n_returns && graph->has_uses; i++)
        unlink_return(graph, i);
    for (size_t i = 0; i < graph->n_returns; i++)
        if (!removed[i]) *return_of(graph, kept++) = graph->returns[i];
    graph->n_returns = kept;
    for (size_t i = 0; i < kept && graph->has_uses; i++)
        link_return(graph, i);
}

static size_t replace_returns(struct tare_graph *graph, struct tare_edge from, struct tare_edge to) {
    const struct tare_use_list *list = graph->has_uses ? list_of(from) : NULL;
    size_t changed = 0;
    if (!list) {
        for (size_t i = 0; i < graph->n_returns; i++) {
            if (!tare_edge_equal(graph->returns[i].edge, from)) continue;
            tare_graph_set_return(graph, i, to);
            changed++;
        }
        return changed;
    }
    for (size_t i = list->first_return, next; i; i = next) {
        next = graph->returns[i - 1].next;
        if (graph->returns[i - 1].edge.index != from.index) continue;
        tare_graph_set_return(graph, i - 1, to);
        changed++;
    }
    return changed;
}

static size_t count_returns(const struct tare_graph *graph, struct tare_edge edge) {
    const struct tare_use_list *list = graph->has_uses ? list_of(edge) : NULL;
    size_t count = 0;
    if (list) {
        for (size_t i = list->first_return; i; i = graph->returns[i - 1].next)
            count += graph->returns[i - 1].edge.index == edge.index;
        return count;
    }
    for (size_t i = 0; i < graph->n_returns; i++)
        count += tare_edge_equal(graph->returns[i].edge, edge);
    return count;
}

/* ---- the lists of a graph ---- */

/* Moves what output 0's list contains to the lists that the node has now. */
static void distribute(struct tare_node *node) {
    struct tare_use_list *all = &node->uses->lists[0];
    struct tare_use *use = all->first;
    size_t ret = all->first_return;
    *all = (struct tare_use_list){ 0 };
    for (struct tare_use *next; use; use = next) {
        next = use->next;
        link_use(use, edge_of(use));
    }
    for (size_t next; ret; ret = next) {
        next = node->graph->returns[ret - 1].next;
        link_return(node->graph, ret - 1);
    }
}

tare_status tare_node_index_outputs(struct tare_node *node) {
    struct tare_node_uses *uses = node->uses;
    if (!uses || node->n_outputs <= uses->n_lists) return TARE_OK;
    struct tare_use_list *grown = tare_arena_extend(&node->graph->model->outputs, uses->lists, uses->n_lists,
                                                    node->n_outputs - uses->n_lists, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    uses->lists = grown;
    uses->n_lists = node->n_outputs;
    distribute(node);
    return TARE_OK;
}

static tare_status index_graph(struct tare_graph *graph) {
    tare_status status = TARE_OK;
    for (size_t i = 0; i < graph->n_args && status == TARE_OK; i++)
        status = tare_node_start_uses(graph->args[i]);
    for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++)
        status = tare_node_start_uses(graph->nodes[i]);
    for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++)
        status = index_inputs(graph->nodes[i]);
    graph->has_uses = status == TARE_OK;
    for (size_t i = 0; i < graph->n_returns && status == TARE_OK; i++)
        link_return(graph, i);
    if (status == TARE_OK) return TARE_OK;
    for (size_t i = 0; i < graph->n_args; i++)
        graph->args[i]->uses = NULL;
    for (size_t i = 0; i < graph->n_nodes; i++)
        graph->nodes[i]->uses = NULL;
    return status;
}

tare_status tare_graph_index_uses(const struct tare_graph *graph) {
    return graph->has_uses ? TARE_OK : index_graph((struct tare_graph *)(uintptr_t)graph);
}

/* The uses by the node's inputs are in lists. */
static bool is_tracked(const struct tare_node *node) {
    return node->uses && node->uses->by_input;
}

tare_status tare_node_reserve_inputs(struct tare_node *node, size_t count) {
    struct tare_graph_model *model = node->graph->model;
    if (count <= node->inputs_capacity) return TARE_OK;
    struct tare_edge *grown =
        tare_arena_extend(&model->nodes, inputs_of(node), node->n_inputs, count - node->n_inputs, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    if (is_tracked(node)) {
        struct tare_use **uses = tare_arena_extend(&model->outputs, node->uses->by_input, node->n_inputs,
                                                   count - node->n_inputs, sizeof *uses);
        if (!uses) return TARE_NO_MEMORY;
        node->uses->by_input = uses;
    }
    node->inputs = grown;
    node->inputs_capacity = count;
    return TARE_OK;
}

tare_status tare_node_add_input(struct tare_node *node, struct tare_edge edge) {
    struct tare_use *use = NULL;
    if (node->n_inputs == node->inputs_capacity) TARE_TRY(tare_node_reserve_inputs(node, 2 * node->n_inputs + 4));
    if (is_tracked(node)) {
        use = TARE_NEW(&node->graph->model->outputs, struct tare_use);
        if (!use) return TARE_NO_MEMORY;
        *use = (struct tare_use){ .user = node, .input = node->n_inputs };
        node->uses->by_input[node->n_inputs] = use;
        link_use(use, edge);
    }
    inputs_of(node)[node->n_inputs++] = edge;
    return TARE_OK;
}

void tare_node_set_input(struct tare_node *node, size_t k, struct tare_edge edge) {
    if (is_tracked(node)) {
        unlink_use(node->uses->by_input[k], node->inputs[k]);
        link_use(node->uses->by_input[k], edge);
    }
    inputs_of(node)[k] = edge;
}

void tare_node_remove_inputs(struct tare_node *node, size_t first, const bool *removed, size_t count) {
    struct tare_use **uses = is_tracked(node) ? node->uses->by_input : NULL;
    size_t kept = first;
    for (size_t k = first; k < node->n_inputs; k++) {
        const bool goes = k - first < count && removed[k - first];
        if (goes && uses) unlink_use(uses[k], node->inputs[k]);
        if (goes) continue;
        if (uses) uses[kept] = uses[k];
        if (uses) uses[kept]->input = kept;
        inputs_of(node)[kept++] = node->inputs[k];
    }
    if (kept < node->n_inputs) node->n_inputs = kept;
}

void tare_node_drop_uses(struct tare_node *node) {
    if (!is_tracked(node)) return;
    for (size_t k = 0; k < node->n_inputs; k++)
        unlink_use(node->uses->by_input[k], node->inputs[k]);
    node->uses->by_input = NULL;
}

/* ---- replacing and counting ---- */

/* Dead nodes may still be in a list; it may also contain other edges of the node (list_of). */
static bool is_use_of(const struct tare_use *use, const struct tare_graph *graph, struct tare_edge edge) {
    return !use->user->dead && use->user->graph == graph && edge_of(use).index == edge.index;
}

/* If the lists cannot be allocated, all nodes are visited: slower, with the same result. */
static size_t replace_by_scan(struct tare_graph *graph, struct tare_edge from, struct tare_edge to,
                              const struct tare_node *except) {
    size_t changed = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        for (size_t k = 0; k < node->n_inputs && !node->dead && node != except; k++) {
            if (!tare_edge_equal(node->inputs[k], from)) continue;
            tare_node_set_input(node, k, to);
            changed++;
        }
    }
    return changed;
}

static size_t replace_inputs(struct tare_graph *graph, struct tare_edge from, struct tare_edge to,
                             const struct tare_node *except) {
    size_t changed = 0;
    for (struct tare_use *use = tare_edge_first_use(from), *next; use; use = next) {
        next = tare_edge_next_use(use);
        if (use->user == except || !is_use_of(use, graph, from)) continue;
        tare_node_set_input(use->user, use->input, to);
        changed++;
    }
    return changed;
}

size_t tare_graph_replace_uses(struct tare_graph *graph, struct tare_edge from, struct tare_edge to,
                               const struct tare_node *except) {
    if (tare_edge_equal(from, to)) return tare_graph_count_uses(graph, from, NULL);
    size_t changed = tare_graph_index_uses(graph) == TARE_OK ? replace_inputs(graph, from, to, except)
                                                             : replace_by_scan(graph, from, to, except);
    changed += replace_returns(graph, from, to);
    if (graph == graph->model->main) changed += tare_signatures_replace_uses(graph->model, from, to);
    return changed;
}

/* All uses of a node, chained by `next`, in the order of the outputs; the lists are empty afterwards. */
static struct tare_use *take_uses(struct tare_node *node) {
    struct tare_use *first = NULL, **end = &first;
    for (size_t i = 0; node->uses && i < node->uses->n_lists; i++) {
        struct tare_use_list *list = &node->uses->lists[i];
        if (!list->first) continue;
        *end = list->first;
        end = &list->last->next;
        list->first = list->last = NULL;
    }
    return first;
}

/* Uses may move to another output of the same node, so all are taken from the lists first. */
static void replace_listed_outputs(struct tare_node *node, const struct tare_edge *to) {
    for (struct tare_use *use = take_uses(node), *next; use; use = next) {
        struct tare_edge *input = &inputs_of(use->user)[use->input];
        next = use->next;
        if (!use->user->dead && use->user->graph == node->graph) *input = to[input->index];
        link_use(use, *input);
    }
}

static void replace_outputs_by_scan(struct tare_node *node, const struct tare_edge *to) {
    for (size_t i = 0; i < node->graph->n_nodes; i++) {
        struct tare_node *user = node->graph->nodes[i];
        for (size_t k = 0; k < user->n_inputs && !user->dead; k++)
            if (user->inputs[k].node == node) tare_node_set_input(user, k, to[user->inputs[k].index]);
    }
}

/* The returns of all outputs of a node, chained by `next` (index + 1); the lists are empty afterwards. */
static size_t take_returns(struct tare_node *node) {
    size_t first = 0;
    for (size_t i = 0; node->uses && i < node->uses->n_lists; i++) {
        struct tare_use_list *list = &node->uses->lists[i];
        for (size_t at = list->first_return, next; at; at = next) {
            next = node->graph->returns[at - 1].next;
            return_of(node->graph, at - 1)->next = first;
            first = at;
        }
        list->first_return = 0;
    }
    return first;
}

static void replace_returned_outputs(struct tare_node *node, const struct tare_edge *to) {
    struct tare_graph *graph = node->graph;
    if (!graph->has_uses) {
        for (size_t i = 0; i < graph->n_returns; i++)
            if (graph->returns[i].edge.node == node) tare_graph_set_return(graph, i, to[graph->returns[i].edge.index]);
        return;
    }
    for (size_t i = take_returns(node), next; i; i = next) {
        struct tare_return *ret = return_of(graph, i - 1);
        next = ret->next;
        ret->edge = to[ret->edge.index];
        link_return(graph, i - 1);
    }
}

void tare_node_replace_outputs(struct tare_node *node, const struct tare_edge *to) {
    struct tare_graph *graph = node->graph;
    if (tare_graph_index_uses(graph) == TARE_OK)
        replace_listed_outputs(node, to);
    else
        replace_outputs_by_scan(node, to);
    replace_returned_outputs(node, to);
    if (graph == graph->model->main) tare_signatures_replace_outputs(graph->model, node, to);
}

static size_t count_by_scan(const struct tare_graph *graph, struct tare_edge edge, struct tare_node **user) {
    size_t uses = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        for (size_t k = 0; k < node->n_inputs && !node->dead; k++) {
            if (!tare_edge_equal(node->inputs[k], edge)) continue;
            uses++;
            *user = node;
        }
    }
    return uses;
}

static size_t count_inputs(const struct tare_graph *graph, struct tare_edge edge, size_t limit,
                           struct tare_node **user) {
    const struct tare_use_list *list = list_of(edge);
    size_t uses = 0;
    for (struct tare_use *use = list ? list->last : NULL; use && uses < limit; use = use->previous) {
        if (!is_use_of(use, graph, edge)) continue;
        if (uses++ == 0) *user = use->user;
    }
    return uses;
}

size_t tare_graph_count_uses_to(const struct tare_graph *graph, struct tare_edge edge, size_t limit,
                                struct tare_node **user) {
    struct tare_node *last = NULL;
    size_t uses = tare_graph_index_uses(graph) == TARE_OK ? count_inputs(graph, edge, limit, &last)
                                                          : count_by_scan(graph, edge, &last);
    if (user) *user = last;
    if (uses < limit) uses += count_returns(graph, edge);
    if (graph == graph->model->main && uses < limit) uses += tare_signatures_count_uses(graph->model, edge);
    return uses < limit ? uses : limit;
}

size_t tare_graph_count_uses(const struct tare_graph *graph, struct tare_edge edge, struct tare_node **user) {
    return tare_graph_count_uses_to(graph, edge, SIZE_MAX, user);
}

/* Checks before a run: finds ops without a kernel and ops that change state. */
#include "base/alloc.h"
#include "base/strbuf.h"
#include "graph/flags.h"
#include "interpreter/execution/plan.h"
#include "interpreter/signature_target.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_NAMED = 3 };

struct found_op {
    const char *op;
    bool has_reason;
    const struct tare_node *nodes[NODES_NAMED];
    size_t count;
};

struct search {
    const struct tare_graph_model *model;
    /* True for the nodes searched for; *why may be set to a reason that is printed with the op. */
    bool (*looked_for)(const struct tare_graph_model *model, const struct tare_node *node, const char **why);
    struct tare_arena arena;
    struct tare_map seen;  /* functions by name */
    struct tare_map noted; /* nodes */
    struct tare_map ops;   /* op, or "op: reason" -> struct found_op */
    struct found_op **list;
    size_t n_list, list_capacity;
};

static tare_status note(struct search *search, const struct tare_node *node, const char *why) {
    const char *name = why ? tare_arena_printf(&search->arena, "%s: %s", node->op, why) : node->op;
    struct found_op *op = name ? tare_map_get(&search->ops, name) : NULL;
    const struct tare_node **key = TARE_NEW(&search->arena, const struct tare_node *);
    if (!name || !key) return TARE_NO_MEMORY;
    *key = node;
    if (tare_map_get_n(&search->noted, (const char *)key, sizeof *key)) return TARE_OK;
    if (!tare_map_set_n(&search->noted, (const char *)key, sizeof *key, key)) return TARE_NO_MEMORY;
    if (!op) {
        op = TARE_NEW(&search->arena, struct found_op);
        if (!op || !TARE_GROW(search->list, search->n_list, search->list_capacity) ||
            !tare_map_set(&search->ops, name, op))
            return TARE_NO_MEMORY;
        op->op = name;
        op->has_reason = why;
        search->list[search->n_list++] = op;
    }
    if (op->count < NODES_NAMED) op->nodes[op->count] = node;
    op->count++;
    return TARE_OK;
}

static tare_status search_nodes(struct search *search, const struct tare_plan_request *request);

static tare_status search_function(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct search *search = arg;
    struct tare_plan_request request = { .graph = callee };
    (void)node;
    if (tare_map_get(&search->seen, callee->name)) return TARE_OK;
    if (!tare_map_set(&search->seen, callee->name, callee)) return TARE_NO_MEMORY;
    return search_nodes(search, &request);
}

static tare_status search_nodes(struct search *search, const struct tare_plan_request *request) {
    struct tare_node **order;
    size_t count;
    TARE_TRY(tare_plan_order(&order, &count, &search->arena, request));
    for (size_t i = 0; i < count; i++) {
        const struct tare_node *node = order[i];
        const char *why = NULL;
        if (search->looked_for(search->model, node, &why)) TARE_TRY(note(search, node, why));
        TARE_TRY(tare_node_each_function(node, search_function, search));
    }
    return TARE_OK;
}

static void add_edge(struct tare_edge *edges, size_t *count, struct tare_edge edge) {
    if (edge.node) edges[(*count)++] = edge;
}

static size_t list_edges(struct tare_edge *edges, const struct tare_binding *bindings, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        add_edge(edges, &count, bindings[i].edge);
    }
    return count;
}

static tare_status search_signature(struct search *search, const struct tare_signature *signature) {
    struct tare_edge *feeds = TARE_NEW_ARRAY(&search->arena, struct tare_edge, signature->n_inputs + 1);
    struct tare_edge *fetches = TARE_NEW_ARRAY(&search->arena, struct tare_edge, signature->n_outputs + 1);
    struct tare_plan_request request = { .graph = search->model->main, .feeds = feeds, .fetches = fetches };
    if (!feeds || !fetches) return TARE_NO_MEMORY;
    request.n_feeds = list_edges(feeds, signature->inputs, signature->n_inputs);
    request.n_fetches = list_edges(fetches, signature->outputs, signature->n_outputs);
    struct tare_node *target = tare_signature_target(search->model, signature);
    request.targets = &target;
    request.n_targets = target != NULL;
    return search_nodes(search, &request);
}

static tare_status search_initialisers(struct search *search) {
    const struct tare_graph_model *model = search->model;
    struct tare_plan_request request = { .graph = model->main, .targets = &model->init_node, .n_targets = 1 };
    if (model->init_node) TARE_TRY(search_nodes(search, &request));
    request.targets = model->table_inits;
    request.n_targets = model->n_table_inits;
    return request.n_targets ? search_nodes(search, &request) : TARE_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(struct found_op *const *)a)->op, (*(struct found_op *const *)b)->op);
}

static void describe(struct tare_strbuf *text, const struct found_op *op) {
    tare_strbuf_printf(text, "%s%s used by ", op->op, op->has_reason ? "," : ":");
    for (size_t i = 0; i < op->count && i < NODES_NAMED; i++) {
        const char *function = op->nodes[i]->graph->name;
        tare_strbuf_printf(text, "%s%s%s%s", i ? ", " : "", function, *function ? "/" : "", op->nodes[i]->name);
    }
    if (op->count > NODES_NAMED) tare_strbuf_printf(text, " and %zu more", op->count - NODES_NAMED);
    tare_strbuf_putc(text, '\n');
}

/* Puts the lines of all ops found into `text` and frees the search. */
static void report(struct tare_strbuf *text, struct search *search) {
    if (search->n_list) qsort(search->list, search->n_list, sizeof *search->list, by_name);
    for (size_t i = 0; i < search->n_list; i++)
        if (text) describe(text, search->list[i]);
    tare_map_free(&search->seen);
    tare_map_free(&search->noted);
    tare_map_free(&search->ops);
    tare_free(search->list);
    tare_arena_free(&search->arena);
}

static bool has_no_kernel(const struct tare_graph_model *model, const struct tare_node *node, const char **why) {
    const struct tare_op *row = node->def ? node->def->row : NULL;
    if (!node->def && tare_model_find_function(model, node->op)) return false;
    if (!row || !row->run) return true;
    if (!row->accepts || row->accepts(node) == TARE_OK) return false;
    *why = tare_error_text();
    return true;
}

static tare_status search_model(struct search *search, const struct tare_signature *signature) {
    const struct tare_graph_model *model = search->model;
    if (signature) TARE_TRY(search_signature(search, signature));
    for (size_t i = 0; i < model->n_signatures && !signature; i++)
        TARE_TRY(search_signature(search, &model->signatures[i]));
    return search_initialisers(search);
}

tare_status tare_session_missing_ops(size_t *count, const struct tare_graph_model *model,
                                     const struct tare_signature *signature, struct tare_strbuf *text) {
    struct search search = { .model = model, .looked_for = has_no_kernel };
    const tare_status status = search_model(&search, signature);
    const bool is_line = status != TARE_OK && status != TARE_NO_MEMORY && status != TARE_INTERRUPTED;
    *count = search.n_list + is_line;
    report(text, &search);
    if (is_line) tare_strbuf_printf(text, "%s\n", tare_error_text());
    return is_line ? TARE_OK : status;
}

static bool writes_state(const struct tare_graph_model *model, const struct tare_node *node, const char **why) {
    (void)model;
    (void)why;
    return tare_node_has_flag(node, TARE_OP_WRITES);
}

tare_status tare_session_state_ops(bool *stateful, const struct tare_graph_model *model,
                                   const struct tare_signature *signature, struct tare_strbuf *text) {
    struct search search = { .model = model, .looked_for = writes_state };
    const tare_status status = search_signature(&search, signature);
    *stateful = search.n_list > 0;
    report(text, &search);
    return status;
}

/* Converts "a\nb\n" to "a; b". */
static void join_lines(struct tare_strbuf *joined, const struct tare_strbuf *lines) {
    for (size_t i = 0; i + 1 < lines->size; i++) {
        if (lines->data[i] == '\n')
            tare_strbuf_puts(joined, "; ");
        else
            tare_strbuf_putc(joined, lines->data[i]);
    }
    joined->failed |= lines->failed;
}

/* The error for the ops in `missing`, of which there are `count`. No library loads a module that cannot be expanded. */
static tare_status fail_for(const struct tare_graph_model *model, struct tare_strbuf *missing, size_t count) {
    const bool has_module = model->module_error && strstr(tare_strbuf_text(missing), "XlaCallModule: used by ");
    if (has_module) tare_strbuf_printf(missing, "; %s", model->module_error);
    TARE_TRY(tare_strbuf_status(missing));
    const char *text = tare_strbuf_text(missing);
    if (has_module && count == 1) return TARE_FAIL(TARE_UNSUPPORTED, "1 op cannot be run: %s", text);
    if (has_module)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "%zu ops cannot be run; load those except XlaCallModule with --plugin LIB.so: %s", count,
                         text);
    return TARE_FAIL(TARE_UNSUPPORTED, "%zu op%s cannot be run; load %s with --plugin LIB.so: %s", count,
                     count == 1 ? "" : "s", count == 1 ? "it" : "them", text);
}

tare_status tare_session_check_ops(const struct tare_graph_model *model, const struct tare_signature *signature) {
    struct search search = { .model = model, .looked_for = has_no_kernel };
    struct tare_strbuf lines = { 0 }, missing = { 0 };
    tare_status status = search_model(&search, signature);
    const size_t count = search.n_list;
    report(&lines, &search);
    join_lines(&missing, &lines);
    if (status == TARE_OK) status = tare_strbuf_status(&missing);
    if (status == TARE_OK && count) status = fail_for(model, &missing, count);
    tare_strbuf_free(&lines);
    tare_strbuf_free(&missing);
    return model->path ? tare_error_prefix(status, "%s", model->path) : status;
}

/* Runs requested by the caller of a session: of the main graph, and of functions. */
#include "base/alloc.h"
#include "interpreter/execution/step.h"
#include "interpreter/execution/variable.h"

#include <stdio.h>
#include <string.h>

/* Resets what must not carry over from the previous run: error location, random numbers, run objects. */
static void begin_run(struct tare_session *session) {
    if (session->depth) return;
    session->located = false;
    session->random = 0;
    session->nested_ns = 0;
    tare_session_drop_run_objects(session);
}

/* ---- the main graph ---- */

static struct tare_plan *find_plan(struct tare_session *session, const struct tare_plan_request *request, char **key,
                                   size_t *size) {
    size_t edges = request->n_feeds + request->n_fetches;
    size_t *words;
    size_t n = 0;
    *size = (2 + 2 * edges + request->n_targets) * sizeof *words;
    words = tare_calloc(1, *size);
    *key = (char *)words;
    if (!words) return NULL;
    words[n++] = request->n_feeds;
    words[n++] = request->n_fetches;
    for (size_t i = 0; i < edges; i++) {
        struct tare_edge edge = i < request->n_feeds ? request->feeds[i] : request->fetches[i - request->n_feeds];
        words[n++] = (size_t)(uintptr_t)edge.node;
        words[n++] = (size_t)edge.index;
    }
    for (size_t i = 0; i < request->n_targets; i++)
        words[n++] = (size_t)(uintptr_t)request->targets[i];
    return tare_map_get_n(&session->plans, *key, *size);
}

static tare_status plan_for(struct tare_plan **out, struct tare_session *session,
                            const struct tare_plan_request *request) {
    char *key, *kept;
    size_t size;
    tare_status status = TARE_OK;
    *out = find_plan(session, request, &key, &size);
    if (!key) return TARE_NO_MEMORY;
    if (!*out) {
        status = tare_plan_new(out, session, request);
        kept = status == TARE_OK ? tare_arena_strndup(&session->arena, key, size) : NULL;
        if (status == TARE_OK && (!kept || !tare_map_set_n(&session->plans, kept, size, *out))) status = TARE_NO_MEMORY;
    }
    tare_free(key);
    return status;
}

static tare_status check_edge(const struct tare_session *session, const char *what, struct tare_edge edge) {
    if (!edge.node || edge.node->dead || edge.node->graph != session->model->main)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s %s is not in the main graph", what,
                         edge.node ? edge.node->name : "(no node)");
    if (edge.index < 0 || (size_t)edge.index >= edge.node->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s %s:%d: the node has %zu outputs", what, edge.node->name, edge.index,
                         edge.node->n_outputs);
    return TARE_OK;
}

static bool same_value(const struct tare_tensor *a, const struct tare_tensor *b) {
    const size_t size = tare_dtype_size(a->dtype);
    if (a->dtype != b->dtype || !tare_shape_equal(&a->shape, &b->shape)) return false;
    if (a->dtype == TARE_DT_RESOURCE || a->dtype == TARE_DT_VARIANT) return false;
    for (int64_t i = 0; a->dtype == TARE_DT_STRING && i < a->elements; i++) {
        const struct tare_str *x = &TARE_CONST_DATA(struct tare_str, a)[i],
                              *y = &TARE_CONST_DATA(struct tare_str, b)[i];
        if (x->size != y->size || (x->size && memcmp(x->data, y->data, x->size) != 0)) return false;
    }
    return a->dtype == TARE_DT_STRING || !a->elements || memcmp(a->data, b->data, (size_t)a->elements * size) == 0;
}

/* Feeds that are kept, with those of many listed by node. */
struct kept_feeds {
    struct tare_edge *feeds;
    size_t count;
    size_t *first; /* by position in the main graph: 1 + the first feed of the node; NULL: few feeds */
};

static size_t *first_of(const struct kept_feeds *kept, const struct tare_graph *main, const struct tare_node *node) {
    const bool listed = kept->first && node && node->graph == main && !tare_node_is_arg(node);
    return listed ? &kept->first[node->position] : NULL;
}

/* The place of the same edge; kept->count: there is none. */
static size_t find_kept(const struct kept_feeds *kept, const struct tare_graph *main, struct tare_edge edge) {
    const size_t *first = first_of(kept, main, edge.node);
    size_t k = !first ? 0 : *first ? *first - 1 : kept->count;
    while (k < kept->count && (!edge.node || !tare_edge_equal(kept->feeds[k], edge)))
        k++;
    return k;
}

/* Two inputs of a signature may be the same tensor: it is fed once, if their values agree. */
static tare_status drop_repeated(const struct tare_graph *main, struct tare_arena *arena, struct tare_edge *feeds,
                                 struct tare_tensor *values, size_t *count) {
    enum { FEW = 16 };
    struct kept_feeds kept = { .feeds = feeds };
    if (*count > FEW) {
        kept.first = TARE_NEW_ARRAY(arena, size_t, main->n_nodes + 1);
        if (!kept.first) return TARE_NO_MEMORY;
    }
    for (size_t i = 0; i < *count; i++) {
        const size_t k = find_kept(&kept, main, feeds[i]);
        size_t *first = first_of(&kept, main, feeds[i].node);
        if (k < kept.count && !same_value(&values[k], &values[i]))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s:%d is fed twice, with different values", feeds[i].node->name,
                             feeds[i].index);
        if (k < kept.count) {
            tare_tensor_reset(&values[i]);
            values[i] = (struct tare_tensor){ 0 };
            continue;
        }
        feeds[kept.count] = feeds[i];
        if (kept.count != i) {
            values[kept.count] = values[i];
            values[i] = (struct tare_tensor){ 0 };
        }
        kept.count++;
        if (first && !*first) *first = kept.count;
    }
    *count = kept.count;
    return TARE_OK;
}

static tare_status check_request(const struct tare_session *session, const struct tare_plan_request *request,
                                 const struct tare_tensor *values) {
    for (size_t i = 0; i < request->n_feeds; i++) {
        struct tare_edge edge = request->feeds[i];
        TARE_TRY(check_edge(session, "feed", edge));
        if (values[i].dtype != tare_edge_dtype(edge))
            return TARE_FAIL(TARE_TYPE, "feed %s:%d is %s (expected %s)", edge.node->name, edge.index,
                             tare_dtype_name(values[i].dtype), tare_dtype_name(tare_edge_dtype(edge)));
    }
    for (size_t i = 0; i < request->n_fetches; i++)
        TARE_TRY(check_edge(session, "fetch", request->fetches[i]));
    for (size_t i = 0; i < request->n_targets; i++)
        if (!request->targets[i] || request->targets[i]->dead || request->targets[i]->graph != session->model->main)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "target %zu is not in the main graph", i);
    return TARE_OK;
}

/* Adds the asset paths that the caller did not feed. */
static void add_assets(const struct tare_session *session, struct tare_edge *feeds, struct tare_tensor *values,
                       size_t *n_feeds) {
    const struct tare_graph_model *model = session->model;
    for (size_t i = 0; i < model->n_assets; i++) {
        struct tare_edge edge = model->assets[i].edge;
        bool fed = !edge.node || edge.node->dead || tare_edge_dtype(edge) != TARE_DT_STRING;
        for (size_t k = 0; k < *n_feeds && !fed; k++)
            fed = feeds[k].node == edge.node && feeds[k].index == edge.index;
        if (fed) continue;
        feeds[*n_feeds] = edge;
        tare_tensor_share(&values[(*n_feeds)++], &session->assets[i]);
    }
}

static tare_status share_feed(struct tare_tensor *out, const struct tare_tensor *value) {
    if (value->splat) return tare_tensor_copy(out, value);
    tare_tensor_share(out, value);
    return TARE_OK;
}

tare_status tare_session_run(struct tare_session *session, const struct tare_edge *feeds,
                             const struct tare_tensor *values, size_t n_feeds, const struct tare_edge *fetches,
                             struct tare_tensor *results, size_t n_fetches, struct tare_node *const *targets,
                             size_t n_targets) {
    struct tare_arena scratch = { 0 };
    size_t room = n_feeds + session->model->n_assets + 1, n = 0, n_given = 0;
    struct tare_edge *edges = TARE_NEW_ARRAY(&scratch, struct tare_edge, room);
    struct tare_tensor *fed = TARE_NEW_ARRAY(&scratch, struct tare_tensor, room);
    struct tare_plan_request request = { session->model->main, edges, 0, fetches, n_fetches, targets, n_targets };
    struct tare_plan *plan;
    tare_status status = edges && fed ? TARE_OK : TARE_NO_MEMORY;

    for (size_t i = 0; i < n_fetches; i++)
        results[i] = (struct tare_tensor){ 0 };
    if (status != TARE_OK) goto done;
    begin_run(session);
    for (size_t i = 0; i < n_feeds; i++) {
        if (!values[i].dtype) continue;
        edges[n] = feeds[i];
        TARE_CHECK(share_feed(&fed[n++], &values[i]));
    }
    n_given = n;
    TARE_CHECK(drop_repeated(session->model->main, &scratch, edges, fed, &n));
    add_assets(session, edges, fed, &n);
    request.n_feeds = n;
    TARE_CHECK(check_request(session, &request, fed));
    TARE_CHECK(plan_for(&plan, session, &request));
    TARE_CHECK(tare_plan_observe_fed(session, plan, edges, fed, n));
    status = tare_plan_run(session, plan, fed, results);
done:
    for (size_t i = 0; i < (n > n_given ? n : n_given) && fed; i++)
        if (fed[i].dtype) tare_tensor_reset(&fed[i]);
    tare_arena_free(&scratch);
    return status;
}

/* ---- functions ---- */

/* The declared shape of an argument: `_output_shapes` (kept by the importer), else unknown.
 */
static struct tare_shape declared_shape(const struct tare_node *arg) {
    const struct tare_attr *list = tare_node_find_attr(arg, "_output_shapes");
    if (list && list->is_list && list->kind == TARE_ATTR_SHAPE && list->count == 1) return *list->items[0].shape;
    return tare_shape_unknown();
}

static tare_status check_shapes(const struct tare_graph *function, const struct tare_tensor *args, size_t n_args) {
    char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    for (size_t i = 0; i < n_args && i < function->n_args; i++) {
        struct tare_shape shape = declared_shape(function->args[i]);
        if (args[i].dtype && !tare_shape_compatible(&args[i].shape, &shape))
            return TARE_FAIL(
                TARE_SHAPE,
                "cannot compute %s as input #%zu(zero-based) was expected to have shape %s but has shape %s",
                function->name, i, tare_shape_text(expected, &shape), tare_shape_text(got, &args[i].shape));
    }
    return TARE_OK;
}

static tare_status call_with_shares(struct tare_session *session, const struct tare_graph *function,
                                    const struct tare_tensor *args, size_t n_args, struct tare_tensor *results,
                                    size_t n_results) {
    struct tare_tensor *shares = tare_calloc(n_args + 1, sizeof *shares);
    tare_status status = TARE_OK;
    if (!shares) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_args && status == TARE_OK; i++)
        status = share_feed(&shares[i], &args[i]);
    if (status == TARE_OK) status = tare_exec_call(session, function, shares, n_args, results, n_results);
    for (size_t i = 0; i < n_args; i++)
        if (shares[i].dtype) tare_tensor_reset(&shares[i]);
    tare_free(shares);
    return status;
}

tare_status tare_session_call(struct tare_session *session, const struct tare_graph *function,
                              const struct tare_tensor *args, size_t n_args, struct tare_tensor *results,
                              size_t n_results) {
    for (size_t i = 0; i < n_results; i++)
        results[i] = (struct tare_tensor){ 0 };
    begin_run(session);
    TARE_TRY(check_shapes(function, args, n_args));
    return call_with_shares(session, function, args, n_args, results, n_results);
}

tare_status tare_kernel_call(struct tare_kernel *kernel, const struct tare_graph *function,
                             const struct tare_tensor *args, size_t n_args, struct tare_tensor *results,
                             size_t n_results) {
    if (!kernel->session) return TARE_FAIL(TARE_INTERNAL, "a function call outside a session");
    return call_with_shares(kernel->session, function, args, n_args, results, n_results);
}

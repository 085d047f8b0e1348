/* Inserting and updating BatchFunction ops. */
#include "tpu/batching.h"
#include "graph/clone.h"
#include "graph/graphs.h"
#include "tpu/batching_internal.h"

#include <string.h>

struct batcher {
    struct tare_arena *arena;
    struct tare_graph_model *model;
    const struct tare_model_shapes *shapes; /* of the model before anything was batched */
    struct tare_graph **done;               /* functions that this call has batched */
    size_t n_done;
    struct tare_batching_result *result;
};

/* ---- callers and callees ---- */

struct walk {
    struct tare_map seen;
    const struct tare_graph **stack;
    size_t depth;
    bool unbatched; /* not into what a BatchFunction calls */
};

static tare_status walk_into(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct walk *walk = arg;
    if (tare_map_get(&walk->seen, callee->name) || (walk->unbatched && tare_node_is(node, "BatchFunction")))
        return TARE_OK;
    walk->stack[walk->depth++] = callee;
    return tare_map_set(&walk->seen, callee->name, callee) ? TARE_OK : TARE_NO_MEMORY;
}

/* Every function that `graph` calls, directly or not, except itself; the caller frees the map. */
static tare_status functions_below(struct tare_map *out, const struct batcher *b, const struct tare_graph *graph,
                                   bool unbatched) {
    struct walk walk = { .unbatched = unbatched };
    tare_status status = TARE_OK;
    walk.stack = TARE_NEW_ARRAY(b->arena, const struct tare_graph *, b->model->n_functions + 2);
    if (!walk.stack) return TARE_NO_MEMORY;
    walk.stack[walk.depth++] = graph;
    while (walk.depth && status == TARE_OK) {
        const struct tare_graph *at = walk.stack[--walk.depth];
        for (size_t i = 0; i < at->n_nodes && status == TARE_OK; i++)
            if (!at->nodes[i]->dead) status = tare_node_each_function(at->nodes[i], walk_into, &walk);
    }
    *out = walk.seen;
    return status;
}

static tare_status runs_below(bool *out, const struct batcher *b, const struct tare_graph *graph,
                              const struct tare_graph *expected) {
    struct tare_map below = { 0 };
    tare_status status = functions_below(&below, b, graph, false);
    *out = tare_map_get(&below, expected->name);
    tare_map_free(&below);
    return status;
}

static struct tare_node *find_op(const struct tare_graph *graph, const char *op) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && strcmp(graph->nodes[i]->op, op) == 0) return graph->nodes[i];
    return NULL;
}

/* A function that `op` in some graph calls and that is `expected` or runs it; NULL when there is none. */
static tare_status called_through(const struct tare_graph **out, const struct batcher *b, const char *op,
                                  const struct tare_graph *expected) {
    *out = NULL;
    for (size_t f = 0; f <= b->model->n_functions && !*out; f++) {
        const struct tare_graph *graph = tare_model_graph(b->model, f);
        for (size_t i = 0; i < graph->n_nodes && !*out; i++) {
            const struct tare_node *node = graph->nodes[i];
            const struct tare_graph *callee;
            bool below;
            if (node->dead || strcmp(node->op, op) != 0) continue;
            callee = tare_node_function(node, "f");
            if (!callee) continue;
            TARE_TRY(runs_below(&below, b, callee, expected));
            if (below || callee == expected) *out = callee;
        }
    }
    return TARE_OK;
}

/* A function called by `graph`, directly or not, that contains a BatchFunction; NULL when there is none. */
static tare_status batch_below(const struct tare_graph **out, const struct batcher *b, const struct tare_graph *graph) {
    struct tare_map below = { 0 };
    tare_status status = functions_below(&below, b, graph, false);
    *out = NULL;
    for (size_t f = 0; f < b->model->n_functions; f++) {
        const struct tare_graph *function = b->model->functions[f];
        if (tare_map_get(&below, function->name) && find_op(function, "BatchFunction")) *out = function;
    }
    tare_map_free(&below);
    return status;
}

/* ---- the op ---- */

/* Batches that may wait, where the options do not say: the op's default for the queue of ordinary requests. Its default
 * for the queue of low priority is 0, which refuses each of them. */
enum { DEFAULT_ENQUEUED = 10 };

static tare_status set_low_priority(struct tare_node *node, const struct tare_low_priority *low) {
    static const char *const attrs[] = { "low_priority_max_batch_size", "low_priority_batch_timeout_micros",
                                         "low_priority_max_enqueued_batches", "low_priority_allowed_batch_sizes",
                                         "mixed_priority_policy" };
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        tare_node_remove_attr(node, attrs[i]);
    if (!low->max_batch_size) return TARE_OK;
    TARE_TRY(tare_node_set_int(node, attrs[0], low->max_batch_size));
    TARE_TRY(tare_node_set_int(node, attrs[1], low->batch_timeout_micros));
    TARE_TRY(
        tare_node_set_int(node, attrs[2], low->max_enqueued_batches ? low->max_enqueued_batches : DEFAULT_ENQUEUED));
    if (low->n_allowed) TARE_TRY(tare_node_set_int_list(node, attrs[3], low->allowed_batch_sizes, low->n_allowed));
    return low->policy ? tare_node_set_string(node, attrs[4], low->policy, strlen(low->policy)) : TARE_OK;
}

static tare_status set_numbers(struct tare_node *node, const struct tare_batch_options *options) {
    bool default_enqueued = !options->max_enqueued_batches || options->max_enqueued_batches == DEFAULT_ENQUEUED;
    TARE_TRY(tare_node_set_int(node, "num_batch_threads", options->num_batch_threads));
    TARE_TRY(tare_node_set_int(node, "max_batch_size", options->max_batch_size));
    TARE_TRY(tare_node_set_int(node, "batch_timeout_micros", options->batch_timeout_micros));
    /* default attributes are omitted: older runtimes reject unknown attributes */
    tare_node_remove_attr(node, "max_enqueued_batches");
    tare_node_remove_attr(node, "allowed_batch_sizes");
    tare_node_remove_attr(node, "enable_large_batch_splitting");
    if (!default_enqueued) TARE_TRY(tare_node_set_int(node, "max_enqueued_batches", options->max_enqueued_batches));
    if (options->n_allowed)
        TARE_TRY(tare_node_set_int_list(node, "allowed_batch_sizes", options->allowed_batch_sizes, options->n_allowed));
    if (!options->disable_large_batch_splitting)
        TARE_TRY(tare_node_set_bool(node, "enable_large_batch_splitting", true));
    return set_low_priority(node, &options->low_priority);
}

/* Arguments of the moved body in the op's order: batched ones first. */
static tare_status order_args(struct tare_graph *body, const bool *captured, struct tare_arena *arena) {
    struct tare_node **ordered = TARE_NEW_ARRAY(arena, struct tare_node *, body->n_args + 1);
    size_t at = 0;
    if (!ordered) return TARE_NO_MEMORY;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < body->n_args; i++)
            if (captured[i] == (pass == 1)) ordered[at++] = body->args[i];
    for (size_t i = 0; i < body->n_args; i++) {
        body->args[i] = ordered[i];
        body->args[i]->position = i;
        TARE_TRY(tare_node_set_int(body->args[i], "index", (int64_t)i));
    }
    return TARE_OK;
}

static tare_status connect(struct tare_node *node, const struct tare_graph *function, const bool *captured,
                           struct tare_arena *arena) {
    int *in = TARE_NEW_ARRAY(arena, int, function->n_args + 1),
        *held = TARE_NEW_ARRAY(arena, int, function->n_args + 1);
    int *out = TARE_NEW_ARRAY(arena, int, function->n_returns + 1);
    size_t n_in = 0, n_held = 0;
    if (!in || !held || !out) return TARE_NO_MEMORY;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < function->n_args; i++)
            if (captured[i] == (pass == 1))
                TARE_TRY(tare_node_add_input(node, (struct tare_edge){ function->args[i], 0 }));
    for (size_t i = 0; i < function->n_args; i++) {
        int dtype = function->args[i]->output_dtypes[0];
        if (captured[i])
            held[n_held++] = dtype;
        else
            in[n_in++] = dtype;
    }
    for (size_t i = 0; i < function->n_returns; i++)
        out[i] = function->returns[i].dtype;
    TARE_TRY(tare_node_set_type_list(node, "Tin", in, n_in));
    TARE_TRY(tare_node_set_type_list(node, "Tcaptured", held, n_held));
    return tare_node_set_type_list(node, "Tout", out, function->n_returns);
}

/* Batchers of one name share a queue: the function's name makes it unique. The node's name resembles it alone. */
static tare_status wrap(struct batcher *b, struct tare_graph *function, const bool *captured,
                        const struct tare_batch_options *options) {
    struct tare_arena *memory = &b->model->arena;
    const char *stem = tare_arena_printf(memory, "%s_with_batch", function->name);
    const char *name = stem ? tare_model_unused_name(b->model, stem) : NULL;
    const char *node_name = tare_arena_printf(memory, "batch/%s", function->name);
    struct tare_graph *body;
    struct tare_node *node;
    if (!name || !node_name) return TARE_NO_MEMORY;
    TARE_TRY(tare_function_move_body(&body, function, name));
    TARE_TRY(order_args(body, captured, b->arena));
    TARE_TRY(tare_graph_drop_arg_shapes(body)); /* in the old order, and of one request */
    node = tare_graph_add(function, "BatchFunction", node_name);
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_string(node, "shared_name", node_name, strlen(node_name)));
    TARE_TRY(tare_node_set_func(node, "f", body->name));
    TARE_TRY(set_numbers(node, options));
    TARE_TRY(connect(node, function, captured, b->arena));
    TARE_TRY(tare_node_resolve(node));
    for (size_t i = 0; i < function->n_returns; i++)
        tare_graph_set_return(function, i, (struct tare_edge){ node, (int)i });
    b->result->inserted++;
    return TARE_OK;
}

static tare_status update_graph(struct batcher *b, const struct tare_graph *graph,
                                const struct tare_batch_options *options) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = graph->nodes[i];
        if (node->dead || strcmp(node->op, "BatchFunction") != 0) continue;
        TARE_TRY(set_numbers(node, options));
        TARE_TRY(tare_node_resolve(node));
        b->result->updated++;
    }
    return TARE_OK;
}

/* ---- one function ---- */

static bool is_done(const struct batcher *b, const struct tare_graph *function) {
    for (size_t i = 0; i < b->n_done; i++)
        if (b->done[i] == function) return true;
    return false;
}

static tare_status refuse_on_tpu(const struct tare_graph *tpu_function) {
    return TARE_FAIL(
        TARE_INVALID_ARGUMENT,
        "it is called inside the TPU function %s, and batching cannot run on the TPU (batch a function that is "
        "called on the CPU, or leave the batch component unset)",
        tpu_function->name);
}

static tare_status check_place(const struct batcher *b, const struct tare_graph *function) {
    const struct tare_graph *other;
    TARE_TRY(called_through(&other, b, "TPUPartitionedCall", function));
    if (other) return refuse_on_tpu(other);
    TARE_TRY(called_through(&other, b, "BatchFunction", function));
    if (!other) TARE_TRY(batch_below(&other, b, function));
    return other
               ? TARE_FAIL(TARE_INVALID_ARGUMENT,
                           "a batch inside a batch: it and %s would both be batched, though one runs inside the other",
                           other->name)
               : TARE_OK;
}

static tare_status batch_function(struct batcher *b, struct tare_graph *function,
                                  const struct tare_batch_options *options) {
    bool *captured;
    if (is_done(b, function)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "two batch_options apply to it");
    b->done[b->n_done++] = function;
    if (find_op(function, "BatchFunction")) return update_graph(b, function, options);
    TARE_TRY(check_place(b, function));
    TARE_TRY(tare_batch_captured(&captured, b->arena, function));
    TARE_TRY(tare_batch_check_shapes(function, captured, b->shapes));
    TARE_TRY(tare_batch_check_callers(b->arena, function, captured, b->shapes));
    TARE_TRY(tare_batch_check_dependence(b->arena, function, captured));
    TARE_TRY(tare_batch_try_sizes(b->result, b->arena, function, captured, b->shapes));
    TARE_TRY(tare_batch_find_mixing(b->result, b->arena, function, captured, b->shapes));
    TARE_TRY(tare_batch_note_shapes(b->result, b->arena, function, captured, b->shapes));
    return wrap(b, function, captured, options);
}

/* ---- one message ---- */

static tare_status find_named(struct tare_tpu_function **functions, size_t *count, const struct batcher *b,
                              const struct tare_batch_options *options) {
    struct tare_tpu_choice choice = { options->component == TARE_BATCH_ALIAS      ? TARE_TPU_BY_ALIAS
                                      : options->component == TARE_BATCH_CONCRETE ? TARE_TPU_BY_CONCRETE
                                                                                  : TARE_TPU_BY_SIGNATURE,
                                      options->name, false };
    return tare_error_prefix(tare_tpu_find_functions(functions, count, b->arena, b->model, &choice, 1),
                             "batch_options");
}

static tare_status batch_named(struct batcher *b, const struct tare_batch_options *options) {
    struct tare_tpu_function *functions;
    size_t count;
    TARE_TRY(find_named(&functions, &count, b, options));
    if (options->component == TARE_BATCH_SIGNATURE)
        TARE_TRY(tare_error_prefix(tare_batch_check_signature(tare_model_find_signature(b->model, options->name)),
                                   "batching of signature %s", options->name));
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare_error_prefix(batch_function(b, functions[i].graph, options), "batching of function %s",
                                   functions[i].graph->name));
    return TARE_OK;
}

/* Signatures that call the function past the batcher that is before it for others. */
static tare_status warn_of_unbatched(struct batcher *b, const struct tare_graph *function,
                                     const struct tare_graph *batched) {
    for (size_t i = 0; i < b->model->n_signatures; i++) {
        const struct tare_signature *signature = &b->model->signatures[i];
        const struct tare_graph *served = tare_signature_function(signature);
        struct tare_map below = { 0 };
        tare_status status = served ? functions_below(&below, b, served, true) : TARE_OK;
        const bool passes = served && (served == function || tare_map_get(&below, function->name));
        tare_map_free(&below);
        TARE_TRY(status);
        if (passes)
            TARE_TRY(tare_batch_add_warning(
                b->result, b->arena,
                tare_arena_printf(b->arena,
                                  "function %s, which is batched in %s, is not for signature '%s': its requests reach "
                                  "the TPU one by one (batch_options { signature_name: \"%s\" } batches them)",
                                  function->name, batched->name, signature->key, signature->key)));
    }
    return TARE_OK;
}

static tare_status batch_before_tpu(struct batcher *b, struct tare_graph *function,
                                    const struct tare_batch_options *options) {
    const struct tare_graph *other;
    if (is_done(b, function)) return TARE_OK;
    TARE_TRY(called_through(&other, b, "BatchFunction", function));
    return other ? warn_of_unbatched(b, function, other) : batch_function(b, function, options);
}

static tare_status batch_tpu(struct batcher *b, const struct tare_batch_options *options) {
    size_t n_functions = b->model->n_functions;
    TARE_TRY(update_graph(b, b->model->main, options));
    for (size_t i = 0; i < n_functions; i++)
        if (!is_done(b, b->model->functions[i])) TARE_TRY(update_graph(b, b->model->functions[i], options));
    for (size_t i = 0; i < n_functions; i++) {
        struct tare_graph *function = b->model->functions[i];
        if (find_op(function, "TPUPartitionedCall"))
            TARE_TRY(
                tare_error_prefix(batch_before_tpu(b, function, options), "batching of function %s", function->name));
    }
    return b->result->inserted + b->result->updated
               ? TARE_OK
               : TARE_FAIL(TARE_NOT_FOUND,
                           "batch_options: there is nothing to batch (no function on the TPU, no BatchFunction "
                           "in the model; name tpu_functions, or a function_alias or signature_name)");
}

tare_status tare_tpu_batch_check(struct tare_arena *arena, struct tare_graph_model *model,
                                 struct tare_graph *const *placed, size_t n_placed,
                                 const struct tare_batch_options *options, size_t n_options) {
    struct batcher b = { .arena = arena, .model = model };
    for (size_t i = 0; i < n_options; i++) {
        struct tare_tpu_function *functions;
        size_t count;
        if (options[i].component == TARE_BATCH_TPU) continue;
        TARE_TRY(find_named(&functions, &count, &b, &options[i]));
        for (size_t f = 0; f < count * n_placed; f++) {
            const struct tare_graph *function = functions[f / n_placed].graph, *outer = placed[f % n_placed];
            bool below, is_placed = false;
            for (size_t p = 0; p < n_placed; p++)
                is_placed |= placed[p] == function; /* its batcher is before the TPU call */
            TARE_TRY(runs_below(&below, &b, outer, function));
            if (below && !is_placed)
                TARE_TRY(tare_error_prefix(refuse_on_tpu(outer), "batching of function %s", function->name));
        }
    }
    return TARE_OK;
}

tare_status tare_tpu_batch(struct tare_batching_result *out, struct tare_arena *arena, struct tare_graph_model *model,
                           const struct tare_batch_options *options, size_t n_options) {
    struct batcher b = { .arena = arena, .model = model, .result = out };
    struct tare_model_shapes *shapes = NULL;
    tare_status status;
    size_t general = 0;
    memset(out, 0, sizeof *out);
    if (!n_options) return TARE_OK;
    for (size_t i = 0; i < n_options; i++)
        general += options[i].component == TARE_BATCH_TPU;
    if (general > 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "batch_options: %zu entries are for every TPU function (expected one)",
                         general);
    b.done = TARE_NEW_ARRAY(arena, struct tare_graph *, 2 * model->n_functions + 2);
    if (!b.done) return TARE_NO_MEMORY;
    TARE_CHECK(tare_model_shapes_new(&shapes, model));
    b.shapes = shapes;
    for (size_t i = 0; i < n_options; i++) /* named functions first: the general entry applies to the rest */
        if (options[i].component != TARE_BATCH_TPU) TARE_CHECK(batch_named(&b, &options[i]));
    for (size_t i = 0; i < n_options; i++)
        if (options[i].component == TARE_BATCH_TPU) TARE_CHECK(batch_tpu(&b, &options[i]));
done:
    tare_model_shapes_free(shapes);
    return status;
}

/* Shape inference through calls: the callee is inferred with what the call passes. */
#include "graph/handed_on.h"
#include "interpreter/inference/infer_walk.h"

#include <string.h>

enum { LOOP_TURNS = 4 };

/* What is true of both. */
static struct tare_shape common(const struct tare_shape *a, const struct tare_shape *b) {
    struct tare_shape out = *a;
    if (a->rank != b->rank) return tare_shape_unknown();
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) out.dims[i] = TARE_UNKNOWN_DIM;
    return out;
}

/* True if no tensor has both shapes. */
static bool differ(const struct tare_shape *a, const struct tare_shape *b, bool ranks_only) {
    if (a->rank < 0 || b->rank < 0) return false;
    if (a->rank != b->rank) return true;
    for (int i = 0; i < a->rank && !ranks_only; i++)
        if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i]) return true;
    return false;
}

static void note_conflict(const struct tare_infer_walk *walk, const struct tare_node *node, size_t index,
                          const struct tare_shape *a, const struct tare_shape *b, bool ranks_only) {
    const struct tare_infer_root *root = walk->root;
    if (root->conflict && differ(a, b, ranks_only)) root->conflict(root->conflict_arg, node, index, a, b);
}

/* ---- calls that were inferred before ---- */

static bool same_partial(const struct tare_shape *a, const struct tare_shape *b) {
    return a == b || (a && b && tare_shape_equal(a, b));
}

/* Values are compared by address: a value that was computed twice is inferred twice. */
static bool same_facts(const struct tare_fact *a, const struct tare_fact *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!tare_shape_equal(&a[i].shape, &b[i].shape) || a[i].value != b[i].value ||
            !same_partial(a[i].partial, b[i].partial) || !same_partial(a[i].handle, b[i].handle))
            return false;
    return true;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t mix_shape(uint64_t hash, const struct tare_shape *shape) {
    hash = mix(hash, shape ? (uint64_t)(int64_t)shape->rank : UINT64_MAX / 3);
    for (int i = 0; shape && i < shape->rank; i++)
        hash = mix(hash, (uint64_t)shape->dims[i]);
    return hash;
}

/* One callee may be called with as many different facts as there are calls (constants of quantized layers). */
static struct tare_call_key key_of(const struct tare_graph *callee, const struct tare_fact *args) {
    uint64_t hash = callee->n_args;
    for (size_t i = 0; i < callee->n_args; i++) {
        hash = mix_shape(mix(hash, (uint64_t)(uintptr_t)args[i].value), &args[i].shape);
        hash = mix_shape(mix_shape(hash, args[i].partial), args[i].handle);
    }
    return (struct tare_call_key){ callee, hash };
}

static const struct tare_inferred_call *find_call(const struct tare_infer_root *root, struct tare_call_key key,
                                                  const struct tare_fact *args) {
    const struct tare_inferred_call *call = tare_map_get_n(&root->calls, (const char *)&key, sizeof key);
    while (call &&
           !((!call->limited || call->limited == root->number) && same_facts(call->args, args, key.callee->n_args)))
        call = call->next;
    return call;
}

/* A call with these facts that was inferred incompletely in an earlier inference, which is not used again; NULL: none.
 */
static struct tare_inferred_call *find_stale(const struct tare_infer_root *root, struct tare_call_key key,
                                             const struct tare_fact *args) {
    struct tare_inferred_call *call = tare_map_get_n(&root->calls, (const char *)&key, sizeof key);
    while (call && !same_facts(call->args, args, key.callee->n_args))
        call = call->next;
    return call;
}

/* Adds a call without returns. */
static struct tare_inferred_call *add_call(struct tare_infer_root *root, struct tare_call_key key,
                                           const struct tare_fact *args) {
    struct tare_inferred_call *call = TARE_NEW(&root->arena, struct tare_inferred_call);
    if (!call) return NULL;
    call->key = key;
    call->args = tare_arena_extend(&root->arena, args, key.callee->n_args, 1, sizeof *args);
    call->returns = TARE_NEW_ARRAY(&root->arena, struct tare_fact, key.callee->n_returns + 1);
    call->next = tare_map_get_n(&root->calls, (const char *)&key, sizeof key);
    if (!call->args || !call->returns) return NULL;
    return tare_map_set_n(&root->calls, (const char *)&call->key, sizeof call->key, call) ? call : NULL;
}

/* `limits`: those reached before the call. `status` is returned, except without memory. */
static tare_status note_call(struct tare_infer_root *root, struct tare_call_key key, const struct tare_fact *args,
                             const struct tare_fact *returns, uint64_t limits, tare_status status) {
    const struct tare_graph *callee = key.callee;
    struct tare_inferred_call *call;
    if (status == TARE_NO_MEMORY || status == TARE_INTERRUPTED) return status;
    call = find_stale(root, key, args);
    if (!call) call = add_call(root, key, args);
    if (!call) return TARE_NO_MEMORY;
    call->status = status;
    call->limited = root->limits > limits ? root->number : 0;
    if (callee->n_returns) memcpy(call->returns, returns, callee->n_returns * sizeof *returns);
    call->text = status == TARE_OK ? "" : tare_arena_strdup(&root->arena, tare_error_text());
    return call->text ? status : TARE_NO_MEMORY;
}

/* The facts of the callee's returns. Values die with no call: all memory is the root's. */
static tare_status infer_callee(struct tare_infer_walk *walk, const struct tare_graph *callee,
                                const struct tare_fact *args, size_t n_args, struct tare_fact *returns) {
    struct tare_infer_root *root = walk->root;
    struct tare_infer_walk inner = { .root = root, .graph = callee, .args = args };
    const struct tare_inferred_call *known;
    const uint64_t limits = root->limits;
    tare_status status;
    for (size_t i = 0; i < callee->n_returns; i++)
        returns[i] = tare_fact_unknown();
    if (n_args != callee->n_args)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "calls %s with %zu arguments (expected %zu)", callee->name, n_args,
                         callee->n_args);
    const struct tare_call_key key = key_of(callee, args);
    known = find_call(root, key, args);
    if (known) {
        root->limits += known->limited != 0;
        if (known->status != TARE_OK)
            tare_error_set(known->text);
        else if (callee->n_returns)
            memcpy(returns, known->returns, callee->n_returns * sizeof *returns);
        return known->status;
    }
    if (root->depth >= TARE_MOST_NESTED_CALLS || root->nodes_left < (int64_t)callee->n_nodes) {
        root->limits++;
        return TARE_OK;
    }
    root->nodes_left -= (int64_t)callee->n_nodes;
    root->depth++;
    status = root->infer_graph(&inner);
    root->depth--;
    status = tare_error_prefix(status, "%s", callee->name);
    for (size_t i = 0; i < callee->n_returns && status == TARE_OK; i++) {
        const struct tare_edge edge = callee->returns[i].edge;
        if (edge.node && edge.index >= 0 && (size_t)edge.index < edge.node->n_outputs)
            returns[i] = tare_infer_fact_of(&inner, edge);
    }
    return note_call(root, key, args, returns, limits, status);
}

static struct tare_fact *new_returns(struct tare_infer_walk *walk, const struct tare_graph *callee) {
    return TARE_NEW_ARRAY(&walk->root->arena, struct tare_fact, callee->n_returns + 1);
}

static tare_status check_returns(const struct tare_node *node, const struct tare_graph *callee) {
    if (callee->n_returns == node->n_outputs) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "expects %zu outputs of %s, which has %zu", node->n_outputs, callee->name,
                     callee->n_returns);
}

/* BatchFunction runs its callee on batches of another size than the caller's; values of the batch are not known. */
static void open_batch(struct tare_fact *fact) {
    if (fact->shape.rank > 0) fact->shape.dims[0] = TARE_UNKNOWN_DIM;
    fact->value = NULL;
    fact->partial = NULL;
}

static tare_status infer_batch(struct tare_infer_walk *walk, const struct tare_node *node,
                               const struct tare_graph *callee, struct tare_fact *inputs, struct tare_fact *outputs) {
    const struct tare_attr *tin = tare_node_list(node, "Tin");
    size_t batched = tin && tin->count < node->n_inputs ? tin->count : node->n_inputs;
    int64_t batch = batched && inputs[0].shape.rank > 0 ? inputs[0].shape.dims[0] : TARE_UNKNOWN_DIM;
    for (size_t i = 0; i < batched; i++)
        open_batch(&inputs[i]);
    TARE_TRY(infer_callee(walk, callee, inputs, node->n_inputs, outputs));
    for (size_t i = 0; i < node->n_outputs; i++) {
        open_batch(&outputs[i]);
        if (outputs[i].shape.rank > 0) outputs[i].shape.dims[0] = batch;
    }
    return TARE_OK;
}

/* A branch whose shapes contradict is not taken, so it contributes nothing. */
static tare_status infer_branches(struct tare_infer_walk *walk, const struct tare_node *node,
                                  const struct tare_call_site *site, const struct tare_fact *inputs,
                                  struct tare_fact *outputs) {
    for (size_t c = 0; c < site->n_callees; c++) {
        struct tare_fact *returns = new_returns(walk, site->callees[c]);
        tare_status status;
        if (!returns) return TARE_NO_MEMORY;
        TARE_TRY(check_returns(node, site->callees[c]));
        status = infer_callee(walk, site->callees[c], inputs + site->first, site->n_args, returns);
        if (status == TARE_NO_MEMORY) return status;
        if (status != TARE_OK) tare_error_clear();
        for (size_t i = 0; i < node->n_outputs; i++) {
            if (c && returns[i].value != outputs[i].value) returns[i].value = NULL;
            if (c && !same_partial(returns[i].partial, outputs[i].partial)) returns[i].partial = NULL;
            if (c) note_conflict(walk, node, i, &outputs[i].shape, &returns[i].shape, true);
            if (c) returns[i].shape = common(&outputs[i].shape, &returns[i].shape);
            if (c && returns[i].handle != outputs[i].handle) returns[i].handle = NULL;
            outputs[i] = returns[i];
        }
    }
    return TARE_OK;
}

/* Dims of loop variables that the body changes are not known; found by running the body on shapes until none changes.
 */
static tare_status infer_loop(struct tare_infer_walk *walk, const struct tare_node *node, const struct tare_graph *body,
                              const struct tare_fact *inputs, struct tare_fact *outputs) {
    struct tare_fact *args = TARE_NEW_ARRAY(&walk->root->arena, struct tare_fact, node->n_inputs + 1);
    struct tare_fact *returns = new_returns(walk, body);
    bool changed = true;
    if (!args || !returns) return TARE_NO_MEMORY;
    TARE_TRY(check_returns(node, body));
    if (body->n_args != node->n_inputs || body->n_returns != node->n_inputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "loop body %s has %zu arguments and %zu results (expected %zu)",
                         body->name, body->n_args, body->n_returns, node->n_inputs);
    for (size_t i = 0; i < node->n_inputs; i++) {
        args[i] = inputs[i];
        if ((args[i].value || args[i].partial) && !tare_loop_keeps(body, i))
            args[i].value = NULL, args[i].partial = NULL;
    }
    for (int turn = 0; changed && turn < LOOP_TURNS; turn++) {
        tare_status status = infer_callee(walk, body, args, node->n_inputs, returns);
        if (status == TARE_NO_MEMORY) return status;
        if (status != TARE_OK) tare_error_clear(); /* possibly a loop without iterations: its results are unknown */
        changed = false;
        for (size_t i = 0; i < node->n_inputs; i++) {
            struct tare_shape both = common(&args[i].shape, &returns[i].shape);
            if (turn == 0) note_conflict(walk, node, i, &args[i].shape, &returns[i].shape, false);
            changed |= !tare_shape_equal(&both, &args[i].shape);
            args[i].shape = both;
        }
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        outputs[i] = args[i];
        if (changed) outputs[i].shape = tare_shape_unknown();
    }
    return TARE_OK;
}

tare_status tare_infer_call(struct tare_infer_walk *walk, const struct tare_node *node, const struct tare_fact *inputs,
                            struct tare_fact *outputs, bool *called) {
    struct tare_call_site site;
    struct tare_fact *copy;
    TARE_TRY(tare_call_site(&site, &walk->scratch, node));
    *called = site.kind != TARE_CALL_NONE && site.kind != TARE_CALL_OTHER;
    if (!*called) return TARE_OK;
    switch (site.kind) {
    case TARE_CALL_BRANCH:
        return infer_branches(walk, node, &site, inputs, outputs);
    case TARE_CALL_LOOP:
        return site.n_callees > 1 ? infer_loop(walk, node, site.callees[1], inputs, outputs) : TARE_OK;
    default:
        break;
    }
    TARE_TRY(check_returns(node, site.callees[0]));
    if (strcmp(node->op, "BatchFunction") != 0)
        return infer_callee(walk, site.callees[0], inputs + site.first, site.n_args, outputs);
    copy = tare_arena_extend(&walk->root->arena, inputs, node->n_inputs, 1, sizeof *copy);
    if (!copy) return TARE_NO_MEMORY;
    return infer_batch(walk, node, site.callees[0], copy, outputs);
}

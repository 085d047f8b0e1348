/* Computes nodes whose inputs are all constants, with the interpreter's own kernels: ops, and calls of functions,
 * branches and loops that are made of such ops (weights that are standardized when the model runs). Large results that
 * are larger than their inputs are not folded: a Fill should not increase the size of the file. Nor should several
 * nodes that compute the same from one constant: large results with the same bits are one constant. */
#include "convert/pass.h"
#include "quant/layers/widened_weight.h"
#include "base/alloc.h"
#include "base/control.h"
#include "base/map.h"
#include "base/tensor/float8.h"
#include "calib/hash.h"
#include "graph/graphs.h"
#include "interpreter/inference/evaluate.h"
#include "interpreter/ops/xla/combiner.h"

#include <string.h>

enum {
    LARGEST_GROWTH = 64 * 1024,           /* bytes that a folded result may have beyond its inputs */
    LEAST_SHARED = 1024,                  /* bytes from which a result is looked for among earlier ones */
    LARGEST_EXPANSION = 64 * 1024 * 1024, /* bytes of inputs that one number stands for in the file */
};

static tare_status gather_inputs(bool *constant, const struct tare_node *node, struct tare_tensor *values,
                                 size_t *bytes) {
    size_t expanded = 0;
    *constant = false;
    *bytes = 0;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_tensor *value = tare_edge_constant(node->inputs[i]);
        if (!value) return TARE_OK;
        if (value->splat) expanded += tare_tensor_bytes(value);
    }
    if (expanded > LARGEST_EXPANSION) return TARE_OK;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct tare_tensor *value = tare_edge_constant(node->inputs[i]);
        *bytes += value->splat ? tare_dtype_size(value->dtype) : tare_tensor_bytes(value);
        if (value->splat)
            TARE_TRY(tare_tensor_copy(&values[i], value));
        else
            tare_tensor_share(&values[i], value);
    }
    *constant = true;
    return TARE_OK;
}

/* The folding of one graph. */
struct folding {
    struct tare_arena arena;
    struct tare_map large; /* results of LEAST_SHARED bytes, by dtype, shape and bits */
    size_t *changes;
};

static void key_of(uint64_t key[2], const struct tare_tensor *value) {
    struct tare_hash hash;
    tare_hash_begin(&hash);
    tare_hash_add_u64(&hash, (uint64_t)value->dtype);
    for (int i = 0; i < value->shape.rank; i++)
        tare_hash_add_u64(&hash, (uint64_t)value->shape.dims[i]);
    tare_hash_add(&hash, value->data, tare_tensor_bytes(value));
    tare_hash_end(&hash, key);
}

/* A constant of the value, named after the node unless there is one already. NULL: no memory. */
static struct tare_node *constant_of(struct folding *folding, const struct tare_node *node,
                                     const struct tare_tensor *value) {
    uint64_t *key = TARE_NEW_ARRAY(&folding->arena, uint64_t, 2);
    if (!key) return NULL;
    if (value->dtype == TARE_DT_STRING || value->splat || tare_tensor_bytes(value) < LEAST_SHARED)
        return tare_graph_add_const(node->graph, node->name, value);
    key_of(key, value);
    struct tare_node *constant = tare_map_get_n(&folding->large, (const char *)key, 2 * sizeof *key);
    if (constant) return constant;
    constant = tare_graph_add_const(node->graph, node->name, value);
    return constant && tare_map_set_n(&folding->large, (const char *)key, 2 * sizeof *key, constant) ? constant : NULL;
}

static tare_status replace_by_constants(struct folding *folding, struct tare_node *node,
                                        const struct tare_tensor *results) {
    for (size_t i = 0; i < node->n_outputs; i++) {
        struct tare_node *constant = constant_of(folding, node, &results[i]);
        if (!constant) return TARE_NO_MEMORY;
        tare_graph_replace_uses(node->graph, (struct tare_edge){ node, (int)i }, (struct tare_edge){ constant, 0 },
                                NULL);
    }
    tare_node_remove(node);
    return TARE_OK;
}

static tare_status fold(struct folding *folding, struct tare_node *node, bool calls) {
    struct tare_tensor *values = tare_calloc(node->n_inputs + node->n_outputs + 1, sizeof *values);
    struct tare_tensor *results = values ? values + node->n_inputs : NULL;
    tare_status status;
    size_t bytes, result_bytes = 0;
    bool constant;
    if (!values) return TARE_NO_MEMORY;
    TARE_CHECK(gather_inputs(&constant, node, values, &bytes));
    if (!constant) goto done;
    status = calls ? tare_call_evaluate(&constant, node, values, results) : tare_node_evaluate(node, values, results);
    if (status == TARE_OK && !constant) goto done;
    if (status != TARE_OK) { /* what fails now fails when it runs, if it ever does */
        status = tare_error_dismiss(status);
        goto done;
    }
    for (size_t i = 0; i < node->n_outputs; i++)
        result_bytes += tare_tensor_bytes(&results[i]);
    if (result_bytes <= bytes + LARGEST_GROWTH) {
        status = replace_by_constants(folding, node, results);
        ++*folding->changes;
    }
done:
    for (size_t i = 0; i < node->n_inputs + node->n_outputs; i++)
        tare_tensor_reset(&values[i]);
    tare_free(values);
    return status;
}

/* A call by which a float8 weight would be converted stays. */
static tare_status converts_float8(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    bool *found = arg;
    (void)node;
    for (size_t i = 0; i < callee->n_nodes; i++)
        *found |= !callee->nodes[i]->dead && tare_widens_float8(callee->nodes[i]);
    for (size_t i = 0; i < callee->n_nodes && !*found; i++)
        if (!callee->nodes[i]->dead) TARE_TRY(tare_node_each_function(callee->nodes[i], converts_float8, arg));
    return TARE_OK;
}

static tare_status is_constant_call(bool *out, const struct tare_node *node) {
    bool converts = false;
    *out = false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!tare_edge_constant(node->inputs[i])) return TARE_OK;
    if (!tare_call_is_pure(node)) return TARE_OK; /* so that functions do not call themselves without end */
    TARE_TRY(tare_node_each_function(node, converts_float8, &converts));
    *out = !converts;
    return TARE_OK;
}

/* Users of constants skip Identity nodes; nodes with control inputs depend on other nodes. */
static bool is_candidate(const struct tare_node *node) {
    return node->n_inputs && !node->n_controls && (tare_node_is_pure(node) || tare_combiner_is_direct(node)) &&
           strcmp(node->op, "Identity") != 0 && !tare_widens_float8(node);
}

/* Whether a node chooses an entry of the first axes of a constant, all of which have the same bits: biases of zeros
 * under lax.scan. XlaDynamicSlice takes any number. */
static bool has_equal_entries(const struct tare_tensor *stack, const struct tare_tensor *sizes) {
    size_t bytes = tare_dtype_size(stack->dtype);
    bool is_whole = true;
    if (stack->splat || stack->dtype == TARE_DT_STRING || !stack->elements || sizes->elements != stack->shape.rank)
        return false;
    for (int i = stack->shape.rank; i-- > 0;) {
        const int64_t size = tare_tensor_get_i64(sizes, i);
        is_whole &= size == stack->shape.dims[i];
        if (!is_whole && size != 1) return false;
        bytes *= (size_t)size;
    }
    for (size_t at = bytes; at < tare_tensor_bytes(stack); at += bytes)
        if (memcmp(stack->data, (const char *)stack->data + at, bytes) != 0) return false;
    return true;
}

static tare_status choose_equal(bool *chosen, struct folding *folding, struct tare_node *node) {
    const bool chooses = tare_node_is(node, "XlaDynamicSlice") && node->n_inputs == 3 && !node->n_controls;
    const struct tare_tensor *stack = chooses ? tare_edge_constant(node->inputs[0]) : NULL,
                             *sizes = chooses ? tare_edge_constant(node->inputs[2]) : NULL;
    struct tare_tensor entry = { 0 };
    struct tare_shape shape;
    *chosen = false;
    if (!stack || !sizes || !has_equal_entries(stack, sizes)) return TARE_OK;
    shape = stack->shape;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = tare_tensor_get_i64(sizes, i);
    tare_status status = tare_tensor_from(&entry, stack->dtype, &shape, stack->data);
    if (status == TARE_OK) status = replace_by_constants(folding, node, &entry);
    if (entry.dtype) tare_tensor_reset(&entry);
    *chosen = status == TARE_OK;
    *folding->changes += *chosen;
    return status;
}

static tare_status fold_node(struct folding *folding, struct tare_node *node) {
    bool calls = false, chosen;
    TARE_TRY(tare_control_check());
    TARE_TRY(choose_equal(&chosen, folding, node));
    if (chosen) return TARE_OK;
    if (is_candidate(node)) return fold(folding, node, false);
    TARE_TRY(is_constant_call(&calls, node));
    return calls ? fold(folding, node, true) : TARE_OK;
}

static tare_status fold_graph(struct tare_graph *graph, size_t *changes) {
    struct folding folding = { .changes = changes };
    struct tare_node **order;
    size_t count = graph->n_nodes;
    tare_status status = tare_graph_order(&order, &folding.arena, graph);
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        if (order[i]) status = fold_node(&folding, order[i]);
    tare_graph_sweep(graph);
    tare_map_free(&folding.large);
    tare_arena_free(&folding.arena);
    return status;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(fold_graph(tare_model_graph(model, i), changes));
    return TARE_OK;
}

const struct tare_pass tare_pass_fold_constants = {
    .name = "fold_constants",
    .help = "compute nodes whose inputs are all constants",
    .run = run,
};

/* Branches and loops. */
#include "convert/stablehlo/emit/emit.h"

#include "graph/handed_on.h"

#include <string.h>

enum { MOST_HANDED = 1024 }; /* elements of a constant that a function gets to know */

#define B (&emit->build)

static const struct tare_shlo_type **types_of(struct tare_emit *emit, const struct tare_node *node) {
    const struct tare_shlo_type **types =
        TARE_NEW_ARRAY(&emit->arena, const struct tare_shlo_type *, node->n_outputs + 1);
    for (size_t i = 0; types && i < node->n_outputs; i++) {
        const struct tare_shape shape = tare_emit_out_shape(emit, node, i);
        types[i] = tare_build_type(B, tare_emit_out_dtype(node, i), &shape);
    }
    return types;
}

tare_status tare_emit_results(struct tare_emit *emit, const struct tare_node *node, const struct tare_shlo_op *op) {
    for (size_t i = 0; op && i < node->n_outputs; i++)
        TARE_TRY(tare_emit_set(emit, node, i, &op->results[i]));
    return op ? TARE_OK : emit->build.status;
}

/* The values of a function in a region of its own. */
static tare_status region(struct tare_shlo_block *out, struct tare_emit *emit, struct tare_graph *function,
                          const struct tare_emit_args *args) {
    tare_build_value *results = TARE_NEW_ARRAY(&emit->arena, tare_build_value, function->n_returns + 1);
    struct tare_build_block block;
    if (!results) return TARE_NO_MEMORY;
    tare_build_begin(B, &block);
    const tare_status status = tare_emit_function(results, emit, function, args);
    tare_build_end(B, out, results, status == TARE_OK ? function->n_returns : 0);
    return status;
}

tare_status tare_emit_region(struct tare_shlo_block *out, struct tare_emit *emit, struct tare_graph *function,
                             const struct tare_shlo_type *const *types, const struct tare_tensor *const *constants,
                             size_t count) {
    if (!function) return TARE_FAIL(TARE_NOT_FOUND, "its function is not in the model");
    if (function->n_args != count)
        return TARE_FAIL(TARE_CORRUPT, "function %s has %zu arguments (expected %zu)", function->name, function->n_args,
                         count);
    tare_build_value *args = TARE_NEW_ARRAY(&emit->arena, tare_build_value, count + 1);
    const tare_build_value own = tare_build_arguments(B, out, types, count);
    if (!args) return TARE_NO_MEMORY;
    if (!own) return emit->build.status;
    for (size_t i = 0; i < count; i++)
        args[i] = &own[i];
    return region(out, emit, function, &(struct tare_emit_args){ args, constants });
}

/* Inputs of the node from `first` on. */
static tare_build_value *inputs_from(struct tare_emit *emit, const struct tare_node *node, size_t first) {
    tare_build_value *args = TARE_NEW_ARRAY(&emit->arena, tare_build_value, node->n_inputs + 1);
    for (size_t i = first; args && i < node->n_inputs; i++)
        args[i - first] = tare_emit_in(emit, node, i);
    return args;
}

/* The constants among the inputs from `first` on that are small, such as sizes: a function that gets weights computes
 * with its arguments. For a loop, with its body, those that it keeps. */
static const struct tare_tensor **constants_from(struct tare_emit *emit, const struct tare_node *node, size_t first,
                                                 const struct tare_graph *body) {
    const struct tare_tensor **constants = TARE_NEW_ARRAY(&emit->arena, const struct tare_tensor *, node->n_inputs + 1);
    for (size_t i = first; constants && i < node->n_inputs; i++) {
        const struct tare_tensor *constant = tare_emit_in_constant(emit, node, i);
        if (constant && constant->elements <= MOST_HANDED && (!body || tare_loop_keeps(body, i)))
            constants[i - first] = constant;
    }
    return constants;
}

/* If or Case: `count` branches, which use the values of the block around them. */
static tare_status emit_branches(struct tare_emit *emit, const struct tare_node *node, const char *name,
                                 struct tare_graph *const *branches, size_t count, tare_build_value selector) {
    const struct tare_shlo_type **types = types_of(emit, node);
    const struct tare_emit_args args = { inputs_from(emit, node, 1), constants_from(emit, node, 1, NULL) };
    struct tare_shlo_block *regions = TARE_NEW_ARRAY(&emit->arena, struct tare_shlo_block, count + 1);
    if (!types || !args.values || !args.constants || !regions) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (!branches[i]) return TARE_FAIL(TARE_NOT_FOUND, "a branch is not in the model");
        TARE_TRY(region(&regions[i], emit, branches[i], &args));
    }
    return tare_emit_results(emit, node,
                             tare_build_op(B, &(struct tare_build_request){ .name = name,
                                                                            .operands = &selector,
                                                                            .n_operands = 1,
                                                                            .results = types,
                                                                            .n_results = node->n_outputs,
                                                                            .regions = regions,
                                                                            .n_regions = count }));
}

static tare_status emit_if(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    struct tare_graph *const branches[] = { tare_node_function(node, "then_branch"),
                                            tare_node_function(node, "else_branch") };
    const tare_build_value predicate = tare_emit_in(emit, node, 0);
    (void)arg;
    if (predicate && (predicate->type->rank || tare_build_dtype(predicate) != TARE_DT_BOOL))
        return TARE_FAIL(TARE_UNSUPPORTED, "a condition that is not a scalar bool");
    return emit_branches(emit, node, "if", branches, 2, predicate);
}

/* An index out of range chooses the last branch in both. */
static tare_status emit_case(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_attr *named = tare_node_find_attr(node, "branches");
    const size_t count = named && named->kind == TARE_ATTR_FUNC ? named->count : 0;
    struct tare_graph **branches = TARE_NEW_ARRAY(&emit->arena, struct tare_graph *, count + 1);
    (void)arg;
    if (!branches) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        branches[i] = tare_model_function_of(node->graph->model, &named->items[i].func);
    return emit_branches(emit, node, "case", branches, count, tare_emit_in(emit, node, 0));
}

static tare_status emit_while(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const size_t count = node->n_inputs;
    struct tare_graph *condition = tare_node_function(node, "cond"), *body = tare_node_function(node, "body");
    const struct tare_shlo_type **types = types_of(emit, node);
    const tare_build_value *values = inputs_from(emit, node, 0);
    const struct tare_tensor **constants = body ? constants_from(emit, node, 0, body) : NULL;
    struct tare_shlo_block regions[2] = { 0 };
    (void)arg;
    if (!types || !values || (body && !constants)) return TARE_NO_MEMORY;
    TARE_TRY(tare_emit_region(&regions[0], emit, condition, types, constants, count));
    TARE_TRY(tare_emit_region(&regions[1], emit, body, types, constants, count));
    return tare_emit_results(emit, node,
                             tare_build_op(B, &(struct tare_build_request){ .name = "while",
                                                                            .operands = values,
                                                                            .n_operands = count,
                                                                            .results = types,
                                                                            .n_results = count,
                                                                            .regions = regions,
                                                                            .n_regions = 2 }));
}

const struct tare_emit_row tare_emit_control[] = {
    { "Case", emit_case, NULL },
    { "StatelessCase", emit_case, NULL },
    { "If", emit_if, NULL },
    { "StatelessIf", emit_if, NULL },
    { "While", emit_while, NULL },
    { "StatelessWhile", emit_while, NULL },
    { 0 },
};

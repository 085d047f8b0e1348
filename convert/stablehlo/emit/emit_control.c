/* Branches and loops. */
#include "convert/stablehlo/emit/emit.h"

#include <string.h>

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

static tare_status set_results(struct tare_emit *emit, const struct tare_node *node, const struct tare_shlo_op *op) {
    for (size_t i = 0; op && i < node->n_outputs; i++)
        TARE_TRY(tare_emit_set(emit, node, i, &op->results[i]));
    return op ? TARE_OK : emit->build.status;
}

/* The values of a function in a region of its own. */
static tare_status region(struct tare_shlo_block *out, struct tare_emit *emit, const struct tare_graph *function,
                          const tare_build_value *args) {
    tare_build_value *results = TARE_NEW_ARRAY(&emit->arena, tare_build_value, function->n_returns + 1);
    struct tare_build_block block;
    if (!results) return TARE_NO_MEMORY;
    tare_build_begin(B, &block);
    const tare_status status = tare_emit_function(results, emit, function, args);
    tare_build_end(B, out, results, function->n_returns);
    return status;
}

static tare_status emit_if(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_graph *const branches[] = { tare_node_function(node, "then_branch"),
                                                  tare_node_function(node, "else_branch") };
    const struct tare_shlo_type **types = types_of(emit, node);
    tare_build_value *args = TARE_NEW_ARRAY(&emit->arena, tare_build_value, node->n_inputs + 1),
                     predicate = tare_emit_in(emit, node, 0);
    struct tare_shlo_block regions[2] = { 0 };
    (void)arg;
    if (!types || !args) return TARE_NO_MEMORY;
    if (!branches[0] || !branches[1]) return TARE_FAIL(TARE_NOT_FOUND, "a branch is not in the model");
    if (predicate && (predicate->type->rank || tare_build_dtype(predicate) != TARE_DT_BOOL))
        return TARE_FAIL(TARE_UNSUPPORTED, "a condition that is not a scalar bool");
    for (size_t i = 1; i < node->n_inputs; i++)
        args[i - 1] = tare_emit_in(emit, node, i);
    for (int i = 0; i < 2; i++)
        TARE_TRY(region(&regions[i], emit, branches[i], args));
    return set_results(emit, node,
                       tare_build_op(B, &(struct tare_build_request){ .name = "if",
                                                                      .operands = &predicate,
                                                                      .n_operands = 1,
                                                                      .results = types,
                                                                      .n_results = node->n_outputs,
                                                                      .regions = regions,
                                                                      .n_regions = 2 }));
}

static tare_status emit_while(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_graph *const functions[] = { tare_node_function(node, "cond"), tare_node_function(node, "body") };
    const size_t count = node->n_inputs;
    const struct tare_shlo_type **types = types_of(emit, node);
    tare_build_value *values = TARE_NEW_ARRAY(&emit->arena, tare_build_value, count + 1),
                     *args = TARE_NEW_ARRAY(&emit->arena, tare_build_value, count + 1);
    struct tare_shlo_block regions[2] = { 0 };
    (void)arg;
    if (!types || !values || !args) return TARE_NO_MEMORY;
    if (!functions[0] || !functions[1]) return TARE_FAIL(TARE_NOT_FOUND, "a function of the loop is not in the model");
    for (size_t i = 0; i < count; i++) {
        values[i] = tare_emit_in(emit, node, i);
        if (!values[i] || !types[i]) return emit->build.status;
    }
    for (int i = 0; i < 2; i++) {
        const tare_build_value own = tare_build_arguments(B, &regions[i], types, count);
        if (!own) return emit->build.status;
        for (size_t k = 0; k < count; k++)
            args[k] = &own[k];
        TARE_TRY(region(&regions[i], emit, functions[i], args));
    }
    return set_results(emit, node,
                       tare_build_op(B, &(struct tare_build_request){ .name = "while",
                                                                      .operands = values,
                                                                      .n_operands = count,
                                                                      .results = types,
                                                                      .n_results = count,
                                                                      .regions = regions,
                                                                      .n_regions = 2 }));
}

/* The callee's nodes become part of the caller. */
static tare_status emit_call(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_graph *callee = tare_node_function(node, "f");
    tare_build_value *args = TARE_NEW_ARRAY(&emit->arena, tare_build_value, node->n_inputs + 1),
                     *results = TARE_NEW_ARRAY(&emit->arena, tare_build_value, node->n_outputs + 1);
    (void)arg;
    if (!args || !results) return TARE_NO_MEMORY;
    if (!callee) return TARE_FAIL(TARE_NOT_FOUND, "the function is not in the model");
    for (size_t i = 0; i < node->n_inputs; i++)
        args[i] = tare_emit_in(emit, node, i);
    TARE_TRY(tare_emit_function(results, emit, callee, args));
    for (size_t i = 0; i < node->n_outputs; i++)
        TARE_TRY(tare_emit_set(emit, node, i, results[i]));
    return TARE_OK;
}

const struct tare_emit_row tare_emit_control[] = {
    { "PartitionedCall", emit_call, NULL },
    { "StatefulPartitionedCall", emit_call, NULL },
    { "If", emit_if, NULL },
    { "StatelessIf", emit_if, NULL },
    { "While", emit_while, NULL },
    { "StatelessWhile", emit_while, NULL },
    { 0 },
};

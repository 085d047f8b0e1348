/* Writes SavedModels whose size is a parameter, for measuring how the cost of each command grows (bench/scaling.sh).
 *
 *   scaling_model SHAPE OUT N
 *
 * long       a chain of N layers MatMul + Relu with constant weights
 * wide       one tensor that N layers MatMul read; their results are added up
 * functions  N functions of one layer each, called one after another
 * nested     N functions, each of which computes a layer and calls the next one
 * variables  a chain of N layers whose weights are variables
 * recurrent  N unrolled steps h = Tanh(x W + h U), all with the same two weights
 *
 * The following have one layer, so that N may be larger (all but `promised`, `served`, `branches`, `loops` and
 * `normalized`):
 *
 * identity   a chain of N Identity ops
 * control    a chain of N Reshape, Maximum and NoOp, each of which also runs after the previous step's NoOp
 * fence      one NoOp with N control inputs
 * effects    N NoOp that are control outputs of the function
 * constants  one sum of N constants
 * outputs    N outputs of the signature
 * inputs     N + 1 inputs of the signature, x and x0 to x<N - 1>, which are added up
 * calls      N calls of one function
 * promised   N calls of one function each, all of which have aliases
 * served     a chain of N layers in the main graph, each of which is an output of the signature
 * branches   N If ops with two functions each
 * loops      N While ops with two functions each
 * split      N outputs of one Split, joined again by one ConcatV2
 * normalized N MatMul, each with a batch normalization */
#include "convert/saved_model.h"
#include "graph/op.h"
#include "interpreter/ops/builtin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8 };

struct builder {
    struct tare_graph_model *model;
    struct tare_graph *body;
    struct tare_edge *handles; /* of variables, or inputs, in the main graph */
    size_t n_handles, count;
    size_t n_inputs;              /* of the signature, without x */
    struct tare_graph **promised; /* functions with aliases */
    size_t n_promised;
    size_t n_served; /* layers in the main graph */
};

/* The factor of column `column` of the activations before a layer, 0.95 to 1.05. */
static double scale_of(size_t layer, size_t column) {
    const uint32_t bits = ((uint32_t)layer * SIDE + (uint32_t)column + 1) * 2654435761u;
    return layer < 2 ? 1 : 0.95 + 0.1 * (double)(bits >> 8 & 0xffff) / 65536;
}

/* Each layer has its own numbers. It permutes the columns and replaces their factors by those of the next layer: the
 * values of a chain of any length neither grow, shrink nor become equal. */
static tare_status make_weights(struct tare_tensor *out, size_t layer) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)SIDE, (int64_t)SIDE);
    TARE_TRY(tare_tensor_new(out, TARE_DT_FLOAT, &shape));
    float *weights = TARE_DATA(float, out);
    memset(weights, 0, (size_t)out->elements * sizeof *weights);
    for (size_t column = 0; column < SIDE; column++) {
        const size_t row = (column * 3 + layer) % SIDE;
        weights[row * SIDE + column] = (float)(scale_of(layer + 1, column) / scale_of(layer, row));
    }
    return TARE_OK;
}

static tare_status add_constant(struct tare_edge *out, struct tare_graph *graph, size_t layer) {
    struct tare_tensor weights;
    TARE_TRY(make_weights(&weights, layer));
    *out = tare_node_output0(tare_graph_add_const(graph, "kernel", &weights));
    tare_tensor_reset(&weights);
    return out->node ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_op(struct tare_edge *out, struct tare_graph *graph, const char *op, struct tare_edge x,
                          struct tare_edge y) {
    struct tare_node *node = tare_graph_add(graph, op, op);
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(node, x));
    if (y.node) TARE_TRY(tare_node_add_input(node, y));
    TARE_TRY(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    *out = tare_node_output0(node);
    return tare_node_resolve(node);
}

/* *x = Relu(x * weights) */
static tare_status add_layer(struct tare_edge *x, struct tare_graph *graph, struct tare_edge weights) {
    const struct tare_edge none = { 0 };
    TARE_TRY(add_op(x, graph, "MatMul", *x, weights));
    return add_op(x, graph, "Relu", *x, none);
}

static tare_status add_constant_layer(struct tare_edge *x, struct tare_graph *graph, size_t layer) {
    struct tare_edge weights;
    TARE_TRY(add_constant(&weights, graph, layer));
    return add_layer(x, graph, weights);
}

/* ---- shapes ---- */

static tare_status add_long(struct builder *b, struct tare_edge *x) {
    for (size_t i = 0; i < b->count; i++)
        TARE_TRY(add_constant_layer(x, b->body, i));
    return TARE_OK;
}

static tare_status add_wide(struct builder *b, struct tare_edge *x) {
    struct tare_node *sum = tare_graph_add(b->body, "AddN", "sum");
    if (!sum) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->count; i++) {
        struct tare_edge y = *x;
        TARE_TRY(add_constant_layer(&y, b->body, i));
        TARE_TRY(tare_node_add_input(sum, y));
    }
    TARE_TRY(tare_node_set_type(sum, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_int(sum, "N", (int64_t)b->count));
    *x = tare_node_output0(sum);
    return tare_node_resolve(sum);
}

/* *x = function(x), with one argument and one result */
static tare_status add_call(struct tare_edge *x, struct tare_graph *graph, const struct tare_graph *callee) {
    const int dtype = TARE_DT_FLOAT;
    struct tare_node *call = tare_graph_add(graph, "PartitionedCall", "call");
    if (!call) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(call, *x));
    TARE_TRY(tare_node_set_type_list(call, "Tin", &dtype, 1));
    TARE_TRY(tare_node_set_type_list(call, "Tout", &dtype, 1));
    TARE_TRY(tare_node_set_func(call, "f", callee->name));
    *x = tare_node_output0(call);
    return tare_node_resolve(call);
}

/* A function of one layer that then calls `next` (NULL: none). */
static tare_status add_function(struct tare_graph **out, struct builder *b, size_t layer,
                                const struct tare_graph *next) {
    struct tare_graph *function =
        tare_model_add_function(b->model, tare_arena_printf(&b->model->arena, "layer%zu", layer));
    if (!function) return TARE_NO_MEMORY;
    struct tare_edge x = tare_node_output0(tare_graph_add_arg(function, "x", TARE_DT_FLOAT));
    if (!x.node) return TARE_NO_MEMORY;
    TARE_TRY(add_constant_layer(&x, function, layer));
    if (next) TARE_TRY(add_call(&x, function, next));
    *out = function;
    return tare_graph_add_return(function, "y", TARE_DT_FLOAT, x);
}

static tare_status add_functions(struct builder *b, struct tare_edge *x) {
    for (size_t i = 0; i < b->count; i++) {
        struct tare_graph *function;
        TARE_TRY(add_function(&function, b, i, NULL));
        TARE_TRY(add_call(x, b->body, function));
    }
    return TARE_OK;
}

static tare_status add_nested(struct builder *b, struct tare_edge *x) {
    struct tare_graph *function = NULL;
    for (size_t i = 0; i < b->count; i++)
        TARE_TRY(add_function(&function, b, i, function));
    return add_call(x, b->body, function);
}

static tare_status add_variable(struct tare_edge *handle, struct builder *b, size_t layer) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)SIDE, (int64_t)SIDE);
    struct tare_arena *arena = &b->model->arena;
    struct tare_variable *variable = &b->model->variables[b->model->n_variables++];
    *variable = (struct tare_variable){
        .shared_name = tare_arena_printf(arena, "layer%zu/kernel", layer),
        .key = tare_arena_printf(arena, "layer%zu/kernel/.ATTRIBUTES/VARIABLE_VALUE", layer),
        .dtype = TARE_DT_FLOAT,
        .shape = shape,
        .object_id = -1,
    };
    if (!variable->shared_name || !variable->key) return TARE_NO_MEMORY;
    TARE_TRY(make_weights(&variable->value, layer));
    struct tare_node *node = tare_graph_add(b->model->main, "VarHandleOp", variable->shared_name);
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_shape(node, "shape", &shape));
    TARE_TRY(tare_node_set_string(node, "shared_name", variable->shared_name, strlen(variable->shared_name)));
    variable->node = node;
    *handle = tare_node_output0(node);
    return tare_node_resolve(node);
}

static tare_status add_variables(struct builder *b, struct tare_edge *x) {
    struct tare_arena *arena = &b->model->arena;
    b->model->variables = TARE_NEW_ARRAY(arena, struct tare_variable, b->count);
    b->handles = TARE_NEW_ARRAY(arena, struct tare_edge, b->count);
    if (!b->model->variables || !b->handles) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->count; i++) {
        TARE_TRY(add_variable(&b->handles[b->n_handles++], b, i));
        struct tare_node *arg = tare_graph_add_arg(b->body, "kernel", TARE_DT_RESOURCE);
        struct tare_node *read = arg ? tare_graph_add(b->body, "ReadVariableOp", "read") : NULL;
        if (!read) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_add_input(read, tare_node_output0(arg)));
        TARE_TRY(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
        TARE_TRY(tare_node_resolve(read));
        TARE_TRY(add_layer(x, b->body, tare_node_output0(read)));
    }
    b->body->is_stateful = true;
    return TARE_OK;
}

static tare_status add_recurrent(struct builder *b, struct tare_edge *x) {
    const struct tare_edge none = { 0 };
    struct tare_edge input, state, w, u;
    TARE_TRY(add_constant(&w, b->body, 0));
    TARE_TRY(add_constant(&u, b->body, 1));
    TARE_TRY(add_op(&state, b->body, "MatMul", *x, w));
    for (size_t i = 0; i < b->count; i++) {
        TARE_TRY(add_op(&input, b->body, "MatMul", *x, w));
        TARE_TRY(add_op(&state, b->body, "MatMul", state, u));
        TARE_TRY(add_op(&state, b->body, "AddV2", input, state));
        TARE_TRY(add_op(&state, b->body, "Tanh", state, none));
    }
    *x = state;
    return TARE_OK;
}

/* ---- shapes without weights ---- */

static const struct tare_edge no_edge = { 0 };

static tare_status add_integer(struct tare_edge *out, struct tare_graph *graph, const int *values, int64_t count) {
    const struct tare_shape shape = tare_shape_make(count != 1, count);
    struct tare_tensor tensor;
    TARE_TRY(tare_tensor_new(&tensor, TARE_DT_INT32, &shape));
    memcpy(tensor.data, values, (size_t)count * sizeof *values);
    *out = tare_node_output0(tare_graph_add_const(graph, "integer", &tensor));
    tare_tensor_reset(&tensor);
    return out->node ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_vector(struct tare_edge *out, struct tare_graph *graph, size_t number) {
    const struct tare_shape shape = tare_shape_make(1, (int64_t)SIDE);
    struct tare_tensor values;
    TARE_TRY(tare_tensor_new(&values, TARE_DT_FLOAT, &shape));
    float *numbers = TARE_DATA(float, &values);
    for (int i = 0; i < SIDE; i++)
        numbers[i] = 0.5f + (float)(number % 97) * 0.01f + (float)i * 0.001f;
    *out = tare_node_output0(tare_graph_add_const(graph, "vector", &values));
    tare_tensor_reset(&values);
    return out->node ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_identities(struct builder *b, struct tare_edge *x) {
    for (size_t i = 0; i < b->count; i++)
        TARE_TRY(add_op(x, b->body, "Identity", *x, no_edge));
    return TARE_OK;
}

/* One step: x = Maximum(Reshape(x, [-1, 8]), x), then a NoOp; both run after the NoOp `before`. */
static tare_status add_controlled_step(struct tare_edge *x, struct tare_node **before, struct tare_graph *graph,
                                       struct tare_edge shape) {
    struct tare_edge reshaped;
    TARE_TRY(add_op(&reshaped, graph, "Reshape", *x, shape));
    TARE_TRY(add_op(x, graph, "Maximum", reshaped, *x));
    struct tare_node *done = tare_graph_add(graph, "NoOp", "done");
    if (!done) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_control(done, x->node));
    if (*before) {
        TARE_TRY(tare_node_add_control(reshaped.node, *before));
        TARE_TRY(tare_node_add_control(x->node, *before));
        TARE_TRY(tare_node_add_control(done, *before));
    }
    *before = done;
    return tare_node_resolve(done);
}

static tare_status add_controlled(struct builder *b, struct tare_edge *x) {
    static const int all_rows[] = { -1, SIDE };
    struct tare_node *before = NULL;
    struct tare_edge shape;
    TARE_TRY(add_integer(&shape, b->body, all_rows, 2));
    for (size_t i = 0; i < b->count; i++)
        TARE_TRY(add_controlled_step(x, &before, b->body, shape));
    return tare_graph_add_control_return(b->body, "done", before);
}

static tare_status add_fence(struct builder *b, struct tare_edge *x) {
    struct tare_node *fence = tare_graph_add(b->body, "NoOp", "fence");
    if (!fence) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_resolve(fence));
    for (size_t i = 0; i < b->count; i++) {
        struct tare_edge y;
        TARE_TRY(add_op(&y, b->body, "Relu", *x, no_edge));
        TARE_TRY(tare_node_add_control(fence, y.node));
    }
    TARE_TRY(add_op(x, b->body, "Identity", *x, no_edge));
    return tare_node_add_control(x->node, fence);
}

static tare_status add_effects(struct builder *b, struct tare_edge *x) {
    struct tare_control_return *returns = TARE_NEW_ARRAY(&b->model->arena, struct tare_control_return, b->count);
    if (!returns) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->count; i++) {
        struct tare_node *effect = tare_graph_add(b->body, "NoOp", "effect");
        if (!effect) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_add_control(effect, x->node));
        TARE_TRY(tare_node_resolve(effect));
        returns[i] = (struct tare_control_return){ effect->name, effect };
    }
    b->body->control_returns = returns;
    b->body->n_control_returns = b->count;
    return TARE_OK;
}

/* The sum of the constants is a vector, so that it can be added to any number of rows. */
static tare_status add_constants(struct builder *b, struct tare_edge *x) {
    struct tare_node *sum = tare_graph_add(b->body, "AddN", "sum");
    if (!sum) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->count; i++) {
        struct tare_edge term;
        TARE_TRY(add_vector(&term, b->body, i));
        TARE_TRY(tare_node_add_input(sum, term));
    }
    TARE_TRY(tare_node_set_type(sum, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_int(sum, "N", (int64_t)b->count));
    TARE_TRY(tare_node_resolve(sum));
    return add_op(x, b->body, "AddV2", *x, tare_node_output0(sum));
}

static tare_status add_outputs(struct builder *b, struct tare_edge *x) {
    for (size_t i = 1; i < b->count; i++) {
        struct tare_edge y;
        TARE_TRY(add_op(&y, b->body, "Relu", *x, no_edge));
        TARE_TRY(tare_graph_add_return(b->body, tare_arena_printf(&b->model->arena, "y%zu", i), TARE_DT_FLOAT, y));
    }
    return TARE_OK;
}

static tare_status add_placeholder(struct tare_edge *out, struct tare_graph *graph, const char *name) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)-1, (int64_t)SIDE);
    struct tare_node *node = tare_graph_add(graph, "Placeholder", name);
    if (!node) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_shape(node, "shape", &shape));
    *out = tare_node_output0(node);
    return tare_node_resolve(node);
}

static tare_status add_inputs(struct builder *b, struct tare_edge *x) {
    struct tare_node *sum = tare_graph_add(b->body, "AddN", "sum");
    b->handles = TARE_NEW_ARRAY(&b->model->arena, struct tare_edge, b->count);
    if (!sum || !b->handles) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(sum, *x));
    for (; b->n_inputs < b->count; b->n_inputs++) {
        const char *name = tare_arena_printf(&b->model->arena, "serving_default_x%zu", b->n_inputs);
        struct tare_node *arg = tare_graph_add_arg(b->body, "x", TARE_DT_FLOAT);
        if (!name || !arg) return TARE_NO_MEMORY;
        TARE_TRY(add_placeholder(&b->handles[b->n_handles++], b->model->main, name));
        TARE_TRY(tare_node_add_input(sum, tare_node_output0(arg)));
    }
    TARE_TRY(tare_node_set_type(sum, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_int(sum, "N", (int64_t)b->count + 1));
    *x = tare_node_output0(sum);
    return tare_node_resolve(sum);
}

static tare_status add_calls(struct builder *b, struct tare_edge *x) {
    struct tare_graph *function;
    TARE_TRY(add_function(&function, b, 0, NULL));
    for (size_t i = 0; i < b->count; i++)
        TARE_TRY(add_call(x, b->body, function));
    return TARE_OK;
}

static tare_status add_promised(struct builder *b, struct tare_edge *x) {
    b->promised = TARE_NEW_ARRAY(&b->model->arena, struct tare_graph *, b->count);
    if (!b->promised) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->count; i++) {
        TARE_TRY(add_function(&b->promised[b->n_promised++], b, i, NULL));
        TARE_TRY(add_call(x, b->body, b->promised[i]));
    }
    return TARE_OK;
}

static tare_status add_served(struct builder *b, struct tare_edge *x) {
    (void)x;
    b->n_served = b->count;
    return TARE_OK;
}

/* Sets the type lists of a node that calls functions with *x as their only argument, after the inputs before it. */
static tare_status finish_caller(struct tare_edge *x, struct tare_node *node, const char *in, const char *out) {
    const int dtype = TARE_DT_FLOAT;
    TARE_TRY(tare_node_add_input(node, *x));
    TARE_TRY(tare_node_set_type_list(node, in, &dtype, 1));
    if (out) TARE_TRY(tare_node_set_type_list(node, out, &dtype, 1));
    *x = tare_node_output0(node);
    return tare_node_resolve(node);
}

static tare_status add_predicate(struct tare_edge *out, struct tare_graph *graph, struct tare_edge x) {
    static const int axes[] = { 0, 1 };
    struct tare_edge axis, sum;
    TARE_TRY(add_integer(&axis, graph, axes, 2));
    TARE_TRY(add_op(&sum, graph, "Sum", x, axis));
    return add_op(out, graph, "Greater", sum, sum);
}

static tare_status add_branches(struct builder *b, struct tare_edge *x) {
    struct tare_edge predicate;
    TARE_TRY(add_predicate(&predicate, b->body, *x));
    for (size_t i = 0; i < b->count; i++) {
        struct tare_graph *branches[2];
        for (size_t k = 0; k < 2; k++)
            TARE_TRY(add_function(&branches[k], b, 2 * i + k, NULL));
        struct tare_node *node = tare_graph_add(b->body, "StatelessIf", "if");
        if (!node) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_add_input(node, predicate));
        TARE_TRY(tare_node_set_type(node, "Tcond", TARE_DT_BOOL));
        TARE_TRY(tare_node_set_func(node, "then_branch", branches[0]->name));
        TARE_TRY(tare_node_set_func(node, "else_branch", branches[1]->name));
        TARE_TRY(finish_caller(x, node, "Tin", "Tout"));
    }
    return TARE_OK;
}

/* A loop condition that is never true. */
static tare_status add_condition(struct tare_graph **out, struct builder *b, size_t loop) {
    *out = tare_model_add_function(b->model, tare_arena_printf(&b->model->arena, "condition%zu", loop));
    if (!*out) return TARE_NO_MEMORY;
    struct tare_edge x = tare_node_output0(tare_graph_add_arg(*out, "x", TARE_DT_FLOAT)), predicate;
    if (!x.node) return TARE_NO_MEMORY;
    TARE_TRY(add_predicate(&predicate, *out, x));
    return tare_graph_add_return(*out, "again", TARE_DT_BOOL, predicate);
}

static tare_status add_loops(struct builder *b, struct tare_edge *x) {
    for (size_t i = 0; i < b->count; i++) {
        struct tare_graph *condition, *body;
        TARE_TRY(add_condition(&condition, b, i));
        TARE_TRY(add_function(&body, b, i, NULL));
        struct tare_node *node = tare_graph_add(b->body, "StatelessWhile", "while");
        if (!node) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_set_func(node, "cond", condition->name));
        TARE_TRY(tare_node_set_func(node, "body", body->name));
        TARE_TRY(finish_caller(x, node, "T", NULL));
    }
    return TARE_OK;
}

/* Repeats the 8 rows N times, splits them into N parts and joins these. */
static tare_status add_split(struct builder *b, struct tare_edge *x) {
    const int repeats[] = { (int)b->count, 1 }, first_axis = 0;
    struct tare_edge multiples, axis, rows;
    TARE_TRY(add_integer(&multiples, b->body, repeats, 2));
    TARE_TRY(add_integer(&axis, b->body, &first_axis, 1));
    TARE_TRY(add_op(&rows, b->body, "Tile", *x, multiples));
    struct tare_node *split = tare_graph_add(b->body, "Split", "split");
    struct tare_node *join = tare_graph_add(b->body, "ConcatV2", "join");
    if (!split || !join) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(split, axis));
    TARE_TRY(tare_node_add_input(split, rows));
    TARE_TRY(tare_node_set_type(split, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_int(split, "num_split", (int64_t)b->count));
    TARE_TRY(tare_node_resolve(split));
    for (size_t i = 0; i < b->count; i++)
        TARE_TRY(tare_node_add_input(join, (struct tare_edge){ split, (int)i }));
    TARE_TRY(tare_node_add_input(join, axis));
    TARE_TRY(tare_node_set_type(join, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_int(join, "N", (int64_t)b->count));
    *x = tare_node_output0(join);
    return tare_node_resolve(join);
}

/* *x = (*x weights - mean) * factor + offset, with vectors as frameworks export them */
static tare_status add_normalized_layer(struct tare_edge *x, struct tare_graph *graph, size_t layer) {
    static const char *const ops[] = { "Sub", "Mul", "AddV2" };
    struct tare_edge weights, vector;
    TARE_TRY(add_constant(&weights, graph, layer));
    TARE_TRY(add_op(x, graph, "MatMul", *x, weights));
    for (size_t k = 0; k < 3; k++) {
        TARE_TRY(add_vector(&vector, graph, layer + k));
        TARE_TRY(add_op(x, graph, ops[k], *x, vector));
    }
    return TARE_OK;
}

static tare_status add_normalized(struct builder *b, struct tare_edge *x) {
    for (size_t i = 0; i < b->count; i++)
        TARE_TRY(add_normalized_layer(x, b->body, i));
    return TARE_OK;
}

/* ---- the model ---- */

/* The node of the main graph that calls the body with `x` and the handles. */
static tare_status add_body_call(struct tare_node **out, struct builder *b, struct tare_edge x) {
    struct tare_arena *arena = &b->model->arena;
    int *in = TARE_NEW_ARRAY(arena, int, b->n_handles + 1), *outputs = TARE_NEW_ARRAY(arena, int, b->body->n_returns);
    struct tare_node *call = tare_graph_add(b->model->main, "StatefulPartitionedCall", "StatefulPartitionedCall");
    if (!in || !outputs || !call) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_add_input(call, x));
    in[0] = TARE_DT_FLOAT;
    for (size_t i = 0; i < b->n_handles; i++) {
        TARE_TRY(tare_node_add_input(call, b->handles[i]));
        in[i + 1] = b->n_inputs ? TARE_DT_FLOAT : TARE_DT_RESOURCE;
    }
    for (size_t i = 0; i < b->body->n_returns; i++)
        outputs[i] = b->body->returns[i].dtype;
    TARE_TRY(tare_node_set_type_list(call, "Tin", in, b->n_handles + 1));
    TARE_TRY(tare_node_set_type_list(call, "Tout", outputs, b->body->n_returns));
    TARE_TRY(tare_node_set_func(call, "f", b->body->name));
    *out = call;
    return tare_node_resolve(call);
}

static tare_status add_aliases(struct builder *b) {
    struct tare_arena *arena = &b->model->arena;
    struct tare_alias *aliases = TARE_NEW_ARRAY(arena, struct tare_alias, b->n_promised + 1);
    if (!aliases) return TARE_NO_MEMORY;
    aliases[0] = (struct tare_alias){ b->body->name, "tpu_func" };
    for (size_t i = 0; i < b->n_promised; i++)
        aliases[i + 1] =
            (struct tare_alias){ b->promised[i]->name, tare_arena_printf(arena, "%s_alias", b->promised[i]->name) };
    b->model->aliases = aliases;
    b->model->n_aliases = b->n_promised + 1;
    return TARE_OK;
}

/* Outputs of the signature: those of the call, then the layers in the main graph, which follow its last output. */
static tare_status add_signature_outputs(struct tare_binding *outputs, struct builder *b, struct tare_node *call,
                                         const struct tare_shape *shape) {
    const size_t n_returned = b->body->n_returns;
    struct tare_edge x = { call, (int)n_returned - 1 };
    for (size_t i = 0; i < n_returned + b->n_served; i++) {
        const bool returned = i < n_returned;
        if (!returned) TARE_TRY(add_constant_layer(&x, b->model->main, b->count + i));
        outputs[i] = (struct tare_binding){ .key = returned ? b->body->returns[i].name
                                                            : tare_arena_printf(&b->model->arena, "z%zu", i),
                                            .dtype = TARE_DT_FLOAT,
                                            .shape = *shape,
                                            .edge = returned ? (struct tare_edge){ call, (int)i } : x };
        if (!outputs[i].key) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status add_signature_inputs(struct tare_binding *inputs, struct builder *b, struct tare_edge x,
                                        const struct tare_shape *shape) {
    for (size_t i = 0; i <= b->n_inputs; i++) {
        inputs[i] = (struct tare_binding){ .key = i ? tare_arena_printf(&b->model->arena, "x%zu", i - 1) : "x",
                                           .dtype = TARE_DT_FLOAT,
                                           .shape = *shape,
                                           .edge = i ? b->handles[i - 1] : x };
        if (!inputs[i].key) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status add_main(struct builder *b) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)-1, (int64_t)SIDE);
    struct tare_arena *arena = &b->model->arena;
    const size_t n_outputs = b->body->n_returns + b->n_served;
    struct tare_signature *signature = TARE_NEW(arena, struct tare_signature);
    struct tare_binding *inputs = TARE_NEW_ARRAY(arena, struct tare_binding, b->n_inputs + 1);
    struct tare_binding *outputs = TARE_NEW_ARRAY(arena, struct tare_binding, n_outputs + 1);
    struct tare_edge x;
    struct tare_node *call;
    if (!signature || !inputs || !outputs) return TARE_NO_MEMORY;
    TARE_TRY(add_placeholder(&x, b->model->main, "serving_default_x"));
    TARE_TRY(add_body_call(&call, b, x));
    TARE_TRY(add_signature_inputs(inputs, b, x, &shape));
    TARE_TRY(add_signature_outputs(outputs, b, call, &shape));
    *signature = (struct tare_signature){ .key = "serving_default",
                                          .method_name = "tensorflow/serving/predict",
                                          .inputs = inputs,
                                          .n_inputs = b->n_inputs + 1,
                                          .outputs = outputs,
                                          .n_outputs = n_outputs };
    b->model->signatures = signature;
    b->model->n_signatures = 1;
    return add_aliases(b);
}

typedef tare_status add_function_type(struct builder *b, struct tare_edge *x);

static tare_status make(struct builder *b, add_function_type *add, const char *out) {
    const struct tare_export_options overwrite = { .overwrite = true };
    b->body = tare_model_add_function(b->model, "__inference_tpu_func_1");
    struct tare_edge x = tare_node_output0(b->body ? tare_graph_add_arg(b->body, "x", TARE_DT_FLOAT) : NULL);
    if (!x.node) return TARE_NO_MEMORY;
    TARE_TRY(add(b, &x));
    TARE_TRY(add_constant_layer(&x, b->body, b->count)); /* so that each shape has a layer to quantize */
    TARE_TRY(tare_graph_add_return(b->body, "y", TARE_DT_FLOAT, x));
    TARE_TRY(add_main(b));
    return tare_saved_model_export(b->model, out, &overwrite);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        add_function_type *add;
    } shapes[] = {
        { "long", add_long },           { "wide", add_wide },
        { "functions", add_functions }, { "nested", add_nested },
        { "variables", add_variables }, { "recurrent", add_recurrent },
        { "identity", add_identities }, { "control", add_controlled },
        { "fence", add_fence },         { "constants", add_constants },
        { "effects", add_effects },     { "outputs", add_outputs },
        { "inputs", add_inputs },       { "calls", add_calls },
        { "promised", add_promised },   { "served", add_served },
        { "branches", add_branches },   { "loops", add_loops },
        { "split", add_split },         { "normalized", add_normalized },
    };
    struct builder b = { .count = argc > 3 ? strtoul(argv[3], NULL, 10) : 0 };
    for (size_t i = 0; argc == 4 && b.count && i < sizeof shapes / sizeof *shapes; i++) {
        if (strcmp(argv[1], shapes[i].name) != 0) continue;
        b.model = tare_model_new(tare_ops_builtin());
        tare_status status = b.model ? make(&b, shapes[i].add, argv[2]) : TARE_NO_MEMORY;
        if (status != TARE_OK) fprintf(stderr, "scaling_model: %s\n", tare_error_text());
        tare_model_free(b.model);
        return status != TARE_OK;
    }
    fprintf(stderr, "usage: scaling_model SHAPE OUT N, where SHAPE is one of:");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        fprintf(stderr, " %s", shapes[i].name);
    fprintf(stderr, "\n");
    return 2;
}

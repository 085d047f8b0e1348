/* Control flow: conditionals and loops over functions, and TensorFlow 1's Switch, Merge, Enter, Exit, NextIteration
 * and LoopCond. The executor recognizes the TensorFlow 1 ops by name: it skips nodes on branches that a Switch did
 * not take and runs frames. */
#include "interpreter/execution/state.h"
#include "interpreter/ops/families.h"

#include <string.h>

/* ---- functional forms ---- */

static tare_status infer_output_shapes(struct tare_infer *infer) {
    const struct tare_attr *shapes = tare_node_list(infer->node, "output_shapes");
    if (!shapes || shapes->count != infer->n_outputs) return TARE_OK;
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = *shapes->items[i].shape;
    return TARE_OK;
}

/* Converts a tensor to a condition: a bool is used as is, a number is true if non-zero, a string if non-empty,
 * anything else if it has elements. */
static tare_status truth(bool *out, const struct tare_tensor *value) {
    if (value->shape.rank != 0) {
        *out = value->elements > 0;
        return TARE_OK;
    }
    switch (tare_dtype_get(value->dtype)->class) {
    case TARE_CLASS_STRING:
        *out = TARE_CONST_DATA(struct tare_str, value)->size > 0;
        return TARE_OK;
    case TARE_CLASS_BOOL:
    case TARE_CLASS_FLOAT:
    case TARE_CLASS_SIGNED:
    case TARE_CLASS_UNSIGNED:
        *out = tare_tensor_get_f64(value, 0) != 0;
        return TARE_OK;
    default:
        return TARE_FAIL(TARE_TYPE, "a condition of dtype %s", tare_dtype_name(value->dtype));
    }
}

static tare_status run_to_bool(struct tare_kernel *kernel) {
    const struct tare_shape scalar = tare_shape_scalar();
    bool holds = false;
    TARE_TRY(truth(&holds, &kernel->inputs[0]));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &scalar));
    TARE_DATA(bool, &kernel->outputs[0])[0] = holds;
    return TARE_OK;
}

static tare_status find_function(struct tare_graph **out, const struct tare_kernel *kernel, const char *attr,
                                 size_t index) {
    const struct tare_attr *named = tare_node_find_attr(kernel->node, attr);
    if (!kernel->session) return TARE_FAIL(TARE_INTERNAL, "a function call outside a session");
    if (!named || named->kind != TARE_ATTR_FUNC || index >= named->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "attribute %s does not name a function", attr);
    *out = tare_model_function_of(kernel->node->graph->model, &named->items[index].func);
    if (*out) return TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND, "Failed to find definition for function \"%s\"", named->items[index].func.name);
}

static struct tare_tensor *take_inputs(struct tare_kernel *kernel, size_t first) {
    struct tare_tensor *args = TARE_NEW_ARRAY(kernel->scratch, struct tare_tensor, kernel->n_inputs + 1);
    for (size_t i = first; i < kernel->n_inputs && args; i++)
        tare_exec_take_input(kernel, i, &args[i - first]);
    return args;
}

static tare_status check_returns(const struct tare_graph *function, size_t expected) {
    if (function->n_returns == expected) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "function %s returns %zu results (expected %zu)", function->name,
                     function->n_returns, expected);
}

static tare_status run_branch(struct tare_kernel *kernel, const char *attr, size_t index, size_t side) {
    struct tare_graph *branch;
    struct tare_tensor *args;
    TARE_TRY(find_function(&branch, kernel, attr, index));
    TARE_TRY(check_returns(branch, kernel->n_outputs));
    TARE_TRY(tare_exec_count_side(kernel->session, kernel->node, side));
    args = take_inputs(kernel, 1);
    if (!args) return TARE_NO_MEMORY;
    return tare_exec_call(kernel->session, branch, args, kernel->n_inputs - 1, kernel->outputs, kernel->n_outputs);
}

static tare_status run_if(struct tare_kernel *kernel) {
    bool chosen = false;
    TARE_TRY(truth(&chosen, &kernel->inputs[0]));
    return run_branch(kernel, chosen ? "then_branch" : "else_branch", 0, chosen ? 0 : 1);
}

static tare_status run_case(struct tare_kernel *kernel) {
    const struct tare_attr *branches = tare_node_find_attr(kernel->node, "branches");
    int64_t index, count = branches ? (int64_t)branches->count : 0;
    if (kernel->inputs[0].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "the branch index has %lld elements (expected 1)",
                         (long long)kernel->inputs[0].elements);
    index = tare_tensor_get_i64(&kernel->inputs[0], 0);
    if (index < 0 || index >= count) index = count - 1;
    if (index < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "no branches");
    return run_branch(kernel, "branches", (size_t)index, (size_t)index);
}

static tare_status holds(bool *out, struct tare_kernel *kernel, const struct tare_graph *condition,
                         const struct tare_tensor *values, size_t count) {
    struct tare_tensor result = { 0 };
    TARE_TRY(tare_exec_count_side(kernel->session, kernel->node, 0));
    tare_status status = tare_kernel_call(kernel, condition, values, count, &result, 1);
    if (status == TARE_OK) status = truth(out, &result);
    if (result.dtype) tare_tensor_reset(&result);
    return status;
}

/* The loop owns its values, so the last use in a body may overwrite them in place. */
static tare_status run_while(struct tare_kernel *kernel) {
    const size_t count = kernel->n_inputs;
    struct tare_graph *condition, *body;
    struct tare_tensor *values, *next;
    tare_status status;
    bool again = false;
    TARE_TRY(find_function(&condition, kernel, "cond", 0));
    TARE_TRY(find_function(&body, kernel, "body", 0));
    TARE_TRY(check_returns(condition, 1));
    TARE_TRY(check_returns(body, count));
    next = TARE_NEW_ARRAY(kernel->scratch, struct tare_tensor, count + 1);
    values = next ? take_inputs(kernel, 0) : NULL;
    if (!values) return TARE_NO_MEMORY;
    for (;;) {
        struct tare_tensor *swap = values;
        TARE_CHECK(holds(&again, kernel, condition, values, count));
        if (!again) break;
        TARE_CHECK(tare_exec_count_side(kernel->session, kernel->node, 1));
        TARE_CHECK(tare_exec_call(kernel->session, body, values, count, next, count));
        values = next;
        next = swap;
    }
    if (count) memcpy(kernel->outputs, values, count * sizeof *values);
    return TARE_OK;
done:
    for (size_t i = 0; i < count; i++)
        if (values[i].dtype) tare_tensor_reset(&values[i]);
    return status;
}

/* The body receives the iteration number followed by the loop values. */
static tare_status run_for(struct tare_kernel *kernel) {
    const size_t count = kernel->n_outputs;
    struct tare_graph *body;
    struct tare_tensor *values, *next;
    int64_t range[3];
    tare_status status = TARE_OK;
    for (size_t i = 0; i < 3; i++) {
        if (kernel->inputs[i].elements != 1) return TARE_FAIL(TARE_SHAPE, "start, limit and delta must be scalars");
        range[i] = tare_tensor_get_i64(&kernel->inputs[i], 0);
    }
    if (range[2] == 0 || (range[2] > 0 ? range[0] > range[1] : range[0] < range[1]))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a loop from %lld to %lld in steps of %lld does not terminate",
                         (long long)range[0], (long long)range[1], (long long)range[2]);
    TARE_TRY(find_function(&body, kernel, "body", 0));
    TARE_TRY(check_returns(body, count));
    values = TARE_NEW_ARRAY(kernel->scratch, struct tare_tensor, count + 1);
    next = TARE_NEW_ARRAY(kernel->scratch, struct tare_tensor, count + 1);
    if (!values || !next) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        tare_exec_take_input(kernel, i + 3, &values[i + 1]);
    for (int64_t i = range[0]; range[2] > 0 ? i < range[1] : i > range[1]; i += range[2]) {
        TARE_CHECK(tare_tensor_scalar_i32(&values[0], (int32_t)i));
        TARE_CHECK(tare_exec_call(kernel->session, body, values, count + 1, next, count));
        memcpy(values + 1, next, count * sizeof *next);
        memset(values, 0, sizeof *values);
        memset(next, 0, count * sizeof *next);
    }
    if (count) memcpy(kernel->outputs, values + 1, count * sizeof *values);
    return TARE_OK;
done:
    for (size_t i = 0; i <= count; i++)
        if (values[i].dtype) tare_tensor_reset(&values[i]);
    return status;
}

/* ---- TensorFlow 1 control flow ---- */

static tare_status run_forward(struct tare_kernel *kernel) {
    return tare_kernel_forward(kernel, 0, 0);
}

/* The output of the branch not taken keeps no value. */
static tare_status run_switch(struct tare_kernel *kernel) {
    if (kernel->inputs[1].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "pred has %lld elements (expected 1)", (long long)kernel->inputs[1].elements);
    return tare_kernel_forward(kernel, TARE_CONST_DATA(bool, &kernel->inputs[1])[0] ? 1 : 0, 0);
}

static tare_status infer_switch(struct tare_infer *infer) {
    infer->outputs[0] = infer->outputs[1] = infer->inputs[0];
    return TARE_OK;
}

/* Returns the first input with a value. */
static tare_status run_merge(struct tare_kernel *kernel) {
    struct tare_shape scalar = tare_shape_scalar();
    for (size_t i = 0; i < kernel->n_inputs; i++) {
        if (!kernel->inputs[i].dtype) continue;
        TARE_TRY(tare_kernel_forward(kernel, 0, i));
        TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_INT32, &scalar));
        TARE_DATA(int32_t, &kernel->outputs[1])[0] = (int32_t)i;
        return TARE_OK;
    }
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "no input has a value");
}

/* Returns the shape that all inputs agree on. The back edge of a loop has no shape yet when its Merge is inferred. */
static tare_status infer_merge(struct tare_infer *infer) {
    struct tare_shape shape = infer->inputs[0];
    infer->outputs[1] = tare_shape_scalar();
    for (size_t i = 1; i < infer->n_inputs; i++) {
        const struct tare_shape *other = &infer->inputs[i];
        if (shape.rank != other->rank) {
            shape = tare_shape_unknown();
            break;
        }
        for (int d = 0; d < shape.rank; d++)
            if (shape.dims[d] != other->dims[d]) shape.dims[d] = TARE_UNKNOWN_DIM;
    }
    infer->outputs[0] = shape;
    return TARE_OK;
}

static tare_status infer_ref_select(struct tare_infer *infer) {
    if (infer->n_inputs == 2) infer->outputs[0] = infer->inputs[1];
    return TARE_OK;
}

static tare_status run_ref_select(struct tare_kernel *kernel) {
    int64_t index;
    if (kernel->inputs[0].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "index has %lld elements (expected 1)", (long long)kernel->inputs[0].elements);
    index = tare_tensor_get_i64(&kernel->inputs[0], 0);
    if (index < 0 || index >= (int64_t)kernel->n_inputs - 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "index %lld (expected 0 to %zu)", (long long)index,
                         kernel->n_inputs - 2);
    return tare_kernel_forward(kernel, 0, (size_t)index + 1);
}

#define FUNCTIONAL(op, kernel, extra)                                                                                  \
    { .name = op, .infer = infer_output_shapes, .run = kernel, .flags = TARE_OP_CONTROL | (extra) }
#define LOOP(op, extra)                                                                                                \
    { .name = op, .infer = infer_output_shapes, .run = run_while, .flags = TARE_OP_CONTROL | (extra) }
#define FORWARD(op)                                                                                                    \
    { .name = op, .infer = tare_infer_same, .run = run_forward, .flags = TARE_OP_CONTROL | TARE_OP_NO_FOLD }

const struct tare_op tare_ops_control[] = {
    FUNCTIONAL("If", run_if, TARE_OP_STATEFUL),
    FUNCTIONAL("StatelessIf", run_if, 0),
    FUNCTIONAL("Case", run_case, TARE_OP_STATEFUL),
    FUNCTIONAL("StatelessCase", run_case, 0),
    LOOP("While", TARE_OP_STATEFUL),
    LOOP("StatelessWhile", 0),
    { .name = "XlaIf", .infer = infer_output_shapes, .run = run_if, .flags = TARE_OP_STATEFUL | TARE_OP_CONTROL },
    { .name = "XlaWhile", .infer = infer_output_shapes, .run = run_while, .flags = TARE_OP_STATEFUL | TARE_OP_CONTROL },
    { .name = "For", .infer = infer_output_shapes, .run = run_for, .flags = TARE_OP_CONTROL },
    { .name = "Switch", .infer = infer_switch, .run = run_switch, .flags = TARE_OP_CONTROL | TARE_OP_NO_FOLD },
    { .name = "RefSwitch", .infer = infer_switch, .run = run_switch, .flags = TARE_OP_CONTROL | TARE_OP_NO_FOLD },
    { .name = "Merge", .infer = infer_merge, .run = run_merge, .flags = TARE_OP_CONTROL | TARE_OP_NO_FOLD },
    { .name = "RefMerge", .infer = infer_merge, .run = run_merge, .flags = TARE_OP_CONTROL | TARE_OP_NO_FOLD },
    { .name = "RefSelect",
      .infer = infer_ref_select,
      .run = run_ref_select,
      .flags = TARE_OP_CONTROL | TARE_OP_NO_FOLD },
    FORWARD("Enter"),
    FORWARD("RefEnter"),
    FORWARD("Exit"),
    FORWARD("RefExit"),
    FORWARD("NextIteration"),
    FORWARD("RefNextIteration"),
    FORWARD("RefIdentity"),
    FORWARD("LoopCond"),
    { .name = "ToBool", .infer = tare_infer_scalar, .run = run_to_bool },
    { 0 },
};

/* TensorFlow 1's variables, whose edges carry references. A reference is represented by a handle to the variable;
 * the executor reads the value where a node expects one. */
#include "interpreter/ops/state/assign.h"
#include "interpreter/ops/families.h"

static tare_status run_variable(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_assign_declared(&variable, kernel));
    return tare_handle_new(&kernel->outputs[0], &variable->object);
}

static tare_status infer_variable(struct tare_infer *infer) {
    tare_node_shape(infer->node, "shape", &infer->outputs[0]);
    return TARE_OK;
}

static tare_status infer_assign(struct tare_infer *infer) {
    bool validate = tare_node_bool(infer->node, "validate_shape", true);
    infer->outputs[0] = infer->inputs[1];
    return validate ? tare_shape_merge(&infer->outputs[0], &infer->inputs[0], &infer->inputs[1]) : TARE_OK;
}

static tare_status run_assign(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    TARE_TRY(tare_assign_check(variable, &kernel->inputs[1], tare_node_bool(kernel->node, "validate_shape", true)));
    TARE_TRY(tare_reference_assign(variable, &kernel->inputs[1]));
    return tare_kernel_forward(kernel, 0, 0);
}

/* Creates a variable that exists only in this run, without a value until it is assigned. */
static tare_status run_temporary(struct tare_kernel *kernel) {
    const struct tare_node *node = kernel->node;
    struct tare_shape shape = tare_shape_unknown();
    struct tare_variable_object *variable;
    tare_node_shape(node, "shape", &shape);
    variable = tare_variable_object_new(node->name, tare_node_type(node, "dtype", TARE_DT_INVALID), &shape);
    return variable ? tare_handle_new(&kernel->outputs[0], &variable->object) : TARE_NO_MEMORY;
}

static tare_status run_take_temporary(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    return tare_variable_read(&kernel->outputs[0], variable);
}

struct change {
    int how;
};
static const struct change add = { TARE_ACCUMULATE_ADD }, subtract = { TARE_ACCUMULATE_SUB }, set = { TARE_ASSIGN_SET },
                           multiply = { TARE_ACCUMULATE_MUL }, divide = { TARE_ACCUMULATE_DIV },
                           least = { TARE_ACCUMULATE_MIN }, most = { TARE_ACCUMULATE_MAX };

static tare_status run_accumulate(struct tare_kernel *kernel) {
    const struct change *change = kernel->op->aux;
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    TARE_TRY(tare_assign_accumulate(variable, &kernel->inputs[1], (enum tare_accumulate)change->how));
    return tare_kernel_forward(kernel, 0, 0);
}

static tare_status run_scatter(struct tare_kernel *kernel) {
    const struct change *change = kernel->op->aux;
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    TARE_TRY(tare_assign_rows(variable, &kernel->inputs[1], &kernel->inputs[2], change->how));
    return tare_kernel_forward(kernel, 0, 0);
}

static tare_status run_scatter_nd(struct tare_kernel *kernel) {
    const struct change *change = kernel->op->aux;
    struct tare_variable_object *variable = NULL;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    TARE_TRY(tare_assign_tuples(variable, &kernel->inputs[1], &kernel->inputs[2], change->how));
    return tare_kernel_forward(kernel, 0, 0);
}

#define VARIABLE(op)                                                                                                   \
    { .name = op, .infer = infer_variable, .run = run_variable, .flags = TARE_OP_STATEFUL }
#define ACCUMULATE(op, how)                                                                                            \
    {                                                                                                                  \
        .name = op, .infer = tare_infer_same, .run = run_accumulate, .aux = how,                                       \
        .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES                                                                      \
    }
#define SCATTER(op, how)                                                                                               \
    { .name = op, .infer = tare_infer_same, .run = run_scatter, .aux = how, .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES }

#define SCATTER_ND(op, how)                                                                                            \
    {                                                                                                                  \
        .name = op, .infer = tare_infer_same, .run = run_scatter_nd, .aux = how,                                       \
        .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES                                                                      \
    }

const struct tare_op tare_ops_reference[] = {
    VARIABLE("Variable"),
    VARIABLE("VariableV2"),
    { .name = "Assign", .infer = infer_assign, .run = run_assign, .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    ACCUMULATE("AssignAdd", &add),
    ACCUMULATE("AssignSub", &subtract),
    SCATTER("ScatterUpdate", &set),
    SCATTER("ScatterAdd", &add),
    SCATTER("ScatterSub", &subtract),
    SCATTER("ScatterMul", &multiply),
    SCATTER("ScatterDiv", &divide),
    SCATTER("ScatterMin", &least),
    SCATTER("ScatterMax", &most),
    SCATTER_ND("ScatterNdUpdate", &set),
    SCATTER_ND("ScatterNdAdd", &add),
    SCATTER_ND("ScatterNdSub", &subtract),
    SCATTER_ND("ScatterNdMin", &least),
    SCATTER_ND("ScatterNdMax", &most),
    { .name = "IsVariableInitialized",
      .infer = tare_infer_scalar,
      .run = tare_assign_is_initialized,
      .flags = TARE_OP_NO_FOLD },
    { .name = "TemporaryVariable", .infer = infer_variable, .run = run_temporary, .flags = TARE_OP_STATEFUL },
    { .name = "DestroyTemporaryVariable",
      .infer = tare_infer_same,
      .run = run_take_temporary,
      .flags = TARE_OP_NO_FOLD },
    { .name = "CountUpTo",
      .infer = tare_infer_scalar,
      .run = tare_assign_count,
      .flags = TARE_OP_NO_FOLD | TARE_OP_WRITES },
    { 0 },
};

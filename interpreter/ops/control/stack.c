/* Stacks: TensorFlow 1 loops push values that the backward loop pops. */
#include "interpreter/ops/control/element_list.h"
#include "interpreter/ops/families.h"

#include "interpreter/execution/variable.h"

static const struct tare_object_type stack_type = { "Stack", tare_list_destroy };

static tare_status infer_nothing(struct tare_infer *infer) {
    (void)infer;
    return TARE_OK;
}

/* Output 1 forwards input 1: the pushed value is passed on unchanged. */
static tare_status infer_push(struct tare_infer *infer) {
    infer->outputs[0] = infer->inputs[1];
    return TARE_OK;
}

static tare_status stack_of(struct tare_list **out, const struct tare_kernel *kernel) {
    struct tare_object *object = NULL;
    TARE_TRY(tare_handle_object(&object, &kernel->inputs[0], &stack_type));
    *out = (struct tare_list *)object;
    return TARE_OK;
}

static tare_status run_stack(struct tare_kernel *kernel) {
    struct tare_shape any = tare_shape_unknown();
    struct tare_list *list = NULL;
    if (kernel->n_inputs && kernel->inputs[0].elements != 1)
        return TARE_FAIL(TARE_SHAPE, "max_size has %lld elements (expected 1)", (long long)kernel->inputs[0].elements);
    list = tare_list_new(&stack_type, tare_node_type(kernel->node, "elem_type", TARE_DT_INVALID), &any);
    if (!list) return TARE_NO_MEMORY;
    list->most = kernel->n_inputs ? tare_tensor_get_i64(&kernel->inputs[0], 0) : -1;
    return tare_handle_new(&kernel->outputs[0], &list->object);
}

static tare_status run_push(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    TARE_TRY(stack_of(&list, kernel));
    TARE_TRY(tare_list_resize(list, (int64_t)list->count + 1));
    TARE_TRY(tare_list_set(list, list->count - 1, &kernel->inputs[1]));
    return tare_kernel_forward(kernel, 0, 1);
}

static tare_status run_pop(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    TARE_TRY(stack_of(&list, kernel));
    if (!list->count) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Stack is empty when calling Pop()");
    tare_tensor_share(&kernel->outputs[0], &list->items[list->count - 1]);
    return tare_list_resize(list, (int64_t)list->count - 1);
}

static tare_status run_close(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    TARE_TRY(stack_of(&list, kernel));
    return tare_list_resize(list, 0);
}

const struct tare_op tare_ops_stack[] = {
    { .name = "StackV2",
      .inputs = "max_size: int32",
      .outputs = "handle: resource",
      .attrs = "elem_type: type; stack_name: string = ''",
      .infer = tare_infer_scalar,
      .run = run_stack,
      .flags = TARE_OP_STATEFUL },
    { .name = "StackPushV2",
      .inputs = "handle: resource, elem: T",
      .outputs = "output: T",
      .attrs = "T: type; swap_memory: bool = false",
      .infer = infer_push,
      .run = run_push,
      .flags = TARE_OP_STATEFUL },
    { .name = "StackPopV2",
      .inputs = "handle: resource",
      .outputs = "elem: elem_type",
      .attrs = "elem_type: type",
      .infer = infer_nothing,
      .run = run_pop,
      .flags = TARE_OP_STATEFUL },
    { .name = "Stack",
      .outputs = "handle: Ref(string)",
      .attrs = "elem_type: type; stack_name: string = ''",
      .infer = tare_infer_scalar,
      .run = run_stack,
      .flags = TARE_OP_STATEFUL },
    { .name = "StackPush",
      .inputs = "handle: Ref(string), elem: T",
      .outputs = "output: T",
      .attrs = "T: type; swap_memory: bool = false",
      .infer = infer_push,
      .run = run_push,
      .flags = TARE_OP_NO_FOLD },
    { .name = "StackPop",
      .inputs = "handle: Ref(string)",
      .outputs = "elem: elem_type",
      .attrs = "elem_type: type",
      .infer = infer_nothing,
      .run = run_pop,
      .flags = TARE_OP_NO_FOLD },
    { .name = "StackClose",
      .inputs = "handle: Ref(string)",
      .infer = infer_nothing,
      .run = run_close,
      .flags = TARE_OP_NO_FOLD },
    { .name = "StackCloseV2",
      .inputs = "handle: resource",
      .infer = infer_nothing,
      .run = run_close,
      .flags = TARE_OP_STATEFUL },
    { 0 },
};

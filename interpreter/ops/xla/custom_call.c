/* XlaCustomCallV2: calls a target by name. The targets are those that modules exported from JAX contain and that XLA's
 * documentation of them guarantees to stay (jax/_src/export: "custom calls with guaranteed stability"). */
#include "interpreter/ops/xla/custom_call.h"
#include "interpreter/ops/xla/custom_call_row.h"
#include "interpreter/ops/families.h"

#include <string.h>

/* A '?' of the name is the letter of one of LAPACK's precisions. */
static bool has_name(const char *name, const char *target) {
    for (; *target && (*name == *target || (*name == '?' && strchr("sdcz", *target))); name++)
        target++;
    return !*name && !*target;
}

const struct tare_custom_call *tare_custom_call_find(const char *target) {
    for (const struct tare_custom_call *call = tare_lapack_calls; call->target; call++)
        if (has_name(call->target, target)) return call;
    return NULL;
}

static tare_status infer_custom_call(struct tare_infer *infer) {
    const struct tare_attr *shapes = tare_node_list(infer->node, "result_shapes");
    for (size_t i = 0; i < infer->n_outputs && shapes && i < shapes->count && shapes->kind == TARE_ATTR_SHAPE; i++)
        infer->outputs[i] = *shapes->items[i].shape;
    return TARE_OK;
}

static tare_status run_custom_call(struct tare_kernel *kernel) {
    const char *target = tare_node_string(kernel->node, "call_target_name", NULL);
    const struct tare_custom_call *call = tare_custom_call_find(target ? target : "");
    if (!call)
        return TARE_FAIL(TARE_UNSUPPORTED, "custom call '%s' is not supported by the interpreter",
                         target ? target : "");
    return call->run(kernel, call->arg);
}

const struct tare_op tare_ops_custom_call[] = {
    { .name = "XlaCustomCallV2",
      .inputs = "operands: operand_dtypes",
      .outputs = "results: result_dtypes",
      .attrs = "call_target_name: string; backend_config: string; has_side_effect: bool; operand_dtypes: list(type) >= "
               "0; result_dtypes: list(type) >= 0; result_shapes: list(shape) >= 0",
      .infer = infer_custom_call,
      .run = run_custom_call,
      .flags = TARE_OP_FLOAT32 }, /* a target may compute in the dtypes that it is called with alone */
    { 0 },
};

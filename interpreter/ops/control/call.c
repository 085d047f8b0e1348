/* Ops that call one function (PartitionedCall and others). The executor runs the body in the same session. */
#include "interpreter/execution/state.h"
#include "interpreter/ops/families.h"

#include "base/strbuf.h"

#include <string.h>

/* Shape inference over a graph follows the call itself; this reports only what the node's attributes declare. */
static tare_status infer_call(struct tare_infer *infer) {
    const struct tare_attr *shapes = tare_node_find_attr(infer->node, "_output_shapes");
    if (!shapes || shapes->kind != TARE_ATTR_SHAPE || shapes->count != infer->n_outputs) return TARE_OK;
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = *shapes->items[i].shape;
    return TARE_OK;
}

static tare_status find_callee(struct tare_graph **out, const struct tare_node *node, const char *name) {
    const struct tare_attr *attr = tare_node_find_attr(node, name);
    *out = tare_node_function(node, name);
    if (*out) return TARE_OK;
    if (!attr || attr->kind != TARE_ATTR_FUNC || attr->count != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "attribute %s does not name a function", name);
    return TARE_FAIL(TARE_NOT_FOUND, "Failed to find definition for function \"%s\"", attr->items[0].func.name);
}

/* Calls the function with inputs first … first + n_args - 1. */
static tare_status call_with(struct tare_kernel *kernel, const char *function, size_t first, size_t n_args) {
    struct tare_graph *callee;
    struct tare_tensor *args = TARE_NEW_ARRAY(kernel->scratch, struct tare_tensor, n_args + 1);
    if (!args) return TARE_NO_MEMORY;
    if (!kernel->session) return TARE_FAIL(TARE_INTERNAL, "a function call outside a session");
    TARE_TRY(find_callee(&callee, kernel->node, function));
    if (kernel->n_outputs != callee->n_returns)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "function %s returns %zu results (expected %zu)", callee->name,
                         callee->n_returns, kernel->n_outputs);
    for (size_t i = 0; i < n_args; i++)
        tare_exec_take_input(kernel, first + i, &args[i]);
    return tare_exec_call(kernel->session, callee, args, n_args, kernel->outputs, kernel->n_outputs);
}

static tare_status call(struct tare_kernel *kernel, const char *function, size_t n_args) {
    return call_with(kernel, function, 0, n_args);
}

/* The target device is ignored: the CPU is the only device. */
static tare_status run_remote_call(struct tare_kernel *kernel) {
    return call_with(kernel, "f", 1, kernel->n_inputs - 1);
}

static tare_status run_call(struct tare_kernel *kernel) {
    return call(kernel, "f", kernel->n_inputs);
}

/* The last input is the core number, which only a TPU uses. */
static tare_status run_tpu_call(struct tare_kernel *kernel) {
    if (!kernel->n_inputs) return TARE_FAIL(TARE_INVALID_ARGUMENT, "no input (expected at least the device ordinal)");
    return call(kernel, "f", kernel->n_inputs - 1);
}

/* The engine for another device is not built; the original segment, which the model stores as a function, runs
 * instead. */
static tare_status run_segment(struct tare_kernel *kernel) {
    return call(kernel, "segment_func", kernel->n_inputs);
}

/* ---- BatchFunction: each call is a batch of its own ---- */

static tare_status batch_error(const struct tare_kernel *kernel, size_t n_batched, const char *what) {
    struct tare_strbuf text = { 0 };
    tare_status status;
    for (size_t i = 0; i < n_batched; i++) {
        char shape[TARE_SHAPE_TEXT_SIZE];
        tare_strbuf_printf(&text, "%s%s has shape %s", i ? ", " : "", kernel->node->inputs[i].node->name,
                           tare_shape_text(shape, &kernel->inputs[i].shape));
    }
    status = TARE_FAIL(TARE_SHAPE, "%s (got %s)", what, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return status;
}

static tare_status check_batch(int64_t *size, const struct tare_kernel *kernel, size_t n_batched) {
    const struct tare_node *node = kernel->node;
    int64_t most = tare_node_int(node, "max_batch_size", 0);
    for (size_t i = 0; i < n_batched; i++) {
        if (kernel->inputs[i].dtype == TARE_DT_RESOURCE)
            return TARE_FAIL(TARE_TYPE, "BatchFunction cannot take resource inputs but input %zu is a resource.", i);
        if (kernel->inputs[i].shape.rank < 1)
            return batch_error(kernel, n_batched, "Batching input tensors must have at least one dimension");
        if (kernel->inputs[i].shape.dims[0] != kernel->inputs[0].shape.dims[0])
            return batch_error(
                kernel, n_batched,
                "Batching input tensors supplied in a given op invocation must have equal 0th-dimension size");
    }
    *size = kernel->inputs[0].shape.dims[0];
    if (*size > most && !tare_node_bool(node, "enable_large_batch_splitting", false))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Task size %lld is larger than maximum batch size %lld",
                         (long long)*size, (long long)most);
    return TARE_OK;
}

static tare_status check_batch_outputs(const struct tare_kernel *kernel, int64_t size) {
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        const struct tare_shape *shape = &kernel->outputs[i].shape;
        if (shape->rank < 1) return TARE_FAIL(TARE_SHAPE, "Batched output tensor has 0 dimensions (output %zu)", i);
        if (shape->dims[0] != size)
            return TARE_FAIL(
                TARE_SHAPE,
                "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes of "
                "the input tensors. 0th dimension size: %lld; batch size: %lld",
                (long long)shape->dims[0], (long long)size);
    }
    return TARE_OK;
}

static tare_status run_batch(struct tare_kernel *kernel) {
    const struct tare_attr *types = tare_node_list(kernel->node, "Tin");
    size_t n_batched = types ? types->count : 0;
    int64_t size = 0;
    if (!n_batched || n_batched > kernel->n_inputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu inputs to batch (expected 1 to %zu)", n_batched, kernel->n_inputs);
    TARE_TRY(check_batch(&size, kernel, n_batched));
    if (size) {
        TARE_TRY(call(kernel, "f", kernel->n_inputs));
        return check_batch_outputs(kernel, size);
    }
    for (size_t i = 0; i < kernel->n_outputs;
         i++) { /* an empty task does not run the function; its results are empty vectors */
        struct tare_shape empty = tare_shape_make(1, 0);
        TARE_TRY(tare_kernel_output(kernel, i, kernel->node->output_dtypes[i], &empty));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_call[] = {
    { .name = "PartitionedCall", .infer = infer_call, .run = run_call, .flags = TARE_OP_CONTROL },
    { .name = "StatefulPartitionedCall",
      .infer = infer_call,
      .run = run_call,
      .flags = TARE_OP_CONTROL | TARE_OP_STATEFUL },
    { .name = "RemoteCall", .infer = infer_call, .run = run_remote_call, .flags = TARE_OP_CONTROL | TARE_OP_STATEFUL },
    { .name = "TPUPartitionedCall", .infer = infer_call, .run = run_tpu_call, .flags = TARE_OP_CONTROL },
    { .name = "TRTEngineOp", .infer = infer_call, .run = run_segment, .flags = TARE_OP_CONTROL },
    { .name = "BatchFunction", .infer = infer_call, .run = run_batch, .flags = TARE_OP_CONTROL },
    { 0 },
};

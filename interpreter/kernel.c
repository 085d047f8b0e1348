/* Making the outputs of a kernel (declared in graph/op.h). Knows tensors and the buffer pool, not the executor. */
#include "interpreter/kernel.h"

tare_status tare_kernel_output(struct tare_kernel *kernel, size_t i, int dtype, const struct tare_shape *shape) {
    if (i >= kernel->n_outputs)
        return TARE_FAIL(TARE_INTERNAL, "output %zu of a node (got %zu outputs)", i, kernel->n_outputs);
    return tare_tensor_new_pooled(&kernel->outputs[i], dtype, shape, kernel->pool);
}

tare_status tare_kernel_forward(struct tare_kernel *kernel, size_t i, size_t j) {
    if (i >= kernel->n_outputs || j >= kernel->n_inputs)
        return TARE_FAIL(TARE_INTERNAL, "output %zu from input %zu (got %zu outputs, %zu inputs)", i, j,
                         kernel->n_outputs, kernel->n_inputs);
    tare_tensor_share(&kernel->outputs[i], &kernel->inputs[j]);
    return TARE_OK;
}

tare_status tare_kernel_forward_as(struct tare_kernel *kernel, size_t i, size_t j, const struct tare_shape *shape) {
    if (i >= kernel->n_outputs || j >= kernel->n_inputs)
        return TARE_FAIL(TARE_INTERNAL, "output %zu from input %zu (got %zu outputs, %zu inputs)", i, j,
                         kernel->n_outputs, kernel->n_inputs);
    return tare_tensor_share_as(&kernel->outputs[i], &kernel->inputs[j], shape);
}

tare_status tare_kernel_output_like0(struct tare_kernel *kernel, size_t i) {
    if (kernel->n_inputs == 0) return TARE_FAIL(TARE_INTERNAL, "a node without inputs has no input 0");
    if (kernel->may_reuse_input0) return tare_kernel_forward(kernel, i, 0);
    return tare_kernel_output(kernel, i, kernel->inputs[0].dtype, &kernel->inputs[0].shape);
}

tare_status tare_kernel_begin_rows(struct tare_kernel *kernel, const struct tare_shape *shape) {
    if (!kernel->consumer) return TARE_OK;
    return kernel->consumer->begin(kernel->consumer, kernel, shape, &kernel->consumer->accepted);
}

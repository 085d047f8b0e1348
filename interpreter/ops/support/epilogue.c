#include "interpreter/ops/support/epilogue.h"

static bool bias_fits(const struct tare_tensor *bias, const struct tare_tensor *output) {
    const int64_t columns = output->shape.dims[output->shape.rank - 1];
    return bias->dtype == TARE_DT_FLOAT && bias->shape.rank >= 1 && bias->shape.rank <= output->shape.rank &&
           bias->elements == columns && bias->shape.dims[bias->shape.rank - 1] == columns;
}

static bool addend_fits(const struct tare_tensor *addend, const struct tare_tensor *output) {
    return addend->dtype == TARE_DT_FLOAT && tare_shape_equal(&addend->shape, &output->shape);
}

const struct tare_gemm_epilogue *tare_take_epilogue(struct tare_gemm_epilogue *out, struct tare_kernel *kernel) {
    struct tare_epilogue *epilogue = kernel->epilogue;
    const struct tare_tensor *output = &kernel->outputs[0];
    if (!epilogue || output->dtype != TARE_DT_FLOAT || output->shape.rank < 2) return NULL;
    if (epilogue->bias && (epilogue->bias->splat || !bias_fits(epilogue->bias, output))) return NULL;
    if (epilogue->addend && (epilogue->addend->splat || !addend_fits(epilogue->addend, output))) return NULL;
    *out = (struct tare_gemm_epilogue){ .bias = epilogue->bias ? epilogue->bias->data : NULL,
                                        .addend = !epilogue->addend ? NULL : epilogue->addend->data,
                                        .relu = epilogue->relu,
                                        .limit = epilogue->limit };
    epilogue->applied = true;
    return out;
}

#include "interpreter/ops/support/epilogue.h"

static bool bias_fits(const struct tare_tensor *bias, const struct tare_tensor *output) {
    const int64_t columns = output->shape.dims[output->shape.rank - 1];
    return bias->dtype == TARE_DT_FLOAT && bias->shape.rank >= 1 && bias->shape.rank <= output->shape.rank &&
           bias->elements == columns && bias->shape.dims[bias->shape.rank - 1] == columns;
}

static bool addend_fits(const struct tare_tensor *addend, const struct tare_tensor *output) {
    return addend->dtype == TARE_DT_FLOAT && tare_shape_equal(&addend->shape, &output->shape);
}

const struct tare_gemm_finish *tare_take_finish(struct tare_gemm_finish *out, struct tare_kernel *kernel) {
    struct tare_finish *finish = kernel->finish;
    const struct tare_tensor *output = &kernel->outputs[0];
    if (finish == NULL || output->dtype != TARE_DT_FLOAT || output->shape.rank < 2) return NULL;
    if (finish->bias != NULL && (finish->bias->splat || !bias_fits(finish->bias, output))) return NULL;
    if (finish->addend != NULL && (finish->addend->splat || !addend_fits(finish->addend, output))) return NULL;
    *out = (struct tare_gemm_finish){ .bias = finish->bias == NULL ? NULL : finish->bias->data,
                                      .addend = finish->addend == NULL ? NULL : finish->addend->data,
                                      .relu = finish->relu,
                                      .limit = finish->limit };
    finish->applied = true;
    return out;
}

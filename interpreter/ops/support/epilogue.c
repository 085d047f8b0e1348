#include "interpreter/ops/support/epilogue.h"

#include "interpreter/ops/support/floats.h"

#include <math.h>

static int64_t columns_of(const struct tare_tensor *output) {
    return output->shape.dims[output->shape.rank - 1];
}

static bool vector_fits(const struct tare_tensor *vector, const struct tare_tensor *output) {
    const int64_t columns = columns_of(output);
    return !vector->splat && vector->dtype == output->dtype && vector->shape.rank >= 1 &&
           vector->shape.rank <= output->shape.rank && vector->elements == columns &&
           vector->shape.dims[vector->shape.rank - 1] == columns;
}

static bool addend_fits(const struct tare_tensor *addend, const struct tare_tensor *output) {
    return !addend->splat && addend->dtype == output->dtype && tare_shape_equal(&addend->shape, &output->shape);
}

/* A scalar as a vector of as many elements as columns. NULL: no memory. */
static const float *repeated(struct tare_kernel *kernel, const struct tare_tensor *scalar, int64_t columns) {
    float *vector = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)columns);
    float value;
    tare_floats_from(&value, scalar->dtype, scalar->data, 1);
    for (int64_t i = 0; vector && i < columns; i++)
        vector[i] = value;
    return vector;
}

static bool set_vectors(struct tare_gemm_epilogue *out, struct tare_kernel *kernel) {
    const struct tare_epilogue *epilogue = kernel->epilogue;
    const struct tare_tensor *output = &kernel->outputs[0], *scale = epilogue->scale;
    if (epilogue->bias) {
        if (!vector_fits(epilogue->bias, output)) return false;
        out->bias = tare_floats_in(kernel, epilogue->bias);
        if (!out->bias) return false;
    }
    if (!scale) return true;
    const bool is_scalar = scale->elements == 1 && scale->dtype == output->dtype && !scale->splat &&
                           scale->shape.rank <= output->shape.rank;
    if (!is_scalar && !vector_fits(scale, output)) return false;
    out->scale = is_scalar ? repeated(kernel, scale, columns_of(output)) : tare_floats_in(kernel, scale);
    return out->scale;
}

static bool is_any_nan(const float *values, int64_t count) {
    int any = 0;
    for (int64_t i = 0; i < count; i++)
        any |= values[i] != values[i];
    return any;
}

/* The factor of the batch normalization's own kernel (interpreter/ops/nn/norm.c). NULL: no memory. */
static const float *factor_of(struct tare_kernel *kernel, const float *scale, const float *variance, int64_t count) {
    const float epsilon = kernel->epilogue->epsilon;
    float *factor = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)count);
    for (int64_t c = 0; factor && c < count; c++)
        factor[c] = 1.0f / sqrtf(variance[c] + epsilon) * scale[c];
    return factor;
}

static bool set_norm(struct tare_gemm_epilogue *out, struct tare_kernel *kernel) {
    const struct tare_epilogue *epilogue = kernel->epilogue;
    const int64_t columns = columns_of(&kernel->outputs[0]);
    const float *values[TARE_NORM_OPERANDS];
    if (!epilogue->norm[0]) return true;
    for (int i = 0; i < TARE_NORM_OPERANDS; i++) {
        const struct tare_tensor *vector = epilogue->norm[i];
        if (vector->splat || vector->shape.rank != 1 || vector->elements != columns) return false;
        values[i] = tare_floats_in(kernel, vector);
        if (!values[i]) return false;
    }
    out->is_general = true;
    out->mean = values[TARE_NORM_MEAN];
    out->offset = values[TARE_NORM_OFFSET];
    out->factor = factor_of(kernel, values[TARE_NORM_SCALE], values[TARE_NORM_VARIANCE], columns);
    return out->factor && !is_any_nan(out->mean, columns) && !is_any_nan(out->factor, columns) &&
           !is_any_nan(out->offset, columns);
}

static bool set_fields(struct tare_gemm_epilogue *out, struct tare_kernel *kernel) {
    const struct tare_epilogue *epilogue = kernel->epilogue;
    const struct tare_tensor *output = &kernel->outputs[0], *addend = epilogue->addend;
    if (!set_vectors(out, kernel) || !set_norm(out, kernel)) return false;
    if (addend && !addend_fits(addend, output)) return false;
    if (addend && out->rounds) out->addend_bfloat16 = addend->data;
    if (addend && !out->rounds) out->addend = addend->data;
    out->relu = epilogue->relu;
    out->limit = epilogue->limit;
    return true;
}

const struct tare_gemm_epilogue *tare_take_epilogue(struct tare_gemm_epilogue *out, struct tare_kernel *kernel) {
    const struct tare_tensor *output = &kernel->outputs[0];
    const bool rounds = output->dtype == TARE_DT_BFLOAT16;
    const struct tare_gemm_epilogue none = { .rounds = rounds, .is_general = rounds };
    *out = none;
    if (!kernel->epilogue || (output->dtype != TARE_DT_FLOAT && !rounds) || output->shape.rank < 2)
        return rounds ? out : NULL;
    kernel->epilogue->applied = set_fields(out, kernel);
    if (!kernel->epilogue->applied) *out = none;
    return kernel->epilogue->applied || rounds ? out : NULL;
}

#include "interpreter/ops/support/epilogue.h"

#include "interpreter/ops/support/floats.h"

#include <math.h>
#include <string.h>

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

static bool make_vectors(struct tare_gemm_epilogue *out, struct tare_kernel *kernel) {
    if (!set_vectors(out, kernel) || !set_norm(out, kernel)) return false;
    out->is_bounded = tare_epilogue_is_bounded(out, columns_of(&kernel->outputs[0]));
    return true;
}

/* A constant's memory may be replaced between runs, so its values are copied; eight columns twice. */
static bool copy_vectors(struct tare_gemm_epilogue *epilogue, struct tare_arena *arena, int64_t columns) {
    const int copies = columns == 8 ? 2 : 1;
    const float **vectors[] = { &epilogue->scale, &epilogue->bias, &epilogue->mean, &epilogue->factor,
                                &epilogue->offset };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        if (!*vectors[i]) continue;
        float *copy = TARE_NEW_ARRAY(arena, float, (size_t)(columns * copies));
        if (!copy) return false;
        for (int k = 0; k < copies; k++)
            memcpy(copy + k * columns, *vectors[i], (size_t)columns * sizeof *copy);
        *vectors[i] = copy;
    }
    epilogue->is_repeated = copies == 2;
    return true;
}

/* Makes the vectors in memory that outlives the run. If they do not fit, later runs do not keep anything. */
static bool make_kept(struct tare_gemm_epilogue *out, struct tare_kernel *kernel, struct tare_kept_epilogue *kept) {
    const struct tare_shape *shape = &kernel->outputs[0].shape;
    const int64_t columns = columns_of(&kernel->outputs[0]);
    struct tare_arena *arena = kept->arena;
    struct tare_gemm_epilogue *made = TARE_NEW(arena, struct tare_gemm_epilogue);
    kept->arena = NULL;
    if (!made || !make_vectors(out, kernel)) return false;
    *made = *out;
    if (!copy_vectors(made, arena, columns)) return false;
    *kept = (struct tare_kept_epilogue){ .arena = arena, .made = made, .columns = columns, .rank = shape->rank };
    return true;
}

static bool take_vectors(struct tare_gemm_epilogue *out, struct tare_kernel *kernel) {
    struct tare_kept_epilogue *kept = kernel->epilogue->kept;
    const struct tare_tensor *output = &kernel->outputs[0];
    if (!kept || !kept->arena) return make_vectors(out, kernel);
    if (!kept->made) return make_kept(out, kernel, kept);
    if (kept->columns != columns_of(output) || kept->rank != output->shape.rank) return make_vectors(out, kernel);
    *out = *kept->made;
    return true;
}

static bool set_fields(struct tare_gemm_epilogue *out, struct tare_kernel *kernel) {
    const struct tare_epilogue *epilogue = kernel->epilogue;
    const struct tare_tensor *output = &kernel->outputs[0], *addend = epilogue->addend;
    if (!take_vectors(out, kernel)) return false;
    if (addend && !addend_fits(addend, output)) return false;
    if (addend && out->rounds) out->addend_bfloat16 = addend->data;
    if (addend && !out->rounds) out->addend = addend->data;
    out->activation = epilogue->activation;
    out->is_general |= epilogue->activation != NULL;
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

void tare_add_in_place(struct tare_kernel *kernel, const struct tare_gemm_epilogue *epilogue) {
    struct tare_tensor *slot = kernel->epilogue ? kernel->epilogue->addend_slot : NULL;
    if (!slot || !epilogue->addend || epilogue->is_general || !tare_tensor_is_exclusive(slot)) return;
    tare_tensor_reset(&kernel->outputs[0]);
    kernel->outputs[0] = *slot;
    memset(slot, 0, sizeof *slot);
}

/* Rounding whole tensors to bfloat16. */
#include "base/tensor/number.h"
#include "tpu/bfloat16_internal.h"

/* bfloat16-rtne, but a finite value stays finite: masks built with the largest float32 would become infinite, and zero
 * times that NaN. Without branches, so that the compiler can vectorise it. */
static inline uint16_t round_one(float x) {
    enum { LARGEST = 0x7f7f, INFINITE = 0x7f80 };
    const uint32_t bits = tare_float_bits(x), sign = (bits >> 16) & 0x8000u, size = bits & 0x7fffffffu;
    const uint32_t rounded = (size + 0x7fffu + ((size >> 16) & 1u)) >> 16;
    const uint32_t finite = rounded >= INFINITE ? (uint32_t)LARGEST : rounded;
    const uint32_t special = size > 0x7f800000u ? 0x7fc0u : (uint32_t)INFINITE;
    return (uint16_t)(sign | (size >= 0x7f800000u ? special : finite));
}

tare_status tare_bf16_round(struct tare_tensor *out, const struct tare_tensor *tensor) {
    enum { STRIDE = 16 };
    struct tare_shape scalar = tare_shape_scalar();
    const int64_t stored = tensor->splat ? 1 : tensor->elements;
    const float *from = tensor->data;
    uint16_t *to;
    int64_t i = 0;
    TARE_TRY(tare_tensor_new(out, TARE_DT_BFLOAT16, tensor->splat ? &scalar : &tensor->shape));
    to = out->data;
    for (; i + STRIDE <= stored; i += STRIDE)
        for (int k = 0; k < STRIDE; k++)
            to[i + k] = round_one(from[i + k]);
    for (; i < stored; i++)
        to[i] = round_one(from[i]);
    out->shape = tensor->shape;
    out->elements = tensor->elements;
    out->splat = tensor->splat;
    return TARE_OK;
}

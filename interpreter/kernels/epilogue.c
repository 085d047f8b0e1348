/* General epilogues: the portable form, and what all forms share. */
#include "interpreter/kernels/gemm.h"

#include "base/tensor/number.h"

struct tare_gemm_epilogue tare_epilogue_shifted(const struct tare_gemm_epilogue *epilogue, int64_t elements,
                                                int64_t columns) {
    struct tare_gemm_epilogue shifted = *epilogue;
    if (shifted.bias) shifted.bias += columns;
    if (shifted.scale) shifted.scale += columns;
    if (shifted.addend) shifted.addend += elements;
    if (!shifted.is_general) return shifted;
    if (shifted.mean) {
        shifted.mean += columns;
        shifted.factor += columns;
        shifted.offset += columns;
    }
    if (shifted.addend_bfloat16) shifted.addend_bfloat16 += elements;
    if (shifted.to) shifted.to += elements;
    return shifted;
}

/* As in the vector forms a NaN stays as it is until the result is stored: its low half is zero already. */
static float rounded(const struct tare_gemm_epilogue *epilogue, float x) {
    return epilogue->rounds && x == x ? tare_float_from_bfloat16(tare_bfloat16_from_float(x)) : x;
}

static float apply(const struct tare_gemm_epilogue *e, float x, int64_t at, int64_t column) {
    x = rounded(e, x);
    if (e->scale) x = rounded(e, x * e->scale[column]);
    if (e->bias) x = rounded(e, x + e->bias[column]);
    if (e->mean) x = rounded(e, (x - e->mean[column]) * e->factor[column] + e->offset[column]);
    if (e->addend) x += e->addend[at];
    if (e->addend_bfloat16) x = rounded(e, x + tare_float_from_bfloat16(e->addend_bfloat16[at]));
    if (!e->relu) return x;
    if (x < 0) x = 0;
    return x > e->limit ? e->limit : x;
}

void tare_epilogue_plain(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc, int64_t rows,
                         int64_t columns, int64_t at, int64_t column) {
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            const int64_t k = i * ldc + j;
            const float x = apply(epilogue, c[k], at + k, column + j);
            if (epilogue->to)
                epilogue->to[at + k] = tare_bfloat16_from_float(x);
            else
                c[k] = x;
        }
    }
}

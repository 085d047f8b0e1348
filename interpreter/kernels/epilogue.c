/* General epilogues: the portable form, and what all forms share.
 *
 * Rounding to bfloat16 by integer operations takes four or five instructions. Two floating-point ones have the same
 * result for +0, NaN and normal values up to 2^112: q = x * (2^16 - 1) and x * 2^16 - q, the latter fused (Dekker's and
 * Veltkamp's splitting). For x in [2^e, 2^(e+1)), q is rounded to a multiple of 2^(e-7), the unit in the last place of
 * bfloat16; x * 2^16 is a multiple of it, an even one where x is halfway between two bfloat16 values, so the exact
 * difference is x rounded to nearest, ties to even. The constants' bounds below ensure that such values alone are
 * rounded:
 * - A sum below 2^-126 is not rounded correctly, but is less than half a unit in the last place of the following bias
 * or mean, which is at least 2^-60, so it does not change the result of the addition.
 * - The sum of two floats of which one is at least 2^-60 is 0 or at least 2^-85: if the other one is below 2^-62, it is
 *   at least 2^-61; otherwise both are multiples of 2^-85. A zero is positive, because one operand is not a zero.
 * - Sums of at most 2^60, a bias and a mean of at most 2^60, factors of at most 2^40 and offsets of at most 2^60 yield
 *   at most 2^103.
 * - What is added to the addend, a bfloat16 value of any magnitude, is a bfloat16 value as well: 0, where the sum is
 * the addend, whose product with 2^16 - 1 is exact, or at least 2^-85, where the sum is 0 or at least 2^-94. If the
 * sums with it are beyond 2^60 or NaN, they are rounded by integer operations. */
#include "interpreter/kernels/gemm.h"

#include "base/tensor/number.h"
#include "interpreter/kernels/simd/pointwise.h"

#include <math.h>

struct tare_gemm_epilogue tare_epilogue_shifted(const struct tare_gemm_epilogue *epilogue, int64_t elements,
                                                int64_t columns) {
    struct tare_gemm_epilogue shifted = *epilogue;
    if (columns != 0) shifted.is_repeated = false;
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

/* True if all magnitudes are in [least, most]. */
static bool are_within(const float *values, int64_t count, float least, float most) {
    int outside = 0;
    for (int64_t i = 0; i < count; i++)
        outside |= !(fabsf(values[i]) >= least) | !(fabsf(values[i]) <= most);
    return !outside;
}

bool tare_epilogue_is_bounded(const struct tare_gemm_epilogue *e, int64_t columns) {
    const float least = 0x1p-60f, most = TARE_EPILOGUE_MOST, *first = e->bias ? e->bias : e->mean;
    if (!e->is_general || !e->rounds || e->scale || !first || !are_within(first, columns, least, most)) return false;
    return !e->mean || (are_within(e->mean, columns, 0, most) && are_within(e->factor, columns, 0, 0x1p40f) &&
                        are_within(e->offset, columns, least, most));
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
    if (epilogue->activation) tare_pointwise_rows_at(TARE_CPU_PLAIN, epilogue->activation, c, ldc, rows, columns);
}

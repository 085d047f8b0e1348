/* Vector forms of simple epilogues (struct tare_gemm_epilogue) for the AVX2 and AVX-512 kernels; the scalar form is
 * tare_gemm_apply_epilogue. */
#ifndef TARE_INTERPRETER_KERNELS_EPILOGUE_H
#define TARE_INTERPRETER_KERNELS_EPILOGUE_H

#include "interpreter/kernels/gemm.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

/* The product with the scale, which is the first step. Separate, so that it is tested for once a tile. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_epilogue_scale_avx512(const struct tare_gemm_epilogue *epilogue,
                                                                        __m512 x, int64_t column, __mmask16 mask) {
    return _mm512_mul_ps(x, _mm512_maskz_loadu_ps(mask, epilogue->scale + column));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 tare_epilogue_scale_avx2(const struct tare_gemm_epilogue *epilogue, __m256 x,
                                                                    int64_t column, __m256i mask) {
    return _mm256_mul_ps(x, _mm256_maskload_ps(epilogue->scale + column, mask));
}

/* The steps after the scale. `at`: the elements' index in the addend, `column` in the bias. Of max and min the second
 * operand is the result where they are equal or one is NaN. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_epilogue_in_avx512(const struct tare_gemm_epilogue *epilogue,
                                                                     __m512 x, int64_t at, int64_t column,
                                                                     __mmask16 mask) {
    if (epilogue->bias) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, epilogue->bias + column));
    if (epilogue->addend) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, epilogue->addend + at));
    if (!epilogue->relu) return x;
    return _mm512_min_ps(_mm512_set1_ps(epilogue->limit), _mm512_max_ps(_mm512_setzero_ps(), x));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 tare_epilogue_in_avx2(const struct tare_gemm_epilogue *epilogue, __m256 x,
                                                                 int64_t at, int64_t column, __m256i mask) {
    if (epilogue->bias) x = _mm256_add_ps(x, _mm256_maskload_ps(epilogue->bias + column, mask));
    if (epilogue->addend) x = _mm256_add_ps(x, _mm256_maskload_ps(epilogue->addend + at, mask));
    if (!epilogue->relu) return x;
    return _mm256_min_ps(_mm256_set1_ps(epilogue->limit), _mm256_max_ps(_mm256_setzero_ps(), x));
}
#endif

#endif

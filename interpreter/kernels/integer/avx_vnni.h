/* The instructions of AVX-VNNI in their VEX encoding. They are assembly, so the functions that contain them have the
 * target AVX2 like those that they share code with, and gcc 12 keeps the sums in registers (see gemm_int_avx512.c).
 * They may only run at TARE_CPU_AVX_VNNI. */
#ifndef TARE_INTERPRETER_KERNELS_AVX_VNNI_H
#define TARE_INTERPRETER_KERNELS_AVX_VNNI_H

#include "interpreter/kernels/cpu.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

/* Adds to each 32-bit lane the products of its four unsigned bytes of x with the signed bytes of `weights`; wraps. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i tare_add_quads_avx_vnni(__m256i sum, __m256i x, __m256i weights) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "x"(weights));
    return sum;
}

/* Adds to each 32-bit lane the products of its two 16-bit integers of x with those of `weights`; wraps. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i tare_add_pairs_avx_vnni(__m256i sum, __m256i x, __m256i weights) {
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(x), "x"(weights));
    return sum;
}
#endif

#endif

/* Vector forms of simple and bounded epilogues (struct tare_gemm_epilogue) for the kernels of eight lanes, which
 * compute them in registers; the scalar form of simple ones is tare_gemm_apply_epilogue. */
#ifndef TARE_INTERPRETER_KERNELS_EPILOGUE_V8_H
#define TARE_INTERPRETER_KERNELS_EPILOGUE_V8_H

#include "interpreter/kernels/bfloat16_lanes.h"
#include "interpreter/kernels/gemm.h"
#include "interpreter/kernels/simd/v8.h"

#if TARE_KERNELS_V8
#include <math.h>

TARE_ALWAYS_INLINE TARE_TARGET_V8 tare_v8 tare_epilogue_scale_v8(const struct tare_gemm_epilogue *epilogue, tare_v8 x,
                                                                 int64_t column, tare_m8 mask) {
    return tare_v8_mul(x, tare_v8_load_lanes(epilogue->scale + column, mask));
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 tare_v8 tare_epilogue_in_v8(const struct tare_gemm_epilogue *epilogue, tare_v8 x,
                                                              int64_t at, int64_t column, tare_m8 mask) {
    if (epilogue->bias) x = tare_v8_add(x, tare_v8_load_lanes(epilogue->bias + column, mask));
    if (epilogue->addend) x = tare_v8_add(x, tare_v8_load_lanes(epilogue->addend + at, mask));
    if (!epilogue->relu) return x;
    return tare_v8_min(tare_v8_set(epilogue->limit), tare_v8_max(tare_v8_set(0), x));
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 tare_v8 tare_bounded_v8(tare_v8 x) {
    return tare_v8_fma(x, tare_v8_set(65536), tare_v8_mul(x, tare_v8_set(-65535)));
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 bool tare_sums_are_bounded_v8(const tare_v8 *sums, const int rows, const int step) {
    const float most = TARE_EPILOGUE_MOST;
    tare_v8 squares = tare_v8_set(0);
    TARE_UNROLL
    for (int i = 0; i < rows; i++)
        squares = tare_v8_fma(sums[i * step], sums[i * step], squares);
    return tare_v8_is_below(squares, most * most);
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 bool tare_may_round_v8(const struct tare_gemm_epilogue *e, const tare_v8 *sums,
                                                         const int rows, const int step) {
    return e->is_certain || tare_sums_are_bounded_v8(sums, rows, step);
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 void tare_bounded_vectors_v8(const struct tare_gemm_epilogue *e, tare_v8 *x,
                                                               const int rows, const int step, int64_t column,
                                                               tare_m8 mask, int64_t count) {
    TARE_UNROLL
    for (int i = 0; i < rows; i++)
        x[i * step] = tare_bounded_v8(x[i * step]);
    if (e->bias) {
        const tare_v8 bias = tare_v8_load_first(e->bias + column, mask, count);
        TARE_UNROLL
        for (int i = 0; i < rows; i++)
            x[i * step] = tare_bounded_v8(tare_v8_add(x[i * step], bias));
    }
    if (!e->mean) return;
    const tare_v8 mean = tare_v8_load_first(e->mean + column, mask, count);
    const tare_v8 factor = tare_v8_load_first(e->factor + column, mask, count);
    const tare_v8 offset = tare_v8_load_first(e->offset + column, mask, count);
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        const tare_v8 scaled = tare_v8_mul(tare_v8_sub(x[i * step], mean), factor);
        x[i * step] = tare_bounded_v8(tare_v8_add(scaled, offset));
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 void tare_bounded_addend_v8(const struct tare_gemm_epilogue *e, tare_v8 *x,
                                                              const int rows, const int step, int64_t ldc, int64_t at,
                                                              int64_t count) {
    TARE_UNROLL
    for (int i = 0; i < rows; i++)
        x[i * step] = tare_v8_add(x[i * step], tare_load_bfloat16_v8(e->addend_bfloat16 + at + i * ldc, count));
    const bool is_bounded = tare_sums_are_bounded_v8(x, rows, step);
    TARE_UNROLL
    for (int i = 0; i < rows; i++)
        x[i * step] = is_bounded ? tare_bounded_v8(x[i * step]) : tare_canonical_v8(tare_rounded_v8(x[i * step]));
}

/* As tare_epilogue_bounded_avx512 with all rows live and vectors of `count` columns, which `mask` selects. */
TARE_ALWAYS_INLINE TARE_TARGET_V8 void tare_epilogue_bounded_v8(const struct tare_gemm_epilogue *e, tare_v8 *x,
                                                                const int rows, const int step, float *c, int64_t ldc,
                                                                int64_t at, int64_t column, tare_m8 mask,
                                                                int64_t count) {
    tare_bounded_vectors_v8(e, x, rows, step, column, mask, count);
    if (e->addend_bfloat16) tare_bounded_addend_v8(e, x, rows, step, ldc, at, count);
    if (e->relu) {
        TARE_UNROLL
        for (int i = 0; i < rows; i++)
            x[i * step] = tare_v8_max(tare_v8_set(0), x[i * step]);
    }
    if (e->relu && e->limit < INFINITY) {
        TARE_UNROLL
        for (int i = 0; i < rows; i++)
            x[i * step] = tare_v8_min(tare_v8_set(e->limit), x[i * step]);
    }
    TARE_UNROLL
    for (int i = 0; i < rows; i++) {
        if (e->to)
            tare_store_bfloat16_v8(e->to + at + i * ldc, x[i * step], count);
        else
            tare_v8_store_first(c + i * ldc, x[i * step], mask, count);
    }
}
#endif

#endif

/* General epilogues with vectors of eight lanes, which hold columns, whose vectors are loaded once for all rows. */
#include "interpreter/kernels/bfloat16_lanes.h"
#include "interpreter/kernels/gemm.h"
#include "interpreter/kernels/simd/pointwise.h"

#include <math.h>

#if TARE_KERNELS_V8

enum { LANES = 8 };

/* Operands of 8 columns; those of absent steps are not used. */
struct vectors {
    tare_v8 scale, bias, mean, factor, offset;
};

TARE_ALWAYS_INLINE TARE_TARGET_V8 tare_v8 load(const float *from, int64_t column, tare_m8 mask) {
    return from ? tare_v8_load_lanes(from + column, mask) : tare_v8_set(0);
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 tare_v8 rounded(tare_v8 x, const bool rounds) {
    return rounds ? tare_rounded_v8(x) : x;
}

/* `count`: columns of the vector, at most 8. */
TARE_ALWAYS_INLINE TARE_TARGET_V8 tare_v8 apply(const struct tare_gemm_epilogue *e, const struct vectors *v, tare_v8 x,
                                                int64_t at, tare_m8 mask, int64_t count, const bool rounds) {
    x = rounded(x, rounds);
    if (e->scale) x = rounded(tare_v8_mul(x, v->scale), rounds);
    if (e->bias) x = rounded(tare_v8_add(x, v->bias), rounds);
    if (e->mean) x = rounded(tare_v8_add(tare_v8_mul(tare_v8_sub(x, v->mean), v->factor), v->offset), rounds);
    if (e->addend) x = tare_v8_add(x, tare_v8_load_lanes(e->addend + at, mask));
    if (e->addend_bfloat16) x = rounded(tare_v8_add(x, tare_load_bfloat16_v8(e->addend_bfloat16 + at, count)), rounds);
    if (e->relu) x = tare_v8_max(tare_v8_set(0), x);
    return e->relu && e->limit < INFINITY ? tare_v8_min(tare_v8_set(e->limit), x) : x;
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 void store(const struct tare_gemm_epilogue *e, float *c, int64_t at, tare_v8 x,
                                             tare_m8 mask, int64_t count) {
    if (!e->to) {
        tare_v8_store_first(c, x, mask, count);
        return;
    }
    tare_store_bfloat16_v8(e->to + at, tare_canonical_v8(x), count);
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 void run(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc,
                                           int64_t rows, int64_t columns, int64_t at, int64_t column,
                                           const bool rounds) {
    const struct tare_gemm_epilogue e = *epilogue;
    for (int64_t j = 0; j < columns; j += LANES) {
        const int64_t count = columns - j < LANES ? columns - j : LANES;
        const tare_m8 mask = tare_v8_first(count);
        const struct vectors v = { load(e.scale, column + j, mask), load(e.bias, column + j, mask),
                                   load(e.mean, column + j, mask), load(e.factor, column + j, mask),
                                   load(e.offset, column + j, mask) };
        for (int64_t i = 0; i < rows; i++) {
            const int64_t k = i * ldc + j;
            const tare_v8 x = apply(&e, &v, tare_v8_load_lanes(c + k, mask), at + k, mask, count, rounds);
            store(&e, c + k, at + k, x, mask, count);
        }
    }
}

TARE_TARGET_V8 void tare_epilogue_v8(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc, int64_t rows,
                                     int64_t columns, int64_t at, int64_t column) {
    if (epilogue->rounds)
        run(epilogue, c, ldc, rows, columns, at, column, true);
    else
        run(epilogue, c, ldc, rows, columns, at, column, false);
    if (epilogue->activation) tare_pointwise_rows_v8(epilogue->activation, c, ldc, rows, columns);
}
#endif

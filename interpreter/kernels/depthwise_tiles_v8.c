/* The variant of depthwise_tiles_loop.h with vectors of eight lanes. */
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/epilogue_v8.h"
#include "interpreter/kernels/simd/pointwise.h"

#if TARE_KERNELS_V8
#define TARGET TARE_TARGET_V8
#define LEVEL TARE_CPU_V8

typedef tare_v8 vec;
typedef tare_m8 vec_mask;
enum { LANES = 8, WIDE_LINES = 1, COLUMNS = 7, NARROW = 4, TOGETHER = 0 };

#define FUNCTION(type, name, parameters, result)                                                                       \
    TARE_ALWAYS_INLINE TARGET type name parameters {                                                                   \
        return result;                                                                                                 \
    }
FUNCTION(vec, set_vec, (float x), tare_v8_set(x))
FUNCTION(vec, mul_vec, (vec x, vec y), tare_v8_mul(x, y))
FUNCTION(vec, add_vec, (vec x, vec y), tare_v8_add(x, y))
FUNCTION(vec, max_vec, (vec x, vec y), tare_v8_max(x, y))
FUNCTION(vec, min_vec, (vec x, vec y), tare_v8_min(x, y))
FUNCTION(vec_mask, mask_of, (int64_t channels), tare_v8_first(channels))
FUNCTION(vec, load, (const float *from, vec_mask mask, const bool whole),
         whole ? tare_v8_load(from) : tare_v8_load_lanes(from, mask))
#undef FUNCTION

TARE_ALWAYS_INLINE TARGET vec add_product(vec sum, vec x, vec weight) {
#if TARE_KERNELS_X86 /* gcc keeps the sums in registers only with an instruction that overwrites its operand */
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(x), "x"(weight));
    return sum;
#else
    return tare_v8_fma(x, weight, sum);
#endif
}

TARE_ALWAYS_INLINE TARGET void store(float *to, vec x, vec_mask mask, const bool whole) {
    if (whole)
        tare_v8_store(to, x);
    else
        tare_v8_store_lanes(to, x, mask);
}

#include "interpreter/kernels/depthwise_tiles_loop.h"

/* The sums of an output line, which are arguments in registers. */
#define SUMS vec s0, vec s1, vec s2, vec s3, vec s4, vec s5, vec s6
#define SUMS_OF(x) x[0], x[1], x[2], x[3], x[4], x[5], x[6]

/* Sums that are beyond the bound, or of another general epilogue. */
static __attribute__((noinline)) TARGET void finish_in_memory(SUMS, const struct tile *tile, int64_t line,
                                                              const struct tare_gemm_epilogue *epilogue) {
    const vec sums[COLUMNS] = { s0, s1, s2, s3, s4, s5, s6 };
    const int64_t channels = tare_v8_lanes(tile->mask);
    float *y = tile->y + line * tile->y_line;
    TARE_UNROLL
    for (int i = 0; i < COLUMNS; i++)
        if (i < tile->count) tare_v8_store_first(y + i * tile->y_step, sums[i], tile->mask, channels);
    tare_epilogue_v8(epilogue, y, tile->y_step, tile->count, channels, tile->y_at + line * tile->y_line, tile->channel);
}

TARE_ALWAYS_INLINE TARGET void finish_general(vec sums[COLUMNS], const struct tile *tile, int line,
                                              const struct tare_gemm_epilogue *epilogue, const bool whole) {
    (void)whole; /* the mask is set */
    finish_in_memory(SUMS_OF(sums), tile, line, epilogue);
}

TARE_ALWAYS_INLINE TARGET void finish_columns(vec sums[COLUMNS], const struct tile *tile, int64_t line,
                                              const struct tare_gemm_epilogue *epilogue, const int count) {
    const int64_t at = line * tile->y_line;
    if (!tare_may_round_v8(epilogue, sums, count, 1))
        finish_in_memory(SUMS_OF(sums), tile, line, epilogue);
    else
        tare_epilogue_bounded_v8(epilogue, sums, count, 1, tile->y + at, tile->y_step, tile->y_at + at, tile->channel,
                                 tile->mask, LANES);
}

/* Of eight channels, by the number of columns that are stored. A bounded epilogue has much code, so it is a function of
 * its own instead of a part of every kernel. */
#define FINISH(n)                                                                                                      \
    static __attribute__((noinline)) TARGET void finish_bounded_##n(SUMS, const struct tile *tile, int64_t line,       \
                                                                    const struct tare_gemm_epilogue *epilogue) {       \
        vec sums[COLUMNS] = { s0, s1, s2, s3, s4, s5, s6 };                                                            \
        finish_columns(sums, tile, line, epilogue, n);                                                                 \
    }
FINISH(1)
FINISH(2)
FINISH(3)
FINISH(4)
FINISH(5)
FINISH(6)
FINISH(7)
#undef FINISH

/* Of fewer channels. */
static __attribute__((noinline)) TARGET void finish_bounded_part(SUMS, const struct tile *tile, int64_t line,
                                                                 const struct tare_gemm_epilogue *epilogue) {
    vec sums[COLUMNS] = { s0, s1, s2, s3, s4, s5, s6 };
    float *y = tile->y + line * tile->y_line;
    const int64_t at = tile->y_at + line * tile->y_line;
    const int64_t channels = tare_v8_lanes(tile->mask);
    if (!tare_may_round_v8(epilogue, sums, COLUMNS, 1)) {
        finish_in_memory(SUMS_OF(sums), tile, line, epilogue);
        return;
    }
    for (int64_t i = 0; i < tile->count; i++)
        tare_epilogue_bounded_v8(epilogue, sums + i, 1, 1, y + i * tile->y_step, tile->y_step, at + i * tile->y_step,
                                 tile->channel, tile->mask, channels);
}

TARE_ALWAYS_INLINE TARGET void finish_bounded(vec sums[COLUMNS], const struct tile *tile, int line,
                                              const struct tare_gemm_epilogue *epilogue, const bool whole) {
    static void (*const by_count[COLUMNS + 1])(SUMS, const struct tile *, int64_t,
                                               const struct tare_gemm_epilogue *) = {
        NULL,
        finish_bounded_1,
        finish_bounded_2,
        finish_bounded_3,
        finish_bounded_4,
        finish_bounded_5,
        finish_bounded_6,
        finish_bounded_7,
    };
    if (whole)
        by_count[tile->count](SUMS_OF(sums), tile, line, epilogue);
    else
        finish_bounded_part(SUMS_OF(sums), tile, line, epilogue);
}

tare_depthwise_image_kernel *tare_depthwise_tiles_v8(const struct tare_conv *conv) {
    return kernel_for(conv);
}
#endif

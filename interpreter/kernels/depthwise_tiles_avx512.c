/* The AVX-512 variant of depthwise_tiles_loop.h. */
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/epilogue.h"
#include "interpreter/kernels/simd/pointwise.h"

#if TARE_KERNELS_X86
#define TARGET TARE_TARGET_AVX512
#define LEVEL TARE_CPU_AVX512

typedef __m512 vec;
typedef __mmask16 vec_mask;
enum { LANES = 16, WIDE_LINES = 2, COLUMNS = 7, NARROW = 7, TOGETHER = 64 };

#define FUNCTION(type, name, parameters, result)                                                                       \
    TARE_ALWAYS_INLINE TARGET type name parameters {                                                                   \
        return result;                                                                                                 \
    }
FUNCTION(vec, set_vec, (float x), _mm512_set1_ps(x))
FUNCTION(vec, mul_vec, (vec x, vec y), _mm512_mul_ps(x, y))
FUNCTION(vec, add_vec, (vec x, vec y), _mm512_add_ps(x, y))
FUNCTION(vec, max_vec, (vec x, vec y), _mm512_max_ps(x, y))
FUNCTION(vec, min_vec, (vec x, vec y), _mm512_min_ps(x, y))
FUNCTION(vec_mask, mask_of, (int64_t channels), (vec_mask)(0xffffu >> (LANES - channels)))
#undef FUNCTION

/* gcc keeps the sums in registers only with an instruction that overwrites its operand. */
TARE_ALWAYS_INLINE TARGET vec add_product(vec sum, vec x, vec weight) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(weight));
    return sum;
}

/* Masked loads take a slot of the multiplications; `whole`: all channels of the vector exist. */
TARE_ALWAYS_INLINE TARGET vec load(const float *from, vec_mask mask, const bool whole) {
    return whole ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(mask, from);
}

TARE_ALWAYS_INLINE TARGET void store(float *to, vec x, vec_mask mask, const bool whole) {
    if (whole)
        _mm512_storeu_ps(to, x);
    else
        _mm512_mask_storeu_ps(to, mask, x);
}

#include "interpreter/kernels/depthwise_tiles_loop.h"

/* The sums of an output line, which are arguments in registers. A bounded epilogue has much code, so it is a function
 * of its own instead of a part of every kernel. */
#define SUMS vec s0, vec s1, vec s2, vec s3, vec s4, vec s5, vec s6
#define SUMS_OF(x) x[0], x[1], x[2], x[3], x[4], x[5], x[6]

/* Sums that are beyond the bound, or of another general epilogue. */
static __attribute__((noinline)) TARGET void finish_in_memory(SUMS, const struct tile *tile, int64_t line,
                                                              const struct tare_gemm_epilogue *epilogue) {
    const vec sums[COLUMNS] = { s0, s1, s2, s3, s4, s5, s6 };
    float *y = tile->y + line * tile->y_line;
    TARE_UNROLL
    for (int i = 0; i < COLUMNS; i++)
        if (i < tile->count) _mm512_mask_storeu_ps(y + i * tile->y_step, tile->mask, sums[i]);
    tare_epilogue_avx512(epilogue, y, tile->y_step, tile->count, __builtin_popcount(tile->mask),
                         tile->y_at + line * tile->y_line, tile->channel);
}

TARE_ALWAYS_INLINE TARGET void finish_general(vec sums[COLUMNS], const struct tile *tile, int line,
                                              const struct tare_gemm_epilogue *epilogue, const bool whole) {
    (void)whole; /* the mask is set */
    finish_in_memory(SUMS_OF(sums), tile, line, epilogue);
}

TARE_ALWAYS_INLINE TARGET void finish_columns(vec sums[COLUMNS], const struct tile *tile, int64_t line,
                                              const struct tare_gemm_epilogue *epilogue, const int count) {
    if (!tare_may_round_avx512(epilogue, sums, count, 1, count)) {
        finish_in_memory(SUMS_OF(sums), tile, line, epilogue);
        return;
    }
    tare_epilogue_bounded_avx512(epilogue, sums, count, 1, count, tile->y + line * tile->y_line, tile->y_step,
                                 tile->y_at + line * tile->y_line, tile->channel, 0xffff, false);
}

/* Of 16 channels, by the number of columns that are stored. */
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

typedef void finish_function(SUMS, const struct tile *tile, int64_t line, const struct tare_gemm_epilogue *epilogue);
static finish_function *const finish_bounded_whole[COLUMNS + 1] = {
    NULL,
    finish_bounded_1,
    finish_bounded_2,
    finish_bounded_3,
    finish_bounded_4,
    finish_bounded_5,
    finish_bounded_6,
    finish_bounded_7,
};

/* Of fewer than 16 channels. Two positions of eight channels fill a vector. */
static __attribute__((noinline)) TARGET void finish_bounded_part(SUMS, const struct tile *tile, int64_t line,
                                                                 const struct tare_gemm_epilogue *epilogue) {
    vec sums[COLUMNS] = { s0, s1, s2, s3, s4, s5, s6 };
    float *y = tile->y + line * tile->y_line;
    const int64_t at = tile->y_at + line * tile->y_line, count = tile->count;
    if (!tare_may_round_avx512(epilogue, sums, COLUMNS, 1, count)) {
        finish_in_memory(SUMS_OF(sums), tile, line, epilogue);
        return;
    }
    if (!epilogue->is_repeated || tile->y_step != 8) {
        tare_epilogue_bounded_avx512(epilogue, sums, COLUMNS, 1, count, y, tile->y_step, at, tile->channel, tile->mask,
                                     false);
        return;
    }
    vec pairs[COLUMNS / 2];
    TARE_UNROLL
    for (int i = 0; i < COLUMNS / 2; i++)
        pairs[i] = _mm512_insertf32x8(sums[2 * i], _mm512_castps512_ps256(sums[2 * i + 1]), 1);
    tare_epilogue_bounded_avx512(epilogue, pairs, COLUMNS / 2, 1, count / 2, y, 16, at, 0, 0xffff, false);
    if (count % 2 == 0) return;
    vec last = sums[0];
    TARE_UNROLL
    for (int i = 2; i < COLUMNS; i += 2)
        if (i == count - 1) last = sums[i];
    tare_epilogue_bounded_avx512(epilogue, &last, 1, 1, 1, y + (count - 1) * 8, 8, at + (count - 1) * 8, 0, 0xff,
                                 false);
}

TARE_ALWAYS_INLINE TARGET void finish_bounded(vec sums[COLUMNS], const struct tile *tile, int line,
                                              const struct tare_gemm_epilogue *epilogue, const bool whole) {
    if (whole)
        finish_bounded_whole[tile->count](SUMS_OF(sums), tile, line, epilogue);
    else
        finish_bounded_part(SUMS_OF(sums), tile, line, epilogue);
}

tare_depthwise_image_kernel *tare_depthwise_tiles_avx512(const struct tare_conv *conv) {
    return kernel_for(conv);
}
#endif

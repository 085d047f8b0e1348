/* Requantization in the pass that computes the int32 sums of a quantized product or convolution: the sums are
 * converted to the 8-bit result while they are in registers, so they are never stored. Residual additions of another
 * 8-bit tensor are included. The operations are those of the pipeline that it replaces (pipeline.h), in the same order
 * and with the same bits. */
#ifndef TARE_INTERPRETER_KERNELS_REQUANTIZE_H
#define TARE_INTERPRETER_KERNELS_REQUANTIZE_H

#include "base/arena.h"
#include "interpreter/kernels/cpu.h"
#include "interpreter/kernels/simd/avx2.h"
#include "interpreter/kernels/value_range.h"

#include <stdbool.h>
#include <stdint.h>

struct tare_bound_expression;

/* Adds, then clamps to [low, high] and rounds half to even; the bounds are in the range of the 8-bit type. */
struct tare_quantize_stage {
    float add, low, high;
};

/* The element of the addend that corresponds to an element of the result: (element - zero_point) * scale. */
struct tare_dequantize_stage {
    int32_t zero_point;
    float scale;
};

/* A float result instead of an 8-bit one: (sum + offset) * scale, plus a bias and an addend, in this order unless
 * `bias_is_last`, then max(low, x) and min(high, x). Its range may be collected. */
struct tare_real_stage {
    float *floats;                  /* element 0 of the result; NULL: it is only passed on */
    bool is_passed;                 /* blocks of the result are passed on while they are in the cache (conv_int.h) */
    const float *bias;              /* by column, readable as the scales; NULL: none */
    const float *addend;            /* its element 0; NULL: none */
    bool bias_is_last;              /* only with an addend */
    float low, high;                /* infinities: no bound */
    struct tare_value_range *range; /* to which the values are added; NULL: none */
};

struct tare_requantize {
    bool is_real; /* `real` is the result; the stages after `scale` are not used */
    struct tare_real_stage real;
    int64_t columns; /* of the product, which are those of the result's last dimension */
    /* by column; readable for 16 lanes beyond the last column, where the columns are repeated */
    const int32_t *offset;
    const float *scale;
    struct tare_quantize_stage first; /* of (sum + offset) * scale */
    /* A residual addition: the result of the first stage and the addend are dequantized, added and quantized again. */
    const void *addend; /* NULL: none */
    bool addend_is_unsigned;
    struct tare_dequantize_stage of_result, of_addend;
    struct tare_quantize_stage second;
    int32_t least; /* the smallest value of the result: a Relu after the addition; INT32_MIN: none */
    uint8_t *to;   /* element 0 of the result, int8 or uint8 */
};

/* The requantization that an expression consists of; false if it consists of something else. Its arrays come from
 * `arena` and remain valid as long as the operands of the expression. Does not set what tare_requantize_bind sets. */
bool tare_requantize_find(struct tare_requantize *out, const struct tare_bound_expression *bound,
                          struct tare_arena *arena);
/* Sets `to`, `floats`, `range` and the addends from the current operands of the expression. */
void tare_requantize_bind(struct tare_requantize *requantize, const struct tare_bound_expression *bound);

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

/* The range of the values that a kernel has stored so far, which it keeps in registers while it stores a tile. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 struct tare_range_avx2 tare_requantize_range_avx2(const struct tare_requantize *r) {
    const __m256i none = _mm256_setzero_si256();
    if (r && r->real.range) return tare_range_load_avx2(r->real.range);
    return (struct tare_range_avx2){ none, none, none };
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_requantize_store_range_avx2(const struct tare_requantize *r,
                                                                          const struct tare_range_avx2 *seen) {
    if (r && r->real.range) tare_range_store_avx2(r->real.range, seen);
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 struct tare_range_avx512
tare_requantize_range_avx512(const struct tare_requantize *r) {
    const __m512i none = _mm512_setzero_si512();
    if (r && r->real.range) return tare_range_load_avx512(r->real.range);
    return (struct tare_range_avx512){ none, none, none };
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_requantize_store_range_avx512(const struct tare_requantize *r,
                                                                              const struct tare_range_avx512 *seen) {
    if (r && r->real.range) tare_range_store_avx512(r->real.range, seen);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i tare_quantize_avx2(const struct tare_quantize_stage *stage, __m256 x) {
    x = _mm256_max_ps(_mm256_set1_ps(stage->low), _mm256_add_ps(x, _mm256_set1_ps(stage->add)));
    x = _mm256_min_ps(_mm256_set1_ps(stage->high), x);
    return _mm256_cvtps_epi32(x); /* to nearest even, as all arithmetic in the default rounding mode */
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 tare_dequantize_avx2(const struct tare_dequantize_stage *stage, __m256i x) {
    const __m256 real = _mm256_cvtepi32_ps(_mm256_sub_epi32(x, _mm256_set1_epi32(stage->zero_point)));
    return _mm256_mul_ps(real, _mm256_set1_ps(stage->scale));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i tare_requantize_sum_avx2(const struct tare_requantize *r, __m256i x,
                                                                     int64_t at, int count) {
    int64_t eight = 0;
    memcpy(&eight, (const char *)r->addend + at, (size_t)count);
    const __m128i bytes = _mm_cvtsi64_si128(eight);
    const __m256i other = r->addend_is_unsigned ? _mm256_cvtepu8_epi32(bytes) : _mm256_cvtepi8_epi32(bytes);
    const __m256 sum =
        _mm256_add_ps(tare_dequantize_avx2(&r->of_result, x), tare_dequantize_avx2(&r->of_addend, other));
    return _mm256_max_epi32(tare_quantize_avx2(&r->second, sum), _mm256_set1_epi32(r->least));
}

/* The float results of the first `count` lanes (1 to 8). */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_real_avx2(const struct tare_requantize *r, __m256 x, int64_t at,
                                                        int64_t column, int count, struct tare_range_avx2 *seen) {
    const struct tare_real_stage *real = &r->real;
    const __m256i mask = tare_lanes_avx2(count);
    if (real->bias && !real->bias_is_last) x = _mm256_add_ps(x, _mm256_loadu_ps(real->bias + column));
    if (real->addend) x = _mm256_add_ps(x, tare_load_avx2(real->addend + at, mask, count));
    if (real->bias_is_last) x = _mm256_add_ps(x, _mm256_loadu_ps(real->bias + column));
    x = _mm256_min_ps(_mm256_set1_ps(real->high), _mm256_max_ps(_mm256_set1_ps(real->low), x));
    tare_store_avx2(real->floats + at, x, mask, count);
    if (!real->range) return;
    if (count < 8) /* the other lanes repeat the first */
        x = _mm256_blendv_ps(_mm256_broadcastss_ps(_mm256_castps256_ps128(x)), x, _mm256_castsi256_ps(mask));
    tare_range_add_avx2(seen, x);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 tare_scaled_avx2(const struct tare_requantize *r, __m256i sums,
                                                            int64_t column) {
    const __m256i offset = _mm256_loadu_si256((const __m256i *)(r->offset + column));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(sums, offset)), _mm256_loadu_ps(r->scale + column));
}

/* Stores the first `count` lanes (1 to 8), which have values of the 8-bit type: the lowest byte of each lane. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_store_bytes_avx2(uint8_t *to, __m256i x, int count) {
    const __m256i lowest = _mm256_broadcastsi128_si256(_mm_set1_epi32(0x0c080400));
    const __m256i fours = _mm256_shuffle_epi8(x, lowest);
    const __m128i bytes = _mm_unpacklo_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
    if (count == 8) {
        _mm_storel_epi64((__m128i *)(void *)to, bytes);
        return;
    }
    const int64_t eight = _mm_cvtsi128_si64(bytes);
    memcpy(to, &eight, (size_t)count);
}

/* Requantizes the sums of the first `count` lanes (1 to 8) and stores them as elements `at` … of the result. Floats are
 * added to `seen`. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_requantize_avx2(const struct tare_requantize *r, __m256i sums, int64_t at,
                                                              int64_t column, int count, struct tare_range_avx2 *seen) {
    const __m256 real = tare_scaled_avx2(r, sums, column);
    if (r->is_real) {
        tare_real_avx2(r, real, at, column, count, seen);
        return;
    }
    __m256i x = tare_quantize_avx2(&r->first, real);
    if (r->addend) x = tare_requantize_sum_avx2(r, x, at, count);
    tare_store_bytes_avx2(r->to + at, x, count);
}

/* True if the result has 8 bits and no addend; tare_requantize_bytes_avx2 then computes what tare_requantize_avx2 does,
 * with few registers. */
TARE_ALWAYS_INLINE bool tare_requantize_is_bytes(const struct tare_requantize *r) {
    return !r->is_real && !r->addend;
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i tare_requantize_bytes_avx2(const struct tare_requantize *r, __m256i sums,
                                                                       int64_t column) {
    return tare_quantize_avx2(&r->first, tare_scaled_avx2(r, sums, column));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i tare_quantize_avx512(const struct tare_quantize_stage *stage, __m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(stage->low), _mm512_add_ps(x, _mm512_set1_ps(stage->add)));
    x = _mm512_min_ps(_mm512_set1_ps(stage->high), x);
    return _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_dequantize_avx512(const struct tare_dequantize_stage *stage,
                                                                    __m512i x) {
    const __m512 real = _mm512_cvtepi32_ps(_mm512_sub_epi32(x, _mm512_set1_epi32(stage->zero_point)));
    return _mm512_mul_ps(real, _mm512_set1_ps(stage->scale));
}

/* The residual addition to the quantized values of elements `at` … of the result. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i tare_requantize_sum_avx512(const struct tare_requantize *r, __m512i x,
                                                                         int64_t at, __mmask16 mask) {
    const __m128i bytes = _mm_maskz_loadu_epi8(mask, (const char *)r->addend + at);
    const __m512i other = r->addend_is_unsigned ? _mm512_cvtepu8_epi32(bytes) : _mm512_cvtepi8_epi32(bytes);
    const __m512 sum =
        _mm512_add_ps(tare_dequantize_avx512(&r->of_result, x), tare_dequantize_avx512(&r->of_addend, other));
    return _mm512_max_epi32(tare_quantize_avx512(&r->second, sum), _mm512_set1_epi32(r->least));
}

/* The float results of the mask's lanes. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_real_avx512(const struct tare_requantize *r, __m512 x, int64_t at,
                                                            int64_t column, __mmask16 mask,
                                                            struct tare_range_avx512 *seen) {
    const struct tare_real_stage *real = &r->real;
    if (real->bias && !real->bias_is_last) x = _mm512_add_ps(x, _mm512_loadu_ps(real->bias + column));
    if (real->addend) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, real->addend + at));
    if (real->bias_is_last) x = _mm512_add_ps(x, _mm512_loadu_ps(real->bias + column));
    x = _mm512_min_ps(_mm512_set1_ps(real->high), _mm512_max_ps(_mm512_set1_ps(real->low), x));
    _mm512_mask_storeu_ps(real->floats + at, mask, x);
    if (real->range) tare_range_add_avx512(seen, x, mask);
}

/* Requantizes the sums of the mask's lanes and stores them as elements `at` … of the result. Floats are added to
 * `seen`.
 */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_requantize_avx512(const struct tare_requantize *r, __m512i sums,
                                                                  int64_t at, int64_t column, __mmask16 mask,
                                                                  struct tare_range_avx512 *seen) {
    const __m512i total = _mm512_add_epi32(sums, _mm512_loadu_si512(r->offset + column));
    const __m512 real = _mm512_mul_ps(_mm512_cvtepi32_ps(total), _mm512_loadu_ps(r->scale + column));
    if (r->is_real) {
        tare_real_avx512(r, real, at, column, mask, seen);
        return;
    }
    __m512i x = tare_quantize_avx512(&r->first, real);
    if (r->addend) x = tare_requantize_sum_avx512(r, x, at, mask);
    _mm_mask_storeu_epi8(r->to + at, mask, _mm512_cvtepi32_epi8(x));
}
#endif

#endif

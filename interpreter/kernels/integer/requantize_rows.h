/* Requantization of rows of sums to bytes by AVX2 and AVX-512, for kernels that convert several vectors of sums
 * together: four vectors are packed at once, and packing with saturation replaces most of the clamping. */
#ifndef TARE_INTERPRETER_KERNELS_REQUANTIZE_ROWS_H
#define TARE_INTERPRETER_KERNELS_REQUANTIZE_ROWS_H

#include "interpreter/kernels/integer/requantize.h"

enum { TARE_ROW_LANES = 16 };

/* The bounds of the result, in the range of its type. */
struct tare_byte_bounds {
    bool is_possible; /* no stage before the last clamping exceeds int32: tare_rounded_result has the required bits */
    int32_t low, high;
};

#if TARE_KERNELS_X86
/* Of the `n` columns from `column` on. Float results are not possible. */
struct tare_byte_bounds tare_byte_bounds_of(const struct tare_requantize *r, int64_t column, int64_t n);

/* Adding 1.5 · 2^23 rounds a float of few bits half to even. */
static const float tare_rounding_shift = 12582912;

/* ---- AVX2 ---- */

/* The operands of a conversion to bytes, see struct tare_quantizer. */
struct tare_packing_avx2 {
    bool is_possible, is_signed, addend_is_unsigned;
    __m256i low, high;
    __m256 add;
    /* with an addend */
    __m256i first_low, first_high; /* the bits of the sums of `shift` and the rounded bounds */
    __m256 shift, shifted_zero_point, result_scale, addend_scale, second_add;
    __m256i addend_zero;
};

/* For the `n` columns from `column` on; `r` NULL: not possible. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 struct tare_packing_avx2 tare_packing_of_avx2(const struct tare_requantize *r,
                                                                                  int64_t column, int64_t n) {
    const struct tare_byte_bounds bounds = r ? tare_byte_bounds_of(r, column, n) : (struct tare_byte_bounds){ false };
    if (!bounds.is_possible) return (struct tare_packing_avx2){ .is_possible = false };
    return (struct tare_packing_avx2){
        .is_possible = true,
        .is_signed = bounds.high <= INT8_MAX,
        .addend_is_unsigned = r->addend_is_unsigned,
        .low = _mm256_set1_epi8((char)bounds.low),
        .high = _mm256_set1_epi8((char)bounds.high),
        .add = _mm256_set1_ps(r->first.add),
        .first_low = _mm256_castps_si256(_mm256_set1_ps(tare_rounding_shift + r->first.low)),
        .first_high = _mm256_castps_si256(_mm256_set1_ps(tare_rounding_shift + r->first.high)),
        .shift = _mm256_set1_ps(tare_rounding_shift),
        .shifted_zero_point = _mm256_set1_ps(tare_rounding_shift + (float)r->of_result.zero_point),
        .result_scale = _mm256_set1_ps(r->of_result.scale),
        .addend_scale = _mm256_set1_ps(r->of_addend.scale),
        .addend_zero = _mm256_set1_epi32(r->of_addend.zero_point),
        .second_add = _mm256_set1_ps(r->second.add),
    };
}

/* Results stay in the order of the source: compilers would compute one vector after the other, a chain of operations
 * that is longer than what the processor looks ahead. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 tare_kept_avx2(__m256 x) {
    __asm__("" : "+x"(x));
    return x;
}
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i tare_kept_integers_avx2(__m256i x) {
    __asm__("" : "+x"(x));
    return x;
}
/* For four vectors: x[i] = value. */
#define TARE_FOR_FOUR(x, value)                                                                                        \
    do {                                                                                                               \
        TARE_UNROLL                                                                                                    \
        for (int i = 0; i < 4; i++)                                                                                    \
            (x)[i] = value;                                                                                            \
    } while (0)

/* Four vectors of addends: see tare_addend_real. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_packing_addends_avx2(__m256 real[4], const struct tare_packing_avx2 *p,
                                                                   const char *const addend[4],
                                                                   const bool is_unsigned) {
    __m256i x[4];
    TARE_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)addend[i]);
        x[i] = tare_kept_integers_avx2(is_unsigned ? _mm256_cvtepu8_epi32(bytes) : _mm256_cvtepi8_epi32(bytes));
    }
    TARE_FOR_FOUR(x, tare_kept_integers_avx2(_mm256_sub_epi32(x[i], p->addend_zero)));
    TARE_FOR_FOUR(real, tare_kept_avx2(_mm256_cvtepi32_ps(x[i])));
    TARE_FOR_FOUR(real, tare_kept_avx2(_mm256_mul_ps(real[i], p->addend_scale)));
}

/* The rounded results of four vectors of sums with their offsets, before the last clamping: see tare_rounded_total.
 * `scale`: of each vector. `addend`: its elements, with `has_addend`. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void tare_packing_results_avx2(__m256i sum[4], const struct tare_packing_avx2 *p,
                                                                   const float *const scale[4],
                                                                   const char *const addend[4], const bool has_addend,
                                                                   const bool is_unsigned) {
    __m256 x[4], other[4];
    TARE_FOR_FOUR(x, tare_kept_avx2(_mm256_cvtepi32_ps(sum[i])));
    TARE_FOR_FOUR(x, tare_kept_avx2(_mm256_mul_ps(x[i], _mm256_loadu_ps(scale[i]))));
    TARE_FOR_FOUR(x, tare_kept_avx2(_mm256_add_ps(x[i], p->add)));
    if (has_addend) {
        TARE_FOR_FOUR(sum, tare_kept_integers_avx2(_mm256_castps_si256(_mm256_add_ps(x[i], p->shift))));
        TARE_FOR_FOUR(sum, tare_kept_integers_avx2(_mm256_max_epi32(sum[i], p->first_low)));
        TARE_FOR_FOUR(sum, tare_kept_integers_avx2(_mm256_min_epi32(sum[i], p->first_high)));
        tare_packing_addends_avx2(other, p, addend, is_unsigned);
        TARE_FOR_FOUR(x, tare_kept_avx2(_mm256_sub_ps(_mm256_castsi256_ps(sum[i]), p->shifted_zero_point)));
        TARE_FOR_FOUR(x, tare_kept_avx2(_mm256_mul_ps(x[i], p->result_scale)));
        TARE_FOR_FOUR(x, tare_kept_avx2(_mm256_add_ps(x[i], other[i])));
        TARE_FOR_FOUR(x, tare_kept_avx2(_mm256_add_ps(x[i], p->second_add)));
    }
    TARE_FOR_FOUR(sum, tare_kept_integers_avx2(_mm256_cvtps_epi32(x[i])));
}

/* Clamps four vectors and packs them to bytes, one after another. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256i tare_pack_avx2(const struct tare_packing_avx2 *p, const __m256i x[4],
                                                           const bool is_unsigned) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i first = _mm256_packs_epi32(x[0], x[1]), second = _mm256_packs_epi32(x[2], x[3]);
    __m256i bytes;
    if (is_unsigned)
        bytes = _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(first, second), p->low), p->high);
    else
        bytes = _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(first, second), p->low), p->high);
    return _mm256_permutevar8x32_epi32(bytes, order);
}

/* ---- AVX-512 ---- */

/* The operands of a conversion of up to two vectors of columns to bytes, in registers. */
struct tare_quantizer {
    __m512i low, high;
    __m512 scale[2], add;
    /* with an addend */
    __m512i first_low, first_high; /* the bits of the sums of `shift` and the rounded bounds */
    __m512 shift, shifted_zero_point, result_scale, addend_scale, second_add;
    __m512i addend_zero;
    bool addend_is_unsigned;
};

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i tare_shifted_bits(float x) {
    return _mm512_castps_si512(_mm512_set1_ps(tare_rounding_shift + x));
}

/* `second`: the columns of the second vector that exist. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 struct tare_quantizer tare_quantizer_of(const struct tare_requantize *r,
                                                                              const struct tare_byte_bounds *bounds,
                                                                              int64_t column, __mmask16 second) {
    return (struct tare_quantizer){
        .scale = { _mm512_loadu_ps(r->scale + column),
                   _mm512_maskz_loadu_ps(second, r->scale + column + TARE_ROW_LANES) },
        .add = _mm512_set1_ps(r->first.add),
        .low = _mm512_set1_epi8((char)bounds->low),
        .high = _mm512_set1_epi8((char)bounds->high),
        .first_low = tare_shifted_bits(r->first.low),
        .first_high = tare_shifted_bits(r->first.high),
        .shift = _mm512_set1_ps(tare_rounding_shift),
        .shifted_zero_point = _mm512_set1_ps(tare_rounding_shift + (float)r->of_result.zero_point),
        .result_scale = _mm512_set1_ps(r->of_result.scale),
        .addend_scale = _mm512_set1_ps(r->of_addend.scale),
        .second_add = _mm512_set1_ps(r->second.add),
        .addend_zero = _mm512_set1_epi32(r->of_addend.zero_point),
        .addend_is_unsigned = r->addend_is_unsigned,
    };
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i tare_rounded_sum(__m512 x, __m512 add) {
    return _mm512_cvt_roundps_epi32(_mm512_add_ps(x, add), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* dequantize(quantize(x)) of the first stage, without conversions to integers. The shifted value is rounded first and
 * then clamped as an integer, for which processors have more units than for floats: positive floats have the order of
 * their bits, and negative ones are below the bounds. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_requantized_real(const struct tare_quantizer *q, __m512 x) {
    const __m512i bits = _mm512_castps_si512(_mm512_add_ps(_mm512_add_ps(x, q->add), q->shift));
    const __m512i clamped = _mm512_min_epi32(q->first_high, _mm512_max_epi32(q->first_low, bits));
    x = _mm512_sub_ps(_mm512_castsi512_ps(clamped), q->shifted_zero_point); /* exact */
    return _mm512_mul_ps(x, q->result_scale);
}

/* (x - zero_point) * scale. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_addend_real(const struct tare_quantizer *q, const char *from,
                                                              __mmask16 mask) {
    const __m128i bytes =
        mask == 0xffff ? _mm_loadu_si128((const __m128i *)(const void *)from) : _mm_maskz_loadu_epi8(mask, from);
    const __m512i x = q->addend_is_unsigned ? _mm512_cvtepu8_epi32(bytes) : _mm512_cvtepi8_epi32(bytes);
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(x, q->addend_zero)), q->addend_scale);
}

/* The rounded results of sums to which the offsets have been added, before the last clamping. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i tare_rounded_alone(const struct tare_quantizer *q, __m512i sums,
                                                                 int vector) {
    const __m512 real = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), q->scale[vector]);
    return tare_rounded_sum(real, q->add);
}

/* The same with an addend, of whose elements the mask's exist. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i tare_rounded_total(const struct tare_quantizer *q, __m512i sums,
                                                                 int vector, const char *addend, __mmask16 mask) {
    const __m512 other = tare_addend_real(q, addend, mask);
    const __m512 real = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), q->scale[vector]);
    return tare_rounded_sum(_mm512_add_ps(tare_requantized_real(q, real), other), q->second_add);
}

/* `addend` NULL: none. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i tare_rounded_result(const struct tare_quantizer *q, __m512i sums,
                                                                  int vector, const char *addend, __mmask16 mask) {
    return addend ? tare_rounded_total(q, sums, vector, addend, mask) : tare_rounded_alone(q, sums, vector);
}

/* The bytes of four packed vectors, one after another: packing leaves 4 bytes of each in every 128-bit lane. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i tare_bytes_in_order(__m512i bytes) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, bytes);
}

/* Clamps four vectors and packs them to bytes, one after another. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512i tare_packed_bytes(const struct tare_quantizer *q, const __m512i x[4],
                                                                const bool is_unsigned) {
    const __m512i first = _mm512_packs_epi32(x[0], x[1]), second = _mm512_packs_epi32(x[2], x[3]);
    __m512i bytes;
    if (is_unsigned)
        bytes = _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(first, second), q->low), q->high);
    else
        bytes = _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(first, second), q->low), q->high);
    return tare_bytes_in_order(bytes);
}

/* ---- float results ---- */

/* What the conversion of rows of one or two vectors to floats reads in each of them. */
struct tare_real_columns {
    __m512i offset[2];
    __m512 scale[2], bias[2], low, high;
    __mmask16 mask[2];
    bool has_bias;     /* before the addend */
    bool bias_is_last; /* after it */
};

/* `masks`: the columns of each vector that exist. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 struct tare_real_columns
tare_real_columns_of(const struct tare_requantize *r, int64_t column, const __mmask16 masks[2], const int vectors) {
    struct tare_real_columns columns = { .low = _mm512_set1_ps(r->real.low),
                                         .high = _mm512_set1_ps(r->real.high),
                                         .has_bias = r->real.bias && !r->real.bias_is_last,
                                         .bias_is_last = r->real.bias_is_last };
    TARE_UNROLL
    for (int i = 0; i < vectors; i++, column += TARE_ROW_LANES) {
        columns.mask[i] = masks[i];
        columns.offset[i] = _mm512_maskz_loadu_epi32(masks[i], r->offset + column);
        columns.scale[i] = _mm512_maskz_loadu_ps(masks[i], r->scale + column);
        columns.bias[i] = columns.scale[i];
        if (r->real.bias) columns.bias[i] = _mm512_maskz_loadu_ps(masks[i], r->real.bias + column);
    }
    return columns;
}

/* The floats of a vector of sums. `addend`: its elements; NULL: none. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 __m512 tare_real_lanes(const struct tare_real_columns *columns, int vector,
                                                             __m512i sums, const float *addend) {
    const __m512i total = _mm512_add_epi32(sums, columns->offset[vector]);
    __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(total), columns->scale[vector]);
    if (columns->has_bias) x = _mm512_add_ps(x, columns->bias[vector]);
    if (addend) {
        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(columns->mask[vector], addend));
        if (columns->bias_is_last) x = _mm512_add_ps(x, columns->bias[vector]);
    }
    return _mm512_min_ps(columns->high, _mm512_max_ps(columns->low, x));
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_store_floats(float *to, __m512 x, __mmask16 mask, const bool is_full) {
    if (is_full)
        _mm512_storeu_ps(to, x);
    else
        _mm512_mask_storeu_ps(to, mask, x);
}

/* Where no value is negative, the greatest bits of negative ones are not updated: tare_value_range_end finds a sign bit
 * among the others. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tare_add_to_range(struct tare_range_avx512 *seen, __m512 x, __mmask16 mask,
                                                             const bool is_full, const bool has_sign) {
    const __m512i bits = _mm512_castps_si512(x);
    if (!is_full) {
        tare_range_add_avx512(seen, x, mask);
        return;
    }
    seen->low = _mm512_min_epi32(seen->low, bits);
    seen->high = _mm512_max_epi32(seen->high, bits);
    if (has_sign) seen->negative = _mm512_max_epu32(seen->negative, bits);
}
#endif

#endif

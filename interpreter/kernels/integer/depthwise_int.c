/* The integer depthwise rows: int8 widened to int32 lanes, one vector of channels over the positions. A product is a
 * multiply-add of 16-bit pairs whose second weight is zero, which is exact. */
#include "interpreter/kernels/conv.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <string.h>

enum { MOST_TAPS = 25 };

/* Weights of all taps of a row as lanes of int32 whose upper halves are cleared. */
#define WIDEN_WEIGHTS(row, c, count, load, clear)                                                                      \
    for (int64_t h = (row)->h0, t = 0; h < (row)->h1; h++) {                                                           \
        for (int64_t w = (row)->w0; w < (row)->w1; w++, t++)                                                           \
            weights[t] =                                                                                               \
                clear(load((const int8_t *)(row)->filter + h * (row)->filter_h + w * (row)->filter_w + (c), count));   \
    }

static TARE_TARGET_AVX512 __m512i load_512(const int8_t *from, __mmask16 mask) {
    return _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, from));
}
static TARE_TARGET_AVX512 __m512i clear_512(__m512i x) {
    return _mm512_and_si512(x, _mm512_set1_epi32(0xffff));
}

/* Channels [c, c + lanes of mask) of every position. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void channels_512(const struct tare_depthwise_row *row, int64_t c,
                                                        __mmask16 mask) {
    __m512i weights[MOST_TAPS];
    WIDEN_WEIGHTS(row, c, mask, load_512, clear_512)
    const int8_t *input = (const int8_t *)row->input + c;
    int32_t *output = (int32_t *)row->output + c;
    int64_t i = 0;
    for (; i + 2 <= row->count; i += 2, input += 2 * row->input_step, output += 2 * row->output_step) {
        __m512i first = _mm512_setzero_si512(), second = first;
        const __m512i *weight = weights;
        if (row->accumulate) {
            first = _mm512_maskz_loadu_epi32(mask, output);
            second = _mm512_maskz_loadu_epi32(mask, output + row->output_step);
        }
        for (int64_t h = row->h0; h < row->h1; h++) {
            const int8_t *x = input + h * row->input_h;
            for (int64_t w = row->w0; w < row->w1; w++, weight++) {
                const int8_t *at = x + w * row->input_w;
                first = _mm512_add_epi32(first, _mm512_madd_epi16(load_512(at, mask), *weight));
                second = _mm512_add_epi32(second, _mm512_madd_epi16(load_512(at + row->input_step, mask), *weight));
            }
        }
        _mm512_mask_storeu_epi32(output, mask, first);
        _mm512_mask_storeu_epi32(output + row->output_step, mask, second);
    }
    for (; i < row->count; i++, input += row->input_step, output += row->output_step) {
        __m512i sum = row->accumulate ? _mm512_maskz_loadu_epi32(mask, output) : _mm512_setzero_si512();
        const __m512i *weight = weights;
        for (int64_t h = row->h0; h < row->h1; h++) {
            const int8_t *x = input + h * row->input_h;
            for (int64_t w = row->w0; w < row->w1; w++, weight++)
                sum = _mm512_add_epi32(sum, _mm512_madd_epi16(load_512(x + w * row->input_w, mask), *weight));
        }
        _mm512_mask_storeu_epi32(output, mask, sum);
    }
}

static bool too_many_taps(const struct tare_depthwise_row *row) {
    return row->h1 - row->h0 > MOST_TAPS || row->w1 - row->w0 > MOST_TAPS ||
           (row->h1 - row->h0) * (row->w1 - row->w0) > MOST_TAPS;
}

TARE_TARGET_AVX512 void tare_depthwise_row_int8_avx512(const struct tare_depthwise_row *row) {
    if (too_many_taps(row)) {
        tare_depthwise_row_int8_plain(row);
        return;
    }
    int64_t c = 0;
    for (; c + 16 <= row->channels; c += 16)
        channels_512(row, c, 0xffff);
    if (c < row->channels) channels_512(row, c, (__mmask16)(0xffffu >> (16 - (row->channels - c))));
}

static TARE_TARGET_AVX2 __m256i load_256(const int8_t *from, int count) {
    (void)count;
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from));
}
static TARE_TARGET_AVX2 __m256i clear_256(__m256i x) {
    return _mm256_and_si256(x, _mm256_set1_epi32(0xffff));
}

static TARE_TARGET_AVX2 void channels_256(const struct tare_depthwise_row *row, int64_t c) {
    __m256i weights[MOST_TAPS];
    WIDEN_WEIGHTS(row, c, 8, load_256, clear_256)
    const int8_t *input = (const int8_t *)row->input + c;
    int32_t *output = (int32_t *)row->output + c;
    for (int64_t i = 0; i < row->count; i++, input += row->input_step, output += row->output_step) {
        __m256i sum = row->accumulate ? _mm256_loadu_si256((const __m256i *)output) : _mm256_setzero_si256();
        const __m256i *weight = weights;
        for (int64_t h = row->h0; h < row->h1; h++) {
            const int8_t *x = input + h * row->input_h;
            for (int64_t w = row->w0; w < row->w1; w++, weight++)
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load_256(x + w * row->input_w, 8), *weight));
        }
        _mm256_storeu_si256((__m256i *)output, sum);
    }
}

TARE_TARGET_AVX2 void tare_depthwise_row_int8_avx2(const struct tare_depthwise_row *row) {
    int64_t c = 0;
    for (; !too_many_taps(row) && c + 8 <= row->channels; c += 8)
        channels_256(row, c);
    if (c == row->channels) return;
    struct tare_depthwise_row rest = *row; /* the last channels do not fill a vector */
    rest.channels = row->channels - c;
    rest.input = (const int8_t *)row->input + c;
    rest.filter = (const int8_t *)row->filter + c;
    rest.output = (int32_t *)row->output + c;
    tare_depthwise_row_int8_plain(&rest);
}
#undef WIDEN_WEIGHTS
#endif

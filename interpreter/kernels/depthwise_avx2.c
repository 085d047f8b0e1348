/* The AVX2 variant of the depthwise row: lanes hold channels; four positions share each load of a weight. */
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/epilogue.h"

#if TARE_KERNELS_X86

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 __m256 load(const float *from, __m256i mask, const bool whole) {
    return whole ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, mask);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX2 void positions(const struct tare_depthwise_row *row, int64_t first, int64_t c,
                                                   __m256i mask, const bool whole, const int count) {
    const float *input = (const float *)row->input + first * row->input_step + c;
    float *output = (float *)row->output + first * row->output_step + c;
    const int64_t step = row->input_step;
    __m256 sum[4];
    TARE_UNROLL
    for (int i = 0; i < count; i++)
        sum[i] = row->accumulate ? load(output + i * row->output_step, mask, whole) : _mm256_setzero_ps();
    for (int64_t h = row->h0; h < row->h1; h++) {
        const float *weights = (const float *)row->filter + h * row->filter_h + c;
        const float *x = input + h * row->input_h;
        for (int64_t w = row->w0; w < row->w1; w++) {
            const __m256 weight = load(weights + w * row->filter_w, mask, whole);
            TARE_UNROLL
            for (int i = 0; i < count; i++)
                sum[i] = _mm256_fmadd_ps(load(x + w * row->input_w + i * step, mask, whole), weight, sum[i]);
        }
    }
    if (row->epilogue && row->epilogue->is_bounded) {
        const int64_t at = first * row->output_step + c, columns = whole ? 8 : row->channels - c;
        if (tare_may_round_avx2(row->epilogue, sum, count, 1)) {
            tare_epilogue_bounded_avx2(row->epilogue, sum, count, 1, output, row->output_step, at, c, mask, columns);
            return;
        }
        TARE_UNROLL
        for (int i = 0; i < count; i++)
            tare_store_avx2(output + i * row->output_step, sum[i], mask, columns);
        tare_epilogue_avx2(row->epilogue, output, row->output_step, count, columns, at, c);
        return;
    }
    if (row->epilogue && row->epilogue->scale) {
        TARE_UNROLL
        for (int i = 0; i < count; i++)
            sum[i] = tare_epilogue_scale_avx2(row->epilogue, sum[i], c, whole ? _mm256_set1_epi32(-1) : mask);
    }
    TARE_UNROLL
    for (int i = 0; i < count; i++) {
        if (row->epilogue)
            sum[i] = tare_epilogue_in_avx2(row->epilogue, sum[i], (first + i) * row->output_step + c, c,
                                           whole ? _mm256_set1_epi32(-1) : mask);
        if (whole)
            _mm256_storeu_ps(output + i * row->output_step, sum[i]);
        else
            _mm256_maskstore_ps(output + i * row->output_step, mask, sum[i]);
    }
}

TARE_TARGET_AVX2 void tare_depthwise_row_avx2(const struct tare_depthwise_row *row) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i tail = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(row->channels % 8)), lane);
    const int64_t whole = row->channels - row->channels % 8;
    int64_t i = 0;
    for (; i + 4 <= row->count; i += 4) {
        for (int64_t c = 0; c < whole; c += 8)
            positions(row, i, c, tail, true, 4);
        if (whole < row->channels) positions(row, i, whole, tail, false, 4);
    }
    for (; i < row->count; i++) {
        for (int64_t c = 0; c < whole; c += 8)
            positions(row, i, c, tail, true, 1);
        if (whole < row->channels) positions(row, i, whole, tail, false, 1);
    }
}
#endif

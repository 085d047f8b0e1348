/* The AVX-512 variant of the depthwise row: lanes hold channels; eight positions share each load of a weight. */
#include "graph/kernels/conv.h"

#if TARE_KERNELS_X86
#include <immintrin.h>

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void positions(const struct tare_depthwise_row *row, int64_t first, int64_t c,
                                                     __mmask16 mask, const int count) {
    const float *input = row->input + first * row->input_step + c;
    float *output = row->output + first * row->output_step + c;
    const int64_t step = row->input_step;
    __m512 sum[8];
    TARE_UNROLL
    for (int i = 0; i < count; i++)
        sum[i] = row->accumulate ? _mm512_maskz_loadu_ps(mask, output + i * row->output_step) : _mm512_setzero_ps();
    for (int64_t h = row->h0; h < row->h1; h++) {
        const float *weights = row->filter + h * row->filter_h + c;
        const float *x = input + h * row->input_h;
        for (int64_t w = row->w0; w < row->w1; w++) {
            const __m512 weight = _mm512_maskz_loadu_ps(mask, weights + w * row->filter_w);
            TARE_UNROLL
            for (int i = 0; i < count; i++)
                sum[i] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, x + w * row->input_w + i * step), weight, sum[i]);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < count; i++)
        _mm512_mask_storeu_ps(output + i * row->output_step, mask, sum[i]);
}

TARE_TARGET_AVX512 void tare_depthwise_row_avx512(const struct tare_depthwise_row *row) {
    int64_t i = 0;
    for (; i + 8 <= row->count; i += 8) {
        int64_t c = 0;
        for (; c + 16 <= row->channels; c += 16)
            positions(row, i, c, 0xffff, 8);
        if (c < row->channels) positions(row, i, c, (__mmask16)(0xffffu >> (16 - (row->channels - c))), 8);
    }
    for (; i + 2 <= row->count; i += 2) {
        int64_t c = 0;
        for (; c + 16 <= row->channels; c += 16)
            positions(row, i, c, 0xffff, 2);
        if (c < row->channels) positions(row, i, c, (__mmask16)(0xffffu >> (16 - (row->channels - c))), 2);
    }
    for (; i < row->count; i++) {
        for (int64_t c = 0; c < row->channels; c += 16) {
            const int64_t lanes = row->channels - c < 16 ? row->channels - c : 16;
            positions(row, i, c, (__mmask16)(0xffffu >> (16 - lanes)), 1);
        }
    }
}
#endif

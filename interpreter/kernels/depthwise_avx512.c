/* The AVX-512 variant of the depthwise row: lanes hold channels; up to eight positions share each load of a weight. For
 * what depthwise_tiles_avx512.c does not support. */
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/epilogue.h"

#if TARE_KERNELS_X86

/* The element at channel c of the position `position` elements after the row's first. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void store(const struct tare_depthwise_row *row, float *output, __m512 sum,
                                                 int64_t position, int64_t c, __mmask16 mask) {
    if (row->epilogue) sum = tare_epilogue_in_avx512(row->epilogue, sum, position + c, c, mask);
    _mm512_mask_storeu_ps(output, mask, sum);
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void positions(const struct tare_depthwise_row *row, int64_t first, int64_t c,
                                                     __mmask16 mask, const int count) {
    const float *input = (const float *)row->input + first * row->input_step + c;
    float *output = (float *)row->output + first * row->output_step + c;
    const int64_t step = row->input_step;
    __m512 sum[8];
    TARE_UNROLL
    for (int i = 0; i < count; i++)
        sum[i] = row->accumulate ? _mm512_maskz_loadu_ps(mask, output + i * row->output_step) : _mm512_setzero_ps();
    for (int64_t h = row->h0; h < row->h1; h++) {
        const float *weights = (const float *)row->filter + h * row->filter_h + c;
        const float *x = input + h * row->input_h;
        for (int64_t w = row->w0; w < row->w1; w++) {
            const __m512 weight = _mm512_maskz_loadu_ps(mask, weights + w * row->filter_w);
            TARE_UNROLL
            for (int i = 0; i < count; i++)
                sum[i] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, x + w * row->input_w + i * step), weight, sum[i]);
        }
    }
    if (row->epilogue && row->epilogue->is_bounded) {
        const int64_t at = first * row->output_step + c;
        if (tare_may_round_avx512(row->epilogue, sum, count, 1, count)) {
            tare_epilogue_bounded_avx512(row->epilogue, sum, count, 1, count, output, row->output_step, at, c, mask,
                                         true);
            return;
        }
        TARE_UNROLL
        for (int i = 0; i < count; i++)
            _mm512_mask_storeu_ps(output + i * row->output_step, mask, sum[i]);
        tare_epilogue_avx512(row->epilogue, output, row->output_step, count, __builtin_popcount(mask), at, c);
        return;
    }
    if (row->epilogue && row->epilogue->scale) {
        TARE_UNROLL
        for (int i = 0; i < count; i++)
            sum[i] = tare_epilogue_scale_avx512(row->epilogue, sum[i], c, mask);
    }
    TARE_UNROLL
    for (int i = 0; i < count; i++)
        store(row, output + i * row->output_step, sum[i], (first + i) * row->output_step, c, mask);
}

/* `count` positions over all channels; every count has its own code, so that the sums stay in registers. */
#define POSITIONS(n)                                                                                                   \
    static TARE_TARGET_AVX512 void positions_##n(const struct tare_depthwise_row *row, int64_t first) {                \
        int64_t c = 0;                                                                                                 \
        for (; c + 16 <= row->channels; c += 16)                                                                       \
            positions(row, first, c, 0xffff, n);                                                                       \
        if (c < row->channels) positions(row, first, c, (__mmask16)(0xffffu >> (16 - (row->channels - c))), n);        \
    }
POSITIONS(1)
POSITIONS(2)
POSITIONS(3)
POSITIONS(4)
POSITIONS(5)
POSITIONS(6)
POSITIONS(7)
POSITIONS(8)
#undef POSITIONS

void tare_depthwise_row_avx512(const struct tare_depthwise_row *row) {
    static void (*const by_count[])(const struct tare_depthwise_row *, int64_t) = {
        NULL, positions_1, positions_2, positions_3, positions_4, positions_5, positions_6, positions_7, positions_8,
    };
    const int64_t tiles = (row->count + 7) / 8; /* all nearly as wide */
    for (int64_t t = 0, first = 0; t < tiles; t++) {
        const int64_t end = (t + 1) * row->count / tiles;
        by_count[end - first](row, first);
        first = end;
    }
}
#endif

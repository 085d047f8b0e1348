/* The AVX-512 variant of the depthwise line: whole output lines, borders and all, of kernels 3, 5 and 7 wide with
 * stride 1 or 2. Lanes hold channels. Eight positions go together: a line of taps stays in registers, and each input
 * loaded value is used for every position that needs it. */
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/epilogue.h"

#if TARE_KERNELS_X86

enum { POSITIONS = 8 };

#if defined(__clang__)
#define UNROLL_COLUMNS _Pragma("unroll")
#else
#define UNROLL_COLUMNS _Pragma("GCC unroll 32")
#endif

/* Channels c … of positions [first, first + count). `inside`: every tap of all eight positions is in the input. */
TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void tile(const struct tare_depthwise_row *row, int64_t first, int64_t count,
                                                int64_t c, __mmask16 mask, const int size, const int stride,
                                                const bool inside) {
    float *output = (float *)row->output + first * row->output_step + c;
    const int64_t low = -(row->first_column + first * stride), high = row->columns + low;
    __m512 sum[POSITIONS];
    TARE_UNROLL
    for (int i = 0; i < POSITIONS; i++) {
        const bool more = row->accumulate && i < count;
        sum[i] = more ? _mm512_maskz_loadu_ps(mask, output + i * row->output_step) : _mm512_setzero_ps();
    }
    for (int64_t h = row->h0; h < row->h1; h++) {
        const float *filter = (const float *)row->filter + h * row->filter_h + c;
        const float *x = (const float *)row->input + h * row->input_h + first * row->input_step + c;
        __m512 weights[7];
        TARE_UNROLL
        for (int w = 0; w < size; w++)
            weights[w] = _mm512_maskz_loadu_ps(mask, filter + w * row->filter_w);
        UNROLL_COLUMNS
        for (int j = 0; j < (POSITIONS - 1) * stride + size; j++) {
            if (!inside && (j < low || j >= high)) continue;
            const __m512 value = _mm512_maskz_loadu_ps(mask, x + j * row->input_w);
            TARE_UNROLL
            for (int w = 0; w < size; w++) {
                const int at = j - w;
                if (at >= 0 && at % stride == 0 && at / stride < POSITIONS)
                    sum[at / stride] = _mm512_fmadd_ps(value, weights[w], sum[at / stride]);
            }
        }
    }
    if (row->epilogue && row->epilogue->is_bounded) {
        tare_epilogue_bounded_avx512(row->epilogue, sum, POSITIONS, 1, count, output, row->output_step,
                                     first * row->output_step + c, c, mask, true);
        return;
    }
    if (row->epilogue && row->epilogue->scale) {
        TARE_UNROLL
        for (int i = 0; i < POSITIONS; i++) {
            if (i >= count) break;
            sum[i] = tare_epilogue_scale_avx512(row->epilogue, sum[i], c, mask);
        }
    }
    TARE_UNROLL
    for (int i = 0; i < POSITIONS; i++) {
        if (i >= count) break;
        const int64_t at = (first + i) * row->output_step + c;
        if (row->epilogue) sum[i] = tare_epilogue_in_avx512(row->epilogue, sum[i], at, c, mask);
        _mm512_mask_storeu_ps(output + i * row->output_step, mask, sum[i]);
    }
}

TARE_ALWAYS_INLINE TARE_TARGET_AVX512 void line(const struct tare_depthwise_row *row, const int size,
                                                const int stride) {
    const int64_t reach = (POSITIONS - 1) * stride + size;
    for (int64_t c = 0; c < row->channels; c += 16) {
        const int64_t left = row->channels - c;
        const __mmask16 mask = left >= 16 ? 0xffff : (__mmask16)(0xffffu >> (16 - left));
        for (int64_t first = 0; first < row->count; first += POSITIONS) {
            const int64_t count = row->count - first < POSITIONS ? row->count - first : POSITIONS;
            const int64_t column = row->first_column + first * stride;
            if (column >= 0 && column + reach <= row->columns)
                tile(row, first, count, c, mask, size, stride, true);
            else
                tile(row, first, count, c, mask, size, stride, false);
        }
    }
}

#define LINE(size, stride)                                                                                             \
    static TARE_TARGET_AVX512 void line_##size##_##stride(const struct tare_depthwise_row *row) {                      \
        line(row, size, stride);                                                                                       \
    }
LINE(3, 1)
LINE(3, 2)
LINE(5, 1)
LINE(5, 2)
LINE(7, 1)
LINE(7, 2)
#undef LINE

tare_depthwise_kernel *tare_depthwise_line_avx512(int64_t size, int64_t stride) {
    static tare_depthwise_kernel *const lines[3][2] = {
        { line_3_1, line_3_2 },
        { line_5_1, line_5_2 },
        { line_7_1, line_7_2 },
    };
    if (size < 3 || size > 7 || size % 2 == 0 || stride < 1 || stride > 2) return NULL;
    return lines[size / 2 - 1][stride - 1];
}
#endif

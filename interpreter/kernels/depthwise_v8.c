/* The depthwise row with vectors of eight lanes: lanes hold channels; four positions share each load of a weight. */
#include "interpreter/kernels/conv.h"
#include "interpreter/kernels/epilogue_v8.h"

#if TARE_KERNELS_V8

TARE_ALWAYS_INLINE TARE_TARGET_V8 tare_v8 load(const float *from, tare_m8 mask, const bool whole) {
    return whole ? tare_v8_load(from) : tare_v8_load_lanes(from, mask);
}

TARE_ALWAYS_INLINE TARE_TARGET_V8 void positions(const struct tare_depthwise_row *row, int64_t first, int64_t c,
                                                 tare_m8 mask, const bool whole, const int count) {
    const float *input = (const float *)row->input + first * row->input_step + c;
    float *output = (float *)row->output + first * row->output_step + c;
    const int64_t step = row->input_step;
    tare_v8 sum[4];
    TARE_UNROLL
    for (int i = 0; i < count; i++)
        sum[i] = row->accumulate ? load(output + i * row->output_step, mask, whole) : tare_v8_set(0);
    for (int64_t h = row->h0; h < row->h1; h++) {
        const float *weights = (const float *)row->filter + h * row->filter_h + c;
        const float *x = input + h * row->input_h;
        for (int64_t w = row->w0; w < row->w1; w++) {
            const tare_v8 weight = load(weights + w * row->filter_w, mask, whole);
            TARE_UNROLL
            for (int i = 0; i < count; i++)
                sum[i] = tare_v8_fma(load(x + w * row->input_w + i * step, mask, whole), weight, sum[i]);
        }
    }
    if (row->epilogue && row->epilogue->is_bounded) {
        const int64_t at = first * row->output_step + c, columns = whole ? 8 : row->channels - c;
        if (tare_may_round_v8(row->epilogue, sum, count, 1)) {
            tare_epilogue_bounded_v8(row->epilogue, sum, count, 1, output, row->output_step, at, c, mask, columns);
            return;
        }
        TARE_UNROLL
        for (int i = 0; i < count; i++)
            tare_v8_store_first(output + i * row->output_step, sum[i], mask, columns);
        tare_epilogue_v8(row->epilogue, output, row->output_step, count, columns, at, c);
        return;
    }
    if (row->epilogue && row->epilogue->scale) {
        TARE_UNROLL
        for (int i = 0; i < count; i++)
            sum[i] = tare_epilogue_scale_v8(row->epilogue, sum[i], c, whole ? tare_v8_all() : mask);
    }
    TARE_UNROLL
    for (int i = 0; i < count; i++) {
        if (row->epilogue)
            sum[i] = tare_epilogue_in_v8(row->epilogue, sum[i], (first + i) * row->output_step + c, c,
                                         whole ? tare_v8_all() : mask);
        if (whole)
            tare_v8_store(output + i * row->output_step, sum[i]);
        else
            tare_v8_store_lanes(output + i * row->output_step, sum[i], mask);
    }
}

TARE_TARGET_V8 void tare_depthwise_row_v8(const struct tare_depthwise_row *row) {
    const tare_m8 tail = tare_v8_first(row->channels % 8);
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

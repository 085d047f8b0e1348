/* DecodeWav, EncodeWav, AudioSpectrogram and Mfcc (mel-frequency cepstral coefficients). */
#include "interpreter/kernels/elementary_double.h"
#include "base/alloc.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <math.h>
#include <string.h>

/* ---- WAV: RIFF chunks, 16-bit PCM ---- */

static uint32_t le32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static uint32_t le16(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

struct wav {
    uint32_t channels, rate;
    const unsigned char *samples;
    int64_t count; /* per channel */
};

static tare_status read_wav(struct wav *out, struct tare_str file) {
    const unsigned char *p = (const unsigned char *)file.data;
    size_t at = 12;
    *out = (struct wav){ 0 };
    if (file.size < 12 || memcmp(p, "RIFF", 4) != 0 || memcmp(p + 8, "WAVE", 4) != 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Header mismatch: Expected RIFF and WAVE");
    while (file.size - at >= 8) {
        const unsigned char *chunk = p + at;
        size_t size = le32(chunk + 4), left = file.size - at - 8;
        if (size > left)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Data too short when trying to read a chunk of %zu bytes at %zu",
                             size, at);
        if (memcmp(chunk, "fmt ", 4) == 0) {
            if (size < 16 || le16(chunk + 8) != 1)
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "Bad audio format for WAV: Expected 1 (PCM)");
            if (le16(chunk + 22) != 16)
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "Can only read 16-bit WAV files, but received %u",
                                 le16(chunk + 22));
            out->channels = le16(chunk + 10);
            out->rate = le32(chunk + 12);
            if (!out->channels) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Bad number of channels for WAV: 0");
        } else if (memcmp(chunk, "data", 4) == 0 && !out->samples) {
            if (!out->channels) return TARE_FAIL(TARE_INVALID_ARGUMENT, "WAV data comes before its format");
            out->samples = chunk + 8;
            out->count = (int64_t)(size / (2 * (size_t)out->channels));
        }
        at += 8 + size + (size & 1);
        if (at > file.size) break;
    }
    return out->samples ? TARE_OK : TARE_FAIL(TARE_INVALID_ARGUMENT, "The data chunk is missing in a WAV file");
}

static tare_status infer_decode_wav(struct tare_infer *infer) {
    int64_t channels = tare_node_int(infer->node, "desired_channels", -1);
    int64_t samples = tare_node_int(infer->node, "desired_samples", -1);
    TARE_TRY(tare_operand_rank(infer, 0, "contents", 0));
    if (channels == 0 || channels < -1 || samples < -1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "channels must be non-negative and non-zero, samples non-negative");
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[0].dims[0] = samples;
    infer->outputs[0].dims[1] = channels;
    infer->outputs[1] = tare_shape_scalar();
    return TARE_OK;
}

/* Missing samples are zero; a missing channel repeats the last one. */
static tare_status run_decode_wav(struct tare_kernel *kernel) {
    struct tare_shape *shapes;
    struct wav wav;
    int64_t samples, channels;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(read_wav(&wav, tare_text_at(&kernel->inputs[0], 0)));
    samples = shapes[0].dims[0] < 0 ? wav.count : shapes[0].dims[0];
    channels = shapes[0].dims[1] < 0 ? wav.channels : shapes[0].dims[1];
    shapes[0].dims[0] = samples;
    shapes[0].dims[1] = channels;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_FLOAT, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_INT32, &shapes[1]));
    TARE_DATA(int32_t, &kernel->outputs[1])[0] = (int32_t)wav.rate;
    for (int64_t i = 0; i < samples; i++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t source = c < wav.channels ? c : (int64_t)wav.channels - 1;
            float value = 0;
            if (i < wav.count) value = (int16_t)le16(wav.samples + 2 * (i * wav.channels + source)) * (1.0f / 32768.0f);
            TARE_DATA(float, &kernel->outputs[0])[i * channels + c] = value;
        }
    return TARE_OK;
}

static tare_status infer_encode_wav(struct tare_infer *infer) {
    TARE_TRY(tare_operand_rank(infer, 0, "audio", 2));
    TARE_TRY(tare_operand_rank(infer, 1, "sample_rate", 0));
    infer->outputs[0] = tare_shape_scalar();
    return TARE_OK;
}

static void put32(struct tare_strbuf *buf, uint32_t x) {
    for (int i = 0; i < 4; i++)
        tare_strbuf_putc(buf, (char)(x >> 8 * i));
}
static void put16(struct tare_strbuf *buf, uint32_t x) {
    for (int i = 0; i < 2; i++)
        tare_strbuf_putc(buf, (char)(x >> 8 * i));
}

static tare_status run_encode_wav(struct tare_kernel *kernel) {
    const struct tare_tensor *audio = &kernel->inputs[0];
    int64_t rate = tare_tensor_get_i64(&kernel->inputs[1], 0), channels, bytes;
    struct tare_strbuf buf = { 0 };
    struct tare_shape *shapes;
    tare_status status;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    channels = audio->shape.dims[1];
    bytes = 2 * audio->elements;
    if (channels < 1 || channels > UINT16_MAX || rate < 1 || bytes > UINT32_MAX - 64)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "sample_rate must be positive and channels in [1, 65535]");
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &shapes[0]));
    tare_strbuf_puts(&buf, "RIFF");
    put32(&buf, (uint32_t)(36 + bytes));
    tare_strbuf_puts(&buf, "WAVEfmt ");
    put32(&buf, 16);
    put16(&buf, 1);
    put16(&buf, (uint32_t)channels);
    put32(&buf, (uint32_t)rate);
    put32(&buf, (uint32_t)(rate * 2 * channels));
    put16(&buf, (uint32_t)(2 * channels));
    put16(&buf, 16);
    tare_strbuf_puts(&buf, "data");
    put32(&buf, (uint32_t)bytes);
    for (int64_t i = 0; i < audio->elements; i++) {
        float value = roundf(TARE_CONST_DATA(float, audio)[i] * 32768.0f);
        put16(&buf, (uint16_t)(int16_t)(value >= 32767 ? 32767 : value > -32768 ? value : -32768));
    }
    status = tare_text_store(&kernel->outputs[0], 0, &buf);
    tare_strbuf_free(&buf);
    return status;
}

/* ---- AudioSpectrogram ---- */

static int64_t transform_size(int64_t window) {
    int64_t size = 1;
    while (size < window)
        size *= 2;
    return size;
}

static tare_status infer_spectrogram(struct tare_infer *infer) {
    int64_t window = tare_node_int(infer->node, "window_size", 0), stride = tare_node_int(infer->node, "stride", 0);
    const struct tare_shape *in = &infer->inputs[0];
    TARE_TRY(tare_operand_rank(infer, 0, "input", 2));
    if (window < 2 || window > 1 << 26)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "window size must be in [2, 2^26] (got %lld)", (long long)window);
    if (stride < 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "stride must be positive (got %lld)", (long long)stride);
    infer->outputs[0] = tare_operand_unknown_dims(3);
    infer->outputs[0].dims[2] = transform_size(window) / 2 + 1;
    if (in->rank != 2) return TARE_OK;
    infer->outputs[0].dims[0] = in->dims[1];
    if (in->dims[0] >= 0) infer->outputs[0].dims[1] = in->dims[0] < window ? 0 : 1 + (in->dims[0] - window) / stride;
    return TARE_OK;
}

/* In-place radix-2 FFT of n complex numbers; `twiddles` contains exp(-2 pi i k / n) for k < n/2. */
static void transform(double (*x)[2], int64_t n, double (*twiddles)[2]) {
    for (int64_t i = 1, j = 0; i < n; i++) {
        int64_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j |= bit;
        for (int part = 0; i < j && part < 2; part++) {
            double held = x[i][part];
            x[i][part] = x[j][part];
            x[j][part] = held;
        }
    }
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t start = 0; start < n; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                double *a = x[start + k], *b = x[start + k + half], *w = twiddles[k * (n / (2 * half))];
                double re = b[0] * w[0] - b[1] * w[1], im = b[0] * w[1] + b[1] * w[0];
                b[0] = a[0] - re;
                b[1] = a[1] - im;
                a[0] += re;
                a[1] += im;
            }
}

/* Applies a periodic Hann window, pads with zeros to a power of two, and computes in double. */
static tare_status run_spectrogram(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t window = tare_node_int(kernel->node, "window_size", 0), stride = tare_node_int(kernel->node, "stride", 0);
    bool squared = tare_node_bool(kernel->node, "magnitude_squared", false);
    int64_t n, channels, frames, bins;
    double(*x)[2], (*twiddles)[2], *hann;
    float *to;
    TARE_TRY(tare_operand_output(kernel, 0));
    if (!kernel->outputs[0].elements) return TARE_OK; /* of any number of channels */
    n = transform_size(window);
    channels = kernel->outputs[0].shape.dims[0];
    frames = kernel->outputs[0].shape.dims[1];
    bins = n / 2 + 1;
    x = tare_arena_calloc(kernel->scratch, (size_t)n, sizeof *x);
    twiddles = tare_arena_calloc(kernel->scratch, (size_t)n, sizeof *twiddles);
    hann = tare_arena_calloc(kernel->scratch, (size_t)window, sizeof *hann);
    if (!x || !twiddles || !hann) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < window; i++)
        hann[i] = 0.5 - 0.5 * tare_cos(2 * M_PI * (double)i / (double)window);
    for (int64_t i = 0; i < n / 2; i++) {
        twiddles[i][0] = tare_cos(-2 * M_PI * (double)i / (double)n);
        twiddles[i][1] = tare_sin(-2 * M_PI * (double)i / (double)n);
    }
    to = TARE_DATA(float, &kernel->outputs[0]);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t f = 0; f < frames; f++, to += bins) {
            memset(x, 0, (size_t)n * sizeof *x);
            for (int64_t i = 0; i < window; i++)
                x[i][0] = (double)TARE_CONST_DATA(float, in)[(f * stride + i) * channels + c] * hann[i];
            transform(x, n, twiddles);
            for (int64_t i = 0; i < bins; i++) {
                double power = x[i][0] * x[i][0] + x[i][1] * x[i][1];
                to[i] = (float)(squared ? power : sqrt(power));
            }
        }
    return TARE_OK;
}

/* ---- Mfcc ---- */

static tare_status infer_mfcc(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    int64_t filters = tare_node_int(infer->node, "filterbank_channel_count", 40);
    int64_t coefficients = tare_node_int(infer->node, "dct_coefficient_count", 13);
    TARE_TRY(tare_operand_rank(infer, 0, "spectrogram", 3));
    TARE_TRY(tare_operand_rank(infer, 1, "sample_rate", 0));
    if (filters < 1 || filters > 1 << 20 || coefficients < 1 || coefficients > filters)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "filterbank_channel_count must be positive and at least dct_coefficient_count (got %lld and "
                         "%lld)",
                         (long long)filters, (long long)coefficients);
    infer->outputs[0] = in->rank == 3 ? *in : tare_operand_unknown_dims(3);
    infer->outputs[0].dims[2] = coefficients;
    return TARE_OK;
}

/* Triangular filters, evenly spaced on the mel scale. A spectrum bin contributes to the falling side of one filter
 * (-1: before the first) with a weight, and to the rising side of the next filter with the remaining weight. */
struct filterbank {
    int64_t bins, filters, first, last;
    int64_t *band;
    double *weight;
};

static double mel(double hertz) {
    return 1127.0 * tare_log1p(hertz / 700.0);
}

static tare_status make_filterbank(struct filterbank *bank, struct tare_arena *arena, const struct tare_node *node,
                                   int64_t bins, double rate) {
    double low = tare_node_float(node, "lower_frequency_limit", 20),
           high = tare_node_float(node, "upper_frequency_limit", 4000);
    double mel_low = mel(low), spacing, hertz, *center;
    int64_t n = tare_node_int(node, "filterbank_channel_count", 40), band = 0;
    *bank = (struct filterbank){ .bins = bins, .filters = n };
    if (bins < 2 || !(rate > 0) || !(low >= 0) || !(high > low))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Mfcc needs 2 or more spectrum bins, a positive sample rate and 0 <= "
                                                "lower_frequency_limit < upper_frequency_limit");
    bank->band = TARE_NEW_ARRAY(arena, int64_t, (size_t)bins);
    bank->weight = TARE_NEW_ARRAY(arena, double, (size_t)bins);
    center = TARE_NEW_ARRAY(arena, double, (size_t)n + 1);
    if (!bank->band || !bank->weight || !center) return TARE_NO_MEMORY;
    spacing = (mel(high) - mel_low) / (double)(n + 1);
    for (int64_t i = 0; i <= n; i++)
        center[i] = mel_low + spacing * (double)(i + 1);
    hertz = 0.5 * rate / (double)(bins - 1);
    bank->first = (int64_t)(1.5 + low / hertz);
    bank->last = high / hertz < (double)bins ? (int64_t)(high / hertz) : bins - 1;
    if (bank->last > bins - 1) bank->last = bins - 1;
    for (int64_t i = bank->first; i <= bank->last; i++) {
        double at = mel((double)i * hertz);
        while (band < n && center[band] < at)
            band++;
        bank->band[i] = band - 1;
        bank->weight[i] = band > 0 ? (center[band] - at) / (center[band] - center[band - 1])
                                   : (center[0] - at) / (center[0] - mel_low);
    }
    return TARE_OK;
}

static tare_status run_mfcc(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    struct filterbank bank;
    double *energy, *cosines, scale;
    int64_t coefficients, n, rows;
    const float *from;
    float *to;
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(make_filterbank(&bank, kernel->scratch, kernel->node, in->shape.dims[2],
                             (double)tare_tensor_get_i64(&kernel->inputs[1], 0)));
    n = bank.filters;
    coefficients = kernel->outputs[0].shape.dims[2];
    energy = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)n);
    cosines = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)(n * coefficients));
    if (!energy || !cosines) return TARE_NO_MEMORY;
    scale = sqrt(2.0 / (double)n);
    for (int64_t k = 0; k < coefficients; k++)
        for (int64_t i = 0; i < n; i++)
            cosines[k * n + i] = scale * tare_cos((double)k * M_PI / (double)n * ((double)i + 0.5));
    rows = in->shape.dims[0] * in->shape.dims[1];
    from = TARE_CONST_DATA(float, in);
    to = TARE_DATA(float, &kernel->outputs[0]);
    for (int64_t row = 0; row < rows; row++, from += bank.bins, to += coefficients) {
        memset(energy, 0, (size_t)n * sizeof *energy);
        for (int64_t i = bank.first; i <= bank.last; i++) {
            double value = sqrt((double)from[i]), falling = value * bank.weight[i];
            if (bank.band[i] >= 0) energy[bank.band[i]] += falling;
            if (bank.band[i] + 1 < n) energy[bank.band[i] + 1] += value - falling;
        }
        for (int64_t i = 0; i < n; i++)
            energy[i] = tare_log(energy[i] > 1e-12 ? energy[i] : 1e-12);
        for (int64_t k = 0; k < coefficients; k++) {
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += cosines[k * n + i] * energy[i];
            to[k] = (float)sum;
        }
    }
    return TARE_OK;
}

const struct tare_op tare_ops_audio[] = {
    { .name = "AudioSpectrogram", .infer = infer_spectrogram, .run = run_spectrogram },
    { .name = "DecodeWav", .infer = infer_decode_wav, .run = run_decode_wav },
    { .name = "EncodeWav", .infer = infer_encode_wav, .run = run_encode_wav },
    { .name = "Mfcc", .infer = infer_mfcc, .run = run_mfcc },
    { 0 },
};

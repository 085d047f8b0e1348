#include "graph/kernels/conv_int.h"

#include "base/alloc.h"

#include <string.h>

/* ---- dense ---- */

static size_t group_bytes(enum tare_igemm_form form, const struct tare_conv *conv) {
    return tare_igemm_packed_bytes(form, tare_conv_patch(conv), conv->out_channels / conv->groups);
}

size_t tare_conv_int_packed_bytes(enum tare_igemm_form form, const struct tare_conv *conv) {
    return group_bytes(form, conv) * (size_t)conv->groups;
}

void tare_conv_int_pack(void *packed, enum tare_igemm_form form, const struct tare_conv *conv, const int8_t *filter) {
    const int64_t n = conv->out_channels / conv->groups;
    for (int64_t g = 0; g < conv->groups; g++)
        tare_igemm_pack((char *)packed + (size_t)g * group_bytes(form, conv), form, filter + g * n,
                        tare_conv_patch(conv), n, conv->out_channels, 1);
}

bool tare_conv_int_pack_int32(void *packed, const struct tare_conv *conv, const int32_t *filter) {
    const int64_t n = conv->out_channels / conv->groups;
    for (int64_t g = 0; g < conv->groups; g++) {
        if (!tare_igemm_pack_int32((char *)packed + (size_t)g * group_bytes(TARE_IGEMM_PAIRS, conv), filter + g * n,
                                   tare_conv_patch(conv), n, conv->out_channels, 1))
            return false;
    }
    return true;
}

static void gather(const void *source, void *block, int64_t stride, int64_t first_row, int64_t rows, int64_t first_k,
                   int64_t count_k) {
    tare_conv_gather(source, block, stride, first_row, rows, first_k, count_k);
}

void tare_conv_int_dense(int32_t *output, const struct tare_conv *conv, const void *input, enum tare_igemm_form form,
                         const void *packed, void *scratch) {
    const int64_t n = conv->out_channels / conv->groups;
    for (int64_t g = 0; g < conv->groups; g++) {
        const struct tare_conv_patches patches = { conv, input, g, form == TARE_IGEMM_QUADS ? 1 : 2 };
        const struct tare_igemm_rows rows = { .gather = gather, .source = &patches };
        tare_igemm(output + g * n, conv->out_channels, &rows, form,
                   (const char *)packed + (size_t)g * group_bytes(form, conv), tare_conv_rows(conv), n,
                   tare_conv_patch(conv), scratch);
    }
}

/* ---- depthwise ---- */

/* sum[c] += x[c] * w[c] */
typedef void fold_function(int32_t *sum, const int16_t *x, const int16_t *w, int64_t count);

static void fold_plain(int32_t *sum, const int16_t *x, const int16_t *w, int64_t count) {
    for (int64_t c = 0; c < count; c++)
        sum[c] = (int32_t)((uint32_t)sum[c] + (uint32_t)(x[c] * w[c]));
}

#if TARE_KERNELS_X86
#include <immintrin.h>

static TARE_TARGET_AVX2 void fold_avx2(int32_t *sum, const int16_t *x, const int16_t *w, int64_t count) {
    int64_t c = 0;
    for (; c + 8 <= count; c += 8) {
        const __m256i a = _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(x + c)));
        const __m256i b = _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(w + c)));
        const __m256i old = _mm256_loadu_si256((const __m256i *)(sum + c));
        /* the upper halves are signs: the pair's second product must be nothing */
        const __m256i product = _mm256_madd_epi16(a, _mm256_and_si256(b, _mm256_set1_epi32(0xffff)));
        _mm256_storeu_si256((__m256i *)(sum + c), _mm256_add_epi32(old, product));
    }
    fold_plain(sum + c, x + c, w + c, count - c);
}
#endif

static int64_t input_index(const struct tare_conv *conv, int axis, int64_t out, int64_t tap) {
    const int64_t at = out * conv->stride[axis] + tap * conv->dilation[axis] - conv->pad[axis];
    const int64_t step = conv->base_dilation[axis];
    if (at < 0 || at % step != 0 || at / step >= conv->in[axis]) return -1;
    return at / step;
}

/* One output position. */
static void position(int32_t *sum, const struct tare_conv *conv, const int16_t *image, const int16_t *filter,
                     const int64_t out[3], fold_function *fold) {
    const int64_t channels = conv->in_channels;
    memset(sum, 0, (size_t)channels * sizeof *sum);
    for (int64_t kd = 0; kd < conv->kernel[0]; kd++) {
        const int64_t d = input_index(conv, 0, out[0], kd);
        for (int64_t kh = 0; d >= 0 && kh < conv->kernel[1]; kh++) {
            const int64_t h = input_index(conv, 1, out[1], kh);
            const int16_t *w = filter + (kd * conv->kernel[1] + kh) * conv->kernel[2] * channels;
            for (int64_t kw = 0; h >= 0 && kw < conv->kernel[2]; kw++, w += channels) {
                const int64_t at = input_index(conv, 2, out[2], kw);
                if (at < 0) continue;
                fold(sum, image + ((d * conv->in[1] + h) * conv->in[2] + at) * channels, w, channels);
            }
        }
    }
}

void tare_conv_int_depthwise_at(enum tare_cpu_level level, int32_t *output, const struct tare_conv *conv,
                                const int16_t *input, const int16_t *filter) {
    fold_function *fold = fold_plain;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) fold = fold_avx2;
#endif
    (void)level;
    const int64_t image = conv->in[0] * conv->in[1] * conv->in[2] * conv->in_channels;
    for (int64_t row = 0; row < tare_conv_rows(conv); row++, output += conv->out_channels) {
        const int64_t line = row / conv->out[2], slice = line / conv->out[1];
        const int64_t out[3] = { slice % conv->out[0], line % conv->out[1], row % conv->out[2] };
        position(output, conv, input + slice / conv->out[0] * image, filter, out, fold);
    }
}

void tare_conv_int_depthwise(int32_t *output, const struct tare_conv *conv, const int16_t *input,
                             const int16_t *filter) {
    tare_conv_int_depthwise_at(tare_cpu_level(), output, conv, input, filter);
}

/* Products of 16 terms with VNNI, such as pointwise convolutions of 16 channels, whose sums become bytes: two rows of
 * 32 columns at a time, with the weights in registers for all rows. With so few products most of the time is the
 * conversion, a chain of dependent operations that is longer than what the processor looks ahead. So two rows are
 * multiplied while the two before are converted, and their four vectors are converted side by side. */
#include "interpreter/kernels/integer/gemm_int_strips_vnni.h"

#if TARE_KERNELS_X86
#include <string.h>

enum { GROUPS = TARE_SHORT_GROUPS, GROUP = 64, TOGETHER = 2, VECTORS = 2 * TOGETHER, AHEAD = 8 };

/* Results stay in the order of the source: compilers would compute one vector after the other. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512 kept(__m512 x) {
    __asm__("" : "+v"(x));
    return x;
}
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i kept_integers(__m512i x) {
    __asm__("" : "+v"(x));
    return x;
}
/* For the vectors of both rows: x[i] = value. */
#define FOR_ALL(x, value)                                                                                              \
    do {                                                                                                               \
        TARE_UNROLL                                                                                                    \
        for (int i = 0; i < VECTORS; i++)                                                                              \
            (x)[i] = value;                                                                                            \
    } while (0)

/* ---- multiplication ---- */

struct weights {
    __m512i of[GROUPS][2], start[2];
};

TARE_ALWAYS_INLINE TARE_TARGET_VNNI struct weights weights_of(const struct tare_strips *s) {
    struct weights w;
    TARE_UNROLL
    for (int i = 0; i < 2; i++) {
        w.start[i] = _mm512_load_si512(s->start + i * TARE_ROW_LANES);
        TARE_UNROLL
        for (int g = 0; g < GROUPS; g++)
            w.of[g][i] = _mm512_loadu_si512(s->weights + i * s->panel_stride + g * GROUP);
    }
    return w;
}

/* The sums of two rows. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void multiply(__m512i sum[VECTORS], const struct weights *w, const char *a,
                                                  int64_t a_stride) {
    FOR_ALL(sum, w->start[i % 2]);
    TARE_UNROLL
    for (int g = 0; g < GROUPS; g++) {
        __m512i bytes[TOGETHER];
        TARE_UNROLL
        for (int row = 0; row < TOGETHER; row++) {
            int32_t group;
            memcpy(&group, a + row * a_stride + 4 * g, sizeof group);
            bytes[row] = _mm512_set1_epi32(group);
        }
        FOR_ALL(sum, kept_integers(_mm512_dpbusd_epi32(sum[i], bytes[i / 2], w->of[g][i % 2])));
    }
}

/* ---- conversion ---- */

/* See tare_addend_real. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void read_addends(__m512 real[VECTORS], const struct tare_quantizer *q,
                                                      const char *addend, int64_t stride, const bool is_unsigned) {
    __m512i x[VECTORS];
    TARE_UNROLL
    for (int i = 0; i < VECTORS; i++) {
        const char *from = addend + i / 2 * stride + i % 2 * TARE_ROW_LANES;
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
        x[i] = kept_integers(is_unsigned ? _mm512_cvtepu8_epi32(bytes) : _mm512_cvtepi8_epi32(bytes));
    }
    FOR_ALL(x, kept_integers(_mm512_sub_epi32(x[i], q->addend_zero)));
    FOR_ALL(real, kept(_mm512_cvtepi32_ps(x[i])));
    FOR_ALL(real, kept(_mm512_mul_ps(real[i], q->addend_scale)));
}

/* The bytes of two rows: see tare_rounded_total, tare_rounded_alone and tare_packed_bytes. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI __m512i converted(const struct tare_quantizer *q, __m512i sum[VECTORS],
                                                      const char *addend, int64_t stride, const bool is_unsigned,
                                                      const bool has_addend) {
    __m512 x[VECTORS], other[VECTORS];
    if (has_addend) read_addends(other, q, addend, stride, is_unsigned);
    FOR_ALL(x, kept(_mm512_cvtepi32_ps(sum[i])));
    FOR_ALL(x, kept(_mm512_mul_ps(x[i], q->scale[i % 2])));
    FOR_ALL(x, kept(_mm512_add_ps(x[i], q->add)));
    if (has_addend) {
        FOR_ALL(sum, kept_integers(_mm512_castps_si512(_mm512_add_ps(x[i], q->shift))));
        FOR_ALL(sum, kept_integers(_mm512_max_epi32(sum[i], q->first_low)));
        FOR_ALL(sum, kept_integers(_mm512_min_epi32(sum[i], q->first_high)));
        FOR_ALL(x, kept(_mm512_sub_ps(_mm512_castsi512_ps(sum[i]), q->shifted_zero_point)));
        FOR_ALL(x, kept(_mm512_mul_ps(x[i], q->result_scale)));
        FOR_ALL(x, kept(_mm512_add_ps(x[i], other[i])));
        FOR_ALL(x, kept(_mm512_add_ps(x[i], q->second_add)));
    }
    FOR_ALL(sum, kept_integers(_mm512_cvt_roundps_epi32(x[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)));
    return tare_packed_bytes(q, sum, is_unsigned);
}

/* ---- rows ---- */

/* Where the next rows are. */
struct place {
    const char *a, *addend;
    uint8_t *to;
};

/* Converts two rows, and stores as many of them as `stride` is apart: twice the same one with the stride 0. */
TARE_ALWAYS_INLINE TARE_TARGET_VNNI void store(const struct tare_quantizer *q, __m512i sum[VECTORS], struct place *at,
                                               int64_t stride, const bool is_unsigned, const bool has_addend) {
    const __m512i bytes = converted(q, sum, at->addend, stride, is_unsigned, has_addend);
    _mm256_storeu_si256((__m256i *)(void *)(at->to + stride), _mm512_extracti64x4_epi64(bytes, 1));
    _mm256_storeu_si256((__m256i *)(void *)at->to, _mm512_castsi512_si256(bytes));
    at->to += TOGETHER * stride;
    if (has_addend) at->addend += TOGETHER * stride;
}

TARE_ALWAYS_INLINE TARE_TARGET_VNNI void run(const struct tare_strips *s, int64_t rows, const bool is_unsigned,
                                             const bool has_addend) {
    const struct weights w = weights_of(s);
    const int64_t stride = s->stride, a_stride = s->a_stride;
    struct place at = { s->a, s->addend, s->to };
    __m512i sum[VECTORS], next[VECTORS];
    if (rows >= TOGETHER) multiply(sum, &w, at.a, a_stride);
    for (int64_t pairs = rows / TOGETHER; pairs > 1; pairs--) {
        at.a += TOGETHER * a_stride;
        multiply(next, &w, at.a, a_stride);
        __builtin_prefetch(at.to + AHEAD * stride, 1);
        __builtin_prefetch(at.to + (AHEAD + 1) * stride, 1);
        store(s->quantizer, sum, &at, stride, is_unsigned, has_addend);
        FOR_ALL(sum, next[i]);
    }
    if (rows >= TOGETHER) store(s->quantizer, sum, &at, stride, is_unsigned, has_addend);
    if (rows % TOGETHER == 0) return;
    multiply(sum, &w, s->a + (rows - 1) * a_stride, 0);
    store(s->quantizer, sum, &at, 0, is_unsigned, has_addend);
}

#define RUN(name, is_unsigned, has_addend)                                                                             \
    static TARE_TARGET_VNNI void name(const struct tare_strips *strips, int64_t rows) {                                \
        run(strips, rows, is_unsigned, has_addend);                                                                    \
    }
RUN(run_int8, false, false)
RUN(run_int8_addend, false, true)
RUN(run_uint8, true, false)
RUN(run_uint8_addend, true, true)
#undef RUN

void tare_short_run(const struct tare_strips *strips, int64_t rows) {
    if (strips->is_unsigned)
        (strips->addend ? run_uint8_addend : run_uint8)(strips, rows);
    else
        (strips->addend ? run_int8_addend : run_int8)(strips, rows);
}
#endif

/* The scan with AVX2: chunks of values; zeros write no slot. */
#include "calib/scan.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#include <stdbool.h>

enum { CHUNK = 32, VECTORS = CHUNK / 8 };

/* The lanes that are not in a set, from the lowest on: four bits for each. */
#define LANE(set, i)                                                                                                   \
    ((~(unsigned)(set) >> (i)&1u) * (unsigned)(i) << 4 * __builtin_popcount(~(unsigned)(set) & ((1u << (i)) - 1)))
#define LANES(set)                                                                                                     \
    LANE(set, 0) | LANE(set, 1) | LANE(set, 2) | LANE(set, 3) | LANE(set, 4) | LANE(set, 5) | LANE(set, 6) |           \
        LANE(set, 7)
#define FOUR(set) LANES(set), LANES((set) + 1), LANES((set) + 2), LANES((set) + 3)
#define SIXTEEN(set) FOUR(set), FOUR((set) + 4), FOUR((set) + 8), FOUR((set) + 12)
#define SIXTY_FOUR(set) SIXTEEN(set), SIXTEEN((set) + 16), SIXTEEN((set) + 32), SIXTEEN((set) + 48)
static const uint32_t other_lanes[256] = { SIXTY_FOUR(0), SIXTY_FOUR(64), SIXTY_FOUR(128), SIXTY_FOUR(192) };

struct state {
    __m256 low, high;
    __m256d sums[4], squares[4];
};

/* Writes the slots of a vector's values that are not zero first, and returns their number. */
TARE_TARGET_AVX2 TARE_ALWAYS_INLINE int put_slots(uint32_t *slots, __m256 value, unsigned zeros) {
    const __m256i order = _mm256_srlv_epi32(_mm256_set1_epi32((int32_t)other_lanes[zeros]),
                                            _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i slot = _mm256_srli_epi32(_mm256_castps_si256(value), TARE_SCAN_SHIFT);
    _mm256_storeu_si256((__m256i *)slots, _mm256_permutevar8x32_epi32(slot, order));
    return 8 - __builtin_popcount(zeros);
}

/* Extremes and sums of a vector, the first or the second of 16 (`half`). */
TARE_TARGET_AVX2 TARE_ALWAYS_INLINE void sum_up(struct state *s, int half, const float *values, __m256 value) {
    s->low = _mm256_min_ps(s->low, value);
    s->high = _mm256_max_ps(s->high, value);
    const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(values)), b = _mm256_cvtps_pd(_mm_loadu_ps(values + 4));
    s->sums[2 * half] = _mm256_add_pd(s->sums[2 * half], a);
    s->sums[2 * half + 1] = _mm256_add_pd(s->sums[2 * half + 1], b);
    /* The square of a float is exact in double: as multiply and add. */
    s->squares[2 * half] = _mm256_fmadd_pd(a, a, s->squares[2 * half]);
    s->squares[2 * half + 1] = _mm256_fmadd_pd(b, b, s->squares[2 * half + 1]);
}

/* Of finite values; returns the number of slots. */
TARE_TARGET_AVX2 TARE_ALWAYS_INLINE int add_chunk(struct state *s, uint32_t *slots, const float *values) {
    __m256 value[VECTORS], zero[VECTORS], any = _mm256_setzero_ps();
    int used = 0;
    TARE_UNROLL
    for (int i = 0; i < VECTORS; i++) {
        value[i] = _mm256_loadu_ps(values + 8 * i);
        zero[i] = _mm256_cmp_ps(value[i], _mm256_setzero_ps(), _CMP_EQ_OQ);
        any = _mm256_or_ps(any, zero[i]);
        sum_up(s, i % 2, values + 8 * i, value[i]);
    }
    if (_mm256_movemask_ps(any) == 0) {
        TARE_UNROLL
        for (int i = 0; i < VECTORS; i++)
            _mm256_storeu_si256((__m256i *)(slots + 8 * i),
                                _mm256_srli_epi32(_mm256_castps_si256(value[i]), TARE_SCAN_SHIFT));
        return CHUNK;
    }
    TARE_UNROLL
    for (int i = 0; i < VECTORS; i++)
        used += put_slots(slots + used, value[i], (unsigned)_mm256_movemask_ps(zero[i]));
    return used;
}

TARE_TARGET_AVX2 TARE_ALWAYS_INLINE void load_state(struct state *s, const struct tare_scan *scan) {
    s->low = _mm256_set1_ps(scan->low);
    s->high = _mm256_set1_ps(scan->high);
    for (int i = 0; i < 4; i++) {
        s->sums[i] = _mm256_loadu_pd(scan->sums + 4 * i);
        s->squares[i] = _mm256_loadu_pd(scan->squares + 4 * i);
    }
}

TARE_TARGET_AVX2 TARE_ALWAYS_INLINE void store_state(struct tare_scan *scan, const struct state *s) {
    const union {
        __m256 v[2];
        float f[2][8];
    } out = { { s->low, s->high } };
    for (int i = 0; i < 8; i++) {
        if (out.f[0][i] < scan->low) scan->low = out.f[0][i] + 0.0f; /* -0 becomes +0 */
        if (out.f[1][i] > scan->high) scan->high = out.f[1][i] + 0.0f;
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_pd(scan->sums + 4 * i, s->sums[i]);
        _mm256_storeu_pd(scan->squares + 4 * i, s->squares[i]);
    }
}

/* Squares of finite floats do not overflow, and one that is not finite makes its lane NaN or infinite. */
TARE_TARGET_AVX2 TARE_ALWAYS_INLINE bool are_finite(const struct state *s) {
    __m256d nothing = _mm256_setzero_pd(); /* infinity less itself is NaN */
    for (int i = 0; i < 4; i++)
        nothing = _mm256_add_pd(nothing, _mm256_sub_pd(s->squares[i], s->squares[i]));
    return _mm256_movemask_pd(_mm256_cmp_pd(nothing, nothing, _CMP_UNORD_Q)) == 0;
}

/* Scans chunks, of which `count` is a multiple. False, without effect, if a value is not finite. */
TARE_TARGET_AVX2 TARE_ALWAYS_INLINE bool scan_chunks(struct tare_scan *scan, int *used, uint32_t *slots,
                                                     const float *values, int count) {
    struct state s;
    int written = 0;
    load_state(&s, scan);
    for (int i = 0; i < count; i += CHUNK)
        written += add_chunk(&s, slots + written, values + i);
    if (!are_finite(&s)) return false;
    store_state(scan, &s);
    scan->zeros += count - written;
    *used += written;
    return true;
}

TARE_TARGET_AVX2 int tare_scan_avx2(struct tare_scan *scan, uint32_t *slots, const float *values, int count) {
    const int whole = count / CHUNK * CHUNK;
    int used = 0;
    if (!scan_chunks(scan, &used, slots, values, whole)) {
        for (int i = 0; i < whole; i += CHUNK)
            if (!scan_chunks(scan, &used, slots + used, values + i, CHUNK))
                used += tare_scan_plain(scan, slots + used, values + i, CHUNK);
    }
    return used + tare_scan_plain(scan, slots + used, values + whole, count - whole);
}
#endif

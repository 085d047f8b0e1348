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
    __m256i below_smallest, largest; /* below_smallest: less 1, which makes zeros the largest numbers */
    __m256d sums[4], squares[4];
};

/* A vector of finite values, the first or the second of 16 (`half`). Writes eight slots, those of no value last, and
 * returns the number of the others. */
TARE_TARGET_AVX2 TARE_ALWAYS_INLINE int step(struct state *s, int half, uint32_t *slots, const float *values,
                                             __m256i magnitude) {
    const __m256 value = _mm256_loadu_ps(values);
    const __m256 zero = _mm256_castsi256_ps(_mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256()));
    const unsigned zeros = (unsigned)_mm256_movemask_ps(zero);
    s->low = _mm256_min_ps(s->low, value);
    s->high = _mm256_max_ps(s->high, value);
    s->below_smallest = _mm256_min_epu32(s->below_smallest, _mm256_add_epi32(magnitude, _mm256_set1_epi32(-1)));
    const __m256i order = _mm256_srlv_epi32(_mm256_set1_epi32((int32_t)other_lanes[zeros]),
                                            _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i slot = _mm256_srli_epi32(_mm256_castps_si256(value), TARE_SCAN_SHIFT);
    _mm256_storeu_si256((__m256i *)slots, _mm256_permutevar8x32_epi32(slot, order));

    const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(values)), b = _mm256_cvtps_pd(_mm_loadu_ps(values + 4));
    s->sums[2 * half] = _mm256_add_pd(s->sums[2 * half], a);
    s->sums[2 * half + 1] = _mm256_add_pd(s->sums[2 * half + 1], b);
    /* The square of a float is exact in double: as multiply and add. */
    s->squares[2 * half] = _mm256_fmadd_pd(a, a, s->squares[2 * half]);
    s->squares[2 * half + 1] = _mm256_fmadd_pd(b, b, s->squares[2 * half + 1]);
    return 8 - __builtin_popcount(zeros);
}

/* False, without effect, if a value is not finite. */
TARE_TARGET_AVX2 TARE_ALWAYS_INLINE bool add_chunk(struct state *s, int *used, uint32_t *slots, const float *values) {
    __m256i magnitude[VECTORS], most = _mm256_setzero_si256();
    TARE_UNROLL
    for (int i = 0; i < VECTORS; i++) {
        const __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)(values + 8 * i));
        magnitude[i] = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
        most = _mm256_max_epi32(most, magnitude[i]);
    }
    const __m256i infinite = _mm256_cmpgt_epi32(most, _mm256_set1_epi32(0x7f7fffff));
    if (_mm256_movemask_epi8(infinite) != 0) return false;
    s->largest = _mm256_max_epi32(s->largest, most);
    TARE_UNROLL
    for (int i = 0; i < VECTORS; i++)
        *used += step(s, i % 2, slots + *used, values + 8 * i, magnitude[i]);
    return true;
}

TARE_TARGET_AVX2 static void load_state(struct state *s, const struct tare_scan *scan) {
    s->low = _mm256_set1_ps(scan->low);
    s->high = _mm256_set1_ps(scan->high);
    s->below_smallest = _mm256_set1_epi32((int32_t)(scan->smallest - 1));
    s->largest = _mm256_set1_epi32((int32_t)scan->largest);
    for (int i = 0; i < 4; i++) {
        s->sums[i] = _mm256_loadu_pd(scan->sums + 4 * i);
        s->squares[i] = _mm256_loadu_pd(scan->squares + 4 * i);
    }
}

TARE_TARGET_AVX2 static void store_state(struct tare_scan *scan, const struct state *s) {
    const union {
        __m256i v[4];
        float f[4][8];
        uint32_t u[4][8];
    } out = { { _mm256_castps_si256(s->low), _mm256_castps_si256(s->high), s->below_smallest, s->largest } };
    for (int i = 0; i < 8; i++) {
        if (out.f[0][i] < scan->low) scan->low = out.f[0][i] + 0.0f; /* -0 becomes +0 */
        if (out.f[1][i] > scan->high) scan->high = out.f[1][i] + 0.0f;
        if (out.u[2][i] < scan->smallest - 1) scan->smallest = out.u[2][i] + 1;
        if (out.u[3][i] > scan->largest) scan->largest = out.u[3][i];
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_pd(scan->sums + 4 * i, s->sums[i]);
        _mm256_storeu_pd(scan->squares + 4 * i, s->squares[i]);
    }
}

TARE_TARGET_AVX2 int tare_scan_avx2(struct tare_scan *scan, uint32_t *slots, const float *values, int count) {
    struct state s;
    int i = 0, used = 0;
    load_state(&s, scan);
    for (; i + CHUNK <= count; i += CHUNK) {
        const int before = used;
        if (add_chunk(&s, &used, slots, values + i)) {
            scan->zeros += CHUNK - (used - before);
            continue;
        }
        store_state(scan, &s);
        used += tare_scan_plain(scan, slots + used, values + i, CHUNK);
        load_state(&s, scan);
    }
    store_state(scan, &s);
    return used + tare_scan_plain(scan, slots + used, values + i, count - i);
}
#endif

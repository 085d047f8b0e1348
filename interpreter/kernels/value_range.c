#include "interpreter/kernels/value_range.h"

#include "base/tensor/number.h"

void tare_value_range_begin(struct tare_value_range *range) {
    for (int i = 0; i < TARE_RANGE_LANES; i++) {
        range->low[i] = INT32_MAX;
        range->high[i] = INT32_MIN;
        range->negative[i] = 0;
    }
}

static void add_bits(struct tare_value_range *range, int at, uint32_t bits) {
    if ((int32_t)bits < range->low[at]) range->low[at] = (int32_t)bits;
    if ((int32_t)bits > range->high[at]) range->high[at] = (int32_t)bits;
    if (bits > range->negative[at]) range->negative[at] = bits;
}

#if TARE_KERNELS_X86
/* Whole vectors of 16. */
static TARE_TARGET_AVX512 void add_avx512(struct tare_value_range *range, const float *values, int64_t count) {
    struct tare_range_avx512 seen = tare_range_load_avx512(range);
    for (int64_t i = 0; i < count; i += 16)
        tare_range_add_avx512(&seen, _mm512_loadu_ps(values + i), 0xffff);
    tare_range_store_avx512(range, &seen);
}
static TARE_TARGET_AVX2 void add_avx2(struct tare_value_range *range, const float *values, int64_t count) {
    struct tare_range_avx2 seen = tare_range_load_avx2(range);
    for (int64_t i = 0; i < count; i += 8)
        tare_range_add_avx2(&seen, _mm256_loadu_ps(values + i));
    tare_range_store_avx2(range, &seen);
}
#endif

void tare_value_range_add_at(enum tare_cpu_level level, struct tare_value_range *range, const float *values,
                             int64_t count) {
    int64_t i = 0;
#if TARE_KERNELS_X86
    if (level >= TARE_CPU_AVX2) i = count - count % 16;
    if (level >= TARE_CPU_AVX512)
        add_avx512(range, values, i);
    else if (level >= TARE_CPU_AVX2)
        add_avx2(range, values, i);
#endif
    (void)level;
    for (; i < count; i++)
        add_bits(range, 0, tare_float_bits(values[i]));
}

void tare_value_range_add(struct tare_value_range *range, const float *values, int64_t count) {
    tare_value_range_add_at(tare_cpu_level(), range, values, count);
}

void tare_value_range_merge(struct tare_value_range *range, const struct tare_value_range *other) {
    for (int i = 0; i < TARE_RANGE_LANES; i++) {
        if (other->low[i] < range->low[i]) range->low[i] = other->low[i];
        if (other->high[i] > range->high[i]) range->high[i] = other->high[i];
        if (other->negative[i] > range->negative[i]) range->negative[i] = other->negative[i];
    }
}

bool tare_value_range_end(float *low, float *high, const struct tare_value_range *range) {
    enum { ALL = 0 };
    const uint32_t sign = 0x80000000u;
    struct tare_value_range all = *range;
    for (int i = 1; i < TARE_RANGE_LANES; i++) {
        if (all.low[i] < all.low[ALL]) all.low[ALL] = all.low[i];
        if (all.high[i] > all.high[ALL]) all.high[ALL] = all.high[i];
        if (all.negative[i] > all.negative[ALL]) all.negative[ALL] = all.negative[i];
    }
    const bool has_sign = all.negative[ALL] >= sign;
    if (all.low[ALL] < 0 && !has_sign) return false; /* the kernel expected no sign bit */
    if (all.high[ALL] < 0 || (all.high[ALL] == 0 && has_sign) || all.negative[ALL] == sign) return false;
    *high = tare_float_from_bits((uint32_t)all.high[ALL]);
    *low = tare_float_from_bits(has_sign ? all.negative[ALL] : (uint32_t)all.low[ALL]);
    return *low == *low && *high == *high;
}

/* The floating-point histogram and the scan beneath it. */
#include "calib/histogram.h"
#include "calib/tally.h"

#include "base/alloc.h"
#include "support/draw.h"
#include "base/tensor/number.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static struct tare_tally *tally;

static int set_up(void **state) {
    (void)state;
    tally = tare_tally_new();
    return !tally;
}
static int tear_down(void **state) {
    (void)state;
    tare_tally_free(tally);
    return 0;
}

static void add(struct tare_histogram *histogram, const float *values, int64_t count) {
    struct tare_scan scan;
    tare_scan_begin(&scan);
    tare_tally_begin(tally, count);
    tare_tally_add(tally, &scan, values, count);
    assert_int_equal(tare_histogram_take(histogram, tally), TARE_OK);
}

/* Every kind of value, denormal numbers and both zeros among them. */
static float any_float(uint64_t *seed) {
    switch (draw_bits(seed) % 8) {
    case 0:
        return tare_float_from_bits((uint32_t)draw_bits(seed));
    case 1:
        return draw_bits(seed) & 1 ? 0.0f : -0.0f;
    case 2:
        return tare_float_from_bits((uint32_t)draw_bits(seed) & 0x807fffffu);
    case 3:
        return draw_bits(seed) % 64 ? 1.5f : draw_bits(seed) & 1 ? INFINITY : draw_bits(seed) & 1 ? -INFINITY : NAN;
    default:
        return draw_one(DRAW_NORMAL, seed);
    }
}

/* Of the first values, up to `most`. */
static void expect_equal_variants(const float *values, int64_t most) {
    tare_scan_fn *const variants[] = {
        tare_scan_plain,
#if TARE_KERNELS_X86
        tare_cpu_level() >= TARE_CPU_AVX2 ? tare_scan_avx2 : tare_scan_plain,
        tare_cpu_level() >= TARE_CPU_AVX512 ? tare_scan_avx512 : tare_scan_plain,
#endif
    };
    enum { VARIANTS = sizeof variants / sizeof *variants };
    for (int64_t count = 0; count <= most; count = count * 3 + 5) {
        for (int64_t expected = 1; expected <= 1 << 20; expected <<= 20) { /* slots are kept, or counted at once */
            struct tare_scan scans[VARIANTS];
            struct tare_histogram histograms[VARIANTS] = { { .zeros = 0 } };
            for (size_t v = 0; v < VARIANTS; v++) {
                tare_scan_begin(&scans[v]);
                tare_tally_set_scan(tally, variants[v]);
                tare_tally_begin(tally, expected);
                tare_tally_add(tally, &scans[v], values, count);
                assert_int_equal(tare_histogram_take(&histograms[v], tally), TARE_OK);
                assert_memory_equal(&scans[v], &scans[0], sizeof *scans);
                assert_true(tare_histogram_equal(&histograms[v], &histograms[0]));
            }
            for (size_t v = 0; v < VARIANTS; v++)
                tare_histogram_reset(&histograms[v]);
        }
    }
    tare_tally_set_scan(tally, tare_scan_best(tare_cpu_level()));
}

static void scan__every_variant_gives_the_same_bits(void **state) {
    (void)state;
    enum { COUNT = 3 * TARE_SCAN_BLOCK + 77, KINDS = 3 };
    static float values[COUNT + 1];
    for (int kind = 0; kind < KINDS; kind++) {
        uint64_t seed = 3;
        for (int i = 0; i <= COUNT; i++) {
            values[i] = any_float(&seed);
            if (kind > 0 && !isfinite(values[i])) values[i] = -0.0f;
            if (kind > 1 && i % 911 == 0) values[i] = i % 2 ? NAN : -INFINITY; /* a few */
        }
        for (int offset = 0; offset < 2; offset++) /* aligned to a vector and not */
            expect_equal_variants(values + offset, COUNT);
    }
}

static void scan__zeros_are_positive_extremes(void **state) {
    (void)state;
    float values[40];
    for (int i = 0; i < 40; i++)
        values[i] = i % 3 ? -0.0f : 0.0f;
    struct tare_scan scan;
    uint32_t slots[40];
    tare_scan_begin(&scan);
    tare_scan_best(tare_cpu_level())(&scan, slots, values, 40);
    assert_int_equal(tare_float_bits(scan.low), 0);
    assert_int_equal(tare_float_bits(scan.high), 0);
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void histogram__bins_are_ascending_and_hold_what_lies_in_their_bounds(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    static float values[COUNT];
    uint64_t seed = 11;
    for (int i = 0; i < COUNT; i++) {
        do
            values[i] = any_float(&seed);
        while (!isfinite(values[i]));
    }
    struct tare_histogram histogram = { .zeros = 0 };
    add(&histogram, values, COUNT);
    qsort(values, COUNT, sizeof *values, by_value);
    struct tare_histogram_bin *bins;
    size_t count;
    assert_int_equal(tare_histogram_list(&bins, &count, &histogram), TARE_OK);
    int64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(bins[i].low <= bins[i].high);
        if (i > 0) assert_true(bins[i - 1].high < bins[i].low);
        int64_t found = 0;
        while (at < COUNT && values[at] <= bins[i].high) {
            assert_true(values[at] >= bins[i].low);
            at++;
            found++;
        }
        assert_int_equal(found, bins[i].count);
    }
    assert_int_equal(at, COUNT);
    assert_int_equal(tare_histogram_finite(&histogram), COUNT);
    tare_free(bins);
    tare_histogram_reset(&histogram);
}

static void histogram__normal_bins_are_a_512th_of_an_octave(void **state) {
    (void)state;
    for (int page = 1; page < 255; page++) {
        for (int bin = 0; bin < TARE_HISTOGRAM_BINS; bin += 37) {
            struct tare_histogram_bin b = tare_histogram_bounds(page, bin);
            assert_true(b.low > 0 && (b.high - b.low) / b.low < 1.0 / 512);
            struct tare_histogram_bin mirrored = tare_histogram_bounds(page + 256, bin);
            assert_true(mirrored.low == -b.high && mirrored.high == -b.low);
        }
    }
}

static void histogram__zero_nan_and_infinities_are_apart(void **state) {
    (void)state;
    const float values[] = { 0.0f, -0.0f, NAN, INFINITY, -INFINITY, -INFINITY, -NAN, 1.0f, FLT_TRUE_MIN };
    struct tare_histogram histogram = { .zeros = 0 };
    add(&histogram, values, 9);
    assert_int_equal(histogram.zeros, 2);
    assert_int_equal(histogram.nans, 2);
    assert_int_equal(histogram.positive_infinities, 1);
    assert_int_equal(histogram.negative_infinities, 2);
    assert_int_equal(tare_histogram_finite(&histogram), 4);
    assert_int_equal(histogram.n_pages, 2); /* of the two finite values */
    tare_histogram_reset(&histogram);
}

static void histogram__flat_and_direct_counting_agree_and_any_split_merges_to_the_same(void **state) {
    (void)state;
    enum { COUNT = 50000 };
    static float values[COUNT];
    uint64_t seed = 5;
    for (int i = 0; i < COUNT; i++)
        values[i] = any_float(&seed);
    struct tare_histogram whole = { .zeros = 0 }, pieces = { .zeros = 0 }, other = { .zeros = 0 };
    add(&whole, values, COUNT); /* large: the flat table */
    int64_t at = 0;
    for (int64_t size = 1; at < COUNT; at += size, size = size % 700 + 13) { /* small: page by page */
        add(at % 2 ? &pieces : &other, values + at, at + size < COUNT ? size : COUNT - at);
    }
    assert_false(tare_histogram_equal(&whole, &pieces));
    assert_int_equal(tare_histogram_merge(&pieces, &other), TARE_OK);
    assert_true(tare_histogram_equal(&whole, &pieces));
    tare_histogram_reset(&whole);
    tare_histogram_reset(&pieces);
    tare_histogram_reset(&other);
}

/* Counts in one bin and in its neighbours, by takes of few values (direct) and of many (flat), past the limits of 8 and
 * 16 bits; merging goes past that of 32 bits. */
static void histogram__counters_grow_with_the_counts(void **state) {
    (void)state;
    enum { COUNT = 9000 };
    static float values[COUNT];
    struct tare_histogram histogram = { .zeros = 0 }, doubled = { .zeros = 0 };
    int64_t expected[TARE_HISTOGRAM_BINS] = { 0 }, total = 0, counts[TARE_HISTOGRAM_BINS];
    for (int turn = 0; turn < 600; turn++) {
        const int count = turn % 50 == 49 ? COUNT : 1 + turn % 300;
        for (int i = 0; i < count; i++) { /* most are 1, the first bin of its page */
            const int bin = i % 4 ? 0 : (turn + i) % TARE_HISTOGRAM_BINS;
            values[i] = 1 + (float)bin / TARE_HISTOGRAM_BINS;
            expected[bin]++;
        }
        add(&histogram, values, count);
        total += count;
        assert_int_equal(tare_histogram_finite(&histogram), total);
        assert_int_equal(histogram.n_pages, 1);
        assert_int_equal(tare_histogram_read_page(counts, &histogram, 0), 127);
        assert_memory_equal(counts, expected, sizeof counts);
    }
    assert_true(expected[0] > UINT16_MAX);
    for (int power = 1; power <= 40; power++) {
        assert_int_equal(tare_histogram_merge(&doubled, &histogram), TARE_OK);
        assert_int_equal(tare_histogram_merge(&histogram, &doubled), TARE_OK);
        tare_histogram_reset(&doubled);
        assert_int_equal(tare_histogram_merge(&doubled, &histogram), TARE_OK);
        assert_true(tare_histogram_equal(&histogram, &doubled));
        tare_histogram_reset(&doubled);
    }
    tare_histogram_read_page(counts, &histogram, 0);
    for (int i = 0; i < TARE_HISTOGRAM_BINS; i++)
        assert_true(counts[i] == expected[i] << 40);
    tare_histogram_reset(&histogram);
}

static void histogram__memory_that_runs_out_is_a_failure_and_leaves_the_tally_clean(void **state) {
    (void)state;
    static float values[20000];
    for (int i = 0; i < 20000; i++)
        values[i] = ldexpf(1.0f + (float)(i % 7) / 7, i % 40 - 20);
    for (int64_t count = 100; count <= 20000; count += 19900) {
        bool done = false;
        for (int n = 1; !done; n++) {
            struct tare_histogram histogram = { .zeros = 0 };
            struct tare_scan scan;
            tare_scan_begin(&scan);
            tare_alloc_fail_at(n);
            tare_tally_begin(tally, count);
            tare_tally_add(tally, &scan, values, count);
            tare_status status = tare_histogram_take(&histogram, tally);
            tare_alloc_fail_at(0);
            done = status == TARE_OK;
            tare_histogram_reset(&histogram);
            add(&histogram, values, count);
            assert_int_equal(tare_histogram_finite(&histogram), count);
            tare_histogram_reset(&histogram);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scan__every_variant_gives_the_same_bits),
        cmocka_unit_test(scan__zeros_are_positive_extremes),
        cmocka_unit_test(histogram__bins_are_ascending_and_hold_what_lies_in_their_bounds),
        cmocka_unit_test(histogram__normal_bins_are_a_512th_of_an_octave),
        cmocka_unit_test(histogram__zero_nan_and_infinities_are_apart),
        cmocka_unit_test(histogram__flat_and_direct_counting_agree_and_any_split_merges_to_the_same),
        cmocka_unit_test(histogram__counters_grow_with_the_counts),
        cmocka_unit_test(histogram__memory_that_runs_out_is_a_failure_and_leaves_the_tally_clean),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Bins as algorithms see them: sums, and places by value. */
#include "calib/bins.h"

#include "support/draw.h"
#include "base/tensor/number.h"
#include "calib/tally.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static struct tare_statistics see(const float *values, int count) {
    struct tare_statistics s = { .samples = 0 };
    struct tare_tally *tally = tare_tally_new();
    const struct tare_place place = { 0, 0, 0 };
    struct tare_shape shape = tare_shape_make(1, count);
    struct tare_tensor value;
    assert_non_null(tally);
    assert_int_equal(tare_tensor_wrap(&value, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(&s, tally, &value, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
    tare_tensor_reset(&value);
    tare_tally_free(tally);
    return s;
}

static size_t count_below(const struct tare_bins *bins, double value) {
    size_t count = 0;
    while (count < bins->count && bins->centers[count] < value)
        count++;
    return count;
}

static void assert_below(const struct tare_bins *bins, double value) {
    size_t got = tare_bins_below(bins, value), expected = count_below(bins, value);
    if (got != expected) fail_msg("%.17g: %zu bins below (expected %zu of %zu)", value, got, expected, bins->count);
}

/* Around every end and centre of a bin, to the next double and the next float. */
static void assert_all_places(const struct tare_statistics *s) {
    struct tare_bins bins;
    uint64_t seed = 3;
    assert_int_equal(tare_bins_make(&bins, s), TARE_OK);
    for (size_t i = 0; i < bins.count; i += 1 + bins.count / 400) {
        const double points[] = { bins.bins[i].low, bins.bins[i].high, bins.centers[i] };
        for (int k = 0; k < 3; k++) {
            assert_below(&bins, points[k]);
            assert_below(&bins, nextafter(points[k], INFINITY));
            assert_below(&bins, nextafter(points[k], -INFINITY));
            assert_below(&bins, nextafterf((float)points[k], INFINITY));
            assert_below(&bins, nextafterf((float)points[k], -INFINITY));
        }
    }
    const double special[] = { 0,       -0.0,     1e-300,       -1e-300,       1e-46,   -1e-46,
                               FLT_MIN, -FLT_MIN, FLT_TRUE_MIN, -FLT_TRUE_MIN, FLT_MAX, -FLT_MAX,
                               1e39,    -1e39,    INFINITY,     -INFINITY };
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        assert_below(&bins, special[i]);
    for (int i = 0; i < 2000; i++) {
        double share = draw_unit(&seed), spread = exp2(300 * draw_unit(&seed) - 150);
        assert_below(&bins, 1.2 * (bins.low + share * (bins.high - bins.low)));
        assert_below(&bins, (share - 0.5) * spread);
    }
    tare_bins_free(&bins);
}

static void below__counts_as_a_walk_over_all_bins_does(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    static float values[COUNT];
    for (int kind = 0; kind < DRAW_KINDS; kind++) {
        draw_fill(values, COUNT, (enum draw_kind)kind, 7 + (uint64_t)kind);
        struct tare_statistics s = see(values, COUNT);
        assert_all_places(&s);
        tare_statistics_reset(&s);
    }
}

static void below__holds_for_values_of_every_size(void **state) {
    (void)state;
    enum { COUNT = 5000 };
    static float values[COUNT];
    uint64_t seed = 21;
    int used = 0;
    while (used < COUNT) {
        float value = tare_float_from_bits((uint32_t)draw_bits(&seed));
        if (isfinite(value)) values[used++] = value;
    }
    struct tare_statistics s = see(values, COUNT);
    assert_all_places(&s);
    tare_statistics_reset(&s);
    const float few[] = { -FLT_MAX, -FLT_TRUE_MIN, -0.0f, FLT_TRUE_MIN, FLT_MIN, 1, FLT_MAX };
    for (int count = 1; count <= 7; count++) {
        s = see(few, count);
        assert_all_places(&s);
        tare_statistics_reset(&s);
        s = see(few + 7 - count, count);
        assert_all_places(&s);
        tare_statistics_reset(&s);
    }
}

static void sums__are_over_the_bins_before(void **state) {
    (void)state;
    const float values[] = { -2, 0, 0, 3, 3, 3 };
    struct tare_statistics s = see(values, 6);
    struct tare_bins bins;
    assert_int_equal(tare_bins_make(&bins, &s), TARE_OK);
    assert_int_equal(bins.count, 3);
    assert_true(bins.counts[1] == 1 && bins.counts[2] == 3 && tare_bins_total(&bins) == 6);
    assert_true(bins.bins[0].low == -2 && bins.bins[2].high == 3); /* cut to the extremes */
    assert_true(bins.centers[1] == 0);
    assert_true(bins.sums[3] == bins.centers[0] + 3 * bins.centers[2]);
    tare_bins_free(&bins);
    tare_statistics_reset(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below__counts_as_a_walk_over_all_bins_does),
        cmocka_unit_test(below__holds_for_values_of_every_size),
        cmocka_unit_test(sums__are_over_the_bins_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

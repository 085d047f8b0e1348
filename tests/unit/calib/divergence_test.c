/* Divergences of candidate ranges: approximate ones and bounds against exact ones. */
#include "calib/algos/divergence.h"

#include "base/alloc.h"
#include "support/draw.h"
#include "base/tensor/number.h"
#include "calib/tally.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { COUNT = 60000 };

/* Equal bins of a drawn distribution; the caller frees them. */
static struct tare_linear_bins *draw(enum draw_kind kind) {
    struct tare_linear_bins *linear = tare_calloc(1, sizeof *linear);
    float *values = tare_calloc(COUNT, sizeof *values);
    const struct tare_place place = { 0, 0, 0 };
    const struct tare_shape shape = tare_shape_make(1, COUNT);
    struct tare_tally *tally = tare_tally_new();
    struct tare_statistics s = { .samples = 0 };
    struct tare_tensor value;
    struct tare_bins bins;
    assert_true(linear && values && tally);
    draw_fill(values, COUNT, kind, 7);
    assert_int_equal(tare_tensor_wrap(&value, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(&s, tally, &value, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
    assert_int_equal(tare_bins_make(&bins, &s), TARE_OK);
    tare_linear_bins_make(linear, bins.bins, bins.count, fmax(fabs(bins.low), fabs(bins.high)));
    tare_bins_free(&bins);
    tare_statistics_reset(&s);
    tare_tensor_reset(&value);
    tare_tally_free(tally);
    tare_free(values);
    return linear;
}

/* Every range with as many bins as codes, one- and two-sided. Returns the ranges whose bound is half of the divergence
 * or more. */
static int compare(const struct tare_linear_bins *linear, int codes, const struct tare_log_table *table) {
    int close = 0;
    for (int i = 1; i <= linear->half; i++)
        for (int from = linear->half - i; from <= linear->half; from += i) {
            const int to = linear->half + i;
            if (to - from < codes) continue;
            const double exact = tare_divergence(linear, from, to, codes, NULL);
            const double bound = tare_divergence_bound(linear, from, to, codes);
            const double fast = tare_divergence(linear, from, to, codes, table);
            assert_true(bound <= exact + TARE_DIVERGENCE_ERROR);
            assert_true(fast == exact || fabs(fast - exact) <= TARE_DIVERGENCE_ERROR);
            close += bound >= 0.5 * exact && isfinite(exact) && exact > 0.01;
        }
    return close;
}

static void bounds__are_not_above_the_divergence(void **state) {
    static const int codes[] = { 2, 15, 128, 255 };
    struct tare_log_table table;
    int close = 0;
    (void)state;
    tare_log_table_fill(&table);
    for (int kind = 0; kind < DRAW_KINDS; kind++) {
        struct tare_linear_bins *linear = draw((enum draw_kind)kind);
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
            close += compare(linear, codes[c], &table);
        tare_free(linear);
    }
    assert_true(close > 1000); /* a bound of zero would leave every range to be searched */
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(bounds__are_not_above_the_divergence) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

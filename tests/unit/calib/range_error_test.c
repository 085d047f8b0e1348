/* Errors of deployed parameters are stored with the statistics, by parameters and number of samples. */
#include "calib/range_error.h"
#include "calib/tally.h"

#include "support/draw.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { COUNT = 4000 };

static void add_sample(struct tare_statistics *statistics, struct tare_tally *tally, uint64_t record) {
    static float values[COUNT];
    const struct tare_shape shape = tare_shape_make(1, (int64_t)COUNT);
    const struct tare_place place = { 0, (int64_t)record, 0 };
    struct tare_tensor tensor;
    draw_fill(values, COUNT, DRAW_LAPLACE, record + 1);
    assert_int_equal(tare_tensor_wrap(&tensor, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(statistics, tally, &tensor, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
    tare_tensor_reset(&tensor);
}

/* The error with bins made for it alone. */
static struct tare_range_error compute(const struct tare_qparams *params, const struct tare_statistics *statistics) {
    struct tare_bins bins;
    assert_int_equal(tare_bins_make(&bins, statistics), TARE_OK);
    const struct tare_range_error error = tare_range_error_of(params, statistics, &bins);
    const struct tare_quantization_error expected = tare_quantization_error_of(params, &bins);
    assert_memory_equal(&error.error, &expected, sizeof expected);
    assert_true(error.count == tare_bins_total(&bins) && error.squares == bins.squares[bins.count]);
    tare_bins_free(&bins);
    return error;
}

static void errors__are_found_by_parameters_and_samples(void **state) {
    const struct tare_qscheme scheme = { .bits = 8 };
    const struct tare_qparams params[] = { tare_qparams_of_range(-2, 2, &scheme),
                                           tare_qparams_of_range(-2, 3, &scheme) };
    struct tare_statistics statistics = { .samples = 0 };
    struct tare_tally *tally = tare_tally_new();
    struct tare_range_error first, second, found;
    (void)state;
    assert_non_null(tally);
    add_sample(&statistics, tally, 0);
    assert_false(tare_range_error_find(&found, &params[0], &statistics));
    first = compute(&params[0], &statistics);
    assert_false(tare_range_error_find(&found, &params[1], &statistics));
    second = compute(&params[1], &statistics);
    assert_true(first.error.clipping != second.error.clipping);
    assert_true(tare_range_error_find(&found, &params[0], &statistics));
    assert_memory_equal(&found, &first, sizeof first);
    assert_true(tare_range_error_find(&found, &params[1], &statistics));
    assert_memory_equal(&found, &second, sizeof second);
    add_sample(&statistics, tally, 1);
    assert_false(tare_range_error_find(&found, &params[0], &statistics));
    tare_statistics_reset(&statistics);
    tare_tally_free(tally);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors__are_found_by_parameters_and_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

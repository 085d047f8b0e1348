/* Limits of batch jobs: which figures violate them, and the reason that is reported. */
#include "eval/jobs/job_measure.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct tare_job_limits none = {
    .max_drop = -1, .min_sqnr_db = -HUGE_VAL, .max_size_bytes = -1, .max_mae = -1, .margin = -1, .max_time = -1
};

static void assert_reason(const struct tare_job_result *result, const struct tare_job_limits *limits,
                          const char *expected) {
    char reason[160] = "";
    assert_int_equal(tare_job_breaks_limit(reason, result, limits), *expected != 0);
    if (!strstr(reason, expected)) fail_msg("the reason is '%s' (expected '%s')", reason, expected);
    assert_true(strlen(reason) < sizeof reason - 1); /* not cut off */
}

/* Boxes, values of a regression, without what is expected of them. */
static void max_drop__of_an_output_without_classes(void **unused) {
    struct tare_job_limits limits = none;
    struct tare_job_result result = tare_job_result_new("job");
    (void)unused;
    result.loss = result.agreement = NAN;
    assert_reason(&result, &limits, "");
    limits.max_drop = 3;
    assert_reason(&result, &limits, "max_drop has no measure: the output is no classes");
}

static void min_sqnr__of_each_case(void **unused) {
    struct tare_job_limits limits = none;
    struct tare_job_result result = tare_job_result_new("job");
    (void)unused;
    result.sqnr_db = NAN;
    assert_reason(&result, &limits, "");
    limits.min_sqnr_db = 30;
    assert_reason(&result, &limits, "no SQNR, as it is a string or has no finite elements (use max_drop instead");
    result.sqnr_db = 29.5;
    assert_reason(&result, &limits, "SQNR is 29.50 dB (at least 30.00 expected)");
    result.sqnr_db = -INFINITY;
    assert_reason(&result, &limits, "NaN, infinite or missing elements where float's is finite");
    result.sqnr_db = 30;
    assert_reason(&result, &limits, "");
    result.sqnr_db = INFINITY;
    assert_reason(&result, &limits, "");
}

static void max_drop__applies_to_the_agreement_without_a_measure(void **unused) {
    struct tare_job_limits limits = none;
    struct tare_job_result result = tare_job_result_new("job");
    (void)unused;
    limits.max_drop = 1;
    result.agreement = 0.98;
    assert_reason(&result, &limits, "agreement with float falls by 2.00 points (at most 1.00 allowed)");
    result.agreement = 0.995;
    assert_reason(&result, &limits, "");
}

static void margin__needs_records_that_exclude_more(void **unused) {
    struct tare_job_limits limits = none;
    struct tare_job_result result = tare_job_result_new("job");
    (void)unused;
    limits.margin = 1;
    result.measure = "top1";
    result.records = 300;
    assert_reason(&result, &limits, "the records do not limit the loss (margin needs labels or expected values, of 20");
    result.loss_high = 1.6;
    assert_reason(&result, &limits, "top-1 may lose 1.60 points (at most 1.00 allowed, by 300 records)");
    result.loss_high = 0.9;
    assert_reason(&result, &limits, "");
}

/* The loss of whole records is not exact in binary; of an error it is a rise in percent. */
static void max_drop__allows_exactly_that_drop(void **unused) {
    struct tare_job_limits limits = none;
    struct tare_job_result result = tare_job_result_new("job");
    (void)unused;
    limits.max_drop = 0.1;
    result.measure = "top1";
    result.loss = 100 * (0.949 - 0.948);
    assert_true(result.loss > limits.max_drop);
    assert_reason(&result, &limits, "");
    result.loss = 0.2;
    assert_reason(&result, &limits, "top-1 falls by 0.20 points (at most 0.10 allowed)");
    result.measure = "mae";
    assert_reason(&result, &limits, "MAE rises by 0.20 % (at most 0.10 allowed)");
    result.measure = "psnr";
    assert_reason(&result, &limits, "PSNR falls by 0.20 dB (at most 0.10 allowed)");
    result.measure = "auc";
    assert_reason(&result, &limits, "AUC falls by 0.0020 (at most 0.0010 allowed)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_drop__of_an_output_without_classes),
        cmocka_unit_test(min_sqnr__of_each_case),
        cmocka_unit_test(max_drop__applies_to_the_agreement_without_a_measure),
        cmocka_unit_test(max_drop__allows_exactly_that_drop),
        cmocka_unit_test(margin__needs_records_that_exclude_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

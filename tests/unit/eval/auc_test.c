/* The area under the ROC curve against counting all pairs. */
#include "base/alloc.h"
#include "eval/auc.h"
#include "support/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static double area(const double *scores, const char *classes) {
    struct tare_auc auc = { 0 };
    double value;
    for (size_t i = 0; classes[i]; i++)
        assert_int_equal(tare_auc_add(&auc, scores[i], classes[i] == '+'), TARE_OK);
    tare_alloc_fail_at(1); /* ranking and figures need no memory */
    tare_auc_finish(&auc);
    value = tare_auc_value(&auc);
    assert_int_equal(tare_alloc_count(), 0);
    tare_alloc_fail_at(0);
    tare_auc_reset(&auc);
    return value;
}

static void perfect_order__is_one_and_its_reverse_zero(void **state) {
    const double scores[] = { -3, 0.5, 2, 7 };
    (void)state;
    assert_true(area(scores, "--++") == 1);
    assert_true(area(scores, "++--") == 0);
}

static void ties__count_half(void **state) {
    const double scores[] = { 1, 1, 1, 1 }, some[] = { 1, 2, 2, 3 };
    (void)state;
    assert_true(area(scores, "+-+-") == 0.5);
    assert_true(area(some, "-+-+") == 0.875); /* of 4 pairs 3 won and 1 tied */
}

static void one_class_alone__has_no_area(void **state) {
    const double scores[] = { 1, 2 };
    (void)state;
    assert_true(isnan(area(scores, "++")));
    assert_true(isnan(area(scores, "")));
}

static void nan__ranks_below_all(void **state) {
    const double scores[] = { NAN, -1e300 };
    (void)state;
    assert_true(area(scores, "+-") == 0);
}

static void any_data__equals_counting_pairs(void **state) {
    enum { COUNT = 400 };
    double scores[COUNT], won = 0, pairs = 0;
    char classes[COUNT + 1] = { 0 };
    uint64_t seed = 7;
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        scores[i] = floor(40 * draw_unit(&seed)); /* many ties */
        classes[i] = draw_unit(&seed) < 0.3 ? '+' : '-';
    }
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            if (classes[i] != '+' || classes[j] != '-') continue;
            pairs++;
            won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
        }
    assert_true(area(scores, classes) == won / pairs);
}

/* The examples of two models `repeats` times, ranked. */
static void open_two(struct tare_auc *a, struct tare_auc *b, int repeats) {
    const double first[] = { 0.1, 0.4, 0.35, 0.8, 0.7, 0.2, 0.9, 0.65 };
    const double second[] = { 0.2, 0.3, 0.5, 0.7, 0.4, 0.45, 0.8, 0.6 };
    const char classes[] = "--++--++";
    *a = *b = (struct tare_auc){ 0 };
    for (int repeat = 0; repeat < repeats; repeat++)
        for (size_t i = 0; classes[i]; i++) {
            assert_int_equal(tare_auc_add(a, first[i], classes[i] == '+'), TARE_OK);
            assert_int_equal(tare_auc_add(b, second[i], classes[i] == '+'), TARE_OK);
        }
    tare_auc_finish(a);
    tare_auc_finish(b);
}

/* Figures from the definition (all pairs, sample covariances) in Python. */
static void interval_and_test__are_delongs(void **state) {
    struct tare_auc a, b;
    struct tare_paired p;
    double low, high;
    (void)state;
    open_two(&a, &b, 1);
    assert_true(tare_auc_value(&a) == 0.8125 && tare_auc_value(&b) == 1);
    tare_auc_interval(&low, &high, &a);
    assert_float_equal(low, 0.48077452745611, 1e-12);
    assert_true(high == 1);
    tare_auc_paired(&p, &a, &b, TARE_TAIL_95);
    assert_true(p.loss == 0.1875 && isnan(p.high)); /* too few */
    tare_auc_reset(&a);
    tare_auc_reset(&b);
    open_two(&a, &b, 3);
    tare_alloc_fail_at(1);
    tare_auc_paired(&p, &a, &b, TARE_TAIL_95);
    assert_int_equal(tare_alloc_count(), 0);
    tare_alloc_fail_at(0);
    assert_float_equal(p.loss, 0.1875, 1e-12);
    assert_float_equal(p.high - p.loss, 1.959963984540054 * 0.08838834764831845, 1e-9);
    tare_auc_paired(&p, &a, &a, TARE_TAIL_95);
    assert_true(p.low == 0 && p.high == 0);
    tare_auc_reset(&a);
    tare_auc_reset(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perfect_order__is_one_and_its_reverse_zero),
        cmocka_unit_test(ties__count_half),
        cmocka_unit_test(one_class_alone__has_no_area),
        cmocka_unit_test(nan__ranks_below_all),
        cmocka_unit_test(any_data__equals_counting_pairs),
        cmocka_unit_test(interval_and_test__are_delongs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What an output's figures say: classes, labels, errors, expected values. */
#include "eval/metrics.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

static struct tare_tensor floats(int64_t rows, int64_t width, const float *values) {
    const struct tare_shape shape = { .rank = 2, .dims = { rows, width } };
    struct tare_tensor tensor;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_FLOAT, &shape, values));
    return tensor;
}

/* Adds one record of float rows. */
static void add(struct tare_metrics *m, int64_t rows, int64_t width, const float *value, const float *reference,
                const int64_t *labels, int64_t record) {
    struct tare_tensor v = floats(rows, width, value), r = { 0 };
    struct tare_measured measured = { .value = &v, .rows = rows, .labels = labels, .record = record };
    if (reference) {
        r = floats(rows, width, reference);
        measured.reference = &r;
    }
    mini_ok(tare_metrics_add(m, &measured));
    tare_tensor_reset(&v);
    tare_tensor_reset(&r);
}

static void near(double got, double expected) {
    if (!(fabs(got - expected) <= 1e-12 * fabs(expected))) fail_msg("%.17g, expected %.17g", got, expected);
}

static void class__is_the_first_of_the_largest(void **state) {
    struct tare_metrics m = { 0 };
    const float value[] = { 1, 3, 3 };
    const int64_t first = 1, second = 2;
    (void)state;
    add(&m, 1, 3, value, NULL, &first, 0);
    assert_int_equal(m.top1, 1);
    add(&m, 1, 3, value, NULL, &second, 1);
    assert_int_equal(m.top1, 1);
    assert_int_equal(m.top5, 2);
    assert_int_equal(m.labelled, 2);
    tare_metrics_reset(&m);
}

static void rows_of_a_record__are_examples_each(void **state) {
    struct tare_metrics m = { 0 };
    const float value[] = { 9, 1, 1, 9, 9, 1 }, reference[] = { 9, 1, 9, 1, 9, 1 };
    const int64_t labels[] = { 0, 1, 1 };
    (void)state;
    add(&m, 3, 2, value, reference, labels, 0);
    assert_int_equal(m.rows, 3);
    assert_int_equal(m.agree, 2);
    assert_int_equal(m.top1, 2);
    assert_int_equal(m.gained, 1); /* row 1: right here, wrong in the reference */
    assert_int_equal(m.lost, 0);
    tare_metrics_reset(&m);
}

static void gained_and_lost__count_labelled_rows_where_the_models_differ(void **state) {
    struct tare_metrics m = { 0 };
    const float zero[] = { 1, 0, 0 }, one[] = { 0, 1, 0 };
    const int64_t label = 0;
    (void)state;
    add(&m, 1, 3, one, zero, &label, 0);  /* lost */
    add(&m, 1, 3, one, zero, &label, 1);  /* lost */
    add(&m, 1, 3, zero, one, &label, 2);  /* gained */
    add(&m, 1, 3, zero, zero, &label, 3); /* both right */
    add(&m, 1, 3, one, zero, NULL, 4);    /* no label */
    assert_int_equal(m.lost, 2);
    assert_int_equal(m.gained, 1);
    assert_int_equal(m.labelled, 4);
    tare_metrics_reset(&m);
}

static void label__beyond_the_classes_is_none(void **state) {
    struct tare_metrics m = { 0 };
    const float value[] = { 1, 2, 3 };
    const int64_t label = 3, missing = -1;
    (void)state;
    add(&m, 1, 3, value, NULL, &label, 0);
    add(&m, 1, 3, value, NULL, &missing, 1);
    assert_int_equal(m.labelled, 0);
    tare_metrics_reset(&m);
}

static void one_real_number__chooses_no_class(void **state) {
    struct tare_metrics m = { 0 };
    const float value = 0.2f, reference = 0.9f;
    (void)state;
    add(&m, 1, 1, &value, &reference, NULL, 0);
    assert_int_equal(m.rows, 1);
    assert_int_equal(m.ranked, 0);
    tare_metrics_reset(&m);
}

static void integer_output__is_the_class_itself(void **state) {
    const struct tare_shape shape = { .rank = 1, .dims = { 2 } };
    const int64_t classes[] = { 7, 3 }, others[] = { 7, 4 }, labels[] = { 7, 4 };
    struct tare_metrics m = { 0 };
    struct tare_tensor value, reference;
    (void)state;
    mini_ok(tare_tensor_from(&value, TARE_DT_INT64, &shape, classes));
    mini_ok(tare_tensor_from(&reference, TARE_DT_INT64, &shape, others));
    mini_ok(tare_metrics_add(
        &m, &(struct tare_measured){ .value = &value, .reference = &reference, .rows = 2, .labels = labels }));
    assert_int_equal(m.agree, 1);
    assert_int_equal(m.top1, 1);
    assert_int_equal(m.lost, 1);
    tare_tensor_reset(&value);
    tare_tensor_reset(&reference);
    tare_metrics_reset(&m);
}

static void two_classes__have_an_area_under_the_curve(void **state) {
    struct tare_metrics m = { 0 };
    const float scores[][2] = { { 0.9f, 0.1f }, { 0.6f, 0.4f }, { 0.7f, 0.3f }, { 0.2f, 0.8f } };
    const int64_t labels[] = { 0, 1, 0, 1 };
    (void)state;
    for (int i = 0; i < 4; i++)
        add(&m, 1, 2, scores[i], NULL, &labels[i], i);
    tare_metrics_finish(&m, NULL);
    near(tare_auc_value(&m.auc), 1);
    tare_metrics_reset(&m);
}

static void errors__are_sums_over_all_elements(void **state) {
    struct tare_metrics m = { 0 };
    const float value[] = { 1, 2.5f, 3 }, reference[] = { 1, 2, 4 };
    const float second[] = { 0, 0, 0 };
    (void)state;
    add(&m, 1, 3, value, reference, NULL, 0);
    add(&m, 1, 3, second, second, NULL, 1);
    near(tare_metrics_sqnr_db(&m), 10 * log10(21 / 1.25));
    near(m.max_abs_error, 1);
    assert_int_equal(m.max_abs_record, 0);
    near(tare_metrics_mean_error(&m), 1.5 / 6);
    near(tare_metrics_relative_error(&m), 1.5 / 7);
    near(tare_metrics_cosine(&m), 18 / sqrt(21 * 16.25));
    tare_metrics_reset(&m);
}

static void equal_outputs__are_exact(void **state) {
    struct tare_metrics m = { 0 };
    const float value[] = { 1, 2 };
    (void)state;
    add(&m, 1, 2, value, value, NULL, 0);
    assert_true(isinf(tare_metrics_sqnr_db(&m)) && tare_metrics_sqnr_db(&m) > 0);
    assert_true(tare_metrics_relative_error(&m) == 0);
    tare_metrics_reset(&m);
}

static void not_finite_values__are_counted_and_left_out(void **state) {
    struct tare_metrics m = { 0 };
    const float value[] = { NAN, 2, INFINITY }, reference[] = { 1, 2, INFINITY };
    (void)state;
    add(&m, 1, 3, value, reference, NULL, 0);
    assert_int_equal(m.not_finite, 1); /* the reference has the infinity, too */
    assert_int_equal(m.elements, 1);
    assert_true(tare_metrics_sqnr_db(&m) < 0 && isinf(tare_metrics_sqnr_db(&m)));
    tare_metrics_reset(&m);
    add(&m, 1, 1, value, value, NULL, 0); /* NaN in both: nothing to compare */
    assert_true(isnan(tare_metrics_sqnr_db(&m)));
    tare_metrics_reset(&m);
}

static void score_that_is_not_a_number__is_wrong(void **state) {
    struct tare_metrics m = { 0 };
    const float value[] = { NAN, NAN }, reference[] = { 0.25F, 0.75F };
    const int64_t labels[] = { 0, 1 };
    (void)state;
    add(&m, 2, 1, value, reference, labels, 0);
    tare_metrics_finish(&m, NULL);
    assert_int_equal(m.labelled, 2);
    assert_int_equal(m.top1, 0);
    assert_int_equal(m.lost, 2);
    tare_metrics_reset(&m);
}

static void numbers_of_other_dtypes__are_compared(void **state) {
    struct tare_metrics m = { 0 };
    const float values[] = { 1, 2, 4 };
    const double others[] = { 1, 2, 3 };
    const struct tare_shape shape = tare_shape_make(2, 1, 3);
    struct tare_tensor a = floats(1, 3, values), b;
    (void)state;
    mini_ok(tare_tensor_from(&b, TARE_DT_DOUBLE, &shape, others));
    mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &a, .reference = &b, .rows = 1 }));
    assert_int_equal(m.unlike, 0);
    near(m.noise, 1);
    near(m.signal, 14);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_metrics_reset(&m);
}

static void complex_numbers__are_compared_by_their_distance(void **state) {
    struct tare_metrics m = { 0 };
    const float values[] = { 3, 4, 1, 0 }, references[] = { 0, 0, 1, 0 }; /* 3 + 4i and 1, 0 and 1 */
    const struct tare_shape shape = tare_shape_make(2, 1, 2);
    struct tare_tensor a, b;
    (void)state;
    mini_ok(tare_tensor_from(&a, TARE_DT_COMPLEX64, &shape, values));
    mini_ok(tare_tensor_from(&b, TARE_DT_COMPLEX64, &shape, references));
    mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &a, .reference = &b, .rows = 1 }));
    assert_int_equal(m.elements, 2);
    near(m.noise, 25);
    near(m.signal, 1);
    near(m.max_abs_error, 5);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_metrics_reset(&m);
}

static void expected_values__give_the_error_of_the_model_itself(void **state) {
    struct tare_metrics m = { 0 };
    const float value[] = { 1, 2 }, expected[] = { 1.5f, 0 };
    struct tare_tensor v = floats(1, 2, value), e = floats(1, 2, expected);
    (void)state;
    mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &v, .rows = 1, .expected = &e }));
    assert_int_equal(m.expected.count, 2);
    near(m.expected_error, 2.5);
    near(m.expected_squared_error, 4.25);
    tare_tensor_reset(&v);
    tare_tensor_reset(&e);
    tare_metrics_reset(&m);
}

/* R² of doubles that are multiples of 1/4 has all digits at any level. */
static void r2__does_not_depend_on_the_level(void **state) {
    const double level[] = { 0, 1e6, 1e12, 0x1p49 };
    const struct tare_shape shape = tare_shape_make(2, 1, 8);
    (void)state;
    for (size_t l = 0; l < sizeof level / sizeof *level; l++) {
        struct tare_metrics m = { 0 };
        double value[8], expected[8];
        struct tare_tensor v, e;
        for (int i = 0; i < 8; i++) {
            expected[i] = level[l] + i * i * 0.25; /* squared distances from the mean: 139.125 */
            value[i] = expected[i] + (i % 2 ? 1.5 : -0.5);
        }
        mini_ok(tare_tensor_from(&v, TARE_DT_DOUBLE, &shape, value));
        mini_ok(tare_tensor_from(&e, TARE_DT_DOUBLE, &shape, expected));
        mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &v, .rows = 1, .expected = &e }));
        assert_float_equal(tare_metrics_r2(&m), 1 - 10 / 139.125, 1e-12);
        tare_tensor_reset(&v);
        tare_tensor_reset(&e);
        tare_metrics_reset(&m);
    }
}

static void strings__agree_as_a_whole(void **state) {
    const struct tare_shape shape = { .rank = 1, .dims = { 1 } };
    struct tare_metrics m = { 0 };
    struct tare_tensor a, b;
    (void)state;
    mini_ok(tare_tensor_new(&a, TARE_DT_STRING, &shape));
    mini_ok(tare_tensor_new(&b, TARE_DT_STRING, &shape));
    mini_ok(tare_tensor_set_string(&a, 0, "cat", 3));
    mini_ok(tare_tensor_set_string(&b, 0, "car", 3));
    mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &a, .reference = &b, .rows = 1 }));
    mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &a, .reference = &a, .rows = 1 }));
    assert_int_equal(m.ranked, 2);
    assert_int_equal(m.agree, 1);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_metrics_reset(&m);
}

static void output_of_another_size__does_not_agree(void **state) {
    struct tare_metrics m = { 0 };
    const float values[] = { 1, 2, 3 };
    const int64_t label = 1, outside = 2;
    struct tare_tensor a = floats(1, 3, values), b = floats(1, 2, values);
    (void)state;
    mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &a, .reference = &b, .rows = 1, .labels = &label }));
    assert_int_equal(m.ranked, 1);
    assert_int_equal(m.agree, 0);
    assert_int_equal(m.unlike, 1);
    assert_int_equal(m.labelled, 1);
    assert_int_equal(m.top1, 0);
    assert_int_equal(m.lost, 1); /* the reference is right */
    near(m.noise, 19);           /* all of both */
    near(tare_metrics_sqnr_db(&m), 10 * log10(5. / 19));
    mini_ok(
        tare_metrics_add(&m, &(struct tare_measured){ .value = &a, .reference = &b, .rows = 1, .labels = &outside }));
    assert_int_equal(m.labelled, 1); /* the reference cannot express it */
    assert_int_equal(m.unlabelled, 1);
    assert_int_equal(m.lost, 1);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_metrics_reset(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(class__is_the_first_of_the_largest),
        cmocka_unit_test(rows_of_a_record__are_examples_each),
        cmocka_unit_test(gained_and_lost__count_labelled_rows_where_the_models_differ),
        cmocka_unit_test(label__beyond_the_classes_is_none),
        cmocka_unit_test(one_real_number__chooses_no_class),
        cmocka_unit_test(integer_output__is_the_class_itself),
        cmocka_unit_test(two_classes__have_an_area_under_the_curve),
        cmocka_unit_test(errors__are_sums_over_all_elements),
        cmocka_unit_test(equal_outputs__are_exact),
        cmocka_unit_test(not_finite_values__are_counted_and_left_out),
        cmocka_unit_test(score_that_is_not_a_number__is_wrong),
        cmocka_unit_test(numbers_of_other_dtypes__are_compared),
        cmocka_unit_test(complex_numbers__are_compared_by_their_distance),
        cmocka_unit_test(expected_values__give_the_error_of_the_model_itself),
        cmocka_unit_test(r2__does_not_depend_on_the_level),
        cmocka_unit_test(strings__agree_as_a_whole),
        cmocka_unit_test(output_of_another_size__does_not_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which measure a comparison has, and at which output. */
#include "eval/measure.h"
#include "eval/sensitivity.h"
#include "base/alloc.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

enum { ROWS = 5 };

struct fixture {
    struct tare_comparison c;
    struct tare_comparison_row rows[ROWS];
    struct tare_metrics metrics[ROWS];
};

/* A float model of 100 bytes and `count` others. */
static void open_fixture(struct fixture *f, size_t count) {
    memset(f, 0, sizeof *f);
    f->c.rows = f->rows;
    f->c.n_rows = count + 1;
    f->c.n_outputs = 1;
    for (size_t r = 0; r <= count; r++) {
        f->rows[r] = (struct tare_comparison_row){
            .method = r ? "static" : "float", .size_bytes = 100, .outputs = &f->metrics[r], .tpu_seconds = NAN
        };
        f->metrics[r] = (struct tare_metrics){ .elements = 1, .signal = 1, .noise = r ? 1e-4 : 0 };
    }
}

/* Of 1000 labelled rows, 900 are correct in float; this model gains and loses some. */
static void label(struct fixture *f, size_t row, int64_t gained, int64_t lost) {
    f->metrics[row].labelled = 1000;
    f->metrics[row].top1 = 900 + gained - lost;
    f->metrics[row].gained = gained;
    f->metrics[row].lost = lost;
}

static void measure__follows_from_labels_and_expected_values(void **state) {
    struct fixture f;
    (void)state;
    open_fixture(&f, 1);
    assert_int_equal(tare_measure_of(&f.c)->kind, TARE_MEASURE_SQNR);
    f.metrics[0].ranked = f.metrics[1].ranked = 10; /* agreement is not a measure */
    assert_int_equal(tare_measure_of(&f.c)->kind, TARE_MEASURE_SQNR);
    label(&f, 0, 0, 0);
    assert_int_equal(tare_measure_of(&f.c)->kind, TARE_MEASURE_TOP1);
    f.metrics[0].expected.count = 3;
    assert_int_equal(tare_measure_of(&f.c)->kind, TARE_MEASURE_MAE);
    f.c.metric = 1 + TARE_MEASURE_RMSE;
    assert_int_equal(tare_measure_of(&f.c)->kind, TARE_MEASURE_RMSE);
}

/* A float model and another one with the outputs: class probabilities with labels, anchors that are the same for every
 * record, class indices, and boxes. */
static void worst_output__is_the_least_sqnr_of_those_that_vary(void **state) {
    enum { SCORES, ANCHORS, INDICES, BOXES, N };
    struct tare_metrics reference[N] = { 0 }, outputs[N] = { 0 };
    struct tare_comparison_row rows[2] = { { .outputs = reference }, { .outputs = outputs } };
    const struct tare_comparison c = { .rows = rows, .n_rows = 2, .n_outputs = N };
    const double noise[N] = { 1e-4, 1e-1, 1, 1e-3 };
    size_t worst = N;
    (void)state;
    for (int i = 0; i < N; i++) {
        reference[i] = (struct tare_metrics){ .elements = 8, .signal = 1, .floating = i != INDICES };
        outputs[i] = reference[i];
        outputs[i].noise = noise[i];
        reference[i].varies = i != ANCHORS;
    }
    reference[SCORES].labelled = outputs[SCORES].labelled = reference[SCORES].top1 = 8;
    outputs[SCORES].top1 = 7;
    assert_int_equal(tare_measured_output(&c), SCORES);
    assert_float_equal(tare_worst_sqnr_db(&worst, &c, outputs), 30, 1e-9);
    assert_int_equal(worst, BOXES);
    const struct tare_sensitivity_figures figures = tare_sensitivity_figures_of(&c, outputs);
    assert_float_equal(figures.sqnr_db, 30, 1e-9);
    assert_float_equal(figures.top1, 0.875, 1e-9); /* of the output with labels */
    outputs[SCORES].not_finite = 1;
    assert_true(tare_worst_sqnr_db(&worst, &c, outputs) == -INFINITY);
    assert_int_equal(worst, SCORES);
    for (int i = 0; i < N; i++)
        reference[i].varies = false; /* one record: all floating-point outputs count */
    outputs[SCORES].not_finite = 0;
    assert_float_equal(tare_worst_sqnr_db(&worst, &c, outputs), 10, 1e-9);
    assert_int_equal(worst, ANCHORS);
    for (int i = 0; i < N; i++)
        reference[i].floating = false; /* the measured output */
    assert_float_equal(tare_worst_sqnr_db(NULL, &c, outputs), 40, 1e-9);
}

static void requested_measure_without_data__is_an_error(void **state) {
    struct fixture f;
    (void)state;
    open_fixture(&f, 1);
    mini_ok(tare_measure_check_requested(&f.c)); /* none is requested */
    f.c.metric = 1 + TARE_MEASURE_SQNR;
    mini_ok(tare_measure_check_requested(&f.c));
    f.c.metric = 1 + TARE_MEASURE_TOP1;
    assert_int_equal(tare_measure_check_requested(&f.c), TARE_NOT_FOUND);
    assert_string_equal(tare_error_text(), "metric 'top1': the records have no data for it (expected an integer label "
                                           "per example: --label)");
    label(&f, 0, 0, 0);
    mini_ok(tare_measure_check_requested(&f.c));
    f.c.metric = 1 + TARE_MEASURE_AUC; /* no scores of two classes */
    assert_int_equal(tare_measure_check_requested(&f.c), TARE_NOT_FOUND);
}

static void measured_output__is_the_first_with_data_then_the_first_of_floats(void **state) {
    struct tare_metrics outputs[3] = { { 0 } }; /* strings, class indices, scores */
    struct tare_comparison_row row = { .outputs = outputs };
    const struct tare_comparison none = { 0 };
    struct tare_comparison c = { .rows = &row, .n_rows = 1, .n_outputs = 3 };
    (void)state;
    assert_int_equal(tare_measured_output(&none), 0);
    assert_int_equal(tare_measured_output(&c), 0);
    outputs[1].elements = outputs[2].elements = 10;
    assert_int_equal(tare_measured_output(&c), 1);
    outputs[2].floating = true; /* the SQNR of class indices means little */
    assert_int_equal(tare_measured_output(&c), 2);
    outputs[1].floating = true;
    assert_int_equal(tare_measured_output(&c), 1);
    outputs[2].varies = true; /* output 1 is constant */
    assert_int_equal(tare_measured_output(&c), 2);
    outputs[1].varies = true;
    assert_int_equal(tare_measured_output(&c), 1);
    outputs[2].labelled = 10;
    assert_int_equal(tare_measured_output(&c), 2);
    assert_ptr_equal(tare_measured_of(&c, &row), &outputs[2]);
    assert_int_equal(tare_measure_of(&c)->kind, TARE_MEASURE_TOP1);
    outputs[1].expected.count = 10;
    assert_int_equal(tare_measured_output(&c), 1);
    c.metric = 1 + TARE_MEASURE_TOP1; /* the requested measure decides between them */
    assert_int_equal(tare_measured_output(&c), 2);
}

static void noise__is_known_by_row(void **state) {
    const float values[] = { 1, 2, 3, 5 }, references[] = { 1, 1, 3, 3 };
    const struct tare_shape shape = tare_shape_make(2, 2, 2);
    struct tare_metrics m = { 0 };
    struct tare_tensor value, reference;
    (void)state;
    mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, values));
    mini_ok(tare_tensor_from(&reference, TARE_DT_FLOAT, &shape, references));
    mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &value, .reference = &reference, .rows = 2 }));
    assert_int_equal(m.row_noise.count, 2);
    assert_float_equal(m.row_noise.values[0], 1, 1e-12);
    assert_float_equal(m.row_noise.values[1], 4, 1e-12);
    tare_tensor_reset(&value);
    tare_tensor_reset(&reference);
    tare_metrics_reset(&m);
}

/* A difference of running sums would be 0. */
static void noise__of_a_row_after_a_far_larger_one(void **state) {
    const float values[] = { 1e12f, 2e-3f }, references[] = { 0, 1e-3f };
    const struct tare_shape shape = tare_shape_make(2, 2, 1);
    struct tare_metrics m = { 0 };
    struct tare_tensor value, reference;
    (void)state;
    mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, values));
    mini_ok(tare_tensor_from(&reference, TARE_DT_FLOAT, &shape, references));
    mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &value, .reference = &reference, .rows = 2 }));
    assert_float_equal(m.row_noise.values[1], 1e-6, 1e-9);
    tare_tensor_reset(&value);
    tare_tensor_reset(&reference);
    tare_metrics_reset(&m);
}

/* Sums of squares would have no digit left for the spread. */
static void r2__of_expected_values_far_from_zero(void **state) {
    const double values[] = { 1e9, 1e9 + 1, 1e9 + 2.5 }, expected[] = { 1e9, 1e9 + 1, 1e9 + 2 };
    const struct tare_shape shape = tare_shape_make(2, 3, 1);
    struct tare_metrics m = { 0 };
    struct tare_tensor value, target;
    (void)state;
    mini_ok(tare_tensor_from(&value, TARE_DT_DOUBLE, &shape, values));
    mini_ok(tare_tensor_from(&target, TARE_DT_DOUBLE, &shape, expected));
    mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &value, .expected = &target, .rows = 3 }));
    assert_float_equal(tare_metrics_r2(&m), 1 - 0.25 / 2, 1e-9);
    tare_tensor_reset(&value);
    tare_tensor_reset(&target);
    tare_metrics_reset(&m);
}

static void measured_output__has_the_classes_of_the_labels(void **state) {
    struct fixture f;
    struct tare_metrics outputs[2];
    (void)state;
    open_fixture(&f, 0);
    label(&f, 0, 0, 0);
    outputs[0] = outputs[1] = f.metrics[0];
    f.rows[0].outputs = outputs;
    f.c.n_outputs = 2;
    assert_int_equal(tare_measured_output(&f.c), 0);
    outputs[0].top1 = 50; /* an embedding, whose largest elements are no classes */
    assert_int_equal(tare_measured_output(&f.c), 1);
}

/* ---- metrics with expected values and single scores ---- */

static void add_rows(struct tare_metrics *m, const float *values, const float *references, const float *expected,
                     const int64_t *labels, int64_t count) {
    const struct tare_shape shape = tare_shape_make(2, count, (int64_t)1);
    struct tare_tensor value, reference, target;
    mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, values));
    mini_ok(tare_tensor_from(&reference, TARE_DT_FLOAT, &shape, references ? references : values));
    mini_ok(tare_tensor_from(&target, TARE_DT_FLOAT, &shape, expected ? expected : values));
    const struct tare_measured measured = { .value = &value,
                                            .reference = references ? &reference : NULL,
                                            .rows = count,
                                            .labels = labels,
                                            .expected = expected ? &target : NULL };
    mini_ok(tare_metrics_add(m, &measured));
    tare_tensor_reset(&value);
    tare_tensor_reset(&reference);
    tare_tensor_reset(&target);
}

static void errors__against_expected_values(void **state) {
    const float values[] = { 1, 2, 5 }, expected[] = { 1, 4, 4 };
    struct tare_metrics m = { 0 };
    (void)state;
    add_rows(&m, values, NULL, expected, NULL, 3);
    assert_int_equal(m.errors.squared.count, 3);
    assert_float_equal(m.expected_error / 3, 1, 1e-12);          /* (0 + 2 + 1) / 3 */
    assert_float_equal(m.expected_squared_error, 5, 1e-12);      /* 0 + 4 + 1 */
    assert_float_equal(tare_metrics_r2(&m), 1 - 5.0 / 6, 1e-12); /* the spread of 1, 4, 4 about 3 is 6 */
    tare_metrics_reset(&m);
}

static void single_score__has_its_threshold_by_the_float_model(void **state) {
    const int64_t labels[] = { 1, 0, 1, 0 };
    const float probabilities[] = { 0.9f, 0.2f, 0.4f, 0.6f }, logits[] = { 3, -2, 0.3f, -0.1f };
    struct tare_metrics m = { 0 }, n = { 0 };
    (void)state;
    add_rows(&m, probabilities, NULL, NULL, labels, 4);
    tare_metrics_finish(&m, NULL);
    assert_true(m.binary);
    assert_int_equal(m.labelled, 4);
    assert_int_equal(m.top1, 2);                         /* at 0.5 */
    assert_float_equal(tare_metrics_f1(&m), 0.5, 1e-12); /* one true positive, one false, one missed */
    tare_metrics_reset(&m);

    m = (struct tare_metrics){ 0 };
    add_rows(&m, logits, NULL, NULL, labels, 4);
    tare_metrics_finish(&m, NULL);
    assert_int_equal(m.top1, 4);                 /* at 0 */
    const float narrow[] = { 1, 0, 0.3f, 0.1f }; /* within 0 … 1, but the float model's are logits */
    add_rows(&n, narrow, logits, NULL, labels, 4);
    tare_metrics_finish(&n, &m);
    assert_int_equal(n.top1, 2);
    assert_int_equal(n.lost, 2);
    tare_metrics_reset(&m);
    tare_metrics_reset(&n);
}

static void agreement__is_for_class_outputs(void **state) {
    const struct tare_shape image = tare_shape_make(3, (int64_t)1, (int64_t)4, (int64_t)6),
                            classes = tare_shape_make(2, (int64_t)1, (int64_t)24);
    float values[24] = { 0 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tare_metrics m = { 0 };
        struct tare_tensor value;
        mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, i ? &classes : &image, values));
        mini_ok(tare_metrics_add(&m, &(struct tare_measured){ .value = &value, .rows = 1 }));
        assert_int_equal(m.ranked, i);
        tare_tensor_reset(&value);
        tare_metrics_reset(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measure__follows_from_labels_and_expected_values),
        cmocka_unit_test(worst_output__is_the_least_sqnr_of_those_that_vary),
        cmocka_unit_test(requested_measure_without_data__is_an_error),
        cmocka_unit_test(measured_output__is_the_first_with_data_then_the_first_of_floats),
        cmocka_unit_test(noise__is_known_by_row),
        cmocka_unit_test(noise__of_a_row_after_a_far_larger_one),
        cmocka_unit_test(r2__of_expected_values_far_from_zero),
        cmocka_unit_test(measured_output__has_the_classes_of_the_labels),
        cmocka_unit_test(errors__against_expected_values),
        cmocka_unit_test(single_score__has_its_threshold_by_the_float_model),
        cmocka_unit_test(agreement__is_for_class_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

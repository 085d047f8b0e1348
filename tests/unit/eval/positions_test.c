/* Labels per pixel and per token: which outputs they fit, and the counts by hand. */
#include "eval/positions.h"
#include "support/mini_model.h"

#include <math.h>

static struct tare_tensor floats(const struct tare_shape shape, const float *values) {
    struct tare_tensor t;
    mini_ok(tare_tensor_from(&t, TARE_DT_FLOAT, &shape, values));
    return t;
}

static struct tare_tensor ints(const struct tare_shape shape, const int32_t *values) {
    struct tare_tensor t;
    mini_ok(tare_tensor_from(&t, TARE_DT_INT32, &shape, values));
    return t;
}

static void masks__of_one_score(void **state) {
    const float values[] = { 0.9f, 0.6f, 0.1f, 0.2f, 0.7f, 0.3f, 0.8f, 0.4f }, all_right[] = { 1, 0, 0, 0, 1, 0, 0, 1 };
    const int32_t labels[] = { 255, 0, 0, 0, 255, 0, 0, 255 }; /* above 0: positive */
    const struct tare_shape shape = tare_shape_make(4, 2, 2, 2, 1);
    struct tare_tensor value = floats(shape, values), reference = floats(shape, all_right), label = ints(shape, labels);
    struct tare_positions p = { 0 };
    const struct tare_position_counts *c;
    int classes;
    (void)state;
    assert_true(tare_positions_fit(&classes, &value, &label, 2));
    assert_int_equal(classes, 1);
    mini_ok(tare_positions_add(&p, &value, &reference, &label, 2));
    c = tare_positions_counts(&p);
    assert_true(p.mask);
    assert_int_equal(c->count, 8);
    assert_int_equal(c->right, 5); /* the second pixel, and the last two, are wrong */
    assert_int_equal(c->whole, 0);
    assert_int_equal(c->lost, 2);
    assert_float_equal(tare_positions_iou(&p), 2.0 / 5, 1e-12);
    assert_float_equal(c->ious.values[0], 1.0 / 2, 1e-12);
    assert_float_equal(c->ious.values[1], 1.0 / 3, 1e-12);
    assert_float_equal(c->shares.values[1], 0.5, 1e-12);
    tare_positions_reset(&p);
    tare_tensor_reset(&value);
    tare_tensor_reset(&reference);
    tare_tensor_reset(&label);
}

static void logits__have_their_threshold_at_zero(void **state) {
    const float values[] = { 3, 0.2f, -1, -2 };
    const int32_t labels[] = { 1, 1, 0, 0 };
    struct tare_tensor value = floats(tare_shape_make(3, 1, 2, 2), values),
                       label = ints(tare_shape_make(3, 1, 2, 2), labels);
    struct tare_positions p = { 0 };
    (void)state;
    mini_ok(tare_positions_add(&p, &value, NULL, &label, 1));
    assert_int_equal(tare_positions_counts(&p)->right, 4);
    assert_float_equal(tare_positions_iou(&p), 1, 1e-12);
    tare_positions_reset(&p);
    tare_tensor_reset(&value);
    tare_tensor_reset(&label);
}

static void masks_of_classes__average_those_that_occur(void **state) {
    const float values[] = { 5, 0, 0, 0, 5, 0, 0, 5, 0, 0, 0, 5 }; /* classes 0 1 1 2 of four pixels */
    const int32_t labels[] = { 0, 1, 0, -1 };
    struct tare_tensor value = floats(tare_shape_make(4, 1, 2, 2, 3), values),
                       label = ints(tare_shape_make(3, 1, 2, 2), labels);
    struct tare_positions p = { 0 };
    int classes;
    (void)state;
    assert_true(tare_positions_fit(&classes, &value, &label, 1));
    assert_int_equal(classes, 3);
    mini_ok(tare_positions_add(&p, &value, NULL, &label, 1));
    assert_int_equal(tare_positions_counts(&p)->count, 3); /* a negative label is none */
    assert_float_equal(tare_positions_iou(&p), (1.0 / 2 + 1.0 / 2) / 2, 1e-12);
    tare_positions_reset(&p);
    tare_tensor_reset(&value);
    tare_tensor_reset(&label);
}

static void sequences__are_right_as_a_whole(void **state) {
    const int32_t values[] = { 4, 7, 9, 4, 7, 8 }, before[] = { 4, 7, 8, 4, 7, 8 }, labels[] = { 4, 7, 9, 4, 7, 9 };
    const struct tare_shape shape = tare_shape_make(2, 2, 3);
    struct tare_tensor value = ints(shape, values), reference = ints(shape, before), label = ints(shape, labels);
    struct tare_positions p = { 0 };
    int classes;
    (void)state;
    assert_true(tare_positions_fit(&classes, &value, &label, 2));
    assert_int_equal(classes, 0);
    mini_ok(tare_positions_add(&p, &value, &reference, &label, 2));
    assert_false(p.mask);
    assert_int_equal(tare_positions_counts(&p)->examples, 2);
    assert_int_equal(tare_positions_counts(&p)->whole, 1);
    assert_int_equal(tare_positions_counts(&p)->gained, 1);
    assert_int_equal(tare_positions_counts(&p)->right, 5);
    tare_positions_reset(&p);
    tare_tensor_reset(&value);
    tare_tensor_reset(&reference);
    tare_tensor_reset(&label);
}

static void class_labels_and_one_hot_rows__are_not_positions(void **state) {
    const float scores[] = { 0.1f, 0.2f, 0.7f };
    const int32_t one_hot[] = { 0, 0, 1 }, one[] = { 2 };
    struct tare_tensor value = floats(tare_shape_make(2, 1, 3), scores), row = ints(tare_shape_make(2, 1, 3), one_hot),
                       label = ints(tare_shape_make(1, 1), one);
    int classes;
    (void)state;
    assert_false(tare_positions_fit(&classes, &value, &row, 1));
    assert_false(tare_positions_fit(&classes, &value, &label, 1));
    tare_tensor_reset(&value);
    tare_tensor_reset(&row);
    tare_tensor_reset(&label);
}

static void nan__is_no_class(void **state) {
    const float scores[] = { NAN, NAN, NAN, 0.5f, 0.2f, 0.1f, NAN, 0.3f }, masks[] = { NAN, 0.2f, 0.9f, NAN };
    const int32_t labels[] = { 0, 1, 0, 1 };
    struct tare_tensor value = floats(tare_shape_make(4, 1, 2, 2, 2), scores),
                       label = ints(tare_shape_make(3, 1, 2, 2), labels);
    struct tare_tensor mask = floats(tare_shape_make(3, 1, 2, 2), masks);
    struct tare_positions p = { 0 }, q = { 0 };
    (void)state;
    mini_ok(tare_positions_add(&p, &value, NULL, &label, 1));
    assert_int_equal(tare_positions_counts(&p)->count, 4);
    assert_int_equal(tare_positions_counts(&p)->right, 3); /* the first position has no class */
    mini_ok(tare_positions_add(&q, &mask, NULL, &label, 1));
    assert_int_equal(tare_positions_counts(&q)->right, 0);
    tare_positions_reset(&p);
    tare_positions_reset(&q);
    tare_tensor_reset(&value);
    tare_tensor_reset(&mask);
    tare_tensor_reset(&label);
}

static void classes_beyond_those_counted__have_no_iou(void **state) {
    const int32_t classes[] = { 3, TARE_POSITION_CLASSES - 1, 2, 1 }, more[] = { 3, TARE_POSITION_CLASSES, 2, 1 };
    const struct tare_shape shape = tare_shape_make(3, 1, 2, 2);
    struct tare_tensor a = ints(shape, classes), b = ints(shape, more);
    struct tare_positions p = { 0 };
    (void)state;
    mini_ok(tare_positions_add(&p, &a, NULL, &a, 1));
    assert_true(tare_positions_iou(&p) == 1);
    mini_ok(tare_positions_add(&p, &a, NULL, &b, 1));
    assert_true(isnan(tare_positions_iou(&p)));
    assert_int_equal(tare_positions_counts(&p)->right, 7);
    tare_positions_reset(&p);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks__of_one_score),
        cmocka_unit_test(logits__have_their_threshold_at_zero),
        cmocka_unit_test(masks_of_classes__average_those_that_occur),
        cmocka_unit_test(sequences__are_right_as_a_whole),
        cmocka_unit_test(nan__is_no_class),
        cmocka_unit_test(classes_beyond_those_counted__have_no_iou),
        cmocka_unit_test(class_labels_and_one_hot_rows__are_not_positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

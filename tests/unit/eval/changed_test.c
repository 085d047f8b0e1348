/* Which examples are kept that change their class, and their pictures. */
#include "eval/changed.h"

#include "support/mini_model.h"

#include <string.h>

static struct tare_arena arena;

static struct tare_tensor scores(int64_t rows, int64_t classes, const float *values) {
    const struct tare_shape shape = { .rank = 2, .dims = { rows, classes } };
    struct tare_tensor tensor;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_FLOAT, &shape, values));
    return tensor;
}

/* Adds one record with scores of two rows and three classes. */
static void add(struct tare_changed *changed, int64_t record, const float *before, const float *after,
                const struct tare_sample *sample) {
    static const struct tare_sample none = { 0 };
    const int64_t labels[] = { 1, 2 };
    struct tare_tensor reference = scores(2, 3, before), output = scores(2, 3, after);
    mini_ok(tare_changed_add(changed, &arena, sample ? sample : &none, &output, &reference, 2, labels, record));
    tare_tensor_reset(&reference);
    tare_tensor_reset(&output);
}

static int forget(void **state) {
    (void)state;
    tare_arena_free(&arena);
    return 0;
}

static void a_change__has_both_classes_and_margins(void **state) {
    (void)state;
    struct tare_changed changed = { 0 };
    add(&changed, 7, (float[]){ 5, 3, 0, 1, 2, 4 }, (float[]){ 5, 3, 0, 3, 2.5F, 1 }, NULL);
    assert_int_equal(changed.count, 1);
    assert_int_equal(changed.total, 1);
    const struct tare_changed_example *e = &changed.examples[0];
    assert_true(e->record == 7 && e->row == 1 && e->label == 2 && e->from == 2 && e->to == 0);
    assert_true(e->from_margin == 2 && e->margin == 0.5);
    assert_null(e->picture);
}

static void the_clearest_changes__are_kept_in_their_order(void **state) {
    (void)state;
    struct tare_changed changed = { 0 };
    for (int i = 0; i < 40; i++) {
        const float margin = (float)((i * 7) % 40 + 1);
        add(&changed, i, (float[]){ margin, 0, 0, 1, 0, 0 }, (float[]){ 0, 1, 0, 1, 0, 0 }, NULL);
    }
    assert_int_equal(changed.total, 40);
    assert_int_equal(changed.count, TARE_CHANGED_KEPT);
    for (size_t i = 0; i < changed.count; i++)
        assert_true(changed.examples[i].from_margin == 40 - (double)i);
}

static void an_output_without_classes__has_no_changes(void **state) {
    (void)state;
    struct tare_changed changed = { 0 };
    struct tare_tensor a = scores(2, 1, (float[]){ 1, 2 }), b = scores(2, 1, (float[]){ 3, 1 });
    const struct tare_sample none = { 0 };
    mini_ok(tare_changed_add(&changed, &arena, &none, &a, &b, 2, NULL, 0));
    assert_int_equal(changed.total, 0);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
}

/* The second of two images of 4 × 5 pixels: a PNG begins with a signature whose base64 is iVBORw0KGgo. */
static void an_image__becomes_a_picture(void **state) {
    (void)state;
    const struct tare_shape shape = { .rank = 4, .dims = { 2, 4, 5, 1 } };
    const char *keys[] = { "x" };
    struct tare_changed changed = { 0 };
    struct tare_tensor image;
    mini_ok(tare_tensor_new(&image, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < image.elements; i++)
        TARE_DATA(float, &image)[i] = (float)i;
    const struct tare_sample sample = { .keys = keys, .values = &image, .count = 1 };
    add(&changed, 0, (float[]){ 5, 3, 0, 1, 2, 4 }, (float[]){ 5, 3, 0, 3, 2, 1 }, &sample);
    assert_int_equal(changed.count, 1);
    assert_non_null(changed.examples[0].picture);
    assert_memory_equal(changed.examples[0].picture, "iVBORw0KGgo", 11);
    assert_true(changed.examples[0].picture_height == 4 && changed.examples[0].picture_width == 5);
    tare_tensor_reset(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_change__has_both_classes_and_margins, forget),
        cmocka_unit_test_teardown(the_clearest_changes__are_kept_in_their_order, forget),
        cmocka_unit_test_teardown(an_output_without_classes__has_no_changes, forget),
        cmocka_unit_test_teardown(an_image__becomes_a_picture, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

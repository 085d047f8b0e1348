/* Resizing by TensorFlow's and PIL's rules (tests/golden/images/resize.py), and padding. */
#include "base/image/image.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GOLDEN TARE_SOURCE_DIR "/tests/golden/images/resize."

static const char *const rules[] = {
    [TARE_RESIZE_BILINEAR] = "bilinear", [TARE_RESIZE_NEAREST] = "nearest",        [TARE_RESIZE_AREA] = "area",
    [TARE_RESIZE_BICUBIC] = "bicubic",   [TARE_RESIZE_LANCZOS3] = "lanczos3",      [TARE_RESIZE_LANCZOS5] = "lanczos5",
    [TARE_RESIZE_GAUSSIAN] = "gaussian", [TARE_RESIZE_MITCHELL] = "mitchellcubic",
};

static void make_image(struct tare_tensor *out, int64_t height, int64_t width) {
    const struct tare_shape shape = { .rank = 3, .dims = { height, width, 1 } };
    assert_int_equal(tare_tensor_new(out, TARE_DT_UINT8, &shape), TARE_OK);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            TARE_DATA(uint8_t, out)[y * width + x] = (uint8_t)(y * 37 + x * 91 + x * y * 7);
}

/* Values within `tolerance` of each line of the file. */
static void check_file(const char *name, bool pil, double tolerance) {
    FILE *file = fopen(name, "r");
    char rule[32];
    int antialias, old[2], size[2], lines = 0;
    assert_non_null(file);
    while (fscanf(file, "%31s %d %d %d %d %d", rule, &antialias, &old[0], &old[1], &size[0], &size[1]) == 6) {
        struct tare_resize how = { .antialias = antialias, .pil = pil };
        struct tare_tensor image;
        while (strcmp(rules[how.rule], rule) != 0)
            how.rule++;
        make_image(&image, old[0], old[1]);
        assert_int_equal(tare_image_resize(&image, size[0], size[1], &how), TARE_OK);
        assert_int_equal(image.dtype, pil ? TARE_DT_UINT8 : TARE_DT_FLOAT);
        for (int i = 0; i < size[0] * size[1]; i++) {
            double expected;
            assert_int_equal(fscanf(file, "%lf", &expected), 1);
            if (!(fabs(tare_tensor_get_f64(&image, i) - expected) <= tolerance))
                fail_msg("%s antialias %d, %d x %d to %d x %d, element %d: got %.9g, expected %.9g", rule, antialias,
                         old[0], old[1], size[0], size[1], i, tare_tensor_get_f64(&image, i), expected);
        }
        tare_tensor_reset(&image);
        lines++;
    }
    fclose(file);
    assert_int_equal(lines, pil ? 16 : 56);
}

static void rules__are_tensorflows(void **state) {
    (void)state;
    check_file(GOLDEN "tensorflow.txt", false, 255 * 2e-6);
}

static void rules__are_pils_bit_by_bit(void **state) {
    (void)state;
    check_file(GOLDEN "pil.txt", true, 0);
}

static void pil__takes_bytes_without_alpha(void **state) {
    const struct tare_resize how = { .rule = TARE_RESIZE_BICUBIC, .pil = true },
                             other = { .rule = TARE_RESIZE_BILINEAR };
    const struct tare_shape shape = { .rank = 3, .dims = { 2, 2, 4 } };
    struct tare_tensor image;
    (void)state;
    make_image(&image, 4, 4);
    assert_int_equal(tare_image_resize(&image, 2, 2, &other), TARE_OK);
    assert_int_equal(tare_image_resize(&image, 3, 3, &how), TARE_TYPE);
    tare_tensor_reset(&image);
    assert_int_equal(tare_tensor_new(&image, TARE_DT_UINT8, &shape), TARE_OK);
    assert_int_equal(tare_image_resize(&image, 3, 3, &how), TARE_UNSUPPORTED);
    tare_tensor_reset(&image);
}

static void pad__centers_the_image(void **state) {
    static const uint8_t expected[] = { 9, 9, 9, 9, 9, 0, 91, 9, 9, 37, 135, 9, 9, 9, 9, 9, 9, 9, 9, 9 };
    static const double filler = 9, fraction = 0.5, three[] = { 1, 2, 3 };
    struct tare_tensor image;
    (void)state;
    make_image(&image, 2, 2);
    assert_int_equal(tare_image_pad(&image, 5, 4, &filler, 1), TARE_OK); /* the larger margin is at the bottom */
    assert_memory_equal(image.data, expected, sizeof expected);
    assert_int_equal(tare_image_pad(&image, 4, 9, &filler, 1), TARE_SHAPE);
    assert_int_equal(tare_image_pad(&image, 6, 6, &fraction, 1), TARE_TYPE);
    assert_int_equal(tare_image_pad(&image, 6, 6, three, 3), TARE_SHAPE);
    assert_int_equal(image.shape.dims[0], 5);
    tare_tensor_reset(&image);
}

static void pad__fills_each_channel(void **state) {
    static const double values[] = { 0.25, -1, 3 };
    const struct tare_shape shape = { .rank = 3, .dims = { 1, 1, 3 } };
    struct tare_tensor image;
    (void)state;
    assert_int_equal(tare_tensor_new(&image, TARE_DT_FLOAT, &shape), TARE_OK);
    assert_int_equal(tare_image_pad(&image, 1, 2, values, 3), TARE_OK);
    for (int c = 0; c < 3; c++)
        assert_true(TARE_DATA(float, &image)[3 + c] == (float)values[c]);
    tare_tensor_reset(&image);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules__are_tensorflows),         cmocka_unit_test(rules__are_pils_bit_by_bit),
        cmocka_unit_test(pil__takes_bytes_without_alpha), cmocka_unit_test(pad__centers_the_image),
        cmocka_unit_test(pad__fills_each_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

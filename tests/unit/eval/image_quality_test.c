/* PSNR and SSIM against values by hand and against the defining sum. */
#include "eval/image_quality.h"
#include "support/draw.h"
#include "support/mini_model.h"

#include <math.h>

enum { HEIGHT = 13, WIDTH = 12 };

static struct tare_tensor image(float add, float times) {
    const struct tare_shape shape = tare_shape_make(4, 1, HEIGHT, WIDTH, 1);
    struct tare_tensor t;
    uint64_t seed = 5;
    mini_ok(tare_tensor_new(&t, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < t.elements; i++)
        TARE_DATA(float, &t)[i] = add + times * (float)draw_unit(&seed);
    return t;
}

/* The mean over all windows of the formula, each window summed on its own. */
static double ssim_by_hand(const struct tare_tensor *a, const struct tare_tensor *b) {
    double sum = 0, whole = 0;
    int count = 0;
    for (int y = 0; y < 11; y++)
        for (int x = 0; x < 11; x++)
            whole += exp(-((y - 5) * (y - 5) + (x - 5) * (x - 5)) / 4.5);
    for (int top = 0; top + 11 <= HEIGHT; top++)
        for (int left = 0; left + 11 <= WIDTH; left++, count++) {
            double m[5] = { 0 };
            for (int y = 0; y < 11; y++)
                for (int x = 0; x < 11; x++) {
                    const double w = exp(-((y - 5) * (y - 5) + (x - 5) * (x - 5)) / 4.5) / whole;
                    const double p = tare_tensor_get_f64(a, (top + y) * WIDTH + left + x),
                                 q = tare_tensor_get_f64(b, (top + y) * WIDTH + left + x);
                    m[0] += w * p, m[1] += w * q, m[2] += w * p * p, m[3] += w * q * q, m[4] += w * p * q;
                }
            sum += (2 * m[0] * m[1] + 1e-4) * (2 * (m[4] - m[0] * m[1]) + 9e-4) /
                   ((m[0] * m[0] + m[1] * m[1] + 1e-4) * (m[2] - m[0] * m[0] + m[3] - m[1] * m[1] + 9e-4));
        }
    return sum / count;
}

static void equal_images__are_exact(void **state) {
    struct tare_tensor a = image(0, 1), b = image(0, 1);
    struct tare_image_quality q = { 0 };
    (void)state;
    assert_true(tare_is_images(&a, 1));
    mini_ok(tare_image_quality_add(&q, &a, &b, 1));
    assert_float_equal(q.psnr.values[0], 100, 1e-9);
    assert_float_equal(q.ssim.values[0], 1, 1e-9);
    tare_image_quality_reset(&q);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
}

static void differences__follow_the_formulas(void **state) {
    struct tare_tensor a = image(0.05f, 0.8f), b = image(0, 1), c = image(0.1f, 1);
    struct tare_image_quality q = { 0 };
    (void)state;
    mini_ok(tare_image_quality_add(&q, &a, &b, 1));
    mini_ok(tare_image_quality_add(&q, &c, &b, 1));
    assert_int_equal(q.psnr.count, 2);
    assert_float_equal(q.ssim.values[0], ssim_by_hand(&a, &b), 1e-6);
    assert_float_equal(q.psnr.values[1], 20, 1e-4); /* 0.1 off everywhere, peak 1 */
    tare_image_quality_reset(&q);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_tensor_reset(&c);
}

static void the_peak__is_that_of_the_expected_image(void **state) {
    struct tare_tensor a = image(10, 200), b = image(0, 200), small, row;
    const float few[] = { 0, 1, 0, 1 }, far[] = { 0, 1, 1, 1 };
    const struct tare_shape shape = tare_shape_make(3, 1, 2, 2), flat = tare_shape_make(2, 1, 4);
    struct tare_image_quality q = { 0 };
    (void)state;
    mini_ok(tare_image_quality_add(&q, &a, &b, 1));
    assert_float_equal(q.psnr.values[0], 20 * log10(25.5), 1e-4);
    mini_ok(tare_tensor_from(&small, TARE_DT_FLOAT, &shape, few));
    mini_ok(tare_tensor_from(&row, TARE_DT_FLOAT, &flat, far));
    assert_true(tare_is_images(&small, 1));
    assert_false(tare_is_images(&row, 1));
    mini_ok(tare_image_quality_add(&q, &small, &row, 1));
    assert_float_equal(q.psnr.values[1], 10 * log10(4), 1e-9);
    assert_true(isnan(q.ssim.values[1])); /* smaller than the window */
    tare_image_quality_reset(&q);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_tensor_reset(&small);
    tare_tensor_reset(&row);
}

static void nan__is_left_out(void **state) {
    struct tare_tensor a = image(0, 1), b = image(0, 1), constant = image(300, 0);
    struct tare_image_quality q = { 0 };
    (void)state;
    for (int64_t i = 0; i < a.elements; i++)
        TARE_DATA(float, &b)[i] = TARE_DATA(float, &a)[i] + 0.1f;
    TARE_DATA(float, &b)[0] = TARE_DATA(float, &b)[1] = -5;
    TARE_DATA(float, &a)[0] = NAN;
    TARE_DATA(float, &a)[1] = -5.1f;
    mini_ok(tare_image_quality_add(&q, &b, &a, 1));
    mini_ok(tare_image_quality_add(&q, &a, &constant, 1)); /* no peak */
    assert_float_equal(q.psnr.values[0], 10 * log10(6.0999 * 6.0999 / 0.01), 0.05);
    assert_true(isnan(q.psnr.values[1]));
    tare_image_quality_reset(&q);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_tensor_reset(&constant);
}

/* An image of doubles between `level` and level + 1000, which is the peak of levels above 255. */
static struct tare_tensor bright_image(double level, double times) {
    const struct tare_shape shape = tare_shape_make(4, 1, HEIGHT, WIDTH, 1);
    struct tare_tensor t;
    uint64_t seed = 5;
    mini_ok(tare_tensor_new(&t, TARE_DT_DOUBLE, &shape));
    for (int64_t i = 0; i < t.elements; i++)
        TARE_DATA(double, &t)[i] = level + times * floor(1000 * draw_unit(&seed));
    return t;
}

static double ssim_at(double level) {
    struct tare_tensor a = bright_image(level, 0.75), b = bright_image(level, 1);
    struct tare_image_quality q = { 0 };
    mini_ok(tare_image_quality_add(&q, &a, &b, 1));
    const double ssim = q.ssim.values[0];
    tare_image_quality_reset(&q);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    return ssim;
}

/* The similarity of two images far from zero is that of their contrasts: nothing is left of their means. */
static void similarity__does_not_depend_on_the_level(void **state) {
    const double far = ssim_at(1e8);
    (void)state;
    assert_true(far > 0.9 && far < 0.99);
    for (double level = 1e9; level <= 1e13; level *= 10)
        assert_float_equal(ssim_at(level), far, 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_images__are_exact),
        cmocka_unit_test(differences__follow_the_formulas),
        cmocka_unit_test(the_peak__is_that_of_the_expected_image),
        cmocka_unit_test(nan__is_left_out),
        cmocka_unit_test(similarity__does_not_depend_on_the_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

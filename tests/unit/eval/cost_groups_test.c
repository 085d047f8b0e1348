/* What an estimate counts in networks, as compiled programs show it. */
#include "support/costed_networks.h"
#include "support/mini_model.h"

enum { FEW_IMAGES = 8, IMAGES = 32 };

static double counted(const char *layers, bool integer, int64_t batch, enum tare_tpu_work work) {
    struct tare_fused_cost cost;
    costed_estimate(&cost, layers, integer, batch);
    return cost.work[integer][work];
}

/* 5 × 5 positions. Eight channels of floats, 32 of integers are rows of one tile. */
static void results_of_fewer_channels_than_images__are_multiplied_for_each_tap(void **state) {
    (void)state;
    assert_float_equal(counted("5x5x16 c3.16.1 c3.64.1 m f10", false, IMAGES, TARE_TPU_TALL), 25 * 9 * 2, 0);
    assert_float_equal(counted("5x5x16 c3.16.1 c3.64.1 m f10", true, IMAGES, TARE_TPU_TALL), 25 * 9, 0);
    assert_float_equal(counted("5x5x16 c3.16.1 c3.64.1 m f10", false, FEW_IMAGES, TARE_TPU_TALL), 0, 0);
    assert_float_equal(counted("5x5x16 c3.32.1 c3.64.1 m f10", false, IMAGES, TARE_TPU_TALL), 0, 0);
}

static void int8_images_of_few_channels__are_in_the_lanes(void **state) {
    (void)state;
    assert_float_equal(counted("5x5x3 c3.16.1 c3.64.1 m f10", true, IMAGES, TARE_TPU_TALL), 0, 0);
    assert_float_equal(counted("5x5x3 c3.16.1 c3.64.1 m f10", true, IMAGES, TARE_TPU_STEM), 25 * 9 * 0.25, 0);
}

static void a_convolution_before_one_without_padding__is_computed_inside_in_int8(void **state) {
    (void)state;
    assert_float_equal(counted("5x5x32 c3.64.1 c1.128.1 m f10", true, FEW_IMAGES, TARE_TPU_INNER_TILES), 25, 0);
    assert_float_equal(counted("5x5x32 c3.64.1 c1.128.1 m f10", true, FEW_IMAGES, TARE_TPU_CONVS), 1, 0);
    assert_float_equal(counted("5x5x32 c3.64.1 c3.128.1 m f10", true, FEW_IMAGES, TARE_TPU_INNER_TILES), 0, 0);
    assert_float_equal(counted("5x5x32 c1.64.1 c1.128.1 m f10", true, FEW_IMAGES, TARE_TPU_INNER_TILES), 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_of_fewer_channels_than_images__are_multiplied_for_each_tap),
        cmocka_unit_test(int8_images_of_few_channels__are_in_the_lanes),
        cmocka_unit_test(a_convolution_before_one_without_padding__is_computed_inside_in_int8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Sizes of products, by what the TPU compiler says of single layers on v5e: each tile of 128 × 128 costs two cycles for
 * eight rows of bfloat16, and the op 256. */
#include "tpu/cost/product.h"
#include "support/mini_model.h"

enum { TILE = 128 };

static struct tare_tpu_product product_of(const char *op, struct tare_shape in, struct tare_shape kernel,
                                          struct tare_shape out, double macs) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_shape shapes[] = { in, kernel };
    const struct tare_infer infer = { .node = tare_graph_add(model->main, op, "node"),
                                      .n_inputs = 2,
                                      .n_outputs = 1,
                                      .inputs = shapes,
                                      .outputs = &out };
    assert_non_null(infer.node);
    const struct tare_tpu_product product = tare_tpu_product_of(&infer, macs);
    tare_model_free(model);
    return product;
}

static double cycles_of(const struct tare_tpu_product *p) {
    return 256 + 2 * p->places * (p->rows / 8) * tare_tpu_product_tiles(p, TILE);
}

static void a_convolution__has_the_taps_of_a_line_in_one_tile(void **state) {
    struct tare_tpu_product p;
    (void)state;
    p = product_of("Conv2D", tare_shape_make(4, 8, 14, 14, 64), tare_shape_make(4, 3, 3, 64, 64),
                   tare_shape_make(4, 8, 14, 14, 64), 8. * 14 * 14 * 64 * 9 * 64);
    assert_float_equal(tare_tpu_product_tiles(&p, TILE), 6, 0);
    assert_float_equal(cycles_of(&p), 2608, 0);
    p = product_of("Conv2D", tare_shape_make(4, 8, 14, 14, 512), tare_shape_make(4, 1, 1, 512, 512),
                   tare_shape_make(4, 8, 14, 14, 512), 8. * 14 * 14 * 512 * 512);
    assert_float_equal(cycles_of(&p), 6528, 0);
    p = product_of("Conv2D", tare_shape_make(4, 8, 1, 128, 32), tare_shape_make(4, 1, 3, 32, 64),
                   tare_shape_make(4, 8, 1, 128, 64), 8. * 128 * 64 * 3 * 32);
    assert_float_equal(cycles_of(&p), 512, 0);
}

static void groups__have_tiles_of_their_own(void **state) {
    (void)state;
    const struct tare_tpu_product p =
        product_of("Conv2D", tare_shape_make(4, 8, 14, 14, 128), tare_shape_make(4, 3, 3, 32, 128),
                   tare_shape_make(4, 8, 14, 14, 128), 8. * 14 * 14 * 128 * 9 * 32);
    assert_float_equal(p.groups, 4, 0);
    assert_float_equal(cycles_of(&p), 4960, 0);
}

/* Kernels are HWOI; zeros between the positions of the input are multiplied. */
static void a_transposed_convolution__multiplies_all_taps(void **state) {
    (void)state;
    const struct tare_tpu_product p =
        product_of("Conv2DBackpropInput", tare_shape_make(1, 4), tare_shape_make(4, 2, 2, 32, 64),
                   tare_shape_make(4, 8, 28, 28, 32), 8. * 14 * 14 * 64 * 4 * 32);
    assert_int_equal(p.kind, TARE_TPU_CONV);
    assert_float_equal(p.places, 28 * 28, 0);
    assert_float_equal(p.depth, 64, 0);
    assert_float_equal(p.columns, 32, 0);
    assert_float_equal(tare_tpu_product_tiles(&p, TILE), 2, 0);
}

static void one_channel_a_group__is_depthwise(void **state) {
    struct tare_tpu_product p;
    (void)state;
    p = product_of("DepthwiseConv2dNative", tare_shape_make(4, 8, 14, 14, 240), tare_shape_make(4, 5, 5, 240, 1),
                   tare_shape_make(4, 8, 14, 14, 240), 8. * 14 * 14 * 240 * 25);
    assert_int_equal(p.kind, TARE_TPU_DEPTHWISE);
    assert_float_equal(p.taps, 25, 0);
    assert_float_equal(p.columns, 240, 0);
    p = product_of("Conv2D", tare_shape_make(4, 8, 14, 14, 16), tare_shape_make(4, 3, 3, 1, 16),
                   tare_shape_make(4, 8, 14, 14, 16), 8. * 14 * 14 * 16 * 9);
    assert_int_equal(p.kind, TARE_TPU_DEPTHWISE);
    p = product_of("Conv2D", tare_shape_make(4, 8, 14, 14, 1), tare_shape_make(4, 3, 3, 1, 16),
                   tare_shape_make(4, 8, 14, 14, 16), 8. * 14 * 14 * 16 * 9);
    assert_int_equal(p.kind, TARE_TPU_CONV);
}

/* Kernels are HWIM, whichever way. */
static void depthwise_convolution__has_the_channels_of_its_results_as_columns(void **state) {
    struct tare_tpu_product p;
    (void)state;
    p = product_of("DepthwiseConv2dNative", tare_shape_make(4, 8, 14, 14, 24), tare_shape_make(4, 3, 3, 24, 2),
                   tare_shape_make(4, 8, 14, 14, 48), 8. * 14 * 14 * 48 * 9);
    assert_float_equal(p.places, 14 * 14, 0);
    assert_float_equal(p.taps, 9, 0);
    assert_float_equal(p.columns, 48, 0);
    p = product_of("DepthwiseConv2dNativeBackpropInput", tare_shape_make(1, 4), tare_shape_make(4, 3, 3, 24, 1),
                   tare_shape_make(4, 8, 14, 14, 24), 8. * 14 * 14 * 24 * 9);
    assert_float_equal(p.places, 14 * 14, 0);
    assert_float_equal(p.taps, 9, 0);
    assert_float_equal(p.columns, 24, 0);
}

static void a_kernel_as_large_as_the_image__is_a_matrix_product(void **state) {
    (void)state;
    const struct tare_tpu_product p =
        product_of("Conv2D", tare_shape_make(4, 8, 1, 1, 64), tare_shape_make(4, 1, 1, 64, 32),
                   tare_shape_make(4, 8, 1, 1, 32), 8. * 64 * 32);
    assert_int_equal(p.kind, TARE_TPU_DENSE);
    assert_float_equal(p.rows, 8, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_convolution__has_the_taps_of_a_line_in_one_tile),
        cmocka_unit_test(groups__have_tiles_of_their_own),
        cmocka_unit_test(a_transposed_convolution__multiplies_all_taps),
        cmocka_unit_test(one_channel_a_group__is_depthwise),
        cmocka_unit_test(depthwise_convolution__has_the_channels_of_its_results_as_columns),
        cmocka_unit_test(a_kernel_as_large_as_the_image__is_a_matrix_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

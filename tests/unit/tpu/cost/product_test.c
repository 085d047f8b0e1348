#include "tpu/cost/product.h"
#include "support/mini_model.h"

static struct tare_tpu_product product_of(const char *op, struct tare_shape kernel, struct tare_shape out,
                                          double macs) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_shape shapes[] = { tare_shape_make(1, 4), kernel };
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

/* Kernels are HWOI; of 2 × 2 taps with strides of 2, each result has one. */
static void transposed_convolution__has_the_channels_of_its_results_as_columns(void **state) {
    (void)state;
    const struct tare_tpu_product p = product_of("Conv2DBackpropInput", tare_shape_make(4, 2, 2, 32, 64),
                                                 tare_shape_make(4, 8, 28, 28, 32), 8. * 14 * 14 * 64 * 4 * 32);
    assert_int_equal(p.kind, TARE_TPU_CONV);
    assert_float_equal(p.places, 28 * 28, 0);
    assert_float_equal(p.taps, 1, 0);
    assert_float_equal(p.depth, 64, 0);
    assert_float_equal(p.columns, 32, 0);
}

/* Kernels are HWIM, whichever way. */
static void depthwise_convolution__has_the_channels_of_its_results_as_columns(void **state) {
    struct tare_tpu_product p;
    (void)state;
    p = product_of("DepthwiseConv2dNative", tare_shape_make(4, 3, 3, 24, 2), tare_shape_make(4, 8, 14, 14, 48),
                   8. * 14 * 14 * 48 * 9);
    assert_int_equal(p.kind, TARE_TPU_DEPTHWISE);
    assert_float_equal(p.places, 14 * 14, 0);
    assert_float_equal(p.taps, 9, 0);
    assert_float_equal(p.columns, 48, 0);
    p = product_of("DepthwiseConv2dNativeBackpropInput", tare_shape_make(4, 3, 3, 24, 1),
                   tare_shape_make(4, 8, 14, 14, 24), 8. * 14 * 14 * 24 * 9);
    assert_int_equal(p.kind, TARE_TPU_DEPTHWISE);
    assert_float_equal(p.places, 14 * 14, 0);
    assert_float_equal(p.columns, 24, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposed_convolution__has_the_channels_of_its_results_as_columns),
        cmocka_unit_test(depthwise_convolution__has_the_channels_of_its_results_as_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

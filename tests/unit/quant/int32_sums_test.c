/* Static and dynamic range quantization sum integer products in int32: a layer whose sums could overflow stays float.
 */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/layer.h"

#include <string.h>

static tare_status find_range(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                              double *low, double *high) {
    (void)setting;
    (void)arg;
    (void)edge;
    *low = -1;
    *high = 1;
    *found = true;
    return TARE_OK;
}

/* The reason why x [2, rows] times a weight [rows, 1] stays float; NULL: it was quantized. */
static const char *refused(struct tare_arena *arena, int64_t rows, const struct tare_quant_setting *setting) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const struct tare_quant_ranges ranges = { .find = find_range };
    struct tare_quant_plan options = { .min_elements = 1 };
    struct tare_quant_report report;
    const struct tare_shape shape = tare_shape_make(2, rows, (int64_t)1),
                            x_shape = tare_shape_make(2, (int64_t)2, rows);
    struct tare_tensor weight;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    options.setting = *setting;
    mini_ok(tare_node_set_shape(x.node, "shape", &x_shape));
    mini_ok(tare_tensor_new(&weight, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < rows; i++)
        TARE_DATA(float, &weight)[i] = 1;
    mini_node(g, "MatMul", "product", 2, x, (struct tare_edge){ tare_graph_add_const(g, "w", &weight), 0 });
    tare_tensor_reset(&weight);
    mini_ok(tare_quantize(&report, arena, model, &ranges, &options));
    assert_int_equal(report.count, 1);
    assert_int_equal(report.quantized, report.outcomes[0].refused ? 0 : 1);
    const char *reason = report.outcomes[0].refused;
    tare_model_free(model);
    return reason;
}

static void check_limit(const struct tare_quant_setting *setting, int64_t most) {
    struct tare_arena arena = { 0 };
    const char *reason = refused(&arena, most, setting);
    if (reason) fail_msg("%s", reason);
    reason = refused(&arena, most + 1, setting);
    assert_non_null(reason);
    if (!strstr(reason, "int32")) fail_msg("%s", reason);
    tare_arena_free(&arena);
}

/* 127 - -128 = 255 is the largest difference of an activation and its zero point, 128 the largest weight:
 * (2^31 - 1) / (255 * 128) = 65793 products fit. */
static void sums__fit_int32_up_to_65793_products(void **state) {
    const struct tare_quant_method *const methods[] = { &tare_method_static,     &tare_method_uniform_static,
                                                        &tare_method_tf_static,  &tare_method_dynamic,
                                                        &tare_method_tf_dynamic, &tare_method_uniform_dynamic };
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        check_limit(&(struct tare_quant_setting){ .method = methods[i] }, 65793);
}

/* The two bytes of a 16-bit activation are multiplied as they are: (2^31 - 1) / (128 * 128) = 131071. */
static void sums_of_bytes__fit_int32_up_to_131071_products(void **state) {
    (void)state;
    check_limit(&(struct tare_quant_setting){ .method = &tare_method_static, .activation_bits = 16 }, 131071);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(sums__fit_int32_up_to_65793_products),
                                        cmocka_unit_test(sums_of_bytes__fit_int32_up_to_131071_products) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

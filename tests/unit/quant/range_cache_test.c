/* Ranges are chosen once for each edge, algorithm and scheme. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "calib/algorithm.h"
#include "quant/layer.h"
#include "quant/range_cache.h"

#include <string.h>

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    ++*(size_t *)arg;
    *low = -1 - edge.index;
    *high = setting->symmetric ? 3 : 2;
    *found = edge.index < 2;
    return TARE_OK;
}

static void expect(struct tare_quant_range_cache *cache, const struct tare_quant_ranges *ranges, struct tare_edge edge,
                   const struct tare_quant_setting *setting) {
    double low = 0, high = 0;
    bool found;
    mini_ok(tare_quant_find_range(&found, &low, &high, cache, ranges, edge, setting));
    assert_true(found == (edge.index < 2));
    if (!found) return;
    assert_true(low == -1 - edge.index);
    assert_true(high == (setting->symmetric ? 3 : 2));
}

static void a_range__is_searched_once(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_node *node = mini_placeholder(model->main, "x", TARE_DT_FLOAT).node;
    struct tare_arena arena = { 0 };
    struct tare_quant_range_cache cache = { .arena = &arena };
    struct tare_quant_setting settings[3] = { { 0 }, { .symmetric = true }, { 0 } };
    size_t calls = 0;
    const struct tare_quant_ranges ranges = { .find = find, .arg = &calls };
    (void)state;
    mini_ok(tare_algorithm_parse(&settings[2].algorithm, "percentile:p=99.5"));
    for (int round = 0; round < 3; round++)
        for (int s = 0; s < 3; s++)
            for (int i = 0; i < 3; i++) /* the last edge has no range, which is remembered as well */
                expect(&cache, &ranges, (struct tare_edge){ node, i }, &settings[s]);
    assert_int_equal(calls, 9);
    assert_int_equal(cache.searches, 9);
    tare_quant_range_cache_close(&cache);
    tare_arena_free(&arena);
    tare_model_free(model);
}

static tare_status find_after_a_failure(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting,
                                        bool *found, double *low, double *high) {
    if (++*(size_t *)arg == 1) return TARE_FAIL(TARE_NO_MEMORY, "out of memory");
    return find(arg, edge, setting, found, low, high);
}

static void a_failure__is_returned_and_not_stored(void **state) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge edge = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_arena arena = { 0 };
    struct tare_quant_range_cache cache = { .arena = &arena };
    struct tare_quant_setting setting = { 0 };
    size_t calls = 0;
    const struct tare_quant_ranges ranges = { .find = find_after_a_failure, .arg = &calls };
    double low, high;
    bool found;
    (void)state;
    assert_int_equal(tare_quant_find_range(&found, &low, &high, &cache, &ranges, edge, &setting), TARE_NO_MEMORY);
    expect(&cache, &ranges, edge, &setting);
    tare_quant_range_cache_close(&cache);
    tare_arena_free(&arena);
    tare_model_free(model);
}

/* y = x * w with a weight of 4 x 2. */
static struct tare_graph_model *new_product(void) {
    struct tare_graph_model *model = mini_model_new();
    const struct tare_shape shape = tare_shape_make(2, (int64_t)4, (int64_t)2),
                            input = tare_shape_make(2, 1, (int64_t)4);
    struct tare_tensor w;
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(x.node, "shape", &input));
    mini_ok(tare_tensor_new(&w, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < w.elements; i++)
        TARE_DATA(float, &w)[i] = (float)i - 3;
    mini_node(model->main, "MatMul", "y", 2, x, (struct tare_edge){ tare_graph_add_const(model->main, "w", &w), 0 });
    tare_tensor_reset(&w);
    return model;
}

struct asked {
    int inputs, outputs;
};

static tare_status count_asked(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                               double *low, double *high) {
    struct asked *asked = arg;
    (void)setting;
    asked->inputs += strcmp(edge.node->name, "x") == 0;
    asked->outputs += strcmp(edge.node->name, "y") == 0;
    *found = true;
    *low = -1;
    *high = 1;
    return TARE_OK;
}

/* A search costs milliseconds. */
static void ranges_of_outputs__are_searched_only_for_op_sets_that_use_them(void **state) {
    (void)state;
    for (int set = 0; tare_quant_op_set_names[set]; set++) {
        struct asked asked = { 0 };
        struct tare_arena arena = { 0 };
        struct tare_quant_report report;
        struct tare_graph_model *model = new_product();
        const struct tare_quant_ranges ranges = { .find = count_asked, .arg = &asked };
        const struct tare_quant_plan options = { .setting = { .method = &tare_method_static },
                                                 .min_elements = 1,
                                                 .op_set = (enum tare_quant_op_set)set };
        mini_ok(tare_quantize(&report, &arena, model, &ranges, &options));
        assert_int_equal(report.quantized, 1);
        assert_int_equal(asked.inputs, 1);
        assert_int_equal(asked.outputs, set != TARE_OP_SET_XLA);
        tare_model_free(model);
        tare_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range__is_searched_once),
        cmocka_unit_test(a_failure__is_returned_and_not_stored),
        cmocka_unit_test(ranges_of_outputs__are_searched_only_for_op_sets_that_use_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

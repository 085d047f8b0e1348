/* Look-ups along another axis than the first: scales per entry, and tables whose entries are too short for them. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <math.h>
#include <string.h>

enum { ENTRIES = 24, BATCH = 3 };

struct fixture {
    struct tare_graph_model *model;
    struct tare_edge ids, result;
    struct tare_arena arena;
    struct tare_quant_report report;
};

static int64_t entry_of(const struct tare_shape *shape, int axis, int64_t i) {
    for (int k = shape->rank - 1; k > axis; k--)
        i /= shape->dims[k];
    return i % shape->dims[axis];
}

/* Each entry has a range of its own. */
static void open_fixture(struct fixture *f, struct tare_shape shape, int axis) {
    const struct tare_shape of_ids = tare_shape_make(1, BATCH);
    struct tare_tensor table;
    *f = (struct fixture){ .model = mini_model_new() };
    struct tare_graph *g = tare_model_add_function(f->model, "f");
    const struct tare_edge arg = mini_arg(g, "arg", TARE_DT_INT32);
    mini_ok(tare_tensor_new(&table, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < table.elements; i++)
        TARE_DATA(float, &table)[i] = (float)((i * 7919 % 2003) - 1001) * (float)(1 + entry_of(&shape, axis, i));
    f->ids = mini_placeholder(f->model->main, "ids", TARE_DT_INT32);
    mini_ok(tare_node_set_shape(f->ids.node, "shape", &of_ids));
    const struct tare_edge stored = { tare_graph_add_const(g, "table", &table), 0 };
    mini_return(g, "entries", mini_node(g, "GatherV2", "look_up", 3, stored, arg, mini_int(g, "axis", axis)));
    f->result = mini_call(f->model->main, "PartitionedCall", "call", g, 1, f->ids);
    tare_tensor_reset(&table);
}

static void close_fixture(struct fixture *f) {
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static struct tare_tensor run(struct fixture *f) {
    const struct tare_shape shape = tare_shape_make(1, BATCH);
    const int32_t ids[BATCH] = { 7, 0, 23 };
    struct tare_tensor fed, result;
    mini_ok(tare_tensor_from(&fed, TARE_DT_INT32, &shape, ids));
    struct tare_session *session = mini_session(f->model);
    mini_ok(tare_session_run(session, &f->ids, &fed, 1, &f->result, &result, 1, NULL, 0));
    tare_tensor_reset(&fed);
    tare_session_free(session);
    return result;
}

static void check(struct tare_shape shape, int axis, const struct tare_quant_setting *setting, int64_t scales) {
    const struct tare_quant_plan plan = { .setting = *setting, .min_elements = 1 };
    struct fixture f, g;
    open_fixture(&f, shape, axis);
    open_fixture(&g, shape, axis);
    mini_ok(tare_quantize(&g.report, &g.arena, g.model, NULL, &plan));
    assert_int_equal(g.report.quantized, 1);
    assert_int_equal(g.report.outcomes[0].n_weight_scales, scales);
    struct tare_tensor expected = run(&f), got = run(&g);
    assert_true(tare_shape_equal(&expected.shape, &got.shape));
    for (int64_t i = 0; i < expected.elements; i++) {
        const int32_t ids[BATCH] = { 7, 0, 23 };
        const double most = 1001.0 * (1 + ids[entry_of(&got.shape, axis, i)]);
        const double d = fabs(tare_tensor_get_f64(&got, i) - tare_tensor_get_f64(&expected, i));
        if (!(d <= most / 250)) fail_msg("element %d: %g off", (int)i, d);
    }
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    close_fixture(&f);
    close_fixture(&g);
}

static const struct tare_quant_setting per_entry = { .method = &tare_method_weight_only }, blocks = {
    .method = &tare_method_weight_only, .granularity = TARE_PER_BLOCK, .block = 32
};

static void table_with_entries_last__has_a_scale_for_each(void **state) {
    (void)state;
    check(tare_shape_make(2, 64, ENTRIES), 1, &per_entry, ENTRIES);
    check(tare_shape_make(3, 2, 64, ENTRIES), 2, &per_entry, ENTRIES);
}

static void table_with_entries_between__has_a_scale_for_each_run(void **state) {
    (void)state;
    check(tare_shape_make(3, 2, ENTRIES, 64), 1, &per_entry, 2 * ENTRIES);
}

static void blocks_of_entries__have_scales_along_any_axis(void **state) {
    (void)state;
    check(tare_shape_make(2, 64, ENTRIES), 1, &blocks, 2 * ENTRIES);
    check(tare_shape_make(3, 2, 64, ENTRIES), 2, &blocks, 4 * ENTRIES);
    check(tare_shape_make(3, 2, ENTRIES, 64), 1, &blocks, 4 * ENTRIES);
}

static void entries_that_are_too_short__stay_float(void **state) {
    const struct tare_quant_plan plan = { .setting = per_entry, .min_elements = 1 };
    struct fixture f;
    (void)state;
    open_fixture(&f, tare_shape_make(3, 64, ENTRIES, 2), 1);
    mini_ok(tare_quantize(&f.report, &f.arena, f.model, NULL, &plan));
    assert_string_equal(f.report.outcomes[0].refused, "its entries are runs of 2 values, too short for a scale each");
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_with_entries_last__has_a_scale_for_each),
        cmocka_unit_test(table_with_entries_between__has_a_scale_for_each_run),
        cmocka_unit_test(blocks_of_entries__have_scales_along_any_axis),
        cmocka_unit_test(entries_that_are_too_short__stay_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

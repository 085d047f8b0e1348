/* A table that a look-up reads and a product multiplies by: stored once. And tables with scales per block. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "base/tensor/number.h"
#include "quant/quantize.h"

#include <math.h>
#include <string.h>

enum { ENTRIES = 24, WIDTH = 96, BATCH = 3 };

static float table_value(int64_t i) {
    const float value = (float)((i * 7919 % 2003) - 1001) / 1000.0f;
    return value * (float)(1 + i / WIDTH % 5) * (i % WIDTH < 32 ? 1.0f : 0.05f);
}

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *function;
    struct tare_edge ids, looked_up, logits;
    struct tare_arena arena;
    struct tare_quant_report report;
};

/* What the product multiplies by: its own copy of the table, that copy transposed, or in bfloat16. */
enum form { COPY, TRANSPOSED, NARROW };

static void copy_table(struct tare_tensor *out, const struct tare_tensor *table, enum form form) {
    const struct tare_shape shape = form == TRANSPOSED ? tare_shape_make(2, WIDTH, ENTRIES) : table->shape;
    mini_ok(tare_tensor_new(out, form == NARROW ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < table->elements; i++) {
        const float value = TARE_CONST_DATA(float, table)[i];
        if (form == NARROW)
            TARE_DATA(uint16_t, out)[i] = tare_bfloat16_from_float(value);
        else
            TARE_DATA(float, out)[form == TRANSPOSED ? i % WIDTH * ENTRIES + i / WIDTH : i] = value;
    }
}

static struct tare_edge cast(struct tare_graph *g, const char *name, struct tare_edge x, int dtype) {
    struct tare_node *node = mini_open(g, "Cast", name, 1, x);
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    return mini_done(node);
}

/* logits of looked-up entries; the product comes first where `reversed`. */
static void open_fixture(struct fixture *f, bool reversed, enum form form) {
    const struct tare_shape shape = tare_shape_make(2, ENTRIES, WIDTH), of_ids = tare_shape_make(1, BATCH);
    struct tare_tensor table, copy;
    *f = (struct fixture){ .model = mini_model_new() };
    struct tare_graph *g = f->function = tare_model_add_function(f->model, "f");
    const struct tare_edge ids = mini_arg(g, "ids", TARE_DT_INT32), x = mini_arg(g, "x", TARE_DT_FLOAT);
    mini_ok(tare_tensor_new(&table, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < table.elements; i++)
        TARE_DATA(float, &table)[i] = table_value(i);
    const struct tare_edge first = { tare_graph_add_const(g, "table", &table), 0 };
    copy_table(&copy, &table, form);
    const struct tare_edge second = { tare_graph_add_const(g, "copy", &copy), 0 };
    tare_tensor_reset(&table);
    tare_tensor_reset(&copy);
    const struct tare_edge entries = mini_node(g, "GatherV2", "look_up", 3, first, ids, mini_int(g, "axis", 0));
    struct tare_edge left = reversed ? x : entries;
    if (form == NARROW) left = cast(g, "narrow", left, TARE_DT_BFLOAT16);
    struct tare_node *product = mini_open(g, "MatMul", "project", 2, left, second);
    mini_ok(tare_node_set_bool(product, "transpose_b", form != TRANSPOSED));
    const struct tare_edge logits = mini_done(product);
    mini_return(g, "logits", form == NARROW ? cast(g, "widen", logits, TARE_DT_FLOAT) : logits);
    mini_return(g, "entries", entries);
    f->ids = mini_placeholder(f->model->main, "ids", TARE_DT_INT32);
    mini_ok(tare_node_set_shape(f->ids.node, "shape", &of_ids));
    const struct tare_shape of_x = tare_shape_make(2, BATCH, WIDTH);
    const struct tare_edge fed = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(fed.node, "shape", &of_x));
    f->logits = mini_call(f->model->main, "PartitionedCall", "call", g, 2, f->ids, fed);
    f->looked_up = mini_output(f->logits, 1);
}

static void close_fixture(struct fixture *f) {
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    (void)arg;
    (void)edge;
    (void)setting;
    *low = -5;
    *high = 5;
    *found = true;
    return TARE_OK;
}

static const struct tare_quant_ranges ranges = { .find = find };

/* Bytes of the constants of at least half the table's elements. */
static size_t stored_bytes(const struct fixture *f) {
    size_t bytes = 0;
    for (size_t i = 0; i < f->function->n_nodes; i++) {
        const struct tare_node *node = f->function->nodes[i];
        const struct tare_tensor *value =
            node->dead ? NULL : tare_edge_constant((struct tare_edge){ (void *)(uintptr_t)node, 0 });
        if (value && strcmp(node->op, "Const") == 0 && value->elements >= ENTRIES * WIDTH / 2)
            bytes += tare_tensor_bytes(value);
    }
    return bytes;
}

static struct tare_tensor run(struct fixture *f, struct tare_edge fetch) {
    const struct tare_shape shape = tare_shape_make(1, BATCH), of_x = tare_shape_make(2, BATCH, WIDTH);
    const struct tare_edge feeds[] = { f->ids, f->logits.node->inputs[1] };
    const int32_t ids[BATCH] = { 7, 0, 23 };
    struct tare_tensor fed[2], result;
    mini_ok(tare_tensor_from(&fed[0], TARE_DT_INT32, &shape, ids));
    mini_ok(tare_tensor_new(&fed[1], TARE_DT_FLOAT, &of_x));
    for (int64_t i = 0; i < fed[1].elements; i++)
        TARE_DATA(float, &fed[1])[i] = table_value(3 * i);
    struct tare_session *session = mini_session(f->model);
    mini_ok(tare_session_run(session, feeds, fed, 2, &fetch, &result, 1, NULL, 0));
    tare_tensor_reset(&fed[0]);
    tare_tensor_reset(&fed[1]);
    tare_session_free(session);
    return result;
}

static double sqnr(const struct tare_tensor *expected, const struct tare_tensor *got) {
    double signal = 0, noise = 0;
    assert_true(tare_shape_equal(&expected->shape, &got->shape));
    for (int64_t i = 0; i < expected->elements; i++) {
        const double e = tare_tensor_get_f64(expected, i), d = tare_tensor_get_f64(got, i) - e;
        signal += e * e;
        noise += d * d;
    }
    return 10 * log10(signal / noise);
}

/* Quantizes; returns the bytes that are stored, and asserts the accuracy of both outputs. */
static size_t quantized(const struct tare_quant_plan *plan, bool reversed, enum form form, double least_db) {
    struct fixture f, g;
    open_fixture(&f, reversed, form);
    open_fixture(&g, reversed, form);
    mini_ok(tare_quantize(&g.report, &g.arena, g.model, &ranges, plan));
    assert_int_equal(g.report.quantized, 2);
    for (int i = 0; i < 2; i++) {
        struct tare_tensor expected = run(&f, i ? f.looked_up : f.logits), got = run(&g, i ? g.looked_up : g.logits);
        const double db = sqnr(&expected, &got);
        if (!(db >= least_db)) fail_msg("output %d: %g dB", i, db);
        tare_tensor_reset(&expected);
        tare_tensor_reset(&got);
    }
    const size_t bytes = stored_bytes(&g);
    close_fixture(&f);
    close_fixture(&g);
    return bytes;
}

static void tied_table__is_stored_once(void **state) {
    static const struct tare_quant_method *const methods[] = { &tare_method_weight_only, &tare_method_dynamic,
                                                               &tare_method_static };
    (void)state;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        for (int reversed = 0; reversed < 2; reversed++)
            for (int form = COPY; form <= NARROW; form++) {
                const struct tare_quant_plan plan = { .setting.method = methods[i], .min_elements = 1 };
                assert_int_equal(quantized(&plan, reversed, form, 30), ENTRIES * WIDTH);
            }
}

static void tied_table_of_4_bits__is_stored_once(void **state) {
    const struct tare_quant_plan plan = { .setting = { .method = &tare_method_weight_only, .bits = 4 },
                                          .min_elements = 1 };
    (void)state;
    for (int reversed = 0; reversed < 2; reversed++)
        for (int form = COPY; form <= NARROW; form++)
            assert_int_equal(quantized(&plan, reversed, form, 12), ENTRIES * WIDTH / 2);
}

static void tied_table_in_blocks__is_stored_once(void **state) {
    const struct tare_quant_setting blocks = { .method = &tare_method_weight_only,
                                               .granularity = TARE_PER_BLOCK,
                                               .block = 32 };
    struct tare_quant_plan plan = { .setting = blocks, .min_elements = 1 };
    (void)state;
    for (int reversed = 0; reversed < 2; reversed++)
        for (int form = COPY; form <= NARROW; form++) {
            plan.setting.bits = 8;
            assert_int_equal(quantized(&plan, reversed, form, 35), ENTRIES * WIDTH);
            plan.setting.bits = 4;
            assert_int_equal(quantized(&plan, reversed, form, 15), ENTRIES * WIDTH / 2);
        }
}

static void product_of_a_table_that_blocks_do_not_divide__has_its_scales(void **state) {
    const struct tare_quant_plan blocks = {
        .setting = { .method = &tare_method_weight_only, .granularity = TARE_PER_BLOCK, .block = 64 }, .min_elements = 1
    };
    struct fixture g;
    (void)state;
    assert_int_equal(quantized(&blocks, false, COPY, 30), ENTRIES * WIDTH);
    open_fixture(&g, false, COPY);
    mini_ok(tare_quantize(&g.report, &g.arena, g.model, &ranges, &blocks));
    assert_int_equal(g.report.outcomes[1].n_weight_scales, ENTRIES);
    assert_int_equal(g.report.n_notes, 1);
    assert_non_null(strstr(g.report.notes[0], "project (MatMul) has a scale per channel instead of blocks"));
    close_fixture(&g);
}

/* Parts of an entry differ by a factor of 20: a scale for each keeps them. */
static void blocks_of_a_table__have_their_own_scales(void **state) {
    const struct tare_quant_plan blocks = {
        .setting = { .method = &tare_method_weight_only, .granularity = TARE_PER_BLOCK, .block = 32 }, .min_elements = 1
    };
    struct fixture f, g;
    (void)state;
    open_fixture(&f, false, COPY);
    open_fixture(&g, false, COPY);
    mini_ok(tare_quantize(&g.report, &g.arena, g.model, &ranges, &blocks));
    assert_int_equal(g.report.outcomes[0].n_weight_scales, 3 * ENTRIES);
    struct tare_tensor expected = run(&f, f.looked_up), got = run(&g, g.looked_up);
    for (int64_t i = 0; i < expected.elements; i++) {
        const double e = tare_tensor_get_f64(&expected, i), d = fabs(tare_tensor_get_f64(&got, i) - e);
        const double reach = i % WIDTH < 32 ? 5 : 0.25;
        if (!(d <= reach / 250)) fail_msg("element %d: %g off", (int)i, d);
    }
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    close_fixture(&f);
    close_fixture(&g);
}

static void blocks_that_do_not_fit_a_table__are_scales_per_entry(void **state) {
    const struct tare_quant_plan blocks = {
        .setting = { .method = &tare_method_weight_only, .granularity = TARE_PER_BLOCK, .block = 128 },
        .min_elements = 1
    };
    struct fixture g;
    (void)state;
    open_fixture(&g, false, COPY);
    mini_ok(tare_quantize(&g.report, &g.arena, g.model, &ranges, &blocks));
    assert_int_equal(g.report.outcomes[0].n_weight_scales, ENTRIES);
    assert_int_equal(g.report.outcomes[0].setting.granularity, TARE_PER_CHANNEL);
    close_fixture(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tied_table__is_stored_once),
        cmocka_unit_test(tied_table_of_4_bits__is_stored_once),
        cmocka_unit_test(tied_table_in_blocks__is_stored_once),
        cmocka_unit_test(product_of_a_table_that_blocks_do_not_divide__has_its_scales),
        cmocka_unit_test(blocks_of_a_table__have_their_own_scales),
        cmocka_unit_test(blocks_that_do_not_fit_a_table__are_scales_per_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Integer weights that quantizations of one model share: the models are those of quantizations without a store. */
#include "quant/weight_store.h"
#include "graph/clone.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

#include <string.h>

enum { ROWS = 24, COLUMNS = 5 };

struct source {
    struct tare_graph_model *model;
    double low, high; /* range of the activation */
};

/* y = x * w + b in a function, where every b is `bias`. */
static void open_source(struct source *s, float bias) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)ROWS, (int64_t)COLUMNS),
                            vector = tare_shape_make(1, (int64_t)COLUMNS), input = tare_shape_make(2, 1, (int64_t)ROWS);
    struct tare_tensor w, b;
    struct tare_edge x, y;
    *s = (struct source){ mini_model_new(), -1, 1 };
    struct tare_graph *f = tare_model_add_function(s->model, "f");
    mini_ok(tare_tensor_new(&w, TARE_DT_FLOAT, &shape));
    mini_ok(tare_tensor_new(&b, TARE_DT_FLOAT, &vector));
    for (int64_t i = 0; i < w.elements; i++)
        TARE_DATA(float, &w)[i] = (float)(i * 37 % 101 - 50) / 30;
    for (int64_t i = 0; i < b.elements; i++)
        TARE_DATA(float, &b)[i] = bias;
    x = mini_arg(f, "x", TARE_DT_FLOAT);
    y = mini_node(f, "MatMul", "product", 2, x, (struct tare_edge){ tare_graph_add_const(f, "w", &w), 0 });
    y = mini_node(f, "BiasAdd", "y", 2, y, (struct tare_edge){ tare_graph_add_const(f, "b", &b), 0 });
    mini_return(f, "y", y);
    x = mini_placeholder(s->model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(x.node, "shape", &input));
    mini_call(s->model->main, "PartitionedCall", "call", f, 1, x);
    tare_tensor_reset(&w);
    tare_tensor_reset(&b);
}

static tare_status find_range(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                              double *low, double *high) {
    const struct source *s = arg;
    (void)edge;
    (void)setting;
    *found = true;
    *low = s->low;
    *high = s->high;
    return TARE_OK;
}

struct quantized {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_quant_report report;
};

static void quantize(struct quantized *q, struct source *s, const struct tare_quant_setting *setting,
                     struct tare_quant_weight_store *store) {
    const struct tare_quant_ranges ranges = { .find = find_range, .arg = s };
    const struct tare_quant_plan options = { .setting = *setting, .min_elements = 1, .weights = store };
    memset(q, 0, sizeof *q);
    mini_ok(tare_model_clone(&q->model, s->model));
    mini_ok(tare_quantize(&q->report, &q->arena, q->model, &ranges, &options));
    assert_int_equal(q->report.quantized, 1);
}

static void close_quantized(struct quantized *q) {
    tare_model_free(q->model);
    tare_arena_free(&q->arena);
}

/* Sums are ordered: a difference of two outputs shows a difference of any weight. */
static struct tare_tensor output_of(const struct quantized *q) {
    struct tare_session *session = mini_session(q->model);
    struct tare_edge x = { tare_graph_find(q->model->main, "in"), 0 },
                     y = { tare_graph_find(q->model->main, "call"), 0 };
    const struct tare_shape shape = tare_shape_make(2, 1, (int64_t)ROWS);
    struct tare_tensor value, result;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < ROWS; i++)
        TARE_DATA(float, &value)[i] = (float)(i % 7 - 3) / 4;
    mini_ok(tare_session_run(session, &x, &value, 1, &y, &result, 1, NULL, 0));
    tare_tensor_reset(&value);
    tare_session_free(session);
    return result;
}

static void assert_same(const struct quantized *a, const struct quantized *b) {
    const struct tare_quant_outcome *x = &a->report.outcomes[0], *y = &b->report.outcomes[0];
    struct tare_tensor outputs[2] = { output_of(a), output_of(b) };
    assert_true(tare_tensor_same_bits(&outputs[0], &outputs[1]));
    assert_true(x->weight_sqnr_db == y->weight_sqnr_db && x->channel_spread == y->channel_spread);
    assert_int_equal(x->bits, y->bits);
    assert_int_equal(x->weight_elements, y->weight_elements);
    assert_int_equal(x->n_weight_scales, y->n_weight_scales);
    assert_memory_equal(x->weight_scales, y->weight_scales, (size_t)x->n_weight_scales * sizeof *x->weight_scales);
    assert_true(x->weight_scale_min == y->weight_scale_min && x->weight_scale_max == y->weight_scale_max);
    tare_tensor_reset(&outputs[0]);
    tare_tensor_reset(&outputs[1]);
}

/* Quantizes without and with the store; returns the number of weights that came from it. */
static size_t found_by(struct source *s, const struct tare_quant_setting *setting,
                       struct tare_quant_weight_store *store) {
    const size_t before = store->found;
    struct quantized alone, sharing;
    quantize(&alone, s, setting, NULL);
    quantize(&sharing, s, setting, store);
    assert_same(&alone, &sharing);
    close_quantized(&alone);
    close_quantized(&sharing);
    return store->found - before;
}

static void stored_weights__are_found_by_settings_and_constant(void **state) {
    struct tare_quant_weight_store store = { 0 };
    struct tare_quant_setting setting = { .method = &tare_method_static };
    struct source s, other;
    (void)state;
    open_source(&s, 0.5F);
    open_source(&other, 0.5F);
    assert_int_equal(found_by(&s, &setting, &store), 0);
    assert_int_equal(found_by(&s, &setting, &store), 1);
    s.high = 3; /* another range of the activation, and another method */
    assert_int_equal(found_by(&s, &setting, &store), 1);
    setting.method = &tare_method_weight_only;
    assert_int_equal(found_by(&s, &setting, &store), 1);
    setting.bits = 4;
    assert_int_equal(found_by(&s, &setting, &store), 0);
    setting.granularity = TARE_PER_TENSOR;
    assert_int_equal(found_by(&s, &setting, &store), 0);
    setting.full_range = true;
    assert_int_equal(found_by(&s, &setting, &store), 0);
    setting = (struct tare_quant_setting){ .method = &tare_method_weight_only };
    assert_int_equal(found_by(&other, &setting, &store), 0); /* equal values in other memory */
    assert_int_equal(found_by(&s, &setting, &store), 1);
    assert_int_equal(store.bytes, 5 * ROWS * COLUMNS);
    tare_model_free(s.model);
    tare_model_free(other.model);
    tare_quant_weight_store_free(&store);
}

/* Scales that a bias increases depend on the range of the activation. */
static void stored_weights__have_room_for_the_bias(void **state) {
    struct tare_quant_weight_store store = { 0 };
    const struct tare_quant_setting setting = { .method = &tare_method_static };
    struct source s;
    (void)state;
    open_source(&s, 1e9F);
    s.low = -1e-6;
    s.high = 1e-6;
    assert_int_equal(found_by(&s, &setting, &store), 0);
    assert_int_equal(found_by(&s, &setting, &store), 0);
    assert_int_equal(store.bytes, 0);
    s.low = -1e6;
    s.high = 1e6;
    assert_int_equal(found_by(&s, &setting, &store), 0);
    assert_int_equal(found_by(&s, &setting, &store), 1);
    s.low = -1e-6;
    s.high = 1e-6;
    assert_int_equal(found_by(&s, &setting, &store), 0);
    tare_model_free(s.model);
    tare_quant_weight_store_free(&store);
}

static void squares__are_computed_once_for_a_constant(void **state) {
    const struct tare_shape shape = tare_shape_make(1, (int64_t)3);
    struct tare_quant_weight_store store = { 0 };
    struct tare_tensor weight, other;
    double squares;
    (void)state;
    mini_ok(tare_tensor_from(&weight, TARE_DT_FLOAT, &shape, (const float[]){ 1, -2, 3 }));
    mini_ok(tare_tensor_from(&other, TARE_DT_FLOAT, &shape, (const float[]){ 1, 1, 0.5F }));
    mini_ok(tare_quant_weight_store_squares(&squares, &store, &weight));
    assert_true(squares == 14);
    TARE_DATA(float, &weight)[0] = 100; /* a stored sum does not read the constant again */
    mini_ok(tare_quant_weight_store_squares(&squares, &store, &weight));
    assert_true(squares == 14);
    mini_ok(tare_quant_weight_store_squares(&squares, &store, &other));
    assert_true(squares == 2.25);
    mini_ok(tare_quant_weight_store_squares(&squares, NULL, &other));
    assert_true(squares == 2.25);
    tare_tensor_reset(&weight);
    tare_tensor_reset(&other);
    tare_quant_weight_store_free(&store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_weights__are_found_by_settings_and_constant),
        cmocka_unit_test(stored_weights__have_room_for_the_bias),
        cmocka_unit_test(squares__are_computed_once_for_a_constant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

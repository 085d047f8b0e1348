/* Ranges and scalar programs: values that only a program uses, values that other steps use or a caller fetches, results
 * that a caller still holds when the next run computes them, those that are lent to groups, and programs that cannot
 * run. */
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

/* Max and Min of x, and a program of scalar steps: their difference, and the difference over 255. */
struct ranged {
    struct tare_graph_model *model;
    struct tare_edge x, high, low, difference, scale, product, grouped;
    struct tare_session *session;
};

static struct tare_edge extreme(struct tare_graph *g, const char *op, struct tare_edge flat) {
    struct tare_node *node =
        mini_open(g, op, op, 2, flat, mini_ints(g, op[1] == 'a' ? "a1" : "a2", 1, (int32_t[]){ 0 }));
    mini_ok(tare_node_set_type(node, "Tidx", TARE_DT_INT32));
    mini_ok(tare_node_set_bool(node, "keep_dims", true));
    return mini_done(node);
}

static void begin(struct ranged *r) {
    r->model = mini_model_new();
    struct tare_graph *g = r->model->main;
    r->x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_node(g, "Relu", "relu", 1, mini_node(g, "AddV2", "add", 2, r->x, mini_float(g, "c", 1)));
    const struct tare_edge flat = mini_node(g, "Reshape", "flat", 2, y, mini_ints(g, "all", 1, (int32_t[]){ -1 }));
    r->high = extreme(g, "Max", flat), r->low = extreme(g, "Min", flat);
    r->difference = mini_node(g, "Sub", "difference", 2, r->high, r->low);
    r->scale = mini_node(g, "Div", "scale", 2, r->difference, mini_float(g, "codes", 255));
    r->product = mini_node(g, "Mul", "product", 2, y, r->scale);
    const struct tare_edge scaled = mini_node(g, "Mul", "scaled", 2, y, r->scale);
    r->grouped = mini_node(g, "AddV2", "grouped", 2, scaled, r->difference); /* a group, to which both are lent */
    r->session = mini_session(r->model);
}

static void end(struct ranged *r) {
    tare_session_free(r->session);
    tare_model_free(r->model);
}

/* A run with x = { first, second, 0 }. */
static struct tare_tensor run(struct ranged *r, float first, float second, struct tare_edge fetch) {
    const struct tare_shape shape = tare_shape_make(1, (int64_t)3);
    const float values[] = { first, second, 0 };
    struct tare_tensor x, result;
    mini_ok(tare_tensor_from(&x, TARE_DT_FLOAT, &shape, values));
    mini_ok(tare_session_run(r->session, &r->x, &x, 1, &fetch, &result, 1, NULL, 0));
    tare_tensor_reset(&x);
    return result;
}

static void check(struct ranged *r, float first, float second, struct tare_edge fetch, float expected) {
    struct tare_tensor result = run(r, first, second, fetch);
    assert_float_equal(TARE_DATA(float, &result)[0], expected, 0);
    tare_tensor_reset(&result);
}

static void ranges__values_are_those_of_each_run(void **unused) {
    (void)unused;
    struct ranged r;
    begin(&r);
    for (int i = 1; i < 4; i++) {
        const float high = (float)(10 * i), low = (float)-i;
        check(&r, high, low, r.product, (high + 1) * ((high + 1 - (low + 1 > 0 ? low + 1 : 0)) / 255));
        check(&r, high, 3, r.difference, high);
        check(&r, high, 3, r.high, high + 1);
        check(&r, high, 3, r.low, 1);
        check(&r, high, 3, r.scale, high / 255);
    }
    end(&r);
}

static void ranges__a_result_that_is_held_keeps_its_value(void **unused) {
    (void)unused;
    struct ranged r;
    begin(&r);
    struct tare_tensor first = run(&r, 10, 2, r.difference), second = run(&r, 30, 2, r.difference);
    struct tare_tensor third = run(&r, 50, 2, r.difference);
    assert_float_equal(TARE_DATA(float, &first)[0], 10, 0);
    assert_float_equal(TARE_DATA(float, &second)[0], 30, 0);
    assert_float_equal(TARE_DATA(float, &third)[0], 50, 0);
    tare_tensor_reset(&first), tare_tensor_reset(&third);
    check(&r, 70, 2, r.difference, 70);
    assert_float_equal(TARE_DATA(float, &second)[0], 30, 0);
    tare_tensor_reset(&second);
    end(&r);
}

static float grouped(float high) {
    return (high + 1) * (high / 255) + high;
}

/* The group that reads single values does so in each run, also after one in which their program could not run. */
static void ranges__lent_values_are_those_of_each_run(void **unused) {
    (void)unused;
    struct ranged r;
    begin(&r);
    for (int i = 1; i < 4; i++) {
        check(&r, (float)(10 * i), 2, r.grouped, grouped((float)(10 * i)));
        struct tare_tensor result = run(&r, NAN, 2, r.grouped);
        assert_true(isnan(TARE_DATA(float, &result)[0]));
        tare_tensor_reset(&result);
    }
    check(&r, 50, 2, r.grouped, grouped(50));
    check(&r, 60, 2, r.grouped, grouped(60));
    end(&r);
}

/* A value that is fetched beside the result of such a group does not change with the next run. */
static void ranges__a_fetched_value_is_not_lent(void **unused) {
    (void)unused;
    struct ranged r;
    begin(&r);
    const struct tare_shape shape = tare_shape_make(1, (int64_t)3);
    const struct tare_edge fetches[] = { r.grouped, r.difference };
    struct tare_tensor held[3];
    for (int i = 0; i < 3; i++) {
        const float high = (float)(10 + i);
        struct tare_tensor x, results[2];
        mini_ok(tare_tensor_from(&x, TARE_DT_FLOAT, &shape, (float[]){ high, 2, 0 }));
        mini_ok(tare_session_run(r.session, &r.x, &x, 1, fetches, results, 2, NULL, 0));
        assert_float_equal(TARE_DATA(float, &results[0])[0], grouped(high), 0);
        held[i] = results[1];
        tare_tensor_reset(&results[0]), tare_tensor_reset(&x);
    }
    for (int i = 0; i < 3; i++) {
        assert_float_equal(TARE_DATA(float, &held[i])[0], 10 + i, 0);
        tare_tensor_reset(&held[i]);
    }
    end(&r);
}

/* The order of comparisons decides which NaN or zero is the result: the ops run. */
static void ranges__with_nan_are_those_of_the_ops(void **unused) {
    (void)unused;
    struct ranged r;
    begin(&r);
    check(&r, 10, 2, r.difference, 10);
    struct tare_tensor result = run(&r, NAN, 2, r.difference);
    const struct tare_session_options plain = { .use_reference_kernels = true };
    struct tare_session *fast = r.session;
    mini_ok(tare_session_new(&r.session, r.model, &plain));
    struct tare_tensor expected = run(&r, NAN, 2, r.difference);
    assert_true(tare_tensor_same_bits(&result, &expected));
    tare_tensor_reset(&result), tare_tensor_reset(&expected);
    tare_session_free(r.session);
    r.session = fast;
    check(&r, 20, 2, r.difference, 20);
    end(&r);
}

static tare_status see(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    (void)output;
    if (strcmp(node->name, "Max") == 0) *(float *)arg = TARE_CONST_DATA(float, value)[0];
    return TARE_OK;
}
static bool is_max(void *arg, const struct tare_node *node, size_t output) {
    (void)arg, (void)output;
    return strcmp(node->name, "Max") == 0;
}
static bool is_scale(void *arg, const struct tare_node *node, size_t output) {
    (void)arg, (void)output;
    return strcmp(node->name, "scale") == 0;
}

static void ranges__observers_of_single_values_do_not_change_results(void **unused) {
    (void)unused;
    struct ranged r;
    float seen = 0;
    begin(&r);
    check(&r, 10, 2, r.difference, 10);
    tare_session_observe(r.session, see, is_max, &seen);
    check(&r, 20, 2, r.product, 21 * (20.0f / 255));
    assert_float_equal(seen, 21, 0);
    tare_session_observe(r.session, see, is_scale, &seen);
    check(&r, 30, 2, r.product, 31 * (30.0f / 255));
    tare_session_observe(r.session, NULL, NULL, NULL);
    check(&r, 40, 2, r.product, 41 * (40.0f / 255));
    end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges__values_are_those_of_each_run),
        cmocka_unit_test(ranges__a_result_that_is_held_keeps_its_value),
        cmocka_unit_test(ranges__lent_values_are_those_of_each_run),
        cmocka_unit_test(ranges__a_fetched_value_is_not_lent),
        cmocka_unit_test(ranges__with_nan_are_those_of_the_ops),
        cmocka_unit_test(ranges__observers_of_single_values_do_not_change_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

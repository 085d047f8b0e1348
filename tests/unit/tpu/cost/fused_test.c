/* Traffic through a TPU's memory when elementwise ops are fused. */
#include "tpu/cost/fused.h"
#include "graph/emit.h"
#include "support/mini_model.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, INNER = 8, COLUMNS = 16 };
static const double IN = ROWS * INNER * 4, WEIGHT = INNER * COLUMNS * 4, OUT = ROWS * COLUMNS * 4;

struct fixture {
    struct tare_graph_model *model;
    struct tare_binding output;
    struct tare_signature signature;
    struct tare_edge x, product; /* product = x * weight */
    struct tare_fused_cost cost;
    size_t groups;
};

static struct tare_edge tensor(struct tare_graph_model *model, const char *name, int64_t rows, int64_t columns) {
    struct tare_shape shape = tare_shape_make(2, rows, columns);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    memset(value.data, 0, tare_tensor_bytes(&value));
    struct tare_node *node = tare_graph_add_const(model->main, name, &value);
    tare_tensor_reset(&value);
    return (struct tare_edge){ node, 0 };
}

static void set_up(struct fixture *f) {
    struct tare_shape shape = tare_shape_make(2, (int64_t)ROWS, (int64_t)INNER);
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->x = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(f->x.node, "shape", &shape));
    f->product = mini_node(f->model->main, "MatMul", "product", 2, f->x, tensor(f->model, "weight", INNER, COLUMNS));
}

static void note(void *arg, const struct tare_node *first, const struct tare_fused_cost *group) {
    (void)first;
    (void)group;
    ++*(size_t *)arg;
}

static void count(struct fixture *f, struct tare_edge y) {
    struct tare_arena arena = { 0 };
    f->output = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .edge = y };
    f->signature = (struct tare_signature){ "serving_default", "", NULL, 0, &f->output, 1, NULL };
    f->groups = 0;
    mini_ok(tare_tpu_fused_cost(&f->cost, &arena, f->model, &f->signature, 1, note, &f->groups));
    tare_arena_free(&arena);
}

static void one_product__reads_its_inputs_and_writes_its_result(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    count(&f, f.product);
    assert_int_equal(f.cost.macs, ROWS * INNER * COLUMNS);
    assert_int_equal(f.cost.bytes, IN + WEIGHT + OUT);
    assert_int_equal(f.groups, 1);
    assert_true(f.cost.least[3] == tare_tpu_chip_seconds(&tare_tpu_chips[3], f.cost.macs, 0, f.cost.bytes));
    tare_model_free(f.model);
}

/* The codes of both operands, widened: at the float8 rate of a chip that has one. */
static void a_product_of_float8__has_its_rate(void **state) {
    struct fixture f, real;
    struct tare_edge codes[2];
    (void)state;
    set_up(&real);
    count(&real, real.product);
    set_up(&f);
    const struct tare_edge operands[] = { f.x, f.product.node->inputs[1] };
    struct tare_emit emit = { .graph = f.model->main, .prefix = "codes" };
    for (int i = 0; i < 2; i++) {
        codes[i] = tare_emit_cast(&emit, i ? "weight" : "x", operands[i], TARE_DT_FLOAT8_E4M3FN);
        codes[i] = tare_emit_cast(&emit, i ? "wide_weight" : "wide_x", codes[i], TARE_DT_FLOAT);
        mini_ok(emit.status);
        tare_node_set_input(f.product.node, (size_t)i, codes[i]);
    }
    count(&f, f.product);
    assert_int_equal(f.cost.float8_macs, ROWS * INNER * COLUMNS);
    assert_int_equal(f.cost.integer_macs, 0);
    assert_int_equal(real.cost.float8_macs, 0);
    tare_model_free(f.model);
    tare_model_free(real.model);
}

static void elementwise_ops_after_it__cost_no_traffic(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    struct tare_edge y =
        mini_node(f.model->main, "Relu", "relu", 1, mini_node(f.model->main, "Identity", "i", 1, f.product));
    count(&f, mini_node(f.model->main, "Tanh", "tanh", 1, y));
    assert_int_equal(f.cost.bytes, IN + WEIGHT + OUT);
    assert_int_equal(f.groups, 1);
    tare_model_free(f.model);
}

static void an_op_before_a_product__is_computed_by_it(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    tare_node_set_input(f.product.node, 0, mini_node(f.model->main, "Tanh", "tanh", 1, f.x));
    count(&f, f.product);
    assert_int_equal(f.groups, 1);
    assert_float_equal(f.cost.work[0][TARE_TPU_LOOPS], 0, 0);
    assert_float_equal(f.cost.work[0][TARE_TPU_CURVE_TILES], 1, 0);
    assert_float_equal(f.cost.work[0][TARE_TPU_FIRST], 1, 0);
    tare_model_free(f.model);
}

/* The reduction is computed at the end of the product, the division by the number of columns by another op. */
static void a_mean_of_rows__is_one_op_after_a_product_and_two_after_an_argument(void **state) {
    static const int32_t axis[] = { 1 };
    for (int of_argument = 0; of_argument < 2; of_argument++) {
        struct fixture f;
        set_up(&f);
        struct tare_edge axes = mini_ints(f.model->main, "axes", 1, axis);
        count(&f, mini_node(f.model->main, "Mean", "mean", 2, of_argument ? f.x : f.product, axes));
        assert_float_equal(f.cost.work[0][TARE_TPU_LOOPS], 1 + of_argument, 0);
        assert_float_equal(f.cost.work[0][TARE_TPU_REDUCED_TILES], 1, 0);
        tare_model_free(f.model);
    }
    (void)state;
}

static void what_two_products_share__is_written_once_and_read_twice(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    struct tare_graph *g = f.model->main;
    struct tare_edge h = mini_node(g, "Relu", "h", 1, f.product);
    struct tare_edge a = mini_node(g, "MatMul", "a", 2, h, tensor(f.model, "wa", COLUMNS, COLUMNS));
    struct tare_edge b = mini_node(g, "MatMul", "b", 2, h, tensor(f.model, "wb", COLUMNS, COLUMNS));
    count(&f, mini_node(g, "AddV2", "sum", 2, a, b));
    /* the sum is fused with the later product and reads the other's result, which is written for it */
    assert_int_equal(f.cost.bytes, IN + WEIGHT + OUT + 2 * (OUT + COLUMNS * COLUMNS * 4) + 2 * OUT + OUT);
    assert_int_equal(f.groups, 3);
    tare_model_free(f.model);
}

/* Of the shape of the product. */
static struct tare_edge other(struct fixture *f) {
    struct tare_shape shape = tare_shape_make(2, (int64_t)ROWS, (int64_t)COLUMNS);
    struct tare_edge z = mini_placeholder(f->model->main, "z", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(z.node, "shape", &shape));
    return z;
}

static void what_is_added_to_a_product__is_computed_with_it(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    struct tare_edge later = mini_node(f.model->main, "Tanh", "later", 1, other(&f));
    count(&f, mini_node(f.model->main, "AddV2", "sum", 2, f.product, later));
    assert_int_equal(f.groups, 1);
    assert_float_equal(f.cost.work[0][TARE_TPU_LOOPS], 0, 0);
    tare_model_free(f.model);
}

static void results_that_one_op_reads__are_computed_by_it(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    struct tare_graph *g = f.model->main;
    struct tare_edge u = mini_node(g, "Tanh", "u", 1, other(&f)), v = mini_node(g, "Sigmoid", "v", 1, u);
    count(&f, mini_node(g, "AddV2", "sum", 2, mini_node(g, "Mul", "scaled", 2, f.product, u), v));
    assert_int_equal(f.groups, 1);
    assert_float_equal(f.cost.work[0][TARE_TPU_CURVE_TILES], 2, 0);
    tare_model_free(f.model);
}

static void a_concatenation__moves_each_part_and_is_apart_from_what_follows(void **state) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct fixture f;
    struct tare_tensor axis;
    (void)state;
    set_up(&f);
    mini_ok(tare_tensor_new(&axis, TARE_DT_INT32, &scalar));
    TARE_DATA(int32_t, &axis)[0] = 1;
    struct tare_graph *g = f.model->main;
    struct tare_edge z = other(&f), last = { tare_graph_add_const(g, "axis", &axis), 0 };
    tare_tensor_reset(&axis);
    struct tare_edge joint = mini_node(g, "ConcatV2", "joint", 3, f.product, z, last);
    count(&f, joint);
    assert_float_equal(f.cost.work[0][TARE_TPU_SPREAD_TILES], 2, 0);
    assert_float_equal(f.cost.work[0][TARE_TPU_LOOPS], 1, 0);
    struct tare_edge next = mini_node(g, "MatMul", "next", 2, mini_node(g, "Relu", "relu", 1, joint),
                                      tensor(f.model, "w", 2 * COLUMNS, COLUMNS));
    count(&f, mini_node(g, "ConcatV2", "joints", 3, joint, next, last));
    /* both the product and the second concatenation compute the first one */
    assert_int_equal(f.groups, 3);
    tare_model_free(f.model);
}

static struct tare_edge conv(struct tare_graph_model *model, const char *name, struct tare_edge x, int64_t size,
                             int64_t channels) {
    struct tare_shape shape = tare_shape_make(4, size, size, channels, channels);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    memset(value.data, 0, tare_tensor_bytes(&value));
    struct tare_edge kernel = { tare_graph_add_const(model->main, "kernel", &value), 0 };
    tare_tensor_reset(&value);
    struct tare_node *node = mini_open(model->main, "Conv2D", name, 2, x, kernel);
    mini_ok(tare_node_set_int_list(node, "strides", (int64_t[]){ 1, 1, 1, 1 }, 4));
    mini_ok(tare_node_set_string(node, "padding", "SAME", 4));
    return mini_done(node);
}

/* float32 results of the signature are the sums of the matrix unit: nothing rounds them, and what follows is hidden. */
static void sums_that_are_results__are_not_rounded(void **state) {
    struct fixture f = { .model = mini_model_new() };
    struct tare_shape shape = tare_shape_make(4, 8, 6, 6, 16);
    (void)state;
    struct tare_edge image = mini_placeholder(f.model->main, "image", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(image.node, "shape", &shape));
    struct tare_edge first = conv(f.model, "first", image, 5, 16);
    count(&f, mini_node(f.model->main, "Sigmoid", "result", 1, first));
    assert_float_equal(f.cost.work[0][TARE_TPU_CONVS], 1, 0);
    assert_float_equal(f.cost.work[0][TARE_TPU_CONV_LOOPS], 0, 0);
    assert_float_equal(f.cost.work[0][TARE_TPU_CONV_TILES], 0, 0);
    assert_float_equal(f.cost.work[0][TARE_TPU_CURVE_TILES], 0, 0);
    count(&f, conv(f.model, "second", mini_node(f.model->main, "Sigmoid", "between", 1, first), 5, 16));
    assert_float_equal(f.cost.work[0][TARE_TPU_CONVS], 2, 0);
    assert_float_equal(f.cost.work[0][TARE_TPU_CONV_LOOPS], 1, 0);
    assert_float_equal(f.cost.work[0][TARE_TPU_CONV_TILES], 6 * 6, 0);
    assert_float_equal(f.cost.work[0][TARE_TPU_CURVE_TILES], 6 * 6, 0);
    tare_model_free(f.model);
}

static double loops_before_a_convolution(int64_t channels) {
    struct fixture f = { .model = mini_model_new() };
    struct tare_shape shape = tare_shape_make(4, 8, 6, 6, channels);
    struct tare_edge image = mini_placeholder(f.model->main, "image", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(image.node, "shape", &shape));
    count(&f, conv(f.model, "conv", mini_node(f.model->main, "Relu", "before", 1, image), 1, channels));
    tare_model_free(f.model);
    return f.cost.work[0][TARE_TPU_LOOPS];
}

static void an_argument__is_computed_once_for_all_columns_of_a_convolution(void **state) {
    (void)state;
    assert_float_equal(loops_before_a_convolution(128), 0, 0);
    assert_float_equal(loops_before_a_convolution(256), 1, 0);
}

static void integers_that_become_floats__are_read_as_integers(void **state) {
    struct fixture f;
    struct tare_shape shape = tare_shape_make(2, (int64_t)INNER, (int64_t)COLUMNS);
    struct tare_tensor value;
    (void)state;
    set_up(&f);
    mini_ok(tare_tensor_new(&value, TARE_DT_INT8, &shape));
    memset(value.data, 0, tare_tensor_bytes(&value));
    struct tare_edge w = { tare_graph_add_const(f.model->main, "w8", &value), 0 };
    tare_tensor_reset(&value);
    struct tare_node *cast = mini_open(f.model->main, "Cast", "cast", 1, w);
    mini_ok(tare_node_set_type(cast, "SrcT", TARE_DT_INT8));
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_FLOAT));
    count(&f, mini_node(f.model->main, "MatMul", "y", 2, f.x, mini_done(cast)));
    assert_int_equal(f.cost.bytes, IN + WEIGHT / 4 + OUT);
    assert_int_equal(f.cost.integer_macs, 0);
    tare_model_free(f.model);
}

/* Products of a loop whose counter begins with `first`, is compared with 10, and changes by 3. */
static double macs_of_loop(const char *compare, bool reverses, const char *op, int32_t first) {
    struct fixture f;
    set_up(&f);
    struct tare_graph *condition = tare_model_add_function(f.model, "condition");
    const struct tare_edge i = mini_arg(condition, "i", TARE_DT_INT32), limit = mini_int(condition, "limit", 10);
    mini_arg(condition, "x", TARE_DT_FLOAT);
    mini_return(condition, "more",
                mini_node(condition, compare, "compare", 2, reverses ? limit : i, reverses ? i : limit));
    struct tare_graph *body = tare_model_add_function(f.model, "body");
    const struct tare_edge at = mini_arg(body, "i", TARE_DT_INT32), x = mini_arg(body, "x", TARE_DT_FLOAT);
    mini_return(body, "i", mini_node(body, op, "next", 2, at, mini_int(body, "step", 3)));
    mini_return(body, "x", mini_node(body, "MatMul", "square", 2, x, x));
    struct tare_edge start = mini_int(f.model->main, "start", first);
    struct tare_node *loop =
        mini_open(f.model->main, "StatelessWhile", "loop", 2, start, tensor(f.model, "square", INNER, INNER));
    mini_ok(tare_node_set_func(loop, "cond", "condition"));
    mini_ok(tare_node_set_func(loop, "body", "body"));
    mini_ok(tare_node_set_type_list(loop, "T", (int[]){ TARE_DT_INT32, TARE_DT_FLOAT }, 2));
    count(&f, mini_output(mini_done(loop), 1));
    const double macs = f.cost.macs / (INNER * INNER * INNER);
    tare_model_free(f.model);
    return macs;
}

static void bodies_of_loops__count_as_often_as_the_counter_says(void **state) {
    (void)state;
    assert_float_equal(macs_of_loop("Less", false, "AddV2", 0), 4, 0);        /* 0, 3, 6, 9 */
    assert_float_equal(macs_of_loop("Less", false, "AddV2", 1), 3, 0);        /* 1, 4, 7 */
    assert_float_equal(macs_of_loop("LessEqual", false, "AddV2", 1), 4, 0);   /* 1, 4, 7, 10 */
    assert_float_equal(macs_of_loop("Greater", true, "AddV2", 1), 3, 0);      /* 10 > 1, 4, 7 */
    assert_float_equal(macs_of_loop("Greater", false, "Sub", 16), 2, 0);      /* 16, 13 */
    assert_float_equal(macs_of_loop("GreaterEqual", false, "Sub", 16), 3, 0); /* 16, 13, 10 */
    assert_float_equal(macs_of_loop("Less", false, "AddV2", 12), 0, 0);
    assert_float_equal(macs_of_loop("Less", false, "Sub", 0), 1, 0); /* not known */
    assert_float_equal(macs_of_loop("Less", false, "Mul", 1), 1, 0); /* not known */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_of_loops__count_as_often_as_the_counter_says),
        cmocka_unit_test(one_product__reads_its_inputs_and_writes_its_result),
        cmocka_unit_test(a_product_of_float8__has_its_rate),
        cmocka_unit_test(elementwise_ops_after_it__cost_no_traffic),
        cmocka_unit_test(an_op_before_a_product__is_computed_by_it),
        cmocka_unit_test(a_mean_of_rows__is_one_op_after_a_product_and_two_after_an_argument),
        cmocka_unit_test(what_two_products_share__is_written_once_and_read_twice),
        cmocka_unit_test(what_is_added_to_a_product__is_computed_with_it),
        cmocka_unit_test(results_that_one_op_reads__are_computed_by_it),
        cmocka_unit_test(a_concatenation__moves_each_part_and_is_apart_from_what_follows),
        cmocka_unit_test(sums_that_are_results__are_not_rounded),
        cmocka_unit_test(an_argument__is_computed_once_for_all_columns_of_a_convolution),
        cmocka_unit_test(integers_that_become_floats__are_read_as_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

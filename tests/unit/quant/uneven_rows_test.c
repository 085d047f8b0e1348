/* Weights of products that sum over several matrices: their magnitudes decide whether they share scales. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <string.h>

enum { COUNT = 4, COLUMNS = 8, BATCH = 3 };

/* Numbers of an absolute value up to 1, the first matrix times `smallest`. */
static struct tare_edge weight(struct tare_graph *g, int rows, float smallest) {
    const struct tare_shape shape = tare_shape_make(3, COUNT, rows, COLUMNS);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)
    [i] = (float)((i * 7919 % 2003) - 1001) / 1000.0f * (i < (int64_t)rows * COLUMNS ? smallest : 1);
    const struct tare_edge edge = { tare_graph_add_const(g, "weight", &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_quant_report report;
};

/* Quantizes the product of x, [BATCH, COUNT, rows] or, of an Einsum with one axis less, [BATCH, COUNT]. */
static const struct tare_quant_outcome *quantize(struct fixture *f, const struct tare_quant_method *method,
                                                 const char *equation, int rows, float smallest, bool one_hot) {
    const struct tare_quant_plan plan = { .setting.method = method, .min_elements = 1 };
    const struct tare_shape wide = tare_shape_make(3, BATCH, COUNT, rows), narrow = tare_shape_make(2, BATCH, COUNT);
    *f = (struct fixture){ .model = mini_model_new() };
    struct tare_graph *g = f->model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(x.node, "shape", strncmp(equation, "bei", 3) == 0 ? &wide : &narrow));
    if (one_hot) {
        struct tare_node *cast =
            mini_open(g, "Cast", "one_hot", 1, mini_node(g, "Equal", "same", 2, x, mini_float(g, "id", 1)));
        mini_ok(tare_node_set_type(cast, "SrcT", TARE_DT_BOOL));
        mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_FLOAT));
        x = mini_done(cast);
    }
    struct tare_node *node = mini_open(g, "Einsum", "product", 2, x, weight(g, rows, smallest));
    mini_ok(tare_node_set_string(node, "equation", equation, strlen(equation)));
    mini_node(g, "Identity", "y", 1, mini_done(node));
    mini_ok(tare_quantize(&f->report, &f->arena, f->model, NULL, &plan));
    assert_int_equal(f->report.count, 1);
    return &f->report.outcomes[0];
}

static void close_fixture(struct fixture *f) {
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void matrix_of_small_weights__leaves_a_sum_over_matrices_float(void **state) {
    struct fixture f;
    const struct tare_quant_outcome *o = quantize(&f, &tare_method_dynamic, "bei,eio->bo", 32, 0.01f, false);
    (void)state;
    assert_non_null(o->refused);
    assert_non_null(strstr(o->refused, "it sums over 4 matrices with one scale for each output channel"));
    close_fixture(&f);
}

static void matrices_of_like_weights__share_a_scale(void **state) {
    struct fixture f;
    const struct tare_quant_outcome *o = quantize(&f, &tare_method_dynamic, "bei,eio->bo", 32, 0.2f, false);
    (void)state;
    assert_null(o->refused);
    assert_int_equal(o->n_weight_scales, COLUMNS);
    close_fixture(&f);
}

/* Weights of zeros are no matrix that could lose anything. */
static void matrix_of_zeros__is_not_counted(void **state) {
    struct fixture f;
    const struct tare_quant_outcome *o = quantize(&f, &tare_method_dynamic, "bei,eio->bo", 32, 0, false);
    (void)state;
    assert_null(o->refused);
    close_fixture(&f);
}

static void weight_only__has_scales_for_the_rows_of_each_matrix(void **state) {
    struct fixture f;
    const struct tare_quant_outcome *o = quantize(&f, &tare_method_weight_only, "bei,eio->bo", 64, 0.01f, false);
    (void)state;
    assert_null(o->refused);
    assert_int_equal(o->n_weight_scales, COUNT * COLUMNS);
    close_fixture(&f);
    o = quantize(&f, &tare_method_weight_only, "bei,eio->bo", 9, 0.01f, false); /* no block has 9 rows */
    assert_non_null(o->refused);
    close_fixture(&f);
}

/* The rows of a matrix are the features of an activation, unless this is one-hot. */
static void rows_chosen_by_one_hot_activations__are_matrices(void **state) {
    struct fixture f;
    const struct tare_quant_outcome *o = quantize(&f, &tare_method_dynamic, "be,eio->bio", 32, 0.01f, false);
    (void)state;
    assert_null(o->refused);
    close_fixture(&f);
    o = quantize(&f, &tare_method_dynamic, "be,eio->bio", 32, 0.01f, true);
    assert_non_null(o->refused);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrix_of_small_weights__leaves_a_sum_over_matrices_float),
        cmocka_unit_test(matrices_of_like_weights__share_a_scale),
        cmocka_unit_test(matrix_of_zeros__is_not_counted),
        cmocka_unit_test(weight_only__has_scales_for_the_rows_of_each_matrix),
        cmocka_unit_test(rows_chosen_by_one_hot_activations__are_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* XlaDotV2 of few rows with large int8 weights, which has kernels of its own, has the bits of the reference product at
 * every CPU level, for int8 and float rows, weights of 8 and 4 bits, both orders of the weights' axes, and a session
 * in which the number of rows changes. */
#include "interpreter/ops/support/dims_wire.h"
#include "support/levels.h"
#include "support/mini_model.h"

#include <string.h>

enum { K = 1030, N = 1021 };

static uint32_t seed = 21;
static uint32_t next(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 9;
}

struct form {
    int rows;       /* dtype */
    bool is_small;  /* weights of 4 bits */
    bool is_turned; /* weights [N, K] */
};

static struct tare_tensor rows_of(const struct form *form, int64_t m) {
    const struct tare_shape shape = tare_shape_make(2, m, (int64_t)K);
    struct tare_tensor x;
    mini_ok(tare_tensor_new(&x, form->rows, &shape));
    for (int64_t i = 0; i < x.elements; i++) {
        const int byte = (int)(next() % 256) - 128;
        if (form->rows == TARE_DT_INT8)
            TARE_DATA(int8_t, &x)[i] = (int8_t)byte;
        else
            TARE_DATA(float, &x)[i] = (float)byte * 0.37f;
    }
    return x;
}

static struct tare_edge weights_of(struct tare_graph *g, const struct form *form) {
    const struct tare_shape shape =
        form->is_turned ? tare_shape_make(2, (int64_t)N, (int64_t)K) : tare_shape_make(2, (int64_t)K, (int64_t)N);
    struct tare_tensor w;
    mini_ok(tare_tensor_new(&w, TARE_DT_INT8, &shape));
    for (int64_t i = 0; i < w.elements; i++)
        TARE_DATA(int8_t, &w)[i] = (int8_t)(form->is_small ? (int)(next() % 16) - 8 : (int)(next() % 256) - 128);
    struct tare_node *node = tare_graph_add_const(g, "w", &w);
    tare_tensor_reset(&w);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge product(struct tare_graph *g, const struct form *form, struct tare_edge x) {
    enum { LHS_CONTRACTING = 1, RHS_CONTRACTING = 2 };
    const int left = 1, right = form->is_turned ? 1 : 0;
    struct tare_dims_wire wire = { .size = 0 };
    struct tare_node *node = mini_open(g, "XlaDotV2", "product", 2, x, weights_of(g, form));
    tare_dims_put_list(&wire, LHS_CONTRACTING, &left, 1);
    tare_dims_put_list(&wire, RHS_CONTRACTING, &right, 1);
    mini_ok(tare_node_set_type(node, "LhsT", form->rows));
    mini_ok(tare_node_set_type(node, "RhsT", TARE_DT_INT8));
    mini_ok(
        tare_node_set_type(node, "preferred_element_type", form->rows == TARE_DT_INT8 ? TARE_DT_INT32 : TARE_DT_FLOAT));
    mini_ok(tare_node_set_string(node, "dimension_numbers", (const char *)wire.bytes, wire.size));
    mini_ok(tare_node_set_string(node, "precision_config", "", 0));
    return mini_done(node);
}

static void check(const struct form *form) {
    static const int64_t rows[] = { 1, 4, 2, 6, 1, 3 };
    const struct tare_session_options plain = { .use_reference_kernels = true }, fast = { 0 };
    struct tare_session *sessions[2];
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", form->rows);
    const struct tare_edge y = product(model->main, form, x);
    mini_ok(tare_session_new(&sessions[0], model, &fast));
    mini_ok(tare_session_new(&sessions[1], model, &plain));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tare_tensor value = rows_of(form, rows[i]), results[2];
        for (int k = 0; k < 2; k++)
            mini_ok(tare_session_run(sessions[k], &x, &value, 1, &y, &results[k], 1, NULL, 0));
        assert_true(tare_shape_equal(&results[0].shape, &results[1].shape));
        assert_memory_equal(results[0].data, results[1].data, tare_tensor_bytes(&results[1]));
        tare_tensor_reset(&results[0]), tare_tensor_reset(&results[1]), tare_tensor_reset(&value);
    }
    tare_session_free(sessions[0]), tare_session_free(sessions[1]);
    tare_model_free(model);
}

static void products(void **unused) {
    (void)unused;
    for (int i = 0; i < 8; i++) {
        const struct form form = { i & 1 ? TARE_DT_INT8 : TARE_DT_FLOAT, i & 2, i & 4 };
        check(&form);
    }
}

static void few_rows__have_the_bits_of_the_product_at_every_level(void **unused) {
    (void)unused;
    levels_run("products");
}

int main(int argc, char **argv) {
    const struct CMUnitTest one[] = { cmocka_unit_test(products) };
    const struct CMUnitTest tests[] = { cmocka_unit_test(few_rows__have_the_bits_of_the_product_at_every_level) };
    if (argc > 1 && strcmp(argv[1], "products") == 0) return cmocka_run_group_tests(one, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Models of mixed precision: float32 variables that are cast to bfloat16 or half where they are used. (The numbers of
 * layers of narrow floats: formulas_test.c; in the op set UNIFORM_QUANTIZED: uniform_test.c.) */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <math.h>
#include <string.h>

enum { ROWS = 64, COLUMNS = 32 };

struct mixed {
    struct tare_graph_model *model;
    struct tare_graph *f;
    struct tare_edge x, y, cast;
    struct tare_arena arena;
    struct tare_quant_report report;
};

static struct tare_edge cast(struct tare_graph *graph, const char *name, struct tare_edge x, int dtype) {
    struct tare_node *node = mini_open(graph, "Cast", name, 1, x);
    mini_ok(tare_node_set_type(node, "SrcT", tare_edge_dtype(x)));
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    return mini_done(node);
}

/* Not on a grid of 127 steps, which quantization would keep. */
static float weight_at(int i) {
    return (float)(i * 7919 % 100003 - 50000) / 48611;
}

/* A variable that no graph assigns, as freezing leaves large ones, and its handle in the main graph. */
static struct tare_edge add_variable(struct tare_graph_model *model) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, COLUMNS);
    struct tare_node *handle = mini_open(model->main, "VarHandleOp", "kernel", 0);
    struct tare_tensor value;
    struct tare_edge edge;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        TARE_DATA(float, &value)[i] = weight_at(i);
    mini_ok(tare_node_set_type(handle, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(handle, "shape", &shape));
    edge = mini_done(handle);
    mini_add_variable(model, handle, value);
    model->variables[0].constant = true;
    return edge;
}

/* f(x, kernel) = Cast(MatMul(Cast(x), Cast(read(kernel)))), in the main graph. */
static void build(struct mixed *m, int dtype, bool used_otherwise) {
    memset(m, 0, sizeof *m);
    m->model = mini_model_new();
    m->f = m->model->main;
    m->x = mini_placeholder(m->f, "x", TARE_DT_FLOAT);
    struct tare_node *read = mini_open(m->f, "ReadVariableOp", "read", 1, add_variable(m->model));
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    m->cast = cast(m->f, "narrow", mini_done(read), dtype);
    struct tare_edge y = mini_node(m->f, "MatMul", "product", 2, cast(m->f, "in", m->x, dtype), m->cast);
    m->y = cast(m->f, "out", y, TARE_DT_FLOAT);
    if (used_otherwise)
        m->y = mini_node(
            m->f, "Add", "sum", 2, m->y,
            cast(m->f, "again",
                 mini_node(m->f, "Sum", "all", 2, m->cast, mini_ints(m->f, "axes", 2, (const int32_t[]){ 0, 1 })),
                 TARE_DT_FLOAT));
    m->y = mini_node(m->f, "Identity", "y", 1, m->y);
}

static void quantize(struct mixed *m) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only };
    mini_ok(tare_quantize(&m->report, &m->arena, m->model, NULL, &options));
}

static void finish(struct mixed *m) {
    tare_model_free(m->model);
    tare_arena_free(&m->arena);
}

static void cast_variable__holds_the_integers_of_its_own_numbers(void **state) {
    const int dtypes[] = { TARE_DT_BFLOAT16, TARE_DT_HALF };
    (void)state;
    for (int d = 0; d < 2; d++) {
        struct mixed m;
        build(&m, dtypes[d], false);
        quantize(&m);
        if (m.report.quantized != 1) fail_msg("%s", m.report.outcomes[0].refused);
        const struct tare_tensor *q = &m.model->variables[0].value;
        assert_int_equal(q->dtype, TARE_DT_INT8);
        for (int c = 0; c < COLUMNS;
             c++) { /* round half away of w / (greatest magnitude / 127): nothing was cast before */
            double most = 0;
            for (int r = 0; r < ROWS; r++)
                most = fmax(most, fabs((double)weight_at(r * COLUMNS + c)));
            for (int r = 0; r < ROWS; r++)
                assert_int_equal(TARE_CONST_DATA(int8_t, q)[r * COLUMNS + c],
                                 (int)round(weight_at(r * COLUMNS + c) / (most / 127)));
        }
        for (size_t i = 0; i < m.f->n_nodes; i++) {
            const struct tare_node *node = m.f->nodes[i];
            if (node->dead) continue;
            assert_string_not_equal(node->name, "narrow");
            if (strcmp(node->op, "XlaDotV2") != 0) continue;
            assert_int_equal(tare_edge_dtype(node->inputs[0]), dtypes[d]); /* activations stay what they are */
            assert_int_equal(tare_edge_dtype(node->inputs[1]), TARE_DT_INT8);
            assert_int_equal(node->output_dtypes[0], TARE_DT_FLOAT);
        }
        finish(&m);
    }
}

static void cast_variable__that_others_read_stays(void **state) {
    struct mixed m;
    (void)state;
    build(&m, TARE_DT_BFLOAT16, true);
    quantize(&m);
    assert_int_equal(m.report.quantized, 0);
    assert_string_equal(m.report.outcomes[0].refused, "its weight is a variable that other ops read as well");
    assert_int_equal(m.model->variables[0].value.dtype, TARE_DT_FLOAT);
    finish(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cast_variable__holds_the_integers_of_its_own_numbers),
        cmocka_unit_test(cast_variable__that_others_read_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

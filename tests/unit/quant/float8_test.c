/* Layers in float8 against the formulas with the codes of ml_dtypes (tests/golden/float8_layers.py), bit for bit, and
 * what float8 excludes. */
#include "support/attrs_text.h"
#include "support/golden.h"
#include "support/mini_model.h"

#include "base/arena.h"
#include "base/strbuf.h"
#include "quant/quantize.h"

#include <string.h>

enum { METHOD, FORMAT, LOW, HIGH }; /* numbers of a case */

struct layer_model {
    struct tare_graph_model *model;
    struct tare_graph *function;
    struct tare_edge in, x, y;
    double low, high;
    struct tare_arena arena;
    struct tare_quant_report report;
    struct tare_opspec_memory memory;
};

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    const struct layer_model *m = arg;
    (void)setting;
    *found = edge.node == m->x.node;
    *low = m->low;
    *high = m->high;
    return TARE_OK;
}

/* f(x) = op(x, w). */
static void open_model(struct layer_model *m, const char *op, const char *attrs, const struct tare_shape *shape,
                       const struct tare_tensor *w) {
    memset(m, 0, sizeof *m);
    m->model = mini_model_new();
    m->function = tare_model_add_function(m->model, "f");
    m->x = mini_arg(m->function, "x", TARE_DT_FLOAT);
    const struct tare_edge c = { tare_graph_add_const(m->function, "w", w), 0 };
    struct tare_node *node = mini_open(m->function, op, "layer", 2, m->x, c);
    mini_ok(attrs_from_text(node, &m->memory, attrs));
    mini_return(m->function, "y", mini_done(node));
    m->in = mini_placeholder(m->model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(m->in.node, "shape", shape));
    m->y = mini_call(m->model->main, "PartitionedCall", "call", m->function, 1, m->in);
}

static void close_model(struct layer_model *m) {
    tare_model_free(m->model);
    tare_opspec_memory_free(&m->memory);
    tare_arena_free(&m->arena);
}

static tare_status quantize(struct layer_model *m, const struct tare_quant_setting *setting) {
    const struct tare_quant_ranges ranges = { .find = find, .arg = m };
    const struct tare_quant_plan plan = { .setting = *setting, .min_elements = 1 };
    return tare_quantize(&m->report, &m->arena, m->model, &ranges, &plan);
}

static const struct tare_node *find_op(const struct layer_model *m, const char *op, int dtype) {
    for (size_t i = 0; i < m->function->n_nodes; i++)
        if (tare_node_is(m->function->nodes[i], op) && m->function->nodes[i]->output_dtypes[0] == dtype)
            return m->function->nodes[i];
    return NULL;
}

static bool same_codes(const struct layer_model *m, int dtype, const struct tare_tensor *expected) {
    const struct tare_node *stored = find_op(m, "Const", dtype);
    const struct tare_tensor *codes =
        stored ? tare_edge_constant((struct tare_edge){ (void *)(uintptr_t)stored, 0 }) : NULL;
    return codes && codes->elements == expected->elements && tare_tensor_bytes(codes) == tare_tensor_bytes(expected) &&
           memcmp(codes->data, expected->data, tare_tensor_bytes(codes)) == 0;
}

static const struct tare_quant_method *const methods[] = { &tare_method_static, &tare_method_dynamic,
                                                           &tare_method_weight_only };

static size_t check(const struct op_case *test) {
    const double *numbers = TARE_CONST_DATA(double, &test->inputs[2]);
    const int format = (int)numbers[FORMAT];
    const int dtype = format == TARE_FORMAT_E4M3 ? TARE_DT_FLOAT8_E4M3FN : TARE_DT_FLOAT8_E5M2;
    const struct tare_quant_setting setting = { .method = methods[(int)numbers[METHOD]],
                                                .format = (enum tare_number_format)format };
    const bool moved = test->attrs && strstr(test->attrs, "transpose_b: true"); /* stored with its axes exchanged */
    struct tare_strbuf why = { 0 };
    struct tare_tensor result = { 0 };
    struct layer_model m;
    size_t wrong = 0;
    open_model(&m, test->op, test->attrs, &test->inputs[0].shape, &test->inputs[1]);
    m.low = numbers[LOW];
    m.high = numbers[HIGH];
    mini_ok(quantize(&m, &setting));
    if (m.report.quantized != 1) fail_msg("%s: %s", test->where, m.report.outcomes[0].refused);
    if (!moved && !same_codes(&m, dtype, &test->outputs[1])) {
        print_error("%s: %s {%s}: other codes of the weight\n", test->where, test->op, test->attrs);
        wrong++;
    }
    if ((find_op(&m, "Cast", dtype) != NULL) != (setting.method != &tare_method_weight_only)) wrong++;
    struct tare_session *session = mini_session(m.model);
    mini_ok(tare_session_run(session, &m.in, test->inputs, 1, &m.y, &result, 1, NULL, 0));
    if (!tensors_agree(&why, &result, &test->outputs[0], (struct tolerance){ 0 })) {
        print_error("%s: %s {%s} method %g format %d: %s\n", test->where, test->op, test->attrs, numbers[METHOD],
                    format, tare_strbuf_text(&why));
        wrong++;
    }
    tare_session_free(session);
    tare_strbuf_free(&why);
    tare_tensor_reset(&result);
    close_model(&m);
    return wrong;
}

static void layers__equal_the_codes_of_ml_dtypes(void **state) {
    struct golden_file *file = NULL;
    size_t wrong = 0;
    (void)state;
    mini_ok(golden_open(&file, TARE_SOURCE_DIR "/tests/golden/float8_layers.bin"));
    assert_true(golden_count(file) >= 70);
    for (size_t i = 0; i < golden_count(file); i++) {
        struct op_case test = { 0 };
        mini_ok(golden_read(&test, file, i));
        wrong += check(&test);
        op_case_reset(&test);
    }
    golden_close(file);
    assert_int_equal(wrong, 0);
}

/* ---- what float8 excludes ---- */

static void refuse(const struct tare_quant_setting *setting, enum tare_quant_op_set op_set, const char *expected) {
    const float values[] = { 1, 2, 3, 4 };
    const struct tare_shape shape = tare_shape_make(2, 2, 2);
    struct tare_tensor w;
    struct layer_model m;
    mini_ok(tare_tensor_from(&w, TARE_DT_FLOAT, &shape, values));
    open_model(&m, "MatMul", "T: float", &shape, &w);
    tare_tensor_reset(&w);
    const struct tare_quant_ranges ranges = { .find = find, .arg = &m };
    const struct tare_quant_plan plan = { .setting = *setting, .op_set = op_set, .min_elements = 1 };
    assert_int_equal(tare_quantize(&m.report, &m.arena, m.model, &ranges, &plan), TARE_INVALID_ARGUMENT);
    if (!strstr(tare_error_text(), expected)) fail_msg("%s (expected %s)", tare_error_text(), expected);
    close_model(&m);
}

static void other_op_sets__have_no_float8(void **state) {
    const struct tare_quant_setting setting = { .method = &tare_method_static, .format = TARE_FORMAT_E5M2 };
    (void)state;
    refuse(&setting, TARE_OP_SET_TF, "format fp8_e5m2 exists in the op set xla only");
    refuse(&setting, TARE_OP_SET_UNIFORM_QUANTIZED, "format fp8_e5m2 exists in the op set xla only");
}

static void integers__are_settings_of_integers(void **state) {
    struct tare_quant_setting setting = { .method = &tare_method_static, .format = TARE_FORMAT_E4M3, .bits = 4 };
    (void)state;
    refuse(&setting, TARE_OP_SET_XLA, "format fp8_e4m3 with 4 bits");
    setting.bits = 8;
    setting.activation_bits = 16;
    refuse(&setting, TARE_OP_SET_XLA, "format fp8_e4m3 has no activations of 16 bits");
    setting.activation_bits = 0;
    mini_ok(tare_algorithm_parse(&setting.algorithm, "entropy"));
    refuse(&setting, TARE_OP_SET_XLA, "algorithm entropy compares integers");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers__equal_the_codes_of_ml_dtypes),
        cmocka_unit_test(other_op_sets__have_no_float8),
        cmocka_unit_test(integers__are_settings_of_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Shape functions of libraries: partial shapes and their arithmetic. */
#include "base/strbuf.h"
#include "interpreter/ops/builtin.h"
#include "support/plugin_fixture.h"

#include <string.h>

/* ---- shape functions ---- */

static void print_shape(struct tare_strbuf *text, const struct tare_shape *shape) {
    char buffer[TARE_SHAPE_TEXT_SIZE];
    tare_strbuf_puts(text, tare_shape_text(buffer, shape));
}

/* What the shape function `how` makes of two shapes (rank -1: unknown; b may be the vector [value]). */
static void expect_shape(const char *how, struct tare_shape a, struct tare_shape b, const char *expected) {
    struct tare_graph_model *model = tare_model_new(tare_ops_builtin());
    struct tare_node *node;
    struct tare_strbuf got = { 0 };
    struct tare_shape args[2] = { a, b }, **shapes;
    struct tare_arena arena = { 0 };
    struct tare_edge x, y;
    struct tare_graph *f;
    model->custom_ops = tare_ops_new(tare_plugins_ops(plugins));
    f = tare_model_add_function(model, "f");
    x = mini_arg(f, "a", TARE_DT_FLOAT);
    y = mini_arg(f, "b", TARE_DT_INT32);
    node = mini_open(f, "Shapes", "node", 2, x, y);
    mini_ok(tare_node_set_string(node, "how", how, strlen(how)));
    mini_return(f, "r", mini_done(node));
    if (tare_graph_infer_shapes(&shapes, &arena, f, args) == TARE_OK)
        print_shape(&got, &shapes[node->position][0]);
    else
        tare_strbuf_puts(&got, tare_error_text());
    if (!strstr(tare_strbuf_text(&got), expected))
        fail_msg("%s: got %s (expected %s)", how, tare_strbuf_text(&got), expected);
    tare_strbuf_free(&got);
    tare_arena_free(&arena);
    tare_model_free(model);
}

static struct tare_shape vector(int size) {
    return tare_shape_make(1, size);
}

static void shapes__ranks(void **state) {
    const struct tare_shape unknown = tare_shape_unknown(), known = tare_shape_make(2, 3, -1);
    (void)state;
    mini_ok(tare_plugins_load(plugins, plugin_path("everything")));
    expect_shape("same", known, unknown, "[3,?]");
    expect_shape("same", unknown, unknown, "<unknown>");
    expect_shape("with_rank", known, unknown, "[3,?]");
    expect_shape("with_rank", unknown, unknown, "[?,?]");
    expect_shape("with_rank", vector(3), unknown, "Shape must be rank 2 but is rank 1");
    expect_shape("at_least", vector(3), unknown, "Shape must be at least rank 2 but is rank 1");
    expect_shape("at_least", unknown, unknown, "<unknown>");
    expect_shape("at_most", tare_shape_make(3, 1, 1, 1), unknown, "Shape must be at most rank 2 but is rank 3");
    expect_shape("at_most", vector(3), unknown, "[3]");
    expect_shape("scalar", unknown, unknown, "[]");
    expect_shape("rank_only", unknown, unknown, "[?,?,?]");
    expect_shape("matrix", known, unknown, "[3,3]");
    expect_shape("matrix", unknown, unknown, "[?,3]");
}

static void shapes__of_two(void **state) {
    const struct tare_shape unknown = tare_shape_unknown(), a = tare_shape_make(2, 3, -1);
    (void)state;
    mini_ok(tare_plugins_load(plugins, plugin_path("everything")));
    expect_shape("merge", a, tare_shape_make(2, -1, 4), "[3,4]");
    expect_shape("merge", unknown, a, "[3,?]");
    expect_shape("merge", a, tare_shape_make(2, 2, 4), "node");
    expect_shape("broadcast", a, tare_shape_make(2, 1, 4), "[3,4]");
    expect_shape("broadcast", a, unknown, "<unknown>");
    expect_shape("concatenate", a, vector(5), "[3,?,5]");
    expect_shape("concatenate", a, unknown, "<unknown>");
    expect_shape("subshape", tare_shape_make(4, 1, 2, 3, 4), unknown, "[2,3]");
    expect_shape("subshape", unknown, unknown, "<unknown>");
    expect_shape("tail", tare_shape_make(4, 1, 2, 3, 4), unknown, "[3,4]");
    expect_shape("tail", vector(1), unknown, "dims -2 to 2147483647 of a shape of rank 1");
    expect_shape("replace", a, unknown, "[3,7]");
    expect_shape("replace", tare_shape_scalar(), unknown, "dim -1 of a shape of rank 0");
}

static void shapes__dims(void **state) {
    const struct tare_shape unknown = vector(-1);
    (void)state;
    mini_ok(tare_plugins_load(plugins, plugin_path("everything")));
    expect_shape("dim_add", vector(3), vector(4), "[7]");
    expect_shape("dim_add", vector(0), unknown, "[?]");
    expect_shape("dim_subtract", vector(7), vector(4), "[3]");
    expect_shape("dim_subtract", vector(3), vector(4), "Negative dimension size caused by subtracting 4 from 3");
    expect_shape("dim_subtract", vector(3), unknown, "[?]");
    expect_shape("dim_multiply", vector(3), vector(4), "[12]");
    expect_shape("dim_multiply", vector(0), unknown, "[0]");
    expect_shape("dim_multiply", vector(1), unknown, "[?]");
    expect_shape("dim_divide", vector(9), vector(4), "[2]");
    expect_shape("dim_divide", vector(9), vector(0), "Divisor must be positive but is 0");
    expect_shape("dim_exactly", vector(8), vector(4), "[2]");
    expect_shape("dim_exactly", vector(9), vector(4), "Dimension size must be evenly divisible by 4 but is 9");
    expect_shape("dim_merge", vector(9), unknown, "[9]");
    expect_shape("dim_merge", vector(9), vector(4), "Dimensions must be equal, but are 9 and 4");
    expect_shape("dim_value", unknown, unknown, "[4]");
    expect_shape("dim_value", vector(3), unknown, "Dimensions must be equal, but are 3 and 4");
}

/* A shape that depends on an input's value. */
static void shapes__from_values(void **state) {
    struct tare_graph_model *model = plugin_model();
    static const int32_t dims[] = { 5, 6 };
    struct tare_edge x = mini_float(model->main, "x", 1);
    static const char *const hows[] = { "from_input", "value" }, *const expected[] = { "[5,6]", "[5]" };
    struct tare_arena arena = { 0 };
    struct tare_shape **shapes;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tare_strbuf got = { 0 };
        struct tare_node *node =
            mini_open(model->main, "Shapes", "node", 2, x, mini_ints(model->main, "dims", 2, dims));
        mini_ok(tare_node_set_string(node, "how", hows[i], strlen(hows[i])));
        mini_done(node);
        mini_ok(tare_graph_infer_shapes(&shapes, &arena, model->main, NULL));
        print_shape(&got, &shapes[node->position][0]);
        assert_string_equal(tare_strbuf_text(&got), expected[i]);
        tare_strbuf_free(&got);
    }
    tare_arena_free(&arena);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PLUGIN_CASE(shapes__ranks),
        PLUGIN_CASE(shapes__of_two),
        PLUGIN_CASE(shapes__dims),
        PLUGIN_CASE(shapes__from_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

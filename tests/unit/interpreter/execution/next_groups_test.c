/* Groups that run with the group before them, block by block: x * sigmoid(x) and quantization after an int8 layer, also
 * where the layer's result is used by another step or observed, with the bits of the steps one by one. */
#include "support/quantized_layers.h"

#include <string.h>

#include "interpreter/execution/state.h"

enum { C = 20, SIZE = 11 };

enum other_use { NO_OTHER, STORED, OTHER_SHAPE };

struct network {
    struct tare_graph_model *model;
    struct tare_edge x, y[2];
    size_t n;
};

/* The layer's result is the argument of a swish; what is quantized is also added to it where `use` is STORED. */
static struct network network(enum other_use use, bool is_product) {
    const struct layers_layer layer = { "layer", C, 33, 3, 1 };
    struct network n = { .model = mini_model_new(), .n = 1 };
    struct tare_graph *g = n.model->main;
    n.x = mini_placeholder(g, "x", TARE_DT_INT8);
    struct tare_edge real = is_product ? layers_real(g, &layer, n.x)
                                       : mini_node(g, "Mul", "mul", 2, layers_cast(g, "wide", n.x, TARE_DT_FLOAT),
                                                   mini_float(g, "scale", 0.02f));
    struct tare_edge y = mini_node(g, "Mul", "swish", 2, real, mini_node(g, "Sigmoid", "sigmoid", 1, real));
    if (use == OTHER_SHAPE) /* the operand fits no expression, so that the steps run one by one */
        y = mini_node(
            g, "Mul", "gate", 2, y,
            layers_constant(g, "gates", TARE_DT_FLOAT, tare_shape_make(3, (int64_t)SIZE, (int64_t)1, (int64_t)1)));
    y = mini_node(g, "Div", "div", 2, y, mini_float(g, "step", 0.03f));
    n.y[0] = layers_requantized(g, "quantized", y);
    if (use == STORED) n.y[n.n++] = mini_node(g, "Softmax", "other", 1, real);
    return n;
}

static void run(struct tare_tensor *out, struct tare_session *session, const struct network *n, int64_t batch) {
    layers_seed = (uint32_t)batch;
    struct tare_tensor value =
        layers_random(TARE_DT_INT8, tare_shape_make(4, batch, (int64_t)SIZE, (int64_t)SIZE, (int64_t)C));
    mini_ok(tare_session_run(session, &n->x, &value, 1, n->y, out, n->n, NULL, 0));
    tare_tensor_reset(&value);
}

/* The time of what runs with the layer is the layer's. */
static bool runs_alone(const struct tare_session *session, const char *name) {
    struct tare_arena arena = { 0 };
    struct tare_profile_row *rows;
    size_t count;
    bool found = false;
    mini_ok(tare_session_profile(&rows, &count, &arena, session));
    for (size_t i = 0; i < count; i++)
        found |= strcmp(rows[i].node->name, name) == 0;
    tare_arena_free(&arena);
    return found;
}

static void check(enum other_use use, bool is_product, int threads, bool joins) {
    const struct tare_session_options options = { .profile = true, .op_threads = threads };
    struct network n = network(use, is_product);
    struct tare_session *session, *plain = layers_plain_session(n.model);
    mini_ok(tare_session_new(&session, n.model, &options));
    static const int64_t batches[] = { 1, 1, 3, 2, 2 };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        struct tare_tensor got[2], expected[2];
        run(got, session, &n, batches[i]);
        run(expected, plain, &n, batches[i]);
        for (size_t k = 0; k < n.n; k++)
            layers_assert_same(got[k], expected[k]);
    }
    assert_int_equal(runs_alone(session, "quantized_int8"), !joins);
    tare_session_free(session), tare_session_free(plain);
    tare_model_free(n.model);
}

static void next_groups__swish_and_quantization_of_a_layer(void **unused) {
    (void)unused;
    check(NO_OTHER, true, 1, true);
    check(STORED, true, 1, true);
    check(OTHER_SHAPE, true, 1, false);
    check(NO_OTHER, true, 2, false);
}

static void next_groups__swish_and_quantization_of_elements(void **unused) {
    (void)unused;
    check(NO_OTHER, false, 1, true);
    check(STORED, false, 1, true);
}

static bool wants(void *arg, const struct tare_node *node, size_t output) {
    (void)output;
    return strcmp(node->name, arg) == 0;
}
static tare_status see(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    (void)output;
    assert_string_equal(node->name, arg);
    assert_non_null(value->data);
    *(char *)arg = '-'; /* seen */
    return TARE_OK;
}

static void next_groups__observers_receive_the_value_between(void **unused) {
    static const char *const names[] = { "layer_mul", "swish", "quantized_int8" };
    (void)unused;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct network n = network(NO_OTHER, true);
        struct tare_session *session = mini_session(n.model);
        struct tare_tensor before, after;
        char name[32];
        strcpy(name, names[i]);
        run(&before, session, &n, 2);
        tare_session_observe(session, see, wants, name);
        run(&after, session, &n, 2);
        assert_int_equal(name[0], '-');
        layers_assert_same(after, before);
        tare_session_free(session);
        tare_model_free(n.model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_groups__swish_and_quantization_of_a_layer),
        cmocka_unit_test(next_groups__swish_and_quantization_of_elements),
        cmocka_unit_test(next_groups__observers_receive_the_value_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

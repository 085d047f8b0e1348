/* The bits of a sample's result depend neither on the batch nor on whether the weights were packed in this run or
 * before: stateful kernels run repeatedly on one node, as in a session. */
#include "graph/model.h"
#include "interpreter/ops/builtin.h"
#include "interpreter/kernel.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_INPUTS = 8, LARGEST = 32 };

/* One node whose first input has a batch dimension; the other inputs are constant. */
struct fixture {
    struct tare_graph_model *model;
    struct tare_node *node;
    void *state;
    struct tare_tensor inputs[MOST_INPUTS]; /* input 0 is the largest batch */
    size_t n_inputs;
};

static void open_fixture(struct fixture *f, const char *op) {
    *f = (struct fixture){ .model = tare_model_new(tare_ops_builtin()) };
    assert_non_null(f->model);
    struct tare_graph *graph = tare_model_add_function(f->model, "test");
    f->node = tare_graph_add(graph, op, "node");
    assert_non_null(f->node);
    assert_non_null(f->node->def);
}

static void add_input(struct fixture *f, int dtype, const struct tare_shape *shape) {
    static uint32_t seed = 1;
    struct tare_tensor *tensor = &f->inputs[f->n_inputs++];
    assert_int_equal(tare_tensor_new(tensor, dtype, shape), TARE_OK);
    for (int64_t i = 0; i < tensor->elements; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (dtype == TARE_DT_FLOAT)
            TARE_DATA(float, tensor)[i] = ldexpf((float)(int32_t)seed / 2147483648.0f, (int)(seed >> 9 & 7) - 3);
        else
            TARE_DATA(int8_t, tensor)[i] = (int8_t)(seed >> 24);
    }
}

static void add_int32s(struct fixture *f, int rank, int64_t count, const int32_t *values) {
    const struct tare_shape shape = { .rank = rank, .dims = { rank == 2 ? count / 2 : count, 2 } };
    assert_int_equal(tare_tensor_from(&f->inputs[f->n_inputs++], TARE_DT_INT32, &shape, values), TARE_OK);
}

static void prepare(struct fixture *f) {
    struct tare_kernel kernel = { .node = f->node, .op = f->node->def->row };
    struct tare_graph *graph = f->node->graph;
    for (size_t i = 0; i < f->n_inputs; i++) {
        struct tare_node *arg = tare_graph_add_arg(graph, "input", f->inputs[i].dtype);
        assert_non_null(arg);
        assert_int_equal(tare_node_add_input(f->node, (struct tare_edge){ arg, 0 }), TARE_OK);
    }
    assert_int_equal(tare_node_resolve(f->node), TARE_OK);
    assert_int_equal(kernel.op->prepare(&kernel), TARE_OK);
    f->state = kernel.state;
}

static void run(struct fixture *f, struct tare_tensor *out, int64_t first, int64_t count, bool reference) {
    struct tare_arena scratch = { 0 };
    struct tare_tensor inputs[MOST_INPUTS];
    memcpy(inputs, f->inputs, sizeof inputs);
    memset(&inputs[0], 0, sizeof inputs[0]);
    memset(out, 0, sizeof *out);
    assert_int_equal(tare_tensor_share_rows(&inputs[0], &f->inputs[0], first, count), TARE_OK);
    struct tare_kernel kernel = { .node = f->node,
                                  .op = f->node->def->row,
                                  .n_inputs = f->n_inputs,
                                  .inputs = inputs,
                                  .n_outputs = 1,
                                  .outputs = out,
                                  .scratch = &scratch,
                                  .state = f->state };
    const tare_status status = reference ? kernel.op->reference(&kernel) : kernel.op->run(&kernel);
    if (status != TARE_OK) fail_msg("%s: %s", f->node->op, tare_error_text());
    tare_tensor_reset(&inputs[0]);
    tare_arena_free(&scratch);
}

/* Compares all samples at once by the reference kernel with parts of 1, 7 and 32 by the fast kernel, with cached
 * weights. */
static void check_batches(struct fixture *f) {
    static const int64_t sizes[] = { LARGEST, 1, 7, LARGEST, 5 };
    struct tare_tensor all, part;
    prepare(f);
    run(f, &all, 0, LARGEST, true);
    const size_t row = tare_tensor_bytes(&all) / LARGEST;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int64_t first = 0; first + sizes[s] <= LARGEST; first += sizes[s]) {
            run(f, &part, first, sizes[s], false);
            assert_int_equal(tare_tensor_bytes(&part), row * (size_t)sizes[s]);
            if (memcmp(part.data, (const char *)all.data + row * (size_t)first, row * (size_t)sizes[s]) != 0)
                fail_msg("%s: samples %lld to %lld of a batch of %lld have other bits", f->node->op, (long long)first,
                         (long long)(first + sizes[s] - 1), (long long)sizes[s]);
            tare_tensor_reset(&part);
        }
    }
    tare_tensor_reset(&all);
    for (size_t i = 0; i < f->n_inputs; i++)
        tare_tensor_reset(&f->inputs[i]);
    f->node->def->row->release(f->state);
    tare_model_free(f->model);
}

static void add_float(struct fixture *f, int rank, int64_t a, int64_t b, int64_t c, int64_t d) {
    const struct tare_shape shape = { .rank = rank, .dims = { a, b, c, d } };
    add_input(f, TARE_DT_FLOAT, &shape);
}

static void set_conv_attrs(struct fixture *f, const char *padding) {
    static const int64_t ones[] = { 1, 1, 1, 1 };
    assert_int_equal(tare_node_set_type(f->node, "T", TARE_DT_FLOAT), TARE_OK);
    assert_int_equal(tare_node_set_int_list(f->node, "strides", ones, 4), TARE_OK);
    assert_int_equal(tare_node_set_string(f->node, "padding", padding, strlen(padding)), TARE_OK);
}

static void matmul__same_bits_in_any_batch(void **unused) {
    (void)unused;
    struct fixture f;
    open_fixture(&f, "MatMul");
    assert_int_equal(tare_node_set_type(f.node, "T", TARE_DT_FLOAT), TARE_OK);
    add_float(&f, 2, LARGEST, 700, 0, 0);
    add_float(&f, 2, 700, 50, 0, 0);
    check_batches(&f);
}

static void batch_matmul__same_bits_in_any_batch(void **unused) {
    (void)unused;
    struct fixture f;
    open_fixture(&f, "BatchMatMulV2");
    assert_int_equal(tare_node_set_type(f.node, "T", TARE_DT_FLOAT), TARE_OK);
    add_float(&f, 3, LARGEST, 5, 70, 0);
    add_float(&f, 2, 70, 33, 0, 0);
    check_batches(&f);
}

static void conv2d__same_bits_in_any_batch(void **unused) {
    (void)unused;
    struct fixture f;
    open_fixture(&f, "Conv2D");
    set_conv_attrs(&f, "SAME");
    add_float(&f, 4, LARGEST, 5, 6, 40);
    add_float(&f, 4, 3, 3, 40, 17);
    check_batches(&f);
}

static void pointwise_conv2d__same_bits_in_any_batch(void **unused) {
    (void)unused;
    struct fixture f;
    open_fixture(&f, "Conv2D");
    set_conv_attrs(&f, "VALID");
    add_float(&f, 4, LARGEST, 1, 3, 300);
    add_float(&f, 4, 1, 1, 300, 20);
    check_batches(&f);
}

static void depthwise__same_bits_in_any_batch(void **unused) {
    (void)unused;
    struct fixture f;
    open_fixture(&f, "DepthwiseConv2dNative");
    set_conv_attrs(&f, "SAME");
    add_float(&f, 4, LARGEST, 7, 20, 19);
    add_float(&f, 4, 3, 3, 19, 1);
    check_batches(&f);
}

/* ConvolutionDimensionNumbers: kernel input 2, output 3, spatial 0 1; input and output batch 0, feature 3, spatial 1 2.
 */
static const char conv_dims[] = "\x18\x02\x20\x03\x32\x02\x00\x01\x40\x03\x50\x03\x5a\x02\x01\x02\x62\x02\x01\x02";

static void open_xla_conv(struct fixture *f, int dtype, int output) {
    static const int32_t ones[] = { 1, 1 }, padding[] = { 1, 1, 1, 1 }, one = 1;
    const struct tare_shape lhs = { .rank = 4, .dims = { LARGEST, 5, 6, 21 } };
    const struct tare_shape rhs = { .rank = 4, .dims = { 3, 3, 21, 18 } };
    open_fixture(f, "XlaConvV2");
    assert_int_equal(tare_node_set_type(f->node, "LhsT", dtype), TARE_OK);
    assert_int_equal(tare_node_set_type(f->node, "RhsT", TARE_DT_INT8), TARE_OK);
    assert_int_equal(tare_node_set_type(f->node, "Tindices", TARE_DT_INT32), TARE_OK);
    assert_int_equal(tare_node_set_type(f->node, "preferred_element_type", output), TARE_OK);
    assert_int_equal(tare_node_set_string(f->node, "dimension_numbers", conv_dims, sizeof conv_dims - 1), TARE_OK);
    assert_int_equal(tare_node_set_string(f->node, "precision_config", "", 0), TARE_OK);
    add_input(f, dtype, &lhs);
    add_input(f, TARE_DT_INT8, &rhs);
    add_int32s(f, 1, 2, ones);
    add_int32s(f, 2, 4, padding);
    add_int32s(f, 1, 2, ones);
    add_int32s(f, 1, 2, ones);
    add_int32s(f, 0, 1, &one);
}

static void xla_conv_int8__same_bits_in_any_batch(void **unused) {
    (void)unused;
    struct fixture f;
    open_xla_conv(&f, TARE_DT_INT8, TARE_DT_INT32);
    check_batches(&f);
}

static void xla_conv_float_int8__same_bits_in_any_batch(void **unused) {
    (void)unused;
    struct fixture f;
    open_xla_conv(&f, TARE_DT_FLOAT, TARE_DT_FLOAT);
    check_batches(&f);
}

static void xla_dot_int8__same_bits_in_any_batch(void **unused) {
    (void)unused;
    static const char dims[] = "\x0a\x01\x01\x12\x01\x00"; /* lhs contracts dimension 1, rhs dimension 0 */
    const struct tare_shape lhs = { .rank = 2, .dims = { LARGEST, 300 } }, rhs = { .rank = 2, .dims = { 300, 37 } };
    struct fixture f;
    open_fixture(&f, "XlaDotV2");
    assert_int_equal(tare_node_set_type(f.node, "LhsT", TARE_DT_INT8), TARE_OK);
    assert_int_equal(tare_node_set_type(f.node, "RhsT", TARE_DT_INT8), TARE_OK);
    assert_int_equal(tare_node_set_type(f.node, "preferred_element_type", TARE_DT_INT32), TARE_OK);
    assert_int_equal(tare_node_set_string(f.node, "dimension_numbers", dims, sizeof dims - 1), TARE_OK);
    assert_int_equal(tare_node_set_string(f.node, "precision_config", "", 0), TARE_OK);
    add_input(&f, TARE_DT_INT8, &lhs);
    add_input(&f, TARE_DT_INT8, &rhs);
    check_batches(&f);
}

/* Weights that change from run to run are not confused with the cached ones. */
static void cached_weights__are_repacked_when_the_tensor_changes(void **unused) {
    (void)unused;
    struct fixture f;
    struct tare_tensor weights[6], fast, plain;
    open_fixture(&f, "MatMul");
    assert_int_equal(tare_node_set_type(f.node, "T", TARE_DT_FLOAT), TARE_OK);
    add_float(&f, 2, LARGEST, 30, 0, 0);
    for (int i = 0; i < 6; i++) {
        f.n_inputs = 1;
        add_float(&f, 2, 30, 20, 0, 0);
        weights[i] = f.inputs[1];
    }
    prepare(&f);
    for (int round = 0; round < 12; round++) {
        f.inputs[1] = weights[round * 5 % 6 / (round % 3 + 1)];
        run(&f, &fast, 0, LARGEST, false);
        run(&f, &plain, 0, LARGEST, true);
        assert_memory_equal(fast.data, plain.data, tare_tensor_bytes(&fast));
        tare_tensor_reset(&fast), tare_tensor_reset(&plain);
    }
    f.node->def->row->release(f.state);
    tare_tensor_reset(&f.inputs[0]);
    for (int i = 0; i < 6; i++)
        tare_tensor_reset(&weights[i]);
    tare_model_free(f.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul__same_bits_in_any_batch),
        cmocka_unit_test(batch_matmul__same_bits_in_any_batch),
        cmocka_unit_test(conv2d__same_bits_in_any_batch),
        cmocka_unit_test(pointwise_conv2d__same_bits_in_any_batch),
        cmocka_unit_test(depthwise__same_bits_in_any_batch),
        cmocka_unit_test(xla_conv_int8__same_bits_in_any_batch),
        cmocka_unit_test(xla_conv_float_int8__same_bits_in_any_batch),
        cmocka_unit_test(xla_dot_int8__same_bits_in_any_batch),
        cmocka_unit_test(cached_weights__are_repacked_when_the_tensor_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

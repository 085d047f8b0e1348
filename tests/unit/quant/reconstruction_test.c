/* Block reconstruction: layers that are rounded together lose less than layers that are rounded one by one, with the
 * same result for any number of threads, within a time limit, and only where the derivatives exist. */
#include "support/quantized_model.h"

#include "quant/reconstruction/block.h"

#include <math.h>
#include <string.h>

enum { ROWS = 512, IN = 16, OUT = 8, KEPT = 64 };

/* Integers from -5 to 5 plus an offset, and a first row of 7, so that 4 bits have the scale 1. Each weight is nearest
 * to the integer below it. */
static struct tare_edge offset_weight(struct tare_graph *graph, const char *name, float offset, uint64_t seed) {
    const struct tare_shape shape = tare_shape_make(2, IN, OUT);
    struct tare_tensor tensor;
    struct tare_edge edge;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < tensor.elements; i++) {
        const float draw = quantized_model_normal(&seed);
        TARE_DATA(float, &tensor)[i] = i < OUT ? 7 : fminf(fmaxf(roundf(2 * draw), -5), 5) + offset;
    }
    edge = (struct tare_edge){ tare_graph_add_const(graph, name, &tensor), 0 };
    tare_tensor_reset(&tensor);
    return edge;
}

/* A residual block: two products of the same input whose results are added. The elements of the input are independent,
 * so that the nearest integers are the best ones of each layer: the error of a weight of the sum is then 0.45 + 0.3. If
 * one of the two integers is the upper one, it is 0.75 - 1. `end`: the op after the sum. */
static void build(struct quantized_model *m, const char *end) {
    struct tare_edge a, b, y;
    quantized_model_begin(m, ROWS, IN, 1, 61);
    m->kept = KEPT;
    a = mini_node(m->graph, "MatMul", "a", 2, m->in, offset_weight(m->graph, "w1", 0.45F, 62));
    b = mini_node(m->graph, "MatMul", "b", 2, m->in, offset_weight(m->graph, "w2", 0.3F, 63));
    y = mini_node(m->graph, "AddV2", "sum", 2, a, b);
    quantized_model_return(m, mini_node(m->graph, end, "end", 1, y));
}

static struct tare_quant_plan four_bits(void) {
    return (struct tare_quant_plan){ .setting = { .method = &tare_method_weight_only, .bits = 4 },
                                     .min_elements = 1,
                                     .quiet = true };
}

/* Loss of the quantized model's output; *block is what the report says of the only block. */
static double loss_of(struct tare_quant_block_outcome *block, const char *end, const struct tare_quant_plan *options,
                      const char *passes) {
    struct quantized_model m;
    struct tare_tensor expected, got;
    double loss;
    build(&m, end);
    expected = quantized_model_run(&m);
    quantized_model_quantize(&m, options, passes);
    got = quantized_model_run(&m);
    loss = quantized_model_loss(&got, &expected);
    assert_int_equal(m.report.n_blocks, *passes ? 1 : 0);
    *block = *passes ? m.report.blocks[0] : (struct tare_quant_block_outcome){ 0 };
    block->function = block->first = block->last = NULL; /* they belong to the model */
    if (block->reason && strcmp(block->reason, "Floor has no derivative") == 0) block->reason = "Floor";
    tare_tensor_reset(&expected);
    tare_tensor_reset(&got);
    quantized_model_end(&m);
    return loss;
}

static void layers_of_a_residual_block__compensate_for_each_other(void **state) {
    const struct tare_quant_plan options = four_bits();
    const char *const passes[][2] = { { "reconstruction:iterations=0", "reconstruction" },
                                      { "gptq,reconstruction:iterations=0", "gptq,reconstruction" } };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tare_quant_block_outcome none, layers, together;
        const double nearest = loss_of(&none, "Relu", &options, "");
        const double by_layer = loss_of(&layers, "Relu", &options, passes[i][0]);
        const double by_block = loss_of(&together, "Relu", &options, passes[i][1]);
        assert_int_equal(together.n_layers, 2);
        assert_string_equal(together.result, "block");
        assert_null(together.reason);
        assert_string_equal(layers.reason, "0 iterations");
        if (!(together.block_db > together.layers_db + 3))
            fail_msg("%s: %g dB together, %g dB layer by layer", passes[i][1], together.block_db, together.layers_db);
        if (!(by_block < by_layer / 2)) fail_msg("%s: loss %g, layer by layer %g", passes[i][1], by_block, by_layer);
        if (!(by_block < nearest / 4)) fail_msg("%s: loss %g, nearest %g", passes[i][1], by_block, nearest);
    }
}

/* The same with activations of 8 bits, which training drops. */
static void quantized_activations__are_part_of_the_error(void **state) {
    struct tare_quant_plan options = four_bits();
    const struct tare_quant_method *const methods[] = { &tare_method_static, &tare_method_dynamic };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tare_quant_block_outcome block;
        options.setting.method = methods[i];
        const double by_layer = loss_of(&block, "Relu", &options, "reconstruction:iterations=0");
        const double by_block = loss_of(&block, "Relu", &options, "reconstruction");
        assert_string_equal(block.result, "block");
        if (!(by_block < by_layer / 2)) fail_msg("%s: loss %g of %g", methods[i]->name, by_block, by_layer);
    }
}

/* The integers of all constants of the quantized graph. */
static void quantized_with(struct quantized_model *m, const struct tare_quant_plan *options, const char *passes) {
    build(m, "Relu");
    quantized_model_quantize(m, options, passes);
}

static void check_same_constants(const struct quantized_model *a, const struct quantized_model *b) {
    size_t compared = 0;
    assert_int_equal(a->graph->n_nodes, b->graph->n_nodes);
    for (size_t i = 0; i < a->graph->n_nodes; i++) {
        const struct tare_tensor *x = tare_edge_constant((struct tare_edge){ a->graph->nodes[i], 0 });
        const struct tare_tensor *y = tare_edge_constant((struct tare_edge){ b->graph->nodes[i], 0 });
        if (!x || !y) continue;
        compared++;
        if (!tare_tensor_same_bits(x, y)) fail_msg("%s differs", a->graph->nodes[i]->name);
    }
    assert_true(compared >= 4); /* integers and scales of two layers */
}

static void threads__do_not_change_the_result(void **state) {
    const int threads[] = { 2, 3, 7 };
    struct tare_quant_plan options = four_bits();
    struct quantized_model one;
    (void)state;
    options.setting.method = &tare_method_static;
    options.threads = 1;
    quantized_with(&one, &options, "gptq,reconstruction:iterations=40");
    for (size_t i = 0; i < 3; i++) {
        struct quantized_model other;
        options.threads = threads[i];
        quantized_with(&other, &options, "gptq,reconstruction:iterations=40");
        check_same_constants(&one, &other);
        quantized_model_end(&other);
    }
    quantized_model_end(&one);
}

static void the_time_limit__leaves_layers_rounded_one_by_one(void **state) {
    struct tare_quant_plan options = four_bits();
    struct tare_quant_block_outcome block;
    (void)state;
    const double by_layer = loss_of(&block, "Relu", &options, "reconstruction:iterations=0");
    options.reconstruction_seconds = 1e-9;
    const double limited = loss_of(&block, "Relu", &options, "reconstruction");
    assert_string_equal(block.reason, "the time limit was reached");
    assert_string_not_equal(block.result, "block");
    assert_true(isnan(block.block_db));
    assert_true(limited <= by_layer * 1.0001);
}

static void blocks_without_derivative__are_rounded_layer_by_layer(void **state) {
    const struct tare_quant_plan options = four_bits();
    struct tare_quant_block_outcome block;
    (void)state;
    loss_of(&block, "Floor", &options, "reconstruction");
    assert_string_equal(block.reason, "Floor");
    assert_string_not_equal(block.result, "block");
    assert_false(isnan(block.layers_db)); /* measured all the same */
}

static struct tare_edge enter(struct quantized_model *m, const char *name, struct tare_edge value) {
    struct tare_node *node = mini_open(m->graph, "Enter", name, 1, value);
    mini_ok(tare_node_set_string(node, "frame_name", "loop", 4));
    return mini_done(node);
}

/* x·w1, a loop that applies Relu once, and a product with w2. */
static void build_loop(struct quantized_model *m) {
    struct tare_edge value, more, value_switch, more_switch, condition;
    quantized_model_begin(m, ROWS, IN, 1, 61);
    m->kept = KEPT;
    value = mini_node(m->graph, "MatMul", "a", 2, m->in, offset_weight(m->graph, "w1", 0.45F, 62));
    value = enter(m, "enter", value);
    more = enter(m, "enter_more", mini_node(m->graph, "LogicalNot", "true", 1, mini_bool(m->graph, "false", false)));
    value = mini_node(m->graph, "Merge", "merge", 2, value, value); /* the second is replaced */
    more = mini_node(m->graph, "Merge", "merge_more", 2, more, more);
    condition = mini_node(m->graph, "LoopCond", "condition", 1, more);
    value_switch = mini_node(m->graph, "Switch", "switch", 2, value, condition);
    more_switch = mini_node(m->graph, "Switch", "switch_more", 2, more, condition);
    tare_node_set_input(value.node, 1,
                        mini_node(m->graph, "NextIteration", "next", 1,
                                  mini_node(m->graph, "Relu", "relu", 1, mini_output(value_switch, 1))));
    tare_node_set_input(more.node, 1,
                        mini_node(m->graph, "NextIteration", "next_more", 1,
                                  mini_node(m->graph, "LogicalNot", "no_more", 1, mini_output(more_switch, 1))));
    value = mini_node(m->graph, "Exit", "exit", 1, mini_output(value_switch, 0));
    quantized_model_return(
        m, mini_node(m->graph, "MatMul", "b", 2, value, quantized_model_weight(m, "w2", OUT, OUT, 1, 1, 63)));
}

/* The back edge of a TensorFlow 1 loop is a cycle of the graph. */
static void blocks_with_loops__are_rounded_layer_by_layer(void **state) {
    const struct tare_quant_plan options = four_bits();
    struct quantized_model m;
    (void)state;
    build_loop(&m);
    quantized_model_quantize(&m, &options, "reconstruction");
    assert_int_equal(m.report.n_blocks, 1);
    assert_string_equal(m.report.blocks[0].reason, "it contains control flow (Exit)");
    assert_string_equal(m.report.blocks[0].result, "layers");
    quantized_model_end(&m);
}

/* a and b with a chain of many ops between them. */
static void blocks_with_long_paths__are_rounded_layer_by_layer(void **state) {
    enum { OPS = 60000 };
    const struct tare_quant_plan options = four_bits();
    struct quantized_model m;
    struct tare_edge y;
    (void)state;
    quantized_model_begin(&m, ROWS, IN, 1, 61);
    m.kept = KEPT;
    y = mini_node(m.graph, "MatMul", "a", 2, m.in, offset_weight(m.graph, "w1", 0.45F, 62));
    for (int i = 0; i < OPS; i++)
        y = mini_node(m.graph, "Identity", tare_arena_printf(&m.arena, "i%d", i), 1, y);
    quantized_model_return(
        &m, mini_node(m.graph, "MatMul", "b", 2, y, quantized_model_weight(&m, "w2", OUT, OUT, 1, 1, 63)));
    quantized_model_quantize(&m, &options, "reconstruction");
    assert_int_equal(m.report.n_blocks, 1);
    assert_non_null(strstr(m.report.blocks[0].reason, "a path through it is too long"));
    quantized_model_end(&m);
}

static struct tare_edge cast(struct tare_graph *graph, const char *name, struct tare_edge x, int dtype) {
    struct tare_node *node = mini_open(graph, "Cast", name, 1, x);
    mini_ok(tare_node_set_type(node, "DstT", dtype));
    return mini_done(node);
}

/* A function of x and integers, such as the mask of an attention layer. */
static void blocks_with_integer_inputs__are_trained(void **state) {
    const struct tare_quant_plan options = four_bits();
    struct quantized_model m;
    (void)state;
    quantized_model_begin(&m, ROWS, IN, 1, 61);
    m.kept = KEPT;
    struct tare_graph *inner = tare_model_add_function(m.model, "inner");
    const struct tare_edge x = { tare_graph_add_arg(inner, "x", TARE_DT_FLOAT), 0 };
    const struct tare_edge mask = { tare_graph_add_arg(inner, "mask", TARE_DT_INT32), 0 };
    struct tare_edge y = mini_node(inner, "Mul", "masked", 2, x, cast(inner, "float", mask, TARE_DT_FLOAT));
    y = mini_node(inner, "MatMul", "a", 2, y, offset_weight(inner, "w1", 0.45F, 62));
    mini_ok(tare_graph_add_return(inner, "y", TARE_DT_FLOAT, y));
    quantized_model_return(&m, mini_call(m.graph, "PartitionedCall", "call", inner, 2, m.in,
                                         cast(m.graph, "integers", m.in, TARE_DT_INT32)));
    quantized_model_quantize(&m, &options, "reconstruction:iterations=4");
    assert_int_equal(m.report.n_blocks, 1);
    if (m.report.blocks[0].reason) fail_msg("%s", m.report.blocks[0].reason);
    assert_false(isnan(m.report.blocks[0].block_db));
    quantized_model_end(&m);
}

/* Several samples one after another along the first axis are as many steps of one sequence here. */
static void blocks_whose_first_axis_is_time__are_trained_by_sample(void **state) {
    static const int32_t steps[] = { -1, 1, IN }, order[] = { 1, 0, 2 };
    const struct tare_quant_plan options = four_bits();
    struct quantized_model m;
    (void)state;
    quantized_model_begin(&m, ROWS, IN, 1, 61);
    m.kept = KEPT;
    struct tare_edge y = mini_node(m.graph, "Reshape", "steps", 2, m.in, mini_ints(m.graph, "shape", 3, steps));
    y = mini_node(m.graph, "BatchMatMulV2", "a", 2, y, offset_weight(m.graph, "w1", 0.45F, 62));
    y = mini_node(m.graph, "Relu", "relu", 1, y);
    quantized_model_return(&m, mini_node(m.graph, "Transpose", "moved", 2, y, mini_ints(m.graph, "order", 3, order)));
    quantized_model_quantize(&m, &options, "reconstruction:iterations=4");
    assert_int_equal(m.report.n_blocks, 1);
    if (m.report.blocks[0].reason) fail_msg("%s", m.report.blocks[0].reason);
    assert_false(isnan(m.report.blocks[0].block_db));
    quantized_model_end(&m);
}

/* What is computed before the first layer, here by a call, is not part of the block. */
static void preprocessing_without_derivative__does_not_prevent_training(void **state) {
    const struct tare_quant_plan options = four_bits();
    struct quantized_model m;
    struct tare_graph *inner;
    struct tare_edge called, y;
    (void)state;
    quantized_model_begin(&m, ROWS, IN, 1, 61);
    m.kept = KEPT;
    inner = tare_model_add_function(m.model, "inner");
    const struct tare_edge x = { tare_graph_add_arg(inner, "x", TARE_DT_FLOAT), 0 };
    mini_ok(tare_graph_add_return(inner, "y", TARE_DT_FLOAT, mini_node(inner, "Floor", "floor", 1, x)));
    called = mini_call(m.graph, "PartitionedCall", "call", inner, 1, m.in);
    y = mini_node(m.graph, "MatMul", "a", 2, called, offset_weight(m.graph, "w1", 0.45F, 62));
    y = mini_node(m.graph, "AddV2", "sum", 2, y,
                  mini_node(m.graph, "MatMul", "b", 2, m.in, offset_weight(m.graph, "w2", 0.3F, 63)));
    quantized_model_return(&m, y);
    quantized_model_quantize(&m, &options, "reconstruction:iterations=4");
    assert_int_equal(m.report.n_blocks, 1);
    if (m.report.blocks[0].reason) fail_msg("%s", m.report.blocks[0].reason);
    assert_false(isnan(m.report.blocks[0].block_db));
    quantized_model_end(&m);
}

/* Layers of the main graph, as in TensorFlow 1, of which another signature returns other values as well: no sample
 * computes these. */
static void blocks_of_several_signatures__are_trained(void **state) {
    const struct tare_quant_plan options = four_bits();
    struct quantized_model m;
    struct tare_graph *main;
    struct tare_edge a;
    (void)state;
    quantized_model_begin(&m, ROWS, IN, 1, 61);
    m.kept = KEPT;
    quantized_model_return(&m, m.in);
    main = m.model->main;
    a = mini_node(main, "MatMul", "a", 2, m.y, offset_weight(main, "w1", 0.45F, 62));
    m.y = mini_node(main, "Sigmoid", "y", 1, a);
    m.other = mini_node(main, "Tanh", "other", 1, a);
    quantized_model_quantize(&m, &options, "reconstruction:iterations=4");
    assert_int_equal(m.report.n_blocks, 1);
    if (m.report.blocks[0].reason) fail_msg("%s", m.report.blocks[0].reason);
    assert_false(isnan(m.report.blocks[0].block_db));
    quantized_model_end(&m);
}

/* Without samples that can be run again, and after passes that scale activations. */
static void blocks_without_samples__are_rounded_layer_by_layer(void **state) {
    const struct tare_quant_plan options = four_bits();
    struct quantized_model m;
    (void)state;
    build(&m, "Relu");
    m.kept = 0;
    quantized_model_quantize(&m, &options, "reconstruction");
    assert_string_equal(m.report.blocks[0].reason, "fewer than 8 samples");
    assert_string_equal(m.report.blocks[0].result, "layers");
    quantized_model_end(&m);
}

/* ---- where blocks begin and end ---- */

static struct tare_edge dense(struct quantized_model *m, const char *name, struct tare_edge x, int rows, int columns) {
    const char *weight = tare_arena_printf(&m->arena, "%s/w", name);
    return mini_node(m->graph, "MatMul", name, 2, x,
                     quantized_model_weight(m, weight, rows, columns, 1, 1, 71 + (uint64_t)m->graph->n_nodes));
}

/* dense, a residual block of two layers, four layers in a row, softmax. */
static void build_chain(struct quantized_model *m) {
    struct tare_edge x, y;
    quantized_model_begin(m, ROWS, IN, 1, 70);
    m->kept = KEPT;
    x = mini_node(m->graph, "Relu", "relu", 1, dense(m, "stem", m->in, IN, IN));
    y = mini_node(m->graph, "Relu", "r1", 1, dense(m, "res1", x, IN, IN));
    x = mini_node(m->graph, "AddV2", "add", 2, x, dense(m, "res2", y, IN, IN));
    x = mini_node(m->graph, "Tanh", "tanh", 1, x);
    for (int i = 0; i < 4; i++) {
        const char *const names[] = { "c0", "c1", "c2", "c3" };
        x = dense(m, names[i], x, IN, IN);
        if (i < 3) x = mini_node(m->graph, "Relu", "c", 1, x);
    }
    quantized_model_return(m, mini_node(m->graph, "Softmax", "softmax", 1, x));
}

static void blocks__are_found_from_the_graph(void **state) {
    const char *const expected[][2] = { { "stem", "stem" }, { "res1", "res2" }, { "c0", "c2" }, { "c3", "c3" } };
    const struct tare_quant_plan options = four_bits();
    struct quantized_model m;
    (void)state;
    build_chain(&m);
    quantized_model_quantize(&m, &options, "reconstruction:iterations=2");
    assert_int_equal(m.report.n_blocks, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(m.report.blocks[i].first, expected[i][0]);
        assert_string_equal(m.report.blocks[i].last, expected[i][1]);
        if (m.report.blocks[i].reason) fail_msg("%s: %s", expected[i][0], m.report.blocks[i].reason);
    }
    quantized_model_end(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_a_residual_block__compensate_for_each_other),
        cmocka_unit_test(quantized_activations__are_part_of_the_error),
        cmocka_unit_test(threads__do_not_change_the_result),
        cmocka_unit_test(the_time_limit__leaves_layers_rounded_one_by_one),
        cmocka_unit_test(blocks_without_derivative__are_rounded_layer_by_layer),
        cmocka_unit_test(blocks_with_loops__are_rounded_layer_by_layer),
        cmocka_unit_test(blocks_with_long_paths__are_rounded_layer_by_layer),
        cmocka_unit_test(blocks_with_integer_inputs__are_trained),
        cmocka_unit_test(blocks_whose_first_axis_is_time__are_trained_by_sample),
        cmocka_unit_test(preprocessing_without_derivative__does_not_prevent_training),
        cmocka_unit_test(blocks_of_several_signatures__are_trained),
        cmocka_unit_test(blocks_without_samples__are_rounded_layer_by_layer),
        cmocka_unit_test(blocks__are_found_from_the_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

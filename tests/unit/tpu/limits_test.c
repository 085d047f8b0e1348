/* Inputs that are added to computed values are limited to the range of bfloat16 where they are rounded. */
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"

/* f calls inner, which returns softmax(x · tanh(x) + mask) · tanh(x). */
struct net {
    struct tare_graph_model *model;
    struct tare_graph *f, *inner;
    struct tare_edge x, mask; /* of inner */
};

static void new_net(struct net *net) {
    net->model = mini_model_new();
    net->f = tare_model_add_function(net->model, "f");
    net->inner = tare_model_add_function(net->model, "inner");
    net->x = mini_arg(net->inner, "x", TARE_DT_FLOAT);
    net->mask = mini_arg(net->inner, "m", TARE_DT_FLOAT);
}

/* With a mask that is computed from net->mask. */
static void convert(struct net *net, struct tare_edge mask) {
    const struct tare_bfloat16_options options = { 0 };
    const struct tare_edge y = mini_node(net->inner, "Tanh", "y", 1, net->x);
    struct tare_edge scores = mini_node(net->inner, "MatMul", "scores", 2, net->x, y);
    struct tare_edge call;
    size_t changes = 0;
    scores = mini_node(net->inner, "AddV2", "masked", 2, scores, mask);
    scores = mini_node(net->inner, "Softmax", "softmax", 1, scores);
    mini_return(net->inner, "y",
                mini_node(net->inner, "MatMul", "values", 2, scores, mini_node(net->inner, "MatMul", "v", 2, y, y)));
    call = mini_call(net->f, "PartitionedCall", "call", net->inner, 2, mini_arg(net->f, "x", TARE_DT_FLOAT),
                     mini_arg(net->f, "m", TARE_DT_FLOAT));
    mini_return(net->f, "y", call);
    mini_ok(tare_tpu_bfloat16(net->model, &net->f, 1, &options, &changes));
    graph_check_dtypes(net->model);
}

static bool is_limited(struct tare_edge edge) {
    return tare_node_is(edge.node, "Cast") && tare_node_is(edge.node->inputs[0].node, "ClipByValue");
}

/* The cast is at the boundary of the TPU function, the sum in a function that it calls. */
static void a_mask_that_a_called_function_adds__is_limited_by_the_caller(void **state) {
    struct net net;
    const struct tare_node *call;
    (void)state;
    new_net(&net);
    convert(&net, mini_node(net.inner, "ExpandDims", "expanded", 2, net.mask, mini_int(net.inner, "axis", 1)));
    call = graph_node(net.f, "call");
    assert_int_equal(net.inner->args[1]->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_true(is_limited(call->inputs[1]));
    assert_false(is_limited(call->inputs[0])); /* goes into a product alone */
    tare_model_free(net.model);
}

/* Both parts of a mask that is put together. */
static void parts_of_a_mask__are_limited(void **state) {
    struct net net;
    struct tare_edge more;
    struct tare_node *concat;
    const struct tare_node *call;
    (void)state;
    new_net(&net);
    more = mini_node(net.inner, "Mul", "more", 2, net.mask, net.mask);
    concat = mini_open(net.inner, "ConcatV2", "concat", 3, net.mask, more, mini_int(net.inner, "axis", 1));
    mini_ok(tare_node_set_int(concat, "N", 2));
    convert(&net, mini_done(concat));
    call = graph_node(net.f, "call");
    assert_true(is_limited(call->inputs[1]));
    tare_model_free(net.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mask_that_a_called_function_adds__is_limited_by_the_caller),
        cmocka_unit_test(parts_of_a_mask__are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Outputs of a signature before a final probability. */
#include "eval/logits.h"
#include "support/mini_model.h"

#include <stdio.h>
#include <string.h>

/* main calls f, which returns `op` of x behind an Identity; the signature returns the call's result. */
static struct tare_graph_model *model_of(const char *op) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge y = mini_node(f, op, "last", 1, mini_node(f, "Neg", "logits", 1, mini_arg(f, "x", TARE_DT_FLOAT)));
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), out;
    mini_return(f, "y", mini_node(f, "Identity", "copy", 1, y));
    out = mini_call(model->main, "PartitionedCall", "call", f, 1, x);
    model->signatures = TARE_NEW(&model->arena, struct tare_signature);
    model->n_signatures = 1;
    model->signatures[0].key = "serving_default";
    model->signatures[0].outputs = TARE_NEW(&model->arena, struct tare_binding);
    model->signatures[0].n_outputs = 1;
    model->signatures[0].outputs[0] = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .edge = out };
    return model;
}

static const char *op_returned(const char *op, const char *key) {
    static char name[32];
    struct tare_graph_model *model = model_of(op);
    const struct tare_node *node;
    mini_ok(tare_model_return_logits(model, key));
    node = model->signatures[0].outputs[0].edge.node;
    while (strcmp(node->op, "Identity") == 0)
        node = node->inputs[0].node;
    snprintf(name, sizeof name, "%s", node->op);
    tare_model_free(model);
    return name;
}

static void final_probabilities__are_returned_before_they_saturate(void **state) {
    (void)state;
    assert_string_equal(op_returned("Softmax", "serving_default"), "Neg");
    assert_string_equal(op_returned("Sigmoid", "serving_default"), "Neg");
}

static void other_outputs_and_signatures__stay(void **state) {
    (void)state;
    assert_string_equal(op_returned("Relu", "serving_default"), "Relu");
    assert_string_equal(op_returned("Softmax", "other"), "Softmax");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(final_probabilities__are_returned_before_they_saturate),
        cmocka_unit_test(other_outputs_and_signatures__stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

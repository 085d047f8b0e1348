/* Returns what an output is before its final Softmax or Sigmoid. */
#include "eval/logits.h"
#include "graph/inline.h"

#include <string.h>

/* The input of the final probability that the edge is or copies; the edge itself if it is none. */
static struct tare_edge before_probability(struct tare_edge edge) {
    static const char *const copies[] = { "Identity", "StopGradient", "PreventGradient", NULL };
    static const char *const probabilities[] = { "Softmax", "Sigmoid", NULL };
    const struct tare_edge whole = edge;
    while (edge.node && tare_op_is_one_of(edge.node->op, copies) && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    return edge.node && tare_op_is_one_of(edge.node->op, probabilities) ? edge.node->inputs[0] : whole;
}

tare_status tare_model_return_logits(struct tare_graph_model *model, const char *key) {
    const tare_status status = tare_model_inline_calls(model);
    if (status != TARE_OK && status != TARE_UNSUPPORTED) return status;
    tare_error_clear();
    for (size_t s = 0; status == TARE_OK && s < model->n_signatures; s++)
        for (size_t i = 0; strcmp(model->signatures[s].key, key) == 0 && i < model->signatures[s].n_outputs; i++)
            model->signatures[s].outputs[i].edge = before_probability(model->signatures[s].outputs[i].edge);
    tare_model_forget_signature_uses(model);
    return TARE_OK;
}

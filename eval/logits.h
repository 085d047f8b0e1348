/* The values before a final probability.
 *
 * Softmax and Sigmoid saturate: where the model is certain, differences before them vanish, and the error of the
 * probabilities is that of the few uncertain examples. Models are compared more reliably by what they compute before.
 */
#ifndef TARE_EVAL_LOGITS_H
#define TARE_EVAL_LOGITS_H

#include "graph/model.h"

/* Inlines the calls of the main graph and makes each output of the signature `key` that is a Softmax or a Sigmoid
 * return that op's input, which has the same shape. A model whose calls cannot be inlined (graph/inline.h) keeps its
 * outputs. The model must not be written afterwards. */
tare_status tare_model_return_logits(struct tare_graph_model *model, const char *key) TARE_WARN_UNUSED;

#endif

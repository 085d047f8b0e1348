/* The ways in which the interpreter runs a model. All compute the same bits. */
#ifndef TARE_TESTS_DIFFERENTIAL_WAYS_H
#define TARE_TESTS_DIFFERENTIAL_WAYS_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"
#include "graph/model.h"

enum { WAYS_INPUTS = 3 };

/* Runs the signature of a model in each way: fused and step by step, while some values are observed, with 1 to 3
 * threads, and the examples of inputs[0] as one batch and, unless the model mixes them, in parts. The other inputs (at
 * most WAYS_INPUTS in all) have other shapes and are run by the same session, if the model can take them. Appends a
 * line to `errors` for each way whose values differ from those of the steps run one by one by one thread, and where
 * these are not close to those of the reference kernels: a mean squared difference of at most `tolerance` times the
 * mean square. Returns a checksum of the outputs. */
uint64_t ways_compare(struct tare_strbuf *errors, const struct tare_graph_model *model,
                      const struct tare_tensor *inputs, int n_inputs, bool mixes, double tolerance);
/* Appends a line to `errors` if the outputs of a model are not close to those of the model that it was made of. */
void ways_compare_models(struct tare_strbuf *errors, const struct tare_graph_model *model,
                         const struct tare_graph_model *original, const struct tare_tensor *x, double tolerance);

#endif

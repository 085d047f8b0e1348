/* The ways in which the interpreter runs a model. All compute the same bits. */
#ifndef TARE_TESTS_DIFFERENTIAL_WAYS_H
#define TARE_TESTS_DIFFERENTIAL_WAYS_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"
#include "graph/model.h"

/* Runs the signature of a model on examples in each way: fused and step by step, with 1 to 3 threads, and the examples
 * as one batch and, unless the model mixes them, in parts. Appends a line to `errors` for each way whose outputs differ
 * from those of the steps run one by one by one thread, and where these are not close to those of the reference
 * kernels: a mean squared difference of at most `tolerance` times the mean square. Returns a checksum of the outputs.
 */
uint64_t ways_compare(struct tare_strbuf *errors, const struct tare_graph_model *model, const struct tare_tensor *x,
                      bool mixes, double tolerance);

#endif

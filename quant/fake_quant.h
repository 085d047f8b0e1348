/* Quantization-aware-trained (QAT) models: FakeQuant ops specify the ranges of activations; no samples are needed. */
#ifndef TARE_QUANT_FAKE_QUANT_H
#define TARE_QUANT_FAKE_QUANT_H

#include "graph/model.h"

/* What is known of the FakeQuant ops of a model while it is quantized. Rewriting adds none, so what is downstream of an
 * edge is searched once, however many layers use it. */
struct tare_quant_fakes {
    struct tare_arena *arena;
    bool is_trained;            /* the model has FakeQuant ops */
    struct tare_map downstream; /* edge -> the range of the FakeQuants downstream of it */
    size_t visits;              /* uses that were examined */
    tare_status status;         /* TARE_NO_MEMORY once an edge could not be added to `downstream` */
};

void tare_quant_fakes_open(struct tare_quant_fakes *fakes, struct tare_arena *arena,
                           const struct tare_graph_model *model);
void tare_quant_fakes_close(struct tare_quant_fakes *fakes);
/* The range of the 8-bit FakeQuant upstream or downstream of the activation, directly or through ops that preserve
 * values (Identity, Reshape, Transpose, Squeeze, ExpandDims, Pad, MaxPool, ConcatV2). Through a ConcatV2 upstream the
 * range covers those of all inputs; of several FakeQuants downstream it covers all. Not found: there is none, or its
 * range is not constant. */
tare_status tare_quant_fake_range(bool *found, double *low, double *high, struct tare_quant_fakes *fakes,
                                  struct tare_edge edge) TARE_WARN_UNUSED;
/* The least and the greatest value of a FakeQuant op: its range, shifted so that zero is one of its steps. False: the
 * range is not constant or empty, or the op has fewer than 8 bits, so that integers round less than it does. */
bool tare_quant_fake_limits(double *low, double *high, const struct tare_node *node);
/* True when the model was trained with quantization: some op's name begins with FakeQuant, as TensorFlow decides it. */
bool tare_quant_is_trained(const struct tare_graph_model *model);
/* Whether a matrix or kernel of 8-bit integers is stored in the model, as in one that was quantized. */
bool tare_quant_has_integer_weights(const struct tare_graph_model *model);

#endif

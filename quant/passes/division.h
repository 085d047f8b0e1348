/* Dividing the channels of an activation where it is computed, for passes that multiply the weights of the layers that
 * read it: in the constants of the sums and products before it, in constants that a loop chooses by its iteration, and
 * in the weights of a quantized layer whose output nothing else uses. */
#ifndef TARE_QUANT_PASSES_DIVISION_H
#define TARE_QUANT_PASSES_DIVISION_H

#include "quant/emit.h"
#include "quant/layer.h"

enum { TARE_DIVISION_NODES = 32 };

struct tare_quant_division {
    struct tare_quant_work *work;
    struct tare_edge edge;           /* the activation */
    size_t readers;                  /* uses of it that get the divided one */
    struct tare_quant_selection *by; /* the loop whose iterations have divisors of their own; NULL: all have the same */
    int64_t entries, channels;       /* of `scale`; entries 1 without a loop */
    const double *scale;             /* divisors by entry and channel */
    struct tare_quant_layer
        *maker; /* result: the layer whose output is the activation; NULL: nodes before it were copied */
    struct tare_edge from[TARE_DIVISION_NODES], to[TARE_DIVISION_NODES]; /* copied nodes, and their copies */
    size_t n_copies;
    tare_status status; /* of the search */
};

/* Where the divisors of the entry begin that a matrix of the layer's weight belongs to. */
int64_t tare_quant_first_divisor(const struct tare_quant_division *division, const struct tare_quant_layer *layer,
                                 int64_t matrix);
/* Sets *out to an edge whose channels are those of the activation, divided: copies of nodes with other constants, or
 * the activation itself, if it is the output of a layer whose weights were divided. *found false: neither is possible,
 * and nothing was changed. */
tare_status tare_quant_divide(bool *found, struct tare_edge *out, struct tare_quant_division *division,
                              struct tare_emit *emit) TARE_WARN_UNUSED;

#endif

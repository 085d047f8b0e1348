/* What is known about the float values of a model before it runs: where they come from and, roughly, how large their
 * mean is compared with what varies from record to record. The sizes are estimates: constants and variables are
 * measured, products scale by the norm of their weights, and what nothing is known about has mean 0 and deviation 1. */
#ifndef TARE_TPU_EXACT_FACTS_H
#define TARE_TPU_EXACT_FACTS_H

#include "graph/model.h"

struct tare_value_fact {
    bool varies;    /* depends on an input, a random number or state: not on constants and variables alone */
    bool computed;  /* a product, a pooling or another op that is not plain arithmetic contributes to it */
    bool wild;      /* since the last product, an input was added: its mean is not known */
    bool heavy;     /* the mean is at least TARE_HEAVY times the deviation: rounding removes what varies */
    bool nonlinear; /* not a linear function of inputs alone */
    bool large;     /* made from a constant or variable of more than TARE_LARGE elements, or of 8-bit integers */
    float mean, spread, dev; /* over all elements; from element to element; from record to record */
    float elements, last;    /* of the constant that it is made from, and its last dimension; 0: not known */
};

#define TARE_HEAVY 6.0F
#define TARE_VERY_HEAVY 9.0F
enum { TARE_LARGE = 64 * 1024 };

struct tare_value_facts;

/* Analyses the whole model, in arena memory but for tables, which tare_value_facts_free releases. */
tare_status tare_value_facts_find(struct tare_value_facts **out, struct tare_arena *arena,
                                  const struct tare_graph_model *model);
void tare_value_facts_free(struct tare_value_facts *facts); /* NULL: nothing */

/* The fact of an edge. Outputs of one node share it. */
const struct tare_value_fact *tare_value_fact(const struct tare_value_facts *facts, struct tare_edge edge);

/* Mean and spread, over the deviation; for constants, infinite. */
float tare_fact_weight(const struct tare_value_fact *fact);
/* The constant, or the value of the variable that is read, through Identity; NULL: neither. */
const struct tare_tensor *tare_value_constant(const struct tare_value_facts *facts, struct tare_edge edge);

/* Plain arithmetic and moves: an exact result needs exact operands. */
bool tare_passes_values(const struct tare_node *node);
/* x · w + b of an input x, with a large b: it cancels the mean of x (principal components, a normalization that was
 * folded into the layer), or is an offset of the result. */
bool tare_offsets_input_product(const struct tare_value_facts *facts, const struct tare_node *node);
/* A value that is neither constant nor computed: an input, or arithmetic of inputs alone. */
static inline bool tare_fact_is_input(const struct tare_value_fact *fact) {
    return fact->varies && !fact->computed;
}

/* A product of inputs with constants, and sums of such: as little is known about its mean as about theirs. */
static inline bool tare_fact_is_linear(const struct tare_value_fact *fact) {
    return fact->varies && fact->computed && !fact->nonlinear;
}

#endif

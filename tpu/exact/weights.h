/* Weights of one sign: a blur, a window, bands of a spectrum, probabilities. What they weigh keeps its mean, so that
 * rounding removes what varies from values with a large one. */
#ifndef TARE_TPU_EXACT_WEIGHTS_H
#define TARE_TPU_EXACT_WEIGHTS_H

#include "tpu/exact/facts.h"

/* Σ weights · values, as a product or as a Sum of a Mul. */
struct tare_weighted_sum {
    struct tare_edge weights, values;
};

/* Whether no element of the constant is below zero, or none above, and one is neither. */
bool tare_has_one_sign(const struct tare_tensor *values);
/* Whether the value is never negative: probabilities, exponentials, squares, and their sums, products and quotients. */
bool tare_is_positive(const struct tare_value_facts *facts, struct tare_edge edge);
/* exp(x) / sum(exp(x)), as softmax over an axis that is not the last is written. */
bool tare_is_written_softmax(const struct tare_node *node);
/* Finds weights that vary and are never negative, and what they weigh; false: the node is another one. */
bool tare_find_weighted_sum(struct tare_weighted_sum *out, const struct tare_value_facts *facts,
                            const struct tare_node *node);
/* Finds the mean of a weighted sum of the rows of a table, and its deviation; false: the rows have no large mean, or
 * the node is another one. */
bool tare_find_mean_of_rows(struct tare_value_fact *out, const struct tare_value_facts *facts,
                            const struct tare_node *node);

#endif

/* Weights that a model computes from entries of stacks. */
#ifndef TARE_CONVERT_PASSES_TABULATE_CHOICES_H
#define TARE_CONVERT_PASSES_TABULATE_CHOICES_H

#include "graph/model.h"

/* Where a product, or a function that is called, gets a value computed from entries of constant stacks by the same
 * numbers (standardized weights under lax.scan), and quantization cannot follow the formula: computes it for every
 * entry, and chooses from the stack of the results. Counts the values. */
tare_status tare_tabulate_choices(struct tare_graph_model *model, size_t *changes) TARE_WARN_UNUSED;

#endif

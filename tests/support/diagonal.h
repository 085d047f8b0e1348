/* Models of products with diagonal weights: what comes out for a row of ones tells which weights it met. */
#ifndef TARE_TEST_DIAGONAL_H
#define TARE_TEST_DIAGONAL_H

#include "support/mini_model.h"

enum { DIAGONAL_SIDE = 32 }; /* of a weight for which functions are copied */

/* A square matrix of `side` rows: `value` times the unit matrix. The caller resets it. */
struct tare_tensor diagonal(int side, float value);
/* The handle of a new variable of the main graph with that value, which has a key of the checkpoint. */
struct tare_edge diagonal_variable(struct tare_graph_model *model, const char *name, int side, float value);
/* A function f(x, w) = x w; the node is "product". */
struct tare_graph *diagonal_product(struct tare_graph_model *model, const char *name);
/* The first element of y for an x of `side` ones. */
float diagonal_answer(struct tare_graph_model *model, struct tare_edge x, struct tare_edge y, int side);

#endif

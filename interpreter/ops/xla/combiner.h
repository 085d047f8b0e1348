/* Scalar functions that XLA's ops reduce, scatter and compare with. Common bodies (sum, product, minimum, maximum,
 * and, or, second argument) are recognized and computed directly; all others are called. */
#ifndef TARE_INTERPRETER_OPS_XLA_COMBINER_H
#define TARE_INTERPRETER_OPS_XLA_COMBINER_H

#include "interpreter/kernel.h"

enum tare_combining {
    TARE_COMBINE_CALL,
    TARE_COMBINE_ADD,
    TARE_COMBINE_MULTIPLY,
    TARE_COMBINE_MAXIMUM,
    TARE_COMBINE_MINIMUM,
    TARE_COMBINE_AND,
    TARE_COMBINE_OR,
    TARE_COMBINE_FIRST,
    TARE_COMBINE_SECOND,
};

struct tare_combiner {
    struct tare_kernel *kernel;
    const struct tare_graph *function;
    size_t count; /* number of tensors per side */
    enum tare_combining kind;
    struct tare_tensor *scalars; /* 2 * count call arguments, created for each call; scratch */
};

/* Loads the function of attribute `attr`, which must have 2 * count arguments and `results` results. */
tare_status tare_combiner_open(struct tare_combiner *out, struct tare_kernel *kernel, const char *attr, size_t count,
                               size_t results);
/* Whether a node reduces by a function that is computed directly: without calls, it can be folded. */
bool tare_combiner_is_direct(const struct tare_node *node);
/* to[k][at] = f(to[0][at], to[1][at] …, from[0][p], from[1][p] …)[k] for every p of places[0 … n-1] in order. Sums
 * and products of floating-point numbers accumulate in double and are rounded once. */
tare_status tare_combiner_fold(const struct tare_combiner *combiner, struct tare_tensor *to, int64_t at,
                               const struct tare_tensor *from, const int64_t *places, int64_t n);
/* Evaluates f(tensors[0][a], tensors[0][b], tensors[1][a], tensors[1][b] …), which returns a bool. */
tare_status tare_combiner_compare(bool *out, const struct tare_combiner *combiner, const struct tare_tensor *tensors,
                                  int64_t a, int64_t b);

#endif

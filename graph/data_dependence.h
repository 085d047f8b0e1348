/* Whether records may run as one batch: by the shapes of a signature's inputs, and by whether what it computes goes
 * different ways for different values of them, because a branch is taken for the batch as a whole. */
#ifndef TARE_GRAPH_DATA_DEPENDENCE_H
#define TARE_GRAPH_DATA_DEPENDENCE_H

#include "graph/model.h"

/* Every input is dense and leaves its first dimension open, so that records can be put together there. Of an input
 * whose rank is not known nobody can tell: `unknown_rank` is the answer for it. False without inputs. */
bool tare_signature_batches(const struct tare_signature *signature, bool unknown_rank);
/* *steered: the predicate of a branch, the condition of a loop, or the work of an op that calls functions in a way that
 * is not known, depends on values (not on shapes alone) of the signature's inputs. Sees the whole graph of the inputs
 * and all functions that it calls; what flows through resources (variables, tables) is not followed. */
tare_status tare_signature_steered(bool *steered, const struct tare_signature *signature) TARE_WARN_UNUSED;

#endif

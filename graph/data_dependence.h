/* Whether examples may run as one batch: the shapes of a signature's inputs must leave the batch dimension open, and
 * the signature must not have data-dependent control flow, because a branch is taken for the batch as a whole. */
#ifndef TARE_GRAPH_DATA_DEPENDENCE_H
#define TARE_GRAPH_DATA_DEPENDENCE_H

#include "graph/model.h"

/* True if every input is dense and has an unknown first dimension, so that examples can be concatenated there.
 * `unknown_rank` is the result for an input of unknown rank. False without inputs. */
bool tare_signature_batches(const struct tare_signature *signature, bool unknown_rank);
/* Data-dependent control flow: sets *dependent when the predicate of a branch, the condition of a loop, or an op that
 * calls functions in an unknown way depends on values (not only shapes) of the signature's inputs. Covers the graph of
 * the inputs and all functions that it calls; values passed through resources (variables, tables) are not followed. */
tare_status tare_signature_is_data_dependent(bool *dependent, const struct tare_signature *signature) TARE_WARN_UNUSED;

#endif

/* Data-dependent control flow, and inputs with an open batch dimension: the properties of a graph that decide whether
 * records may run as one batch (interpreter/batch_check.h). A branch is taken for the batch as a whole. */
#ifndef TARE_GRAPH_DATA_DEPENDENCE_H
#define TARE_GRAPH_DATA_DEPENDENCE_H

#include "graph/model.h"

/* True if every input is dense and has an unknown first dimension, so that records can be concatenated there.
 * `unknown_rank` is the result for an input of unknown rank. False without inputs. */
bool tare_signature_batches(const struct tare_signature *signature, bool unknown_rank);
/* *dependent: the condition of a loop, or an op that calls functions in an unknown way, depends on the values of the
 * signature's inputs, or the predicate of a branch on their values or shapes (a branch on the number of records
 * computes a different result in a batch). Covers the whole graph of the inputs and all functions that it calls; data
 * flow through resources (variables, tables) is not followed. */
tare_status tare_signature_is_data_dependent(bool *dependent, const struct tare_signature *signature) TARE_WARN_UNUSED;

#endif

/* Lookups of layers and shared activations by node, edge, variable and weight, in constant time. */
#ifndef TARE_QUANT_LAYER_INDEX_H
#define TARE_QUANT_LAYER_INDEX_H

#include "quant/layer.h"

struct tare_quant_layer_index;

static inline bool tare_quant_same_params(const struct tare_qparams *a, const struct tare_qparams *b) {
    return a == b || (a && b && a->scale == b->scale && a->zero_point == b->zero_point && a->qmin == b->qmin);
}

/* Indexes the work's layers by op, output and variable. Arena memory, but for the tables: free it. */
tare_status tare_quant_layer_index_new(struct tare_quant_layer_index **out, struct tare_quant_work *work);
void tare_quant_layer_index_free(struct tare_quant_layer_index *index);

/* The layer of an op; the first layer with that output; NULL: none. */
const struct tare_quant_layer *tare_quant_layer_of(const struct tare_quant_work *work, const struct tare_node *op);
const struct tare_quant_layer *tare_quant_layer_with_output(const struct tare_quant_work *work, struct tare_edge edge);
/* The rewritten layer whose real output is now `edge`; NULL: none. */
const struct tare_quant_layer *tare_quant_layer_replaced_by(const struct tare_quant_work *work, struct tare_edge edge);
/* The first layer that reads the variable; the others follow by tare_quant_layer.next_reader. */
const struct tare_quant_layer *tare_quant_first_reader(const struct tare_quant_work *work,
                                                       const struct tare_variable *variable);
/* The first layer whose activation was observed at `edge`; the others follow by tare_quant_layer.next_user. */
const struct tare_quant_layer *tare_quant_first_user(const struct tare_quant_work *work, struct tare_edge edge);
/* The first rewritten layer whose integers of an equal constant `layer` can share; NULL: none. */
const struct tare_quant_layer *tare_quant_same_weight(const struct tare_quant_work *work,
                                                      struct tare_quant_layer *layer);
/* Adds what a rewrite set: `replaced` and `integers`. */
tare_status tare_quant_index_rewritten(struct tare_quant_work *work, struct tare_quant_layer *layer);

/* Integers of an activation that a method made before, with the same parameters (NULL: any); NULL when there are none.
 */
const struct tare_quant_shared *tare_quant_find_shared(const struct tare_quant_work *work,
                                                       const struct tare_quant_method *method, struct tare_edge real,
                                                       const struct tare_qparams *params);
/* The integers of an activation that another layer made with the same ranges by iteration. */
const struct tare_quant_shared *tare_quant_find_shared_entries(const struct tare_quant_work *work,
                                                               struct tare_edge real,
                                                               const struct tare_quant_entries *entries);
/* *out is valid until the next is added. */
tare_status tare_quant_add_shared(const struct tare_quant_shared **out, struct tare_quant_work *work,
                                  const struct tare_quant_shared *made);

/* Every use of the layer's output is the activation of a layer with the same method and, there, the same parameters. */
bool tare_quant_only_feeds_integers(const struct tare_quant_work *work, const struct tare_quant_layer *layer);

#endif

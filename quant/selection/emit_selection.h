/* The nodes that choose from a quantized stack (selection.h). */
#ifndef TARE_QUANT_EMIT_SELECTION_H
#define TARE_QUANT_EMIT_SELECTION_H

#include "graph/emit.h"
#include "quant/layer.h"

/* The chosen entries of [count, …], with the axes of the index in place of the first one. */
struct tare_edge tare_emit_chosen(struct tare_emit *emit, const char *name, struct tare_quant_selection *selection,
                                  struct tare_edge stack);
/* The same elements of a chosen weight with the axes that the product takes. */
struct tare_edge tare_emit_entry(struct tare_emit *emit, const char *name, const struct tare_quant_selection *selection,
                                 struct tare_edge chosen);
/* The number of axes that a chosen weight has before those of an entry. */
int tare_quant_index_axes(const struct tare_quant_selection *selection);
/* Whether tare_emit_entry has the sizes that it needs: at most one axis of the index has an unknown one. */
bool tare_quant_has_entry_shape(const struct tare_quant_selection *selection);

/* The shape of a constant with one value per channel; of a stack, for all entries. */
struct tare_shape tare_quant_channels_shape(const struct tare_quant_layer *layer);
/* One value per channel, shaped to broadcast with the raw result: `channels` itself, or what is chosen from it. */
struct tare_edge tare_emit_chosen_channels(struct tare_emit *emit, const char *name,
                                           const struct tare_quant_layer *layer, struct tare_edge channels);
/* Chosen channels with the axes of one element that the product's result has between those of the index. */
struct tare_edge tare_emit_spread(struct tare_emit *emit, const char *name,
                                  const struct tare_quant_selection *selection, struct tare_edge channels);
/* Floats of the chosen entries, [axes of the index, `rank` axes], or a scalar, times the factors of the entries. */
struct tare_edge tare_emit_factors(struct tare_emit *emit, const struct tare_quant_selection *selection,
                                   struct tare_edge floats, int rank);
/* One float for all channels, of which the factors make one for each chosen entry. */
struct tare_edge tare_emit_factored_float(struct tare_emit *emit, const char *name,
                                          const struct tare_quant_layer *layer, double value);

#endif

/* A table that a look-up reads and a product multiplies by, as the embedding and the output layer of a language model:
 * with scales per entry, which are those of the product's columns, both have the same integers, which are stored once,
 * in the order of the table. */
#ifndef TARE_QUANT_TIED_TABLES_H
#define TARE_QUANT_TIED_TABLES_H

#include "quant/layer.h"

/* Sets `tied` of the planned layers. */
void tare_quant_find_tied(struct tare_quant_work *work);
/* Whether two layers of one variable are tied and stay so: no pass changes their weights. */
bool tare_quant_is_tied(const struct tare_quant_work *work, const struct tare_quant_layer *a,
                        const struct tare_quant_layer *b);
/* The integers of the layer that this one is tied to, if it has been rewritten with the same ones; node NULL: none. */
struct tare_edge tare_quant_tied_integers(const struct tare_quant_layer *layer);

#endif

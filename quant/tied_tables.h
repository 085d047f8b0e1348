/* A table that a look-up reads and a product multiplies by, as the embedding and the output layer of a language model:
 * with scales per entry or per block of an entry, which are those of the product's columns, both have the same
 * integers, which are stored once, in the order of the table. */
#ifndef TARE_QUANT_TIED_TABLES_H
#define TARE_QUANT_TIED_TABLES_H

#include "quant/layer.h"

/* Sets `tied` of the planned layers. A product whose constant was computed from the table by a transposition or a
 * conversion takes the table for its weight; one that is in blocks while its table is not gives them up, with a note.
 */
tare_status tare_quant_find_tied(struct tare_quant_work *work) TARE_WARN_UNUSED;
/* Whether two layers of one variable are tied and stay so: no pass changes their weights. */
bool tare_quant_is_tied(const struct tare_quant_work *work, const struct tare_quant_layer *a,
                        const struct tare_quant_layer *b);
/* Before a tied layer is rewritten: a product stores its integers with the axes of the table; what the other one has
 * stored is taken where it is the same. */
void tare_quant_share_tied(struct tare_quant_layer *layer);

#endif

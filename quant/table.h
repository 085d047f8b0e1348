/* Quantized tables: look-ups, and products with a table that a look-up shares. */
#ifndef TARE_QUANT_TABLE_H
#define TARE_QUANT_TABLE_H

#include "quant/emit.h"
#include "quant/layer.h"

/* GatherV2 of an integer table, as float32: the gathered integers times their scale, which is also gathered if each
 * entry has its own. Every method quantizes tables in this way. */
struct tare_edge tare_emit_table_lookup(struct tare_emit *emit, struct tare_quant_layer *layer);
/* Puts the lookup in the place of the layer. */
tare_status tare_quant_rewrite_table(struct tare_quant_layer *layer);
/* The weight of a product that is stored as a table (quant/tied_tables.h): float32 numbers with the axes of the table,
 * each block of an entry times its scale. */
struct tare_edge tare_emit_real_table(struct tare_emit *emit, struct tare_quant_layer *layer);

#endif

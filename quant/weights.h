/* What the methods share about the weights of a spot: quantizing, arranging for the XLA ops, reporting. */
#ifndef TARE_QUANT_WEIGHTS_H
#define TARE_QUANT_WEIGHTS_H

#include "quant/rewrite.h"
#include "quant/spot.h"

/* int8 symmetric [-127, 127], one scale an output channel or, with options->per_tensor, one in all. `out->values` is the
 * caller's to reset, also on failure. */
tare_status tare_quantize_spot_weight(struct tare_quantized_weight *out, struct tare_arena *arena,
                                      const struct tare_quant_spot *spot, const struct tare_quant_options *options);

/* The integers as the XLA op takes them: MatMul's as [K, N], a depthwise filter as [H, W, 1, C * M]. */
tare_status tare_quant_arrange_weight(struct tare_tensor *out, const struct tare_quant_spot *spot,
                                      const struct tare_tensor *values);

/* Adds a row for the spot, refused as the spot is; valid until the next is added. */
tare_status tare_quant_add_outcome(struct tare_quant_outcome **out, struct tare_quant_report *report,
                                   struct tare_arena *arena, const struct tare_quant_spot *spot);
/* Scales, error and size of the quantized weight. */
void tare_quant_describe_weight(struct tare_quant_outcome *outcome, const struct tare_quant_spot *spot,
                                const struct tare_quantized_weight *weight);

#endif

/* Products in the XLA op set: XlaConvV2 and XlaDotV2, with weights as constants. */
#ifndef TARE_QUANT_XLA_H
#define TARE_QUANT_XLA_H

#include "quant/emit.h"
#include "quant/layer.h"

/* The layer's product in its raw order of axes, for an activation and an arranged weight (or a second activation).
 * accumulator: TARE_DT_INT32, or TARE_DT_FLOAT. */
struct tare_edge tare_emit_product(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge left,
                                   struct tare_edge right, int accumulator);
/* The raw result with layer->shift added, where there is one. */
struct tare_edge tare_emit_shift(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge raw);
/* The raw result with the axes of the op's output. */
struct tare_edge tare_emit_result(struct tare_emit *emit, const struct tare_quant_product *product,
                                  struct tare_edge raw);
/* PadV2 or XlaPad of the spatial dimensions with a constant, which is also inserted between the elements where the
 * window asks for it; the product's padding becomes zero. */
struct tare_edge tare_emit_pad(struct tare_emit *emit, struct tare_edge x, struct tare_quant_product *product,
                               struct tare_edge value);
/* One float per channel, or a single one if `count` is 1, shaped to broadcast with the raw result; of a stack of
 * weights, the floats of the chosen entries. */
struct tare_edge tare_emit_channels(struct tare_emit *emit, const char *name, const struct tare_quant_layer *layer,
                                    const double *values, int64_t count);
/* The same for integers. */
struct tare_edge tare_emit_channel_ints(struct tare_emit *emit, const char *name, const struct tare_quant_layer *layer,
                                        const int32_t *values);
struct tare_edge tare_emit_channel_longs(struct tare_emit *emit, const char *name, const struct tare_quant_layer *layer,
                                         const int64_t *values);

/* The layer's integers as an int8 constant in its arranged shape; 4 bits are unpacked in the graph. Kept in
 * layer->integers: layers with the same weight have one constant. Of a stack of weights, layer->integers is the stored
 * stack (with 4 bits packed), and the chosen entries are returned. */
struct tare_edge tare_emit_weight(struct tare_emit *emit, struct tare_quant_layer *layer);
/* The same as numbers of the dtype of an activation: float8 is converted, which is exact; integers are as above. */
struct tare_edge tare_emit_operand(struct tare_emit *emit, struct tare_quant_layer *layer, int dtype);
/* The same as float32 numbers, each block of rows times its scales. */
struct tare_edge tare_emit_real_weight(struct tare_emit *emit, struct tare_quant_layer *layer);
/* Replaces `edge`, the output of the layer's op or of the bias and activation after it, by y, cast to the dtype of
 * `edge`; *out (may be NULL) is the new edge. */
tare_status tare_quant_replace(struct tare_edge *out, struct tare_emit *emit, struct tare_edge edge,
                               struct tare_edge y);

/* The sum of each output channel's integers; NULL: no memory. */
int32_t *tare_quant_weight_sums(struct tare_arena *arena, const struct tare_quant_layer *layer);
/* `factor` times the sum of each output channel's integers, as int32. */
struct tare_edge tare_emit_weight_sums(struct tare_emit *emit, const char *name, struct tare_arena *arena,
                                       const struct tare_quant_layer *layer, int32_t factor);

/* x without the axes, bits 1 << axis, which have one element. */
struct tare_edge tare_emit_squeezed(struct tare_emit *emit, const char *name, struct tare_edge x, unsigned axes);

#endif

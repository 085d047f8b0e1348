/* Builds the nodes of a quantized graph: those of graph/emit.h, and quantization and dequantization. */
#ifndef TARE_QUANT_EMIT_H
#define TARE_QUANT_EMIT_H

#include "graph/emit.h"
#include "calib/qparams.h"

/* The integers of a quantized activation: int16 if their greatest is beyond int8. */
int tare_quant_integer_dtype(const struct tare_qparams *params);
/* static-quantize: Cast<int8>(Round(Minimum(Maximum(x / scale + zero_point, qmin), qmax))), half to even, all in
 * float32, whatever float x is. */
struct tare_edge tare_emit_quantize(struct tare_emit *emit, struct tare_edge x, const struct tare_qparams *params);
/* The same with a scale and a zero point that are computed, both float32 scalars; `params` has the least and greatest
 * integer. */
struct tare_edge tare_emit_quantize_by(struct tare_emit *emit, struct tare_edge x, struct tare_edge scale,
                                       struct tare_edge zero_point, const struct tare_qparams *params);

#endif

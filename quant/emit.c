/* Quantizing and dequantizing in a graph. */
#include "quant/emit.h"

int tare_quant_integer_dtype(const struct tare_qparams *params) {
    return params->qmax > 127 ? TARE_DT_INT16 : TARE_DT_INT8;
}

struct tare_edge tare_emit_quantize(struct tare_emit *emit, struct tare_edge x, const struct tare_qparams *params) {
    const struct tare_edge scale = tare_emit_f32(emit, "quantize/scale", (float)params->scale);
    const struct tare_edge zero = tare_emit_f32(emit, "quantize/zero_point", (float)params->zero_point);
    return tare_emit_quantize_by(emit, x, scale, zero, params);
}

struct tare_edge tare_emit_quantize_by(struct tare_emit *emit, struct tare_edge x, struct tare_edge scale,
                                       struct tare_edge zero_point, const struct tare_qparams *params) {
    struct tare_edge y =
        tare_emit_binary(emit, "Div", "quantize/div", tare_emit_float(emit, "quantize/float", x), scale);
    y = tare_emit_binary(emit, "AddV2", "quantize/add", y, zero_point);
    y = tare_emit_binary(emit, "Maximum", "quantize/maximum", y,
                         tare_emit_f32(emit, "quantize/qmin", (float)params->qmin));
    y = tare_emit_binary(emit, "Minimum", "quantize/minimum", y,
                         tare_emit_f32(emit, "quantize/qmax", (float)params->qmax));
    y = tare_emit_unary(emit, "Round", "quantize/round", y);
    return tare_emit_cast(emit, "quantize/cast", y, tare_quant_integer_dtype(params));
}

/* What the methods share about the weights of a spot. */
#include "quant/weights.h"
#include "base/arena.h"

#include <math.h>
#include <string.h>

tare_status tare_quantize_spot_weight(struct tare_quantized_weight *out, struct tare_arena *arena,
                                      const struct tare_quant_spot *spot, const struct tare_quant_options *options) {
    return tare_quantize_weight_channels(out, arena, spot->weight, options->per_tensor ? 1 : spot->channels,
                                         options->per_tensor ? 1 : spot->inner, &tare_qscheme_weight);
}

tare_status tare_quant_arrange_weight(struct tare_tensor *out, const struct tare_quant_spot *spot,
                                      const struct tare_tensor *values) {
    struct tare_shape shape = values->shape;
    if (strcmp(spot->op->op, "DepthwiseConv2dNative") == 0) {
        shape.dims[3] *= shape.dims[2];
        shape.dims[2] = 1;
        return tare_tensor_share_as(out, values, &shape);
    }
    if (strcmp(spot->op->op, "MatMul") != 0 || !tare_node_bool(spot->op, "transpose_b", false)) {
        tare_tensor_share(out, values);
        return TARE_OK;
    }
    shape.dims[0] = values->shape.dims[1];
    shape.dims[1] = values->shape.dims[0];
    TARE_TRY(tare_tensor_new(out, values->dtype, &shape));
    for (int64_t k = 0; k < shape.dims[0]; k++)
        for (int64_t n = 0; n < shape.dims[1]; n++)
            TARE_DATA(int8_t, out)[k * shape.dims[1] + n] = TARE_CONST_DATA(int8_t, values)[n * shape.dims[0] + k];
    return TARE_OK;
}

static double sqnr_db(const struct tare_quant_spot *spot, const struct tare_quantized_weight *weight) {
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < weight->values.elements; i++) {
        double real = tare_tensor_get_f64(spot->weight, i);
        double back =
            TARE_CONST_DATA(int8_t, &weight->values)[i] * weight->scales[(i / weight->inner) % weight->channels];
        signal += real * real;
        noise += (real - back) * (real - back);
    }
    return noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}

void tare_quant_describe_weight(struct tare_quant_outcome *outcome, const struct tare_quant_spot *spot,
                                const struct tare_quantized_weight *weight) {
    outcome->weight_scale_min = outcome->weight_scale_max = weight->scales[0];
    for (int64_t c = 1; c < weight->channels; c++) {
        outcome->weight_scale_min = fmin(outcome->weight_scale_min, weight->scales[c]);
        outcome->weight_scale_max = fmax(outcome->weight_scale_max, weight->scales[c]);
    }
    outcome->weight_sqnr_db = sqnr_db(spot, weight);
    outcome->weight_elements = spot->weight->elements;
}

tare_status tare_quant_add_outcome(struct tare_quant_outcome **out, struct tare_quant_report *report,
                                   struct tare_arena *arena, const struct tare_quant_spot *spot) {
    struct tare_quant_outcome *grown = tare_arena_extend(arena, report->outcomes, report->count, 1, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    report->outcomes = grown;
    *out = &grown[report->count++];
    (*out)->function = spot->op->graph->name;
    (*out)->node = spot->op->name;
    (*out)->op = spot->op->op;
    (*out)->refused = spot->refused;
    return TARE_OK;
}

/* What decides that a layer stays in float, apart from its form (quant/layer.c) and its variable (quant/variables.c):
 * in this order the recipe or the caller, the method's kinds of ops, the operands, and the method's own conditions.
 * Each reason is the text that the report prints for the layer. Texts that end with a period are the converter's. */
#include "quant/float_layers.h"
#include "base/arena.h"

static const char *check_kind(const struct tare_quant_work *work, const struct tare_quant_layer *layer, bool by_rule) {
    const struct tare_quant_method *method = layer->setting.method;
    const unsigned bit = 1u << layer->kind;
    if (method->kinds & bit) return NULL;
    if (layer->kind == TARE_KIND_DEPTHWISE) {
        if ((by_rule || work->options->depthwise) && (method->kinds_on_request & bit)) return NULL;
        return "DepthwiseConv2D doesn't get any benefit of quantization in XLA.";
    }
    if (by_rule && (method->kinds_on_request & bit)) return NULL;
    if (layer->kind == TARE_KIND_GATHER) return "Weight-only op is skipped. (quantize it by a recipe rule)";
    return tare_arena_printf(
        work->arena, "method %s does not quantize this op by default (quantize it by a recipe rule)", method->name);
}

static const char *check_operands(const struct tare_quant_work *work, const struct tare_quant_layer *layer,
                                  bool by_rule) {
    enum { SMALLEST_TABLE = 1024 };
    const struct tare_quant_method *method = layer->setting.method;
    int64_t least = work->options->min_elements ? work->options->min_elements : method->min_elements;
    if (!layer->weight) {
        if (!method->takes_two_inputs)
            return "Non-constant weights are not supported at the moment, except matmul and einsum.";
        if (!by_rule && !work->options->two_inputs)
            return "its second input is not constant (enable with --two-inputs)";
        return NULL;
    }
    if (layer->kind == TARE_KIND_GATHER && work->options->min_table_elements) least = work->options->min_table_elements;
    if (layer->kind == TARE_KIND_GATHER && !least) least = SMALLEST_TABLE;
    return layer->weight->elements < least ? "the weight has too few elements" : NULL;
}

const char *tare_quant_float_reason(const struct tare_quant_work *work, struct tare_quant_layer *layer, bool by_rule) {
    const struct tare_quant_method *method = layer->setting.method;
    const char *reason;
    if (!method) return "left in float on request";
    if (work->options->accepts && !work->options->accepts(work->options->accepts_arg, layer->op->graph, layer->op))
        return "left in float on request";
    reason = check_kind(work, layer, by_rule);
    if (!reason) reason = check_operands(work, layer, by_rule);
    if (!reason && method->plan) reason = method->plan(work, layer);
    return reason;
}

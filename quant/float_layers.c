/* What decides that a layer stays in float, apart from its form (quant/layer.c) and its variable (quant/variables.c):
 * in this order the recipe or the caller, a conversion for the TPU, the method's kinds of ops, the operands, and the
 * method's own conditions. Each reason is the text that the report prints for the layer. Texts that end with a period
 * are the converter's. */
#include "quant/float_layers.h"
#include "base/arena.h"

/* The ops of a quantized layer would have to join the cluster, and casts to bfloat16 have been inserted around it. */
static bool is_on_tpu(const struct tare_quant_layer *layer) {
    return tare_node_find_attr(layer->op, "_tpu_replicate") != NULL;
}

static tare_status check_kind(const char **reason, const struct tare_quant_work *work,
                              const struct tare_quant_layer *layer, bool by_rule) {
    const struct tare_quant_method *method = layer->setting.method;
    const unsigned bit = 1u << layer->kind;
    const bool requested = by_rule || (layer->kind == TARE_KIND_DEPTHWISE && work->options->depthwise);
    if ((method->kinds & bit) || (requested && (method->kinds_on_request & bit))) return TARE_OK;
    if (layer->kind == TARE_KIND_DEPTHWISE)
        *reason = "DepthwiseConv2D doesn't get any benefit of quantization in XLA.";
    else if (layer->kind == TARE_KIND_GATHER)
        *reason = "Weight-only op is skipped. (quantize it by a recipe rule)";
    else
        *reason = tare_arena_printf(
            work->arena, "method %s does not quantize this op by default (quantize it by a recipe rule)", method->name);
    return *reason ? TARE_OK : TARE_NO_MEMORY;
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

tare_status tare_quant_float_reason(const char **reason, const struct tare_quant_work *work,
                                    struct tare_quant_layer *layer, bool by_rule) {
    const struct tare_quant_method *method = layer->setting.method;
    const struct tare_quant_options *options = work->options;
    *reason = NULL;
    if (!method || (options->accepts && !options->accepts(options->accepts_arg, layer->op->graph, layer->op))) {
        *reason = "left in float on request";
        return TARE_OK;
    }
    if (is_on_tpu(layer)) {
        *reason = "it is part of a TPU computation (quantize the model before it is converted)";
        return TARE_OK;
    }
    TARE_TRY(check_kind(reason, work, layer, by_rule));
    if (!*reason) *reason = check_operands(work, layer, by_rule);
    return *reason || !method->plan ? TARE_OK : method->plan(reason, work, layer);
}

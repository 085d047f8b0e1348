/* What decides that a layer stays in float, apart from its form (quant/layer.c) and its variable (quant/variables.c):
 * in this order the recipe or the caller, a conversion for the TPU, the method's kinds of ops, the operands, and the
 * method's own conditions. Each reason is the text that the report prints for the layer. Texts that end with a period
 * are the converter's. */
#include "quant/float_layers.h"
#include "base/arena.h"
#include "quant/layers/uneven_rows.h"
#include "quant/selection/emit_selection.h"

#include <string.h>

/* The ops of a quantized layer would have to join the cluster, and casts to bfloat16 have been inserted around it. */
static bool is_on_tpu(const struct tare_quant_layer *layer) {
    return tare_node_find_attr(layer->op, "_tpu_replicate") != NULL;
}

/* One group per channel. Other layouts than TensorFlow's, which JAX exports, are XlaConvV2. */
static bool is_depthwise(const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    if (layer->kind == TARE_KIND_DEPTHWISE) return true;
    return layer->kind == TARE_KIND_XLA_CONV && p->groups > 1 && tare_quant_operand(layer)->dims[p->spatial] == 1;
}

/* A depthwise convolution must be among the kinds also if the op is a general convolution. A product with a weight that
 * is chosen from a stack is that of a matrix and its weight, whatever op multiplies batches of them. */
static bool includes(unsigned kinds, const struct tare_quant_layer *layer) {
    const enum tare_quant_kind kind =
        layer->selection && tare_quant_multiplies_arrays(layer->kind) ? TARE_KIND_MATMUL : layer->kind;
    const unsigned bits = 1u << kind | (is_depthwise(layer) ? 1u << TARE_KIND_DEPTHWISE : 0);
    return (kinds & bits) == bits;
}

static tare_status check_kind(const char **reason, const struct tare_quant_work *work,
                              const struct tare_quant_layer *layer, bool by_rule) {
    const struct tare_quant_method *method = layer->setting.method;
    const bool depthwise = is_depthwise(layer), requested = by_rule || (depthwise && work->plan->depthwise);
    if (includes(method->kinds, layer)) return TARE_OK;
    if (requested && includes(method->kinds | method->kinds_on_request, layer)) return TARE_OK;
    if (depthwise)
        *reason = "DepthwiseConv2D doesn't get any benefit of quantization in XLA.";
    else if (layer->kind == TARE_KIND_GATHER)
        *reason = "Weight-only op is skipped. (quantize it by a recipe rule)";
    else
        *reason = tare_arena_printf(
            work->arena, "method %s does not quantize this op by default (quantize it by a recipe rule)", method->name);
    return *reason ? TARE_OK : TARE_NO_MEMORY;
}

/* Weights that are chosen from a stack exist in the op set XLA, where their bits can be unpacked. */
static const char *check_selection(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const struct tare_quant_setting *setting = &layer->setting;
    if (!layer->selection) return NULL;
    if (work->plan->op_set != TARE_OP_SET_XLA)
        return "its weight is chosen from a stack, which only the op set xla has (omit --op-set)";
    if ((setting->bits == 4 || setting->granularity == TARE_PER_BLOCK || layer->selection->reshapes) &&
        !tare_quant_has_entry_shape(layer->selection))
        return "the sizes of the index that chooses its weight are not known (needed for 4 bits and for blocks)";
    return NULL;
}

/* The functions and ops of the other op sets have channels last. */
static const char *check_layout(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const bool first = strncmp(tare_node_string(layer->op, "data_format", "NHWC"), "NC", 2) == 0;
    return first && work->plan->op_set != TARE_OP_SET_XLA ? "data_format must be NHWC" : NULL;
}

static const char *check_size(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const bool is_table = layer->kind == TARE_KIND_GATHER;
    int64_t least = work->plan->min_elements ? work->plan->min_elements : layer->setting.method->min_elements;
    if (is_table && work->plan->min_table_elements) least = work->plan->min_table_elements;
    if (is_table && !least) least = TARE_LEAST_WEIGHT;
    return layer->weight->elements < least
               ? "the weight has too few elements (tare quantize --min-elements 1 quantizes it)"
               : NULL;
}

static const char *check_operands(const struct tare_quant_work *work, const struct tare_quant_layer *layer,
                                  bool by_rule) {
    const struct tare_quant_method *method = layer->setting.method;
    const char *reason;
    if (!layer->weight) {
        if (layer->no_weight && (!method->takes_two_inputs || (!by_rule && !work->plan->two_inputs)))
            return layer->no_weight;
        if (!method->takes_two_inputs && tare_quant_multiplies_arrays(layer->kind))
            return "both inputs are activations, and the method quantizes products with constant weights alone (method "
                   "static with --two-inputs does)";
        if (!method->takes_two_inputs)
            return "Non-constant weights are not supported at the moment, except matmul and einsum.";
        if (!by_rule && !work->plan->two_inputs)
            return "its second input is not constant (enable with --two-inputs, in converter options "
                   "enable_two_input_tensors: true)";
        return NULL;
    }
    if (layer->kind == TARE_KIND_GATHER && layer->no_weight && !by_rule) return layer->no_weight;
    reason = check_size(work, layer);
    return reason ? reason : check_selection(work, layer);
}

/* Rows of one scale that divide the matrices of a weight evenly; 0: there are none. */
static int64_t block_for(int64_t rows) {
    static const int64_t blocks[] = { 256, 128, 64, 32 };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (rows && rows % blocks[i] == 0) return blocks[i];
    return 0;
}

/* A sum over several matrices keeps those with small weights: by scales for blocks of their rows, or in float. float8
 * numbers have exponents of their own. */
static tare_status check_matrices(const char **reason, const struct tare_quant_work *work,
                                  struct tare_quant_layer *layer) {
    const double LEAST = 15; /* dB */
    struct tare_quant_setting *setting = &layer->setting;
    struct tare_quant_uneven uneven;
    if (!layer->weight || setting->format || setting->granularity == TARE_PER_BLOCK) return TARE_OK;
    TARE_TRY(tare_quant_find_uneven(&uneven, work->arena, layer));
    if (uneven.sqnr >= LEAST) return TARE_OK;
    if (setting->method->takes_blocks && work->plan->op_set == TARE_OP_SET_XLA && block_for(uneven.rows)) {
        setting->granularity = TARE_PER_BLOCK;
        setting->block = block_for(uneven.rows);
        return TARE_OK;
    }
    *reason =
        tare_arena_printf(work->arena,
                          "it sums over %lld matrices with one scale for each output channel, which leaves the "
                          "worst one a weight SQNR of %.1f dB (expected %.0f or more; a recipe rule quantizes it)",
                          (long long)uneven.count, uneven.sqnr, LEAST);
    return *reason ? TARE_OK : TARE_NO_MEMORY;
}

/* The entries of a table are read in whole blocks; other tables have a scale per entry. */
static void fit_table(struct tare_quant_layer *layer) {
    struct tare_quant_setting *setting = &layer->setting;
    if (layer->kind == TARE_KIND_GATHER && setting->granularity == TARE_PER_BLOCK &&
        (setting->block >= layer->product.rows || layer->product.rows % setting->block))
        setting->granularity = TARE_PER_CHANNEL;
}

tare_status tare_quant_float_reason(const char **reason, const struct tare_quant_work *work,
                                    struct tare_quant_layer *layer, bool by_rule) {
    const struct tare_quant_method *method = layer->setting.method;
    const struct tare_quant_plan *plan = work->plan;
    *reason = NULL;
    if (!method || (plan->accepts && !plan->accepts(plan->accepts_arg, layer->op->graph, layer->op))) {
        *reason = "left in float on request";
        return TARE_OK;
    }
    if (is_on_tpu(layer)) {
        *reason = "it is part of a TPU computation (quantize the model before it is converted)";
        return TARE_OK;
    }
    TARE_TRY(check_kind(reason, work, layer, by_rule));
    if (!*reason) *reason = check_operands(work, layer, by_rule);
    if (!*reason) *reason = check_layout(work, layer);
    if (!*reason && !by_rule) TARE_TRY(check_matrices(reason, work, layer));
    fit_table(layer);
    return *reason || !method->plan ? TARE_OK : method->plan(reason, work, layer);
}

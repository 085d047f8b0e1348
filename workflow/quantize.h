/* Quantizing a model as users put it: the options as rows, for `tare quantize` and for the texts of the public
 * functions, and the work that follows from them. */
#ifndef TARE_WORKFLOW_QUANTIZE_H
#define TARE_WORKFLOW_QUANTIZE_H

#include "base/option.h"
#include "convert/pipeline.h"
#include "convert/prepared.h"
#include "eval/explain.h"

/* What holds for layers whatever their method: the same of `tare quantize` and `tare compare`. */
struct tare_layer_options {
    const char *recipe;
    int op_set, activation_bits;
    int64_t min_elements;
    bool depthwise, two_inputs, integer_adds, symmetric, full_range;
};

struct tare_quantizing_options {
    const char *method, *granularity, *algorithm, *passes;
    struct tare_layer_options layers;
    int bits;
    bool keep_variables;
};

extern const char *const tare_op_set_names[]; /* in the order of tare_quant_op_set; ends with NULL */

#define TARE_LAYER_ROW(type, member, kind_, field)                                                                     \
    .kind = TARE_OPTION_##kind_, .offset = offsetof(type, member) + offsetof(struct tare_layer_options, field)
/* The rows, for options that have a struct tare_layer_options `member`. */
#define TARE_LAYER_OPTIONS(type, member)                                                                               \
    { .name = "full_range",                                                                                            \
      TARE_LAYER_ROW(type, member, FLAG, full_range),                                                                  \
      .help = "weights may use -128 (-8 of 4 bits), not only -127 … 127" },                                            \
        { .name = "op_set",                                                                                            \
          TARE_LAYER_ROW(type, member, CHOICE, op_set),                                                                \
          .fallback = "xla",                                                                                           \
          .choices = tare_op_set_names,                                                                                \
          .help = "ops of the quantized graph: XlaConvV2 and XlaDotV2, the UniformQuantized ones, or functions of "    \
                  "TensorFlow's own ops" },                                                                            \
        { .name = "activation_bits",                                                                                   \
          TARE_LAYER_ROW(type, member, INT, activation_bits),                                                          \
          .fallback = "8",                                                                                             \
          .min = 8,                                                                                                    \
          .max = 16,                                                                                                   \
          .help = "of activations in static, 8 or 16; 16 take two products of bytes (op set xla)" },                   \
        { .name = "symmetric",                                                                                         \
          TARE_LAYER_ROW(type, member, FLAG, symmetric),                                                               \
          .help = "ranges of activations reach as far below zero as above it" },                                       \
        { .name = "depthwise",                                                                                         \
          TARE_LAYER_ROW(type, member, FLAG, depthwise),                                                               \
          .help = "quantize depthwise convolutions, too (a TPU gains nothing by it)" },                                \
        { .name = "two_inputs",                                                                                        \
          TARE_LAYER_ROW(type, member, FLAG, two_inputs),                                                              \
          .help = "quantize products of two activations, as in attention (static)" },                                  \
        { .name = "integer_adds",                                                                                      \
          TARE_LAYER_ROW(type, member, FLAG, integer_adds),                                                            \
          .help = "residual sums between static layers are sums of integers, with the scale of the sum" },             \
        { .name = "min_elements",                                                                                      \
          TARE_LAYER_ROW(type, member, INT64, min_elements),                                                           \
          .min = 0,                                                                                                    \
          .max = 1e15,                                                                                                 \
          .help = "smallest weight to quantize (default: 1024 for weight_only, dynamic and tables, else all)" },       \
    {                                                                                                                  \
        .name = "recipe", TARE_LAYER_ROW(type, member, STRING, recipe), .placeholder = "FILE",                         \
        .help = "rules for single layers, a line each: op=MatMul name=.*dense.* -> weight_only bits=4"                 \
    }

/* The rows, for options that have a struct tare_quantizing_options `member`. */
#define TARE_QUANTIZING_ROW(type, member, kind_, field)                                                                \
    .kind = TARE_OPTION_##kind_, .offset = offsetof(type, member) + offsetof(struct tare_quantizing_options, field)
#define TARE_QUANTIZING_OPTIONS(type, member)                                                                          \
    { .name = "method",                                                                                                \
      TARE_QUANTIZING_ROW(type, member, STRING, method),                                                               \
      .fallback = "static",                                                                                            \
      .placeholder = "M",                                                                                              \
      .help = "static (int8 weights and activations), dynamic (activations while the model runs) or weight_only; "     \
              "float: only what the recipe says" },                                                                    \
        { .name = "bits",                                                                                              \
          TARE_QUANTIZING_ROW(type, member, INT, bits),                                                                \
          .fallback = "8",                                                                                             \
          .min = 4,                                                                                                    \
          .max = 8,                                                                                                    \
          .help = "of weights, 8 or 4; 4 are packed two to a byte" },                                                  \
        { .name = "granularity",                                                                                       \
          TARE_QUANTIZING_ROW(type, member, STRING, granularity),                                                      \
          .fallback = "per_channel",                                                                                   \
          .placeholder = "G",                                                                                          \
          .help = "what shares a scale of weights: per_tensor, per_channel, or per_block:N (32, 64, 128 or 256 input " \
                  "rows; weight_only)" },                                                                              \
        { .name = "algorithm",                                                                                         \
          TARE_QUANTIZING_ROW(type, member, STRING, algorithm),                                                        \
          .fallback = "min_max",                                                                                       \
          .placeholder = "A",                                                                                          \
          .help = "how ranges follow from what was counted: min_max, average_min_max, percentile[:p=99.99], entropy, " \
                  "mse, …" },                                                                                          \
        { .name = "passes",                                                                                            \
          TARE_QUANTIZING_ROW(type, member, STRING, passes),                                                           \
          .placeholder = "P,…",                                                                                        \
          .help = "accuracy passes: equalization, smooth_quant[:alpha=0.5], weight_clipping, gptq[:damp=0.01], "       \
                  "bias_correction" },                                                                                 \
        TARE_LAYER_OPTIONS(type, member.layers), {                                                                     \
        .name = "keep_variables", TARE_QUANTIZING_ROW(type, member, FLAG, keep_variables),                             \
        .help = "weights stay variables of the checkpoint (large models keep them of themselves)"                      \
    }

/* A quantization that is to be made. */
struct tare_quantizing {
    struct tare_quantization quantization;
    struct tare_algorithm_choice algorithm;
};

/* Puts the options into *out, beside what is there; the recipe is read into the arena. */
tare_status tare_layer_options_apply(struct tare_quant_options *out, struct tare_arena *arena,
                                     const struct tare_layer_options *options) TARE_WARN_UNUSED;
/* Reads the options and their recipe. Memory is the arena's and the options'. */
tare_status tare_quantizing_read(struct tare_quantizing *out, struct tare_arena *arena,
                                 const struct tare_quantizing_options *options) TARE_WARN_UNUSED;
/* What was read already, of converter options. */
tare_status tare_quantizing_of(struct tare_quantizing *out,
                               const struct tare_quantization *quantization) TARE_WARN_UNUSED;
/* Some method, rule or accuracy pass asks for a calibration; `channels`: for one with statistics per channel; for one
 * with Hessians, which samples alone give. */
bool tare_quantizing_needs_hessians(const struct tare_quantizing *quantizing);
bool tare_quantizing_needs_samples(const struct tare_quantizing *quantizing, bool *channels);
/* Brings a loaded model to the form that is calibrated and quantized. */
tare_status tare_quantizing_prepare(struct tare_model *model, bool keep_variables) TARE_WARN_UNUSED;
/* Quantizes a prepared model. `calibration` may be NULL where none is needed. The report's texts are the arena's. */
tare_status tare_quantizing_run(struct tare_quant_report *report, struct tare_arena *arena, struct tare_model *model,
                                const struct tare_quantizing *quantizing,
                                struct tare_calibration *calibration) TARE_WARN_UNUSED;

/* What became of each layer, by the calibration that it was quantized with (NULL: none). */
tare_status tare_quantizing_explain(struct tare_explanation_list *out, struct tare_arena *arena,
                                    const struct tare_quant_report *report, const struct tare_quantizing *quantizing,
                                    const struct tare_calibration *calibration) TARE_WARN_UNUSED;

#endif

/* The option tables of workflow/requests.h. */
#include "workflow/requests.h"
#include "eval/measure.h"
#include "tpu/chips.h"

static const char *const observed[] = { "quantizable", "all", NULL };
static const char *const compared_methods[] = { TARE_QUANT_METHOD_WORDS "bfloat16", NULL }; /* for completion */
#define TARE_ROW_STRUCT struct tare_calibrate_request
const struct tare_option tare_calibrate_rows[] = {
    { TARE_ROW("signature", STRING, signature), .placeholder = "S",
      .help = "signature of the files given without SIGNATURE= (default: serving_default, or the only one)" },
    { TARE_ROW("threads", INT, threads), .min = 0, .max = 1024,
      .help = "number of worker threads (default: one per processor; one for a stateful model)" },
    { TARE_ROW("batch", INT, batch), .min = 0, .max = 65536,
      .help = "maximum batch size, used only where it does not change results (default: automatic)" },
    { TARE_ROW("limit", INT64, limit), .min = 0, .max = 1e15,
      .help = "use only the first N records of each signature (default: all)" },
    { TARE_ROW("sample", INT64, sample), .min = 0, .max = 1e15,
      .help = "use N records of each signature, drawn at random; compare --rest evaluates with the others" },
    { TARE_ROW("seed", INT64, seed), .fallback = "1", .min = 0, .max = 1e15, .needs = "sample",
      .help = "seed of --sample: the same records for the same number and files" },
    { TARE_ROW("observe", CHOICE, observe), .choices = observed,
      .help = "tensors to observe: those that quantization needs, or every floating-point tensor" },
    { TARE_ROW("channels", FLAG, channels), .help = "also collect statistics per channel (last dimension)" },
    { TARE_ROW("max-bad", INT64, max_bad), .min = 0, .max = 1e15,
      .help = "skip up to N invalid records of each signature and list them in the calibration file (default: 0)" },
    { TARE_ROW("function", STRING, function), .placeholder = "F",
      .help = "function to calibrate instead of a signature, given by alias, path (layer.call) or name" },
    { 0 },
};
#undef TARE_ROW_STRUCT

#define TARE_ROW_STRUCT struct tare_mixed_precision_request
static const struct tare_option target_rows[] = {
    { TARE_ROW("max-drop", STRING, max_drop), .placeholder = "POINTS",
      .help = "choose the precision of each layer (given bits, 8-bit weights, 16-bit activations, float) so that the "
              "measure loses at most POINTS: percentage points, hundredths of AUC and R², percent of an error" },
    { TARE_ROW("min-sqnr", STRING, min_sqnr), .placeholder = "DB",
      .help =
          "choose the precision of each layer for an SQNR of at least DB decibels at every output; needs no labels" },
    { TARE_ROW("max-mae", STRING, max_mae), .placeholder = "VALUE",
      .help =
          "choose the precision of each layer for a mean absolute error of at most VALUE against the expected values "
          "(--target)" },
    { TARE_ROW("max-size", STRING, max_size), .placeholder = "SIZE",
      .help = "maximum size of the weights: bytes, 300kB, 1.5MB, or a percentage of the float model's, as 60%" },
    { 0 },
};
#undef TARE_ROW_STRUCT

#define TARE_ROW_STRUCT struct tare_quantize_request
const struct tare_option tare_quantize_rows[] = {
    TARE_OPTION_NESTED(struct tare_quantize_request, plan, tare_plan_rows),
    { TARE_ROW("data", LIST, data), .placeholder = "FILE",
      .help = "representative samples for calibration: TFRecord files or quoted patterns" },
    TARE_OPTION_NESTED(struct tare_quantize_request, records, tare_data_rows),
    { TARE_ROW("calibration", STRING, calibration), .placeholder = "FILE",
      .help = "calibration file written by 'tare calibrate', instead of --data" },
    { TARE_ROW("signature", STRING, signature), .placeholder = "S",
      .help = "signature that the samples belong to (default: serving_default)" },
    { TARE_ROW("limit", INT64, limit), .min = 0, .max = 1e15, .needs = "data input",
      .help = "calibrate with only the first N records (default: all)" },
    { TARE_ROW("auto", FLAG, automatic),
      .help = "choose algorithm, accuracy passes and per-layer overrides automatically by measuring SQNR on the "
              "samples, and the task's measure if they have labels or expected values (--label, --target, --metric)" },
    TARE_OPTION_NESTED(struct tare_quantize_request, target, target_rows),
    { TARE_ROW("eval", LIST, eval), .placeholder = "FILE", .needs = "max-drop min-sqnr max-mae max-size",
      .help = "records to evaluate a target (--max-drop, --min-sqnr) with" },
    { TARE_ROW("label", STRING, label), .fallback = "label", .placeholder = "KEY", .needs = "eval auto",
      .help = "key of the class index in the records of --eval, and of --data for --auto" },
    { TARE_ROW("target", STRING, target_key), .placeholder = "KEY", .needs = "eval auto",
      .help = "key of the expected values in the records of --eval, for regression: --max-mae, and --max-drop in "
              "percent" },
    { TARE_ROW("metric", CHOICE, metric), .choices = tare_metric_names, .fallback = "auto", .needs = "eval auto",
      .help = "measure that --max-drop applies to; auto: inferred from the labels or expected values" },
    TARE_MARGIN_OPTION(struct tare_quantize_request, margin, "auto"),
    { TARE_ROW("write-recipe", STRING, write_recipe), .placeholder = "FILE",
      .help = "also write the plan as a recipe, with the rules that --auto or a target search produced" },
    { TARE_ROW("for", CHOICE, chip), .fallback = "any", .choices = tare_tpu_target_names,
      .help = "quantize only layers that become faster on this Cloud TPU chip: by Google's compiler where it is "
              "installed (tare check), otherwise by the estimate; the rest is computed in bfloat16 there" },
    { TARE_ROW("batch", INT64, batch), .fallback = "8", .min = 1, .max = 65536, .needs = "for check stablehlo",
      .help = "batch size on the chip" },
    { TARE_ROW("allow-unquantized", FLAG, allow_unquantized),
      .help = "write the model even if no op could be quantized" },
    { 0 },
};
#undef TARE_ROW_STRUCT

#define TARE_ROW_STRUCT struct tare_compare_request
const struct tare_option tare_compare_rows[] = {
    { TARE_ROW("with", LIST, with), .placeholder = "OTHER",
      .help = "also compare the SavedModel in the directory OTHER, converted or quantized, with MODEL; only the given "
              "models are compared unless --methods is given" },
    { TARE_ROW("methods", STRING, methods), .words = compared_methods,
      .fallback_text = "float,static,static+bfloat16,weight_only; float with --with; fp8 instead of static for "
                       "chips that are faster with it",
      .placeholder = "M,…",
      .help = "methods to compare; append :SETTING=VALUE to set bits, block or another option of quantize, "
              "+bfloat16 to compute the remaining float ops in bfloat16, or +PASS to run an accuracy pass (--passes): "
              "weight_only:bits=4:block=32+gptq" },
    { TARE_ROW("algorithms", STRING, algorithms), .words = tare_algorithm_names, .fallback_text = "min_max",
      .placeholder = "A,…", .help = "calibration algorithms to compare, with optional parameters: percentile:p=99.9" },
    { TARE_ROW("granularities", STRING, granularities), .words = tare_quant_granularity_names, .placeholder = "G,…",
      .fallback_text = "per_channel; per_tensor in op set uniform_quantized",
      .help = "weight quantization granularities to compare: per_channel, per_tensor, per_block:N" },
    { TARE_ROW("signature", STRING, signature), .placeholder = "S",
      .help = "signature to run (default: serving_default)" },
    { TARE_ROW("label", STRING, label), .fallback = "label", .placeholder = "KEY",
      .help = "record key of the expected class index, or of the expected value of the output of that name" },
    { TARE_ROW("target", STRING, target_key), .placeholder = "KEY",
      .help = "record key of the expected values of the first output, for regression: MAE, RMSE and R² are measured" },
    { TARE_ROW("metric", CHOICE, metric), .fallback = "auto", .choices = tare_metric_names,
      .help = "measure for ranking and the recommendation; auto follows from labels and expected values" },
    TARE_MARGIN_OPTION(struct tare_compare_request, margin, NULL),
    TARE_OPTION_NESTED_WITHOUT(struct tare_compare_request, plan, tare_plan_rows,
                               "method granularity algorithm passes keep-variables"),
    { TARE_ROW("limit", INT64, limit), .min = 0, .max = 1e15,
      .help = "evaluate only the first N records (default: all)" },
    { TARE_ROW("rest", FLAG, rest),
      .help = "evaluate only with records that the calibration has not used (--calibration)" },
    { TARE_ROW("batch", INT, batch), .fallback = "64", .min = 1, .max = 65536,
      .help = "maximum batch size; less where the activations of a batch would not fit into the cache" },
    { TARE_ROW("sensitivity", FLAG, sensitivity),
      .help = "also measure the error that each layer contributes under the first quantizing method" },
    { TARE_ROW("sensitivity-limit", INT64, sensitivity_limit), .fallback = "200", .min = 1, .max = 1e15,
      .needs = "sensitivity write-recipe max-drop min-sqnr max-mae max-size",
      .help = "number of records for the sensitivity measurement" },
    { TARE_ROW("chip", CHOICE, chip), .fallback = TARE_DEFAULT_CHIP, .choices = tare_tpu_chip_names,
      .help = "Cloud TPU generation for time estimates" },
    { TARE_ROW("chip-batch", INT64, chip_batch), .fallback = "8", .min = 1, .max = 65536,
      .help = "batch size for time estimates" },
    { TARE_ROW("compile", FLAG, compile),
      .help = "compile each model for the chip and batch size with Google's TPU compiler, as tare check does, and "
              "recommend the fastest one within the margin" },
    { TARE_ROW("auto", FLAG, automatic),
      .help = "also evaluate automatically chosen settings for the first quantizing method: algorithm, accuracy passes "
              "and per-layer overrides" },
    TARE_OPTION_NESTED(struct tare_compare_request, target, target_rows),
    { TARE_ROW("threads", INT, threads), .min = 0, .max = 1024,
      .help = "number of worker threads (default: one per processor)" },
    { 0 },
};
#undef TARE_ROW_STRUCT

/* The option tables of workflow/requests.h. */
#include "workflow/requests.h"
#include "quant/method.h"

static const char *const observed[] = { "quantizable", "all", NULL };
/* In the order of tare_tpu_chips. */
static const char *const chips[] = { "v2", "v3", "v4", "v5e", "v5p", "v6e", NULL };
const char *const tare_metric_names[] = { "auto",           "top1",     "auc",  "mae",  "rmse", "r2", "iou",
                                          "pixel_accuracy", "sequence", "psnr", "ssim", "sqnr", NULL };
static const char *const weight_bits[] = { "4", "8", NULL };
static const char *const activation_bits[] = { "8", "16", NULL };

/* For completion only: the modules below check the names. */
static const char *const methods[] = { "float", "static", "dynamic", "weight_only", NULL };
static const char *const compared_methods[] = { "float", "static", "dynamic", "weight_only", "bfloat16", NULL };
static const char *const algorithms[] = { "min_max", "average_min_max", "percentile", "entropy",
                                          "mse",     "mse_symmetric",   NULL };
static const char *const granularities[] = {
    "per_channel", "per_tensor", "per_block:32", "per_block:64", "per_block:128", "per_block:256", NULL
};
static const char *const passes[] = {
    "equalization", "smooth_quant", "weight_clipping", "gptq", "reconstruction", "bias_correction", NULL
};

#define ROW(row_name, row_kind, member)                                                                                \
    .name = row_name, .kind = TARE_OPTION_##row_kind, .offset = offsetof(struct tare_layer_request, member)
const struct tare_option tare_layer_rows[] = {
    { ROW("full-range", FLAG, full_range),
      .help = "use the full integer range for weights, -128 … 127 (4 bits: -8 … 7), instead of -127 … 127" },
    { ROW("op-set", CHOICE, op_set), .fallback = "xla", .choices = tare_quant_op_set_names,
      .help = "ops of the quantized graph: XlaConvV2 and XlaDotV2, UniformQuantized ops, or functions of standard "
              "TensorFlow ops" },
    { ROW("activation-bits", INT, activation_bits), .choices = activation_bits,
      .help = "bit width of activations for method static; 16 computes two int8 products per layer (op set xla; "
              "default: 8, and 16 for layers whose output 8 bits would make too noisy)" },
    { ROW("symmetric", FLAG, symmetric), .help = "use symmetric activation ranges" },
    { ROW("depthwise", FLAG, depthwise), .help = "also quantize depthwise convolutions (no speedup on a TPU)" },
    { ROW("two-inputs", FLAG, two_inputs),
      .help = "also quantize products of two activations, as in attention (method static)" },
    { ROW("integer-adds", FLAG, integer_adds),
      .help = "compute residual additions between static layers in integers, with the scale of the sum" },
    { ROW("min-elements", INT64, min_elements), .min = 0, .max = 1e15,
      .help = "quantize only weights with at least N elements (default: 1024 for weight_only, dynamic and embedding "
              "tables, otherwise all)" },
    { ROW("reconstruction-seconds", INT64, reconstruction_seconds), .fallback = "600", .min = 0, .max = 1e9,
      .help = "time limit of the accuracy pass reconstruction for one model; blocks not completed by then are rounded "
              "layer by layer (0: no limit)" },
    { ROW("recipe", STRING, recipe), .placeholder = "FILE",
      .help = "read per-layer rules from FILE, one per line: op=MatMul name=.*dense.* -> weight_only bits=4" },
    { 0 },
};
#undef ROW

#define ROW(row_name, row_kind, member)                                                                                \
    .name = row_name, .kind = TARE_OPTION_##row_kind, .offset = offsetof(struct tare_quantize_request, member)
const struct tare_option tare_quantize_rows[] = {
    { ROW("method", STRING, method), .words = methods, .fallback = "static", .placeholder = "M",
      .help =
          "quantization method: static (int8 weights and activations), dynamic (activations quantized at run time), "
          "weight_only, or float (quantize only the layers that the recipe names)" },
    { ROW("bits", INT, bits), .fallback = "8", .choices = weight_bits,
      .help = "bit width of weights; 4-bit weights are packed two to a byte" },
    { ROW("granularity", STRING, granularity), .words = granularities, .placeholder = "G",
      .fallback_text = "per_channel; per_tensor with --op-set uniform_quantized",
      .help = "weight quantization granularity: per_tensor, per_channel, or per_block:N with N = 32, 64, 128 or 256 "
              "input rows (weight_only)" },
    { ROW("algorithm", STRING, algorithm), .words = algorithms, .fallback = "min_max", .placeholder = "A",
      .help = "calibration algorithm that chooses activation ranges: min_max, average_min_max, percentile[:p=99.99], "
              "entropy, mse, …" },
    { ROW("passes", STRING, passes), .words = passes, .placeholder = "P,…",
      .help = "accuracy passes to run: equalization, smooth_quant[:alpha=0.5], weight_clipping, gptq[:damp=0.01], "
              "reconstruction[:iterations=500], bias_correction" },
    TARE_OPTION_NESTED(struct tare_quantize_request, layers, tare_layer_rows),
    { ROW("keep-variables", FLAG, keep_variables),
      .help = "keep quantized weights as checkpoint variables (automatic for large models)" },
    { 0 },
};
#undef ROW

#define ROW(row_name, row_kind, member)                                                                                \
    .name = row_name, .kind = TARE_OPTION_##row_kind, .offset = offsetof(struct tare_calibrate_request, member)
const struct tare_option tare_calibrate_rows[] = {
    { ROW("signature", STRING, signature), .placeholder = "S",
      .help = "signature of the files given without SIGNATURE= (default: serving_default, or the only one)" },
    { ROW("threads", INT, threads), .min = 0, .max = 1024,
      .help = "number of worker threads (default: one per processor; one for a stateful model)" },
    { ROW("batch", INT, batch), .min = 0, .max = 65536,
      .help = "maximum batch size, used only where it does not change results (default: automatic)" },
    { ROW("limit", INT64, limit), .min = 0, .max = 1e15,
      .help = "use only the first N records of each signature (default: all)" },
    { ROW("observe", CHOICE, observe), .choices = observed,
      .help = "tensors to observe: those that quantization needs, or every floating-point tensor" },
    { ROW("channels", FLAG, channels), .help = "also collect statistics per channel (last dimension)" },
    { ROW("max-bad", INT64, max_bad), .min = 0, .max = 1e15,
      .help = "skip up to N invalid records of each signature and list them in the calibration file (default: 0)" },
    { 0 },
};
#undef ROW

#define ROW(row_name, member)                                                                                          \
    .name = row_name, .kind = TARE_OPTION_STRING, .offset = offsetof(struct tare_mixed_precision_request, member)
const struct tare_option tare_mixed_precision_rows[] = {
    { ROW("max-drop", max_drop), .placeholder = "POINTS",
      .help = "choose the precision of each layer (given bits, 8-bit weights, 16-bit activations, float) so that the "
              "measure loses at most POINTS: percentage points, hundredths of AUC and R², percent of an error" },
    { ROW("min-sqnr", min_sqnr), .placeholder = "DB",
      .help =
          "choose the precision of each layer for an SQNR of at least DB decibels at every output; needs no labels" },
    { ROW("max-mae", max_mae), .placeholder = "VALUE",
      .help =
          "choose the precision of each layer for a mean absolute error of at most VALUE against the expected values "
          "(--target)" },
    { ROW("max-size", max_size), .placeholder = "SIZE",
      .help = "maximum size of the weights: bytes, 300kB, 1.5MB, or a percentage of the float model's, as 60%" },
    { 0 },
};
#undef ROW

#define ROW(row_name, row_kind, member)                                                                                \
    .name = row_name, .kind = TARE_OPTION_##row_kind, .offset = offsetof(struct tare_compare_request, member)
const struct tare_option tare_compare_rows[] = {
    { ROW("with", LIST, with), .placeholder = "OTHER",
      .help = "also compare the SavedModel in the directory OTHER, converted or quantized, with MODEL; only the given "
              "models are compared unless --methods is given" },
    { ROW("methods", STRING, methods), .words = compared_methods,
      .fallback_text = "float,static,weight_only; float with --with", .placeholder = "M,…",
      .help = "methods to compare; append :SETTING=VALUE to set bits, block, granularity, activation_bits or op_set, "
              "+bfloat16 to compute the remaining float ops in bfloat16, or +PASS to run an accuracy pass "
              "(equalization, smooth_quant, weight_clipping, gptq, reconstruction, bias_correction): "
              "weight_only:bits=4:block=32+gptq" },
    { ROW("algorithms", STRING, algorithms), .words = algorithms, .fallback = "min_max", .placeholder = "A,…",
      .help = "calibration algorithms to compare, with optional parameters: percentile:p=99.9" },
    { ROW("granularities", STRING, granularities), .words = granularities, .placeholder = "G,…",
      .fallback_text = "per_channel; per_tensor in op set uniform_quantized",
      .help = "weight quantization granularities to compare: per_channel, per_tensor, per_block:N" },
    { ROW("bits", INT, bits), .fallback = "8", .choices = weight_bits, .help = "bit width of weights" },
    { ROW("signature", STRING, signature), .placeholder = "S", .help = "signature to run (default: serving_default)" },
    { ROW("label", STRING, label), .fallback = "label", .placeholder = "KEY",
      .help = "record key of the expected class index, or of the expected value of the output of that name" },
    { ROW("target", STRING, target_key), .placeholder = "KEY",
      .help = "record key of the expected values of the first output, for regression: MAE, RMSE and R² are measured" },
    { ROW("metric", CHOICE, metric), .fallback = "auto", .choices = tare_metric_names,
      .help = "measure for ranking, tests and the recommendation; auto follows from labels and expected values" },
    TARE_OPTION_NESTED(struct tare_compare_request, layers, tare_layer_rows),
    { ROW("limit", INT64, limit), .min = 0, .max = 1e15, .help = "evaluate only the first N records (default: all)" },
    { ROW("batch", INT, batch), .fallback = "64", .min = 1, .max = 65536,
      .help = "maximum batch size; less where the activations of a batch would not fit into the cache" },
    { ROW("sensitivity", FLAG, sensitivity),
      .help = "also measure the error that each layer contributes under the first quantizing method" },
    { ROW("sensitivity-limit", INT64, sensitivity_limit), .fallback = "200", .min = 1, .max = 1e15,
      .needs = "sensitivity write-recipe max-drop min-sqnr max-mae max-size",
      .help = "number of records for the sensitivity measurement" },
    { ROW("sensitivity-memory", INT64, sensitivity_memory), .fallback = "1000", .min = 0, .max = 1e9,
      .placeholder = "MB",
      .help = "memory in MB for activations that models with the same first layers share; 0 runs every model in full" },
    { ROW("chip", CHOICE, chip), .fallback = "v5e", .choices = chips,
      .help = "Cloud TPU generation for time estimates" },
    { ROW("chip-batch", INT64, chip_batch), .fallback = "1", .min = 1, .max = 65536,
      .help = "batch size for time estimates" },
    { ROW("auto", FLAG, automatic),
      .help = "also evaluate automatically chosen settings for the first quantizing method: algorithm, accuracy passes "
              "and per-layer overrides" },
    TARE_OPTION_NESTED(struct tare_compare_request, target, tare_mixed_precision_rows),
    { ROW("threads", INT, threads), .min = 0, .max = 1024,
      .help = "number of worker threads (default: one per processor)" },
    { 0 },
};
#undef ROW

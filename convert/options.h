/* Converts converter options from their text format (proto/tare/converter_options.proto) to the pipeline's structs. */
#ifndef TARE_CONVERT_OPTIONS_H
#define TARE_CONVERT_OPTIONS_H

#include "base/arena.h"
#include "quant/quantize.h"
#include "tpu/batching.h"
#include "tpu/bfloat16.h"
#include "tpu/placement.h"

struct tare_dataset_file {
    const char *signature;
    const char *path;
};

/* QuantizationOptions, over the plan of the command. */
struct tare_quantization {
    struct tare_quant_plan plan;   /* opened; setting.method NULL: nothing is quantized */
    bool from_text;                /* the message is given, not only options of the command */
    const char *const *signatures; /* "serving_default" when none is given */
    size_t n_signatures;
    bool names_signatures;   /* `signatures` is from the options, not the default */
    const char *const *tags; /* empty: the model's own choice */
    size_t n_tags;
    const struct tare_dataset_file *datasets;
    size_t n_datasets;
    const char *warning; /* a field that has no effect; NULL: none */
};

struct tare_converter_options {
    struct tare_tpu_choice *functions;
    size_t n_functions;
    bool automatic; /* not in the message: functions are found, or made, for every signature (tpu/split.h) */
    struct tare_batch_options *batches;
    size_t n_batches;
    bool io_shapes, bfloat16; /* states resolved with disable_default_optimizations */
    bool requests_bfloat16;   /* bfloat16_optimization is ENABLED, not only on by default */
    bool bfloat16_all;        /* scope ALL */
    bool skip_safety_checks;
    bool casts_outside; /* casts to bfloat16 and back are outside of the functions on the TPU; io_shapes does it, too */
    /* Not in the message: tags of the converted model, separated by commas. NULL: "serve,tpu" if functions were placed,
     * otherwise those of the input. */
    const char *tags;
    bool keeps_tags;                          /* not in the message: the tags are those of the input */
    const struct tare_bf16_node *float_nodes; /* not in the message: found by a check */
    size_t n_float_nodes;
    enum tare_bf16_extent extent; /* not in the message: which values are rounded */
    bool rounds_outputs;          /* not in the message: final probabilities and logits are rounded to bfloat16, too */
    bool allow_incompatible;      /* what a TPU would refuse is said, not refused */
    bool allows_dependent_rows; /* not in the message: batches whose rows depend on each other are said, not refused */
    bool shares_cluster;        /* one cluster name for all functions */
    const char *const *float_ops; /* filterlist, without "tf." before names */
    size_t n_float_ops;
    bool keeps_variables; /* a model that is not quantized is not frozen either: not in the message, but implied by
                             convert_checkpoint and by VarHandleOp and reads in the filterlist */
    bool has_sharding;
    struct tare_tpu_sharding sharding;
    bool has_quantization;
    struct tare_quantization quantization;
};

/* Parses the text format, including relaxed forms. Memory is from the arena. Errors name line, column and the nearest
 * known name, or the invalid option. `plan` (opened): what QuantizationOptions do not set; NULL: the defaults. */
tare_status tare_converter_options_parse(struct tare_converter_options *out, struct tare_arena *arena, const char *text,
                                         size_t size, const struct tare_quant_plan *plan);
/* Requests quantization by the plan (opened), unless the text has done so. */
tare_status tare_converter_options_quantize(struct tare_converter_options *out, struct tare_arena *arena,
                                            const struct tare_quant_plan *plan) TARE_WARN_UNUSED;

#endif

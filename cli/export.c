/* tare export: writes a signature of a model as a StableHLO module. */
#include "cli/command.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "convert/stablehlo/emit/export.h"

#include <stdio.h>

struct export_options {
    const char *model, *output;
    struct tare_shlo_export_options module;
    int container;
    int64_t tpu_call;
    struct tare_option_list shapes;
    bool quiet;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct export_options, "signature", STRING, module.signature), .placeholder = "KEY",
      .help = "signature to export (default: serving_default, or the only one)" },
    { TARE_OPTION(struct export_options, "batch", INT64, module.batch), .placeholder = "N", .min = 1, .max = 1 << 20,
      .fallback = "1", .help = "size of open first dimensions: a module has arguments of one size" },
    { TARE_OPTION(struct export_options, "shape", LIST, shapes), .placeholder = "INPUT=SIZES",
      .help = "shape of an input whose sizes are open, as text=1,128" },
    { TARE_OPTION(struct export_options, "tpu-call", INT64, tpu_call), .placeholder = "N", .min = 1, .max = 1 << 20,
      .help =
          "of a converted model: only its Nth computation on the TPU, whose arguments are those that the host sends "
          "(default: the whole signature)" },
    { TARE_OPTION(struct export_options, "container", CHOICE, container), .choices = tare_shlo_container_names,
      .fallback = "mlirbc",
      .help = "what to write: a portable artifact, a file of jax.export around it, or a SavedModel whose signature "
              "calls it "
              "(one XlaCallModule op)" },
    { TARE_OPTION(struct export_options, "weights", STRING, module.weights), .placeholder = "FILE",
      .help =
          "write constants of 1,024 elements or more to FILE in the safetensors format; they are arguments after those "
          "of the signature, sorted by name" },
    { TARE_OPTION(struct export_options, "vhlo-version", STRING, module.vhlo_version), .placeholder = "VERSION",
      .fallback = TARE_SHLO_EXPORT_VERSION,
      .help = "oldest version of StableHLO that reads the file; JAX of 2024 reads the default" },
    { TARE_OPTION(struct export_options, "quiet", FLAG, quiet), .help = "suppress notes on standard error" },
    TARE_LOG_OPTIONS(struct export_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct export_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module", .flags = TARE_OPTION_REQUIRED },
    { TARE_ARGUMENT(struct export_options, "OUT", output), .help = "file to write, or folder of a SavedModel",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare export my_model my_model.mlirbc",
                                        "tare export my_model_int8 my_model.jax --container jax --batch 8", NULL };
static const struct tare_option_set set = {
    .program = "tare export",
    .summary =
        "Writes a signature as a StableHLO module, which JAX, PJRT and XLA run: a float model, or one that tare "
        "quantize wrote. "
        "Variables become constants; ops that StableHLO does not have (strings, tables) are an error that names them.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status run(int argc, char *const *argv) {
    struct export_options options;
    struct tare_shlo_exported_summary summary;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    options.module.container = (enum tare_shlo_container)options.container;
    options.module.tpu_call = (size_t)options.tpu_call;
    options.module.shapes = options.shapes.items;
    options.module.n_shapes = options.shapes.count;
    if (options.module.weights && options.module.container == TARE_SHLO_SAVED_MODEL)
        TARE_CHECK(TARE_FAIL(TARE_USAGE, "--weights and --container saved_model are mutually exclusive: TensorFlow's "
                                         "signature would have the weights as inputs"));
    if (options.module.weights) TARE_CHECK(tare_command_check_file_output(options.module.weights));
    if (options.module.container != TARE_SHLO_SAVED_MODEL) TARE_CHECK(tare_command_check_file_output(options.output));
    TARE_CHECK(tare_shlo_export(&summary, options.model, options.output, &options.module));
    const struct tare_log log = tare_command_log(options.quiet);
    tare_note(&log, "%s: %zu ops, %zu arguments, %zu results, %.2f MB", options.output, summary.n_ops, summary.n_inputs,
              summary.n_outputs, (double)summary.bytes / 1e6);
done:
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_export = {
    .name = "export", .summary = "write a signature as a StableHLO module", .run = run, .options = &set
};

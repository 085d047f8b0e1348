/* tare export: writes a signature of a model as a StableHLO module. */
#include "cli/command.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "cli/plugins.h"
#include "workflow/model_files/export.h"

struct export_options {
    const char *model, *output;
    struct tare_export_request how;
    bool quiet;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    TARE_OPTION_NESTED(struct export_options, how, tare_export_rows),
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
    struct tare_graph_model *model = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    const struct tare_log log = tare_command_log(options.quiet);
    TARE_CHECK(tare_workflow_export_check(&options.how, options.output));
    if (options.how.container != TARE_SHLO_SAVED_MODEL) TARE_CHECK(tare_command_check_file_output(options.output));
    TARE_CHECK(tare_command_load_prepared(&model, options.model));
    status = tare_workflow_export(model, options.output, &options.how, &log);
done:
    tare_model_free(model);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_export = {
    .name = "export", .summary = "write a signature as a StableHLO module", .run = run, .options = &set
};

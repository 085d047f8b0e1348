/* tare unwrap: writes a model with its StableHLO modules replaced by TensorFlow ops. */
#include "cli/command.h"
#include "cli/log.h"
#include "cli/output_check.h"
#include "cli/plugins.h"
#include "cli/tags.h"
#include "convert/saved_model.h"
#include "workflow/model_files/export.h"

struct unwrap_options {
    const char *model, *output, *tags;
    bool overwrite, quiet, allow_missing;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct unwrap_options, "overwrite", FLAG, overwrite),
      .help = "replace an existing output directory" },
    { TARE_OPTION(struct unwrap_options, "quiet", FLAG, quiet), .help = "suppress notes on standard error" },
    TARE_MISSING_VARIABLES_OPTION(struct unwrap_options),
    TARE_TAGS_OPTION(struct unwrap_options),
    TARE_PLUGIN_OPTION(struct unwrap_options),
    TARE_LOG_OPTIONS(struct unwrap_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct unwrap_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module", .flags = TARE_OPTION_REQUIRED },
    { TARE_ARGUMENT(struct unwrap_options, "OUT", output), .help = "output directory", .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare unwrap my_jax_model my_model", "tare unwrap module.mlirbc my_model",
                                        NULL };
static const struct tare_option_set set = {
    .program = "tare unwrap",
    .summary = "Writes a model exported from JAX as a plain SavedModel: each XlaCallModule op, which holds a StableHLO "
               "module, is replaced by functions of TensorFlow and XLA ops. Nothing else changes; variables stay "
               "variables. tare convert and tare quantize do this as well.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status run(int argc, char *const *argv) {
    struct unwrap_options options;
    struct tare_saved_model_options open = { 0 };
    struct tare_command_tags tags = { 0 };
    struct tare_graph_model *model = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    const struct tare_log log = tare_command_log(options.quiet);
    open.ops = tare_command_registry();
    TARE_CHECK(tare_command_check_model_output(options.output, options.model, options.overwrite));
    TARE_CHECK(tare_command_tags_set(&tags, &open, options.tags));
    TARE_CHECK(tare_saved_model_load(&model, options.model, &open));
    TARE_CHECK(tare_command_check_values(model, options.allow_missing));
    status = tare_workflow_unwrap(model, options.output, options.overwrite, &log);
done:
    tare_model_free(model);
    tare_command_tags_free(&tags);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_unwrap = {
    .name = "unwrap", .summary = "replace StableHLO modules by TensorFlow ops", .run = run, .options = &set
};

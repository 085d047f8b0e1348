/* tare inspect: prints the contents of a SavedModel. */
#include "cli/command.h"
#include "cli/inspect/module.h"
#include "cli/log.h"
#include "cli/plugins.h"
#include "cli/tags.h"
#include "convert/saved_model.h"
#include "workflow/inspection.h"

#include <stdio.h>

static const struct tare_option rows[] = {
    { TARE_OPTION(struct inspect_options, "functions", FLAG, functions),
      .help = "print the arguments, captured inputs and outputs of each concrete function" },
    { TARE_OPTION(struct inspect_options, "graph", STRING, graph), .placeholder = "FUNCTION",
      .help =
          "list the nodes of one function, given by name or alias, as [inputs] -> name; \"\" lists the main graph" },
    { TARE_OPTION(struct inspect_options, "ops", FLAG, ops), .help = "count the ops that the signatures reach" },
    { TARE_OPTION(struct inspect_options, "variables", FLAG, variables),
      .help = "list the variables and their checkpoint keys" },
    { TARE_OPTION(struct inspect_options, "signature", STRING, signature), .placeholder = "S",
      .help = "show only signature S" },
    { TARE_OPTION(struct inspect_options, "suggest", FLAG, suggest),
      .help = "suggest functions to place on the TPU and print the command that converts the model" },
    { TARE_OPTION(struct inspect_options, "json", FLAG, json), .help = "print JSON" },
    TARE_TAGS_OPTION(struct inspect_options),
    TARE_PLUGIN_OPTION(struct inspect_options),
    TARE_LOG_OPTIONS(struct inspect_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct inspect_options, "MODEL", model),
      .help = "SavedModel directory, or a file of a StableHLO module (.mlirbc, or of jax.export)",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare inspect my_model", "tare inspect my_model --functions --variables",
                                        NULL };
static const struct tare_option_set set = {
    .program = "tare inspect",
    .summary = "Shows the signatures, aliases, functions, ops and variables of a SavedModel, the ops that the "
               "interpreter does not support, and the layers that can be quantized.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status check_signature(const struct tare_graph_model *model, const char *key) {
    if (!key || tare_model_find_signature(model, key)) return TARE_OK;
    return TARE_FAIL(TARE_NOT_FOUND, "%s: there is no signature '%s'", model->path, key);
}

static tare_status run(int argc, char *const *argv) {
    struct inspect_options options = { 0 };
    struct tare_saved_model_options open = { .without_values = true, .read_only = true };
    struct tare_command_tags tags = { 0 };
    struct tare_graph_model *model = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    if (tare_inspect_is_module(&options)) {
        status = tare_inspect_module(&options);
        goto done;
    }
    open.ops = tare_command_registry();
    TARE_CHECK(tare_command_tags_set(&tags, &open, options.tags));
    TARE_CHECK(tare_saved_model_load(&model, options.model, &open));
    TARE_CHECK(check_signature(model, options.signature));
    status = options.json ? inspect_write_json(stdout, model, &options) : inspect_print_text(model, &options);
    if (status == TARE_OK && !options.json && !options.graph)
        status = tare_inspect_call_modules(model, options.functions);
done:
    tare_model_free(model);
    tare_command_tags_free(&tags);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_inspect = {
    .name = "inspect", .summary = "show the contents of a SavedModel", .run = run, .options = &set
};

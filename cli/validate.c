/* tare validate: checks a model against the rules of TensorFlow's loader. */
#include "cli/log.h"
#include "cli/output/visible_output.h"
#include "convert/validation/validate.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/plugins.h"
#include "cli/tags.h"
#include "workflow/model_files/validation_json.h"

#include <stdio.h>

struct validate_options {
    const char *model, *tags;
    bool json;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct validate_options, "json", FLAG, json), .help = "print JSON" },
    TARE_TAGS_OPTION(struct validate_options),
    TARE_PLUGIN_OPTION(struct validate_options),
    TARE_LOG_OPTIONS(struct validate_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct validate_options, "MODEL", model), .help = "SavedModel directory",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare validate my_model", NULL };
static const struct tare_option_set set = {
    .program = "tare validate",
    .summary = "Checks a SavedModel against the rules of TensorFlow's loader: graphs, functions, signatures, TPU "
               "computations, object graph, checkpoint with checksums, and assets. Prints each violation with its "
               "node. Exit status 1 if there are violations.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status print_json(const char *path, const struct tare_faults *faults) {
    struct tare_strbuf text = { 0 };
    const tare_status status = tare_workflow_validation_json(&text, path, faults);
    if (status == TARE_OK) tare_strbuf_print(&text, stdout);
    tare_strbuf_free(&text);
    return status;
}

static tare_status check(const struct validate_options *options, const struct tare_saved_model_options *open) {
    struct tare_faults faults = { 0 };
    tare_status status = tare_saved_model_validate(&faults, options->model, open);
    for (size_t i = 0; i < faults.count && !options->json; i++)
        tare_print_line("", faults.items[i]);
    for (size_t i = 0; i < faults.n_notes && !options->json; i++)
        tare_print_line("note: ", faults.notes[i]);
    if (options->json && status == TARE_OK) status = print_json(options->model, &faults);
    if (status == TARE_OK && !faults.count && !options->json) printf("%s: valid\n", options->model);
    if (status == TARE_OK && faults.count)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: %zu violation%s (expected none)", options->model, faults.count,
                           faults.count == 1 ? "" : "s");
    tare_faults_free(&faults);
    return status;
}

static tare_status run(int argc, char *const *argv) {
    struct validate_options options;
    struct tare_saved_model_options open = { 0 };
    struct tare_command_tags tags = { 0 };
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    open.ops = tare_command_registry();
    TARE_CHECK(tare_command_tags_set(&tags, &open, options.tags));
    status = check(&options, &open);
done:
    tare_command_tags_free(&tags);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_validate = {
    .name = "validate", .summary = "check a SavedModel against the loader's rules", .run = run, .options = &set
};

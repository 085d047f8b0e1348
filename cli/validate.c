/* tare validate: the structural rules of a model that loads. */
#include "cli/command.h"
#include "cli/plugins.h"
#include "convert/saved_model.h"
#include "graph/validate.h"

#include <stdio.h>

struct validate_options {
    const char *model;
    struct tare_option_list plugins;
};

static const struct tare_option rows[] = {
    TARE_PLUGIN_OPTION(struct validate_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { .name = "MODEL", .offset = offsetof(struct validate_options, model), .help = "SavedModel directory",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare validate my_model", NULL };
static const struct tare_option_set set = {
    .program = "tare validate",
    .summary = "Checks the graphs, functions, signatures and TPU computations of a SavedModel by the rules of what "
               "TensorFlow loads, and prints each fault with its node. Exit 1 when there is one.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status check(const struct tare_model *model, const char *path) {
    struct tare_faults faults = { 0 };
    tare_status status = tare_model_validate(&faults, model, NULL);
    for (size_t i = 0; i < faults.count; i++) printf("%s\n", faults.items[i]);
    if (status == TARE_OK && faults.count)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: %zu fault%s (wanted none)", path, faults.count,
                           faults.count == 1 ? "" : "s");
    tare_faults_free(&faults);
    return status;
}

static tare_status run(int argc, char *const *argv) {
    struct validate_options options;
    struct tare_model *model = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(tare_command_load(&model, options.model));
    status = check(model, options.model);
done:
    tare_model_free(model);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_validate = {
    .name = "validate", .summary = "check a SavedModel by the rules of what loads", .run = run, .options = &set
};

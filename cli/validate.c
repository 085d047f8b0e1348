/* tare validate: checks a model against the rules of TensorFlow's loader. */
#include "cli/log.h"
#include "cli/output/visible_output.h"
#include "convert/validation/validate.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "cli/plugins.h"
#include "cli/tags.h"
#include "eval/report/json_text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

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

static json_t *notes_json(const struct tare_faults *faults) {
    json_t *list = json_array();
    for (size_t i = 0; i < faults->n_notes; i++)
        json_array_append_new(list, tare_json_text(faults->notes[i]));
    return list;
}

static void print_json(const char *path, const struct tare_faults *faults) {
    json_t *root = json_object(), *list = json_array();
    for (size_t i = 0; i < faults->count; i++) {
        const char *colon = strstr(faults->items[i], ": ");
        size_t size = colon ? (size_t)(colon - faults->items[i]) : 0;
        const char *what = colon ? colon + 2 : faults->items[i];
        json_t *fault = json_object();
        json_object_set_new(fault, "where", tare_json_text_of(faults->items[i], size));
        json_object_set_new(fault, "what", tare_json_text(what));
        json_array_append_new(list, fault);
    }
    json_object_set_new(root, "path", tare_json_text(path));
    json_object_set_new(root, "valid", json_boolean(faults->count == 0));
    json_object_set_new(root, "faults", list);
    json_object_set_new(root, "notes", notes_json(faults));
    json_dumpf(root, stdout, JSON_INDENT(2));
    printf("\n");
    json_decref(root);
}

static tare_status check(const struct validate_options *options, const struct tare_saved_model_options *open) {
    struct tare_faults faults = { 0 };
    tare_status status = tare_saved_model_validate(&faults, options->model, open);
    for (size_t i = 0; i < faults.count && !options->json; i++)
        tare_print_line("", faults.items[i]);
    for (size_t i = 0; i < faults.n_notes && !options->json; i++)
        tare_print_line("note: ", faults.notes[i]);
    if (options->json && status == TARE_OK) print_json(options->model, &faults);
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

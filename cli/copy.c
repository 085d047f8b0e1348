/* tare copy: copies a model byte for byte. */
#include "cli/command.h"
#include "cli/log.h"
#include "convert/saved_model.h"

struct copy_options {
    const char *model, *output;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    TARE_LOG_OPTIONS(struct copy_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct copy_options, "MODEL", model), .help = "SavedModel directory",
      .flags = TARE_OPTION_REQUIRED },
    { TARE_ARGUMENT(struct copy_options, "OUT", output), .help = "output directory", .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const char *const examples[] = { "tare copy my_model my_model_copy", NULL };
static const struct tare_option_set set = {
    .program = "tare copy",
    .summary = "Loads a SavedModel and saves it unchanged, including files that tare does not interpret.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status run(int argc, char *const *argv) {
    struct copy_options options;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (!done) status = tare_saved_model_copy(options.model, options.output);
done:
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_copy = {
    .name = "copy", .summary = "load a SavedModel and save it unchanged", .run = run, .options = &set
};

/* Checks of output paths before any work, so that a run of minutes does not fail at its end. */
#ifndef TARE_CLI_OUTPUT_CHECK_H
#define TARE_CLI_OUTPUT_CHECK_H

#include "base/log.h"
#include "base/option.h"
#include "base/status.h"
#include "graph/model.h"
#include "workflow/requests.h"

#include <stdbool.h>

/* Whether a SavedModel read from `input` can be written to `path`. */
tare_status tare_command_check_model_output(const char *path, const char *input, bool overwrite) TARE_WARN_UNUSED;
/* Whether a file can be written to `path`: it is not a folder, its folder exists and is writable, and it is no part of
 * a SavedModel. NULL and "-" are allowed. */
tare_status tare_command_check_file_output(const char *path) TARE_WARN_UNUSED;
/* The same, and that the file is none of those that the command reads: paths and patterns, NULL for what is not given.
 */
tare_status tare_command_check_file_apart(const char *path, const char *const *inputs, size_t count) TARE_WARN_UNUSED;
/* For tare_command_parse, before anything is opened: whether the files that the options of a command name as outputs
 * can be written, no two are one file, none is inside a folder of outputs or one of the files next to another one
 * (tare_option.beside), and none is an input or inside one, but for new files in folders of data or models. */
tare_status tare_command_check_outputs(const void *values, const struct tare_option_set *set) TARE_WARN_UNUSED;
/* Warns when a quantized model takes more bytes than the model it was made from, when a float one
 * takes more than 10 % and 10 kB more, and when the input has MetaGraphs that were not written. */
tare_status tare_command_warn_of_written(const char *path, const char *input, const struct tare_graph_model *model,
                                         bool quantized, const struct tare_log *log) TARE_WARN_UNUSED;

#endif

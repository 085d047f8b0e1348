/* --plugin, the option of every command that opens models or lists ops. A command includes the row in its table,
 * tare_command_parse loads the libraries, and the command opens models with tare_command_load. */
#ifndef TARE_CLI_PLUGINS_H
#define TARE_CLI_PLUGINS_H

#include "base/option.h"
#include "graph/model.h"
#include "graph/op.h"

/* The row; `type` must have a member `struct tare_option_list plugins`. */
#define TARE_PLUGIN_OPTION(type)                                                                                       \
    {                                                                                                                  \
        .name = "plugin", .kind = TARE_OPTION_LIST, .offset = offsetof(type, plugins), .placeholder = "LIB.so",        \
        .help = "load a shared library with custom ops"                                                                \
    }

/* The row of --allow-missing-variables; `type` must have a member `bool allow_missing`. */
#define TARE_MISSING_VARIABLES_OPTION(type)                                                                            \
    {                                                                                                                  \
        .name = "allow-missing-variables", .kind = TARE_OPTION_FLAG, .offset = offsetof(type, allow_missing),          \
        .help = "accept a model without its variables/ folder; its variables then have no values"                      \
    }

/* Loads the libraries given with --plugin, if `set` has that row. */
tare_status tare_command_load_plugins(const void *values, const struct tare_option_set *set);
/* The built-in ops and those of the loaded libraries. */
const struct tare_op_registry *tare_command_registry(void);
/* Opens a SavedModel with these ops. */
tare_status tare_command_load(struct tare_graph_model **out, const char *path) TARE_WARN_UNUSED;
/* The same for a model that is only run: StableHLO modules for several platforms run as on a CPU. */
tare_status tare_command_load_to_run(struct tare_graph_model **out, const char *path) TARE_WARN_UNUSED;
/* Opens and prepares a SavedModel (convert/prepared_model.h). */
tare_status tare_command_load_prepared(struct tare_graph_model **out, const char *path) TARE_WARN_UNUSED;
/* tare_saved_model_check_values with the log of the command. */
tare_status tare_command_check_values(const struct tare_graph_model *model, bool allow) TARE_WARN_UNUSED;
/* Unloads the libraries at program exit; no model may be open. */
void tare_command_free_plugins(void);

#endif

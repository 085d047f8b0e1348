/* Shared libraries that bring ops (include/tare/op.h): loading them and the registry that holds what they brought.
 * Their specifications pass the same parser and rules as the built-in rows, and their ops are rows like those. */
#ifndef TARE_INTERPRETER_PLUGINS_PLUGIN_H
#define TARE_INTERPRETER_PLUGINS_PLUGIN_H

#include "graph/op.h"

struct tare_plugins;

/* No library yet, above `parent` (the built-in ops). NULL: no memory. */
struct tare_plugins *tare_plugins_new(const struct tare_op_registry *parent);
/* Loads a library and registers its ops. A path without '/' is one in the current directory. Everything that is wrong
 * with the library is one line that begins with its path; afterwards `plugins` may hold a part of its ops. */
tare_status tare_plugins_load(struct tare_plugins *plugins, const char *path) TARE_WARN_UNUSED;
/* The parent's ops and the libraries'. Lives as long as `plugins`. */
const struct tare_op_registry *tare_plugins_ops(const struct tare_plugins *plugins);
/* The path of the library that an op came from and what it says of the op; NULL when a built-in or a file defines it.
 */
const char *tare_plugin_path_of(const struct tare_op_def *def);
const char *tare_plugin_doc_of(const struct tare_op_def *def);
/* The dtypes that its kernels serve, as registered ("T: float; T: int32"); NULL as above, "" for all. */
const char *tare_plugin_kernels_of(const struct tare_op_def *def);
/* Ends the libraries. No model or session may use their ops any more. */
void tare_plugins_free(struct tare_plugins *plugins);

#endif

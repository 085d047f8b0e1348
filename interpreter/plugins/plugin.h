/* Shared libraries with custom ops (include/tare/op.h): loading them, and the registry of their ops. Their
 * specifications use the same parser and checks as the built-in rows, and become rows of the same kind. */
#ifndef TARE_INTERPRETER_PLUGINS_PLUGIN_H
#define TARE_INTERPRETER_PLUGINS_PLUGIN_H

#include "graph/model.h"
#include "graph/op.h"

struct tare_plugins;

/* An empty set of libraries on top of `parent` (the built-in ops). NULL: no memory. */
struct tare_plugins *tare_plugins_new(const struct tare_op_registry *parent);
/* Loads a library and registers its ops. A path without '/' is one in the current directory. Errors are reported in one
 * line that begins with its path; `plugins` may then contain some of its ops. */
tare_status tare_plugins_load(struct tare_plugins *plugins, const char *path) TARE_WARN_UNUSED;
/* The ops of the parent and of the libraries. Valid as long as `plugins`. */
const struct tare_op_registry *tare_plugins_ops(const struct tare_plugins *plugins);
/* The path of the library of an op, and its documentation; NULL for a built-in op or one defined by a file.
 */
const char *tare_plugin_path_of(const struct tare_op_def *def);
const char *tare_plugin_doc_of(const struct tare_op_def *def);
/* The dtypes that its kernels support, as registered ("T: float; T: int32"); NULL as above, "" for all. */
const char *tare_plugin_kernels_of(const struct tare_op_def *def);

/* ---- rewrites of composite functions (convert/composites/) ---- */

/* A composite function that a library may rewrite. Nodes are added to `graph`; nothing else changes. */
struct tare_plugin_rewrite {
    struct tare_graph *graph;
    struct tare_arena *arena;
    const char *name;              /* in the annotation */
    const struct tare_attr *attrs; /* of the annotation */
    size_t n_attrs;
    const struct tare_shape *shapes; /* of the arguments */
    struct tare_edge *results;       /* one per return; all are set after success */
    const char *reason;              /* why it was declined; NULL: it was rewritten */
};
struct tare_plugin_composite;

/* The next rewrite, in the order of registration, after `previous` (NULL: from the first) that matches the name; NULL:
 * none. `ops` are those of a model. */
const struct tare_plugin_composite *tare_plugins_next_composite(const struct tare_op_registry *ops, const char *name,
                                                                const struct tare_plugin_composite *previous);
/* Runs it. Errors begin with the library's path. */
tare_status tare_plugin_composite_run(const struct tare_plugin_composite *composite,
                                      struct tare_plugin_rewrite *rewrite) TARE_WARN_UNUSED;

/* Unloads the libraries. No model or session may still use their ops. */
void tare_plugins_free(struct tare_plugins *plugins);

#endif

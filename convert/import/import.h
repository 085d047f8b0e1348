/* From protobuf messages to the IR. Private to convert: protobuf-c types end here. */
#ifndef TARE_CONVERT_IMPORT_H
#define TARE_CONVERT_IMPORT_H

#include "convert/import/node_defs.h"
#include "graph/model.h"
#include "graph/op.h"
#include "proto/tensorflow/saved_model.pb-c.h"

struct tare_restores;
struct tare_saved_model;

/* Where the importer reports errors and continues, to find all of them (`tare validate`). Without it the first error
 * ends an import. */
struct tare_import_faults {
    void (*add)(void *arg, const char *where, const char *what);
    void *arg;
    size_t count;
    bool no_graph; /* the errors reported include the one that ended the import */
};
/* Reports a failure at `where` (printf) and returns TARE_OK. Returns `status` unchanged for TARE_NO_MEMORY and if
 * `faults` is NULL. */
tare_status tare_import_fault(struct tare_import_faults *faults, tare_status status, const char *where, ...)
    TARE_PRINTF(3, 4) TARE_WARN_UNUSED;

/* Attribute value -> IR; `out->name` and `out->origin` are set; memory is owned by the model. */
tare_status tare_import_attr(struct tare_attr *out, struct tare_graph_model *model, const char *name,
                             const Tensorflow__AttrValue *value);
/* Every attribute of a node or function; *out is arena memory. */
tare_status tare_import_attrs(struct tare_attr **out, size_t *count, size_t *capacity, struct tare_graph_model *model,
                              Tensorflow__AttrEntry *const *entries, size_t n_entries);
/* Reads the file's definitions of unknown ops into model->custom_ops and, for ops that the file does not define either,
 * collects the names of the outputs that its functions use. */
tare_status tare_import_custom_ops(struct tare_graph_model *model, const struct tare_saved_model *source);
/* Main graph and functions. */
tare_status tare_import_graphs(struct tare_graph_model *model, const struct tare_saved_model *source);
/* The functions of a library, one at a time. */
size_t tare_import_function_count(const struct tare_saved_model *source);
/* `scratch` is reset and holds the message if it must be decoded from the mapped file; *nodes iterates over its nodes.
 */
tare_status tare_import_function(Tensorflow__FunctionDef **out, struct tare_node_defs *nodes,
                                 struct tare_arena *scratch, const struct tare_saved_model *source,
                                 size_t i) TARE_WARN_UNUSED;
/* Signatures; SparseTensors, RaggedTensors and the like become their components. */
tare_status tare_import_signatures(struct tare_graph_model *model, const struct tare_saved_model *source);
/* These, aliases, assets, initialisers, concrete functions. */
tare_status tare_import_meta(struct tare_graph_model *model, const struct tare_saved_model *source);
/* Variables with the checkpoint key of each (variables.c describes the mapping), and tables with their stored contents.
 */
tare_status tare_import_variables(struct tare_graph_model *model, struct tare_saved_model *saved);
/* Makes handles of one resource one variable (shared_variables.c). Keys are known, values are not read yet. */
tare_status tare_import_share_variables(struct tare_graph_model *model);

/* Tables that the restore operation fills from the checkpoint. */
tare_status tare_import_tables(struct tare_graph_model *model, struct tare_saved_model *source,
                               const struct tare_restores *restores);

/* Names of the outputs of an op without a definition, in the order in which the functions use them (NULL where only an
 * index is known); collected by tare_import_custom_ops. */
const char *const *tare_unknown_outputs(const struct tare_graph_model *model, const char *op, size_t *count);
/* Gives these outputs the dtypes that their users declare; those without users keep TARE_DT_INVALID. */
tare_status tare_import_unknown_types(const struct tare_graph_model *model);

#endif

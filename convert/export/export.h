/* From the IR to protobuf messages. Private to convert. Messages are arena memory and borrow from the model: they are
 * valid as long as both. Unchanged parts of a file are written back unchanged. */
#ifndef TARE_CONVERT_EXPORT_H
#define TARE_CONVERT_EXPORT_H

#include "graph/model.h"
#include "proto/tensorflow/saved_model.pb-c.h"

tare_status tare_export_attr(Tensorflow__AttrValue **out, struct tare_arena *arena, const struct tare_attr *attr);
/* Removes names of what the passes removed, and names by which the runtime would take a changed function for another:
 * before the messages are made. */
tare_status tare_export_drop_references(struct tare_graph_model *model);
/* Adds to the functions of `library`, which are those of the model, what loading needs to know of variables. */
tare_status tare_export_handles(const Tensorflow__FunctionDefLibrary *library, struct tare_arena *arena,
                                const struct tare_graph_model *model);
/* Main graph and every function; versions and debug info are kept from `origin` (NULL: none). */
tare_status tare_export_graph_def(Tensorflow__GraphDef **out, struct tare_arena *arena,
                                  const struct tare_graph_model *model, const Tensorflow__GraphDef *origin);
/* The op list of the model: `origin` (NULL: none) plus the definitions of plugin ops that it does not contain; NULL if
 * there are neither. */
tare_status tare_export_op_list(Tensorflow__OpList **out, struct tare_arena *arena,
                                const struct tare_graph_model *model, Tensorflow__OpList *origin);

#endif

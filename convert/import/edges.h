/* Names of tensors as files write them, resolved to edges of a graph. */
#ifndef TARE_CONVERT_IMPORT_EDGES_H
#define TARE_CONVERT_IMPORT_EDGES_H

#include "graph/model.h"

/* "node:3", "node" -> edge of the main graph. */
tare_status tare_import_main_edge(struct tare_edge *out, const struct tare_graph *graph, const char *text);
/* "argument", "argument:0", "node:output:2" -> edge of a function. */
tare_status tare_import_function_edge(struct tare_edge *out, const struct tare_graph *graph, const char *text);
/* Edges from this node are accepted with any output index: its error was reported. */
void tare_import_mark_without_outputs(struct tare_node *node);
/* As tare_import_main_edge for the model's main graph. */
tare_status tare_import_tensor_name(struct tare_edge *out, const struct tare_graph_model *model, const char *name);

#endif

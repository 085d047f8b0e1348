/* Describes the contents of a model, for `tare inspect` and tare_model_describe. */
#ifndef TARE_WORKFLOW_INSPECTION_H
#define TARE_WORKFLOW_INSPECTION_H

#include "base/log.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "graph/model.h"

#include <jansson.h>
#include <stdio.h>

struct inspect_options {
    const char *model, *signature, *graph, *tags;
    const char *name; /* of a model in memory, which has no path; NULL: the path */
    bool suggest, functions, ops, variables, json;
    struct tare_option_list plugins;
    struct tare_log_options logging;
};

struct inspect_op_count {
    const char *op;
    size_t count;
    bool on_tpu; /* the TPU compiler supports it */
};

/* The ops that signatures reach in the main graph and all functions, most frequent first. */
struct inspect_ops {
    struct tare_arena arena;
    struct tare_map by_name;
    struct inspect_op_count **items;
    size_t count, capacity;
    size_t quantizable;         /* quantizable nodes, and products and convolutions of StableHLO modules */
    bool has_refused_module;    /* a StableHLO module cannot be read or contains an unsupported op */
    size_t not_on_tpu;          /* op types */
    size_t tpu_calls;           /* TPUPartitionedCall nodes: the model was converted before */
    struct tare_strbuf missing; /* ops without a kernel, one line each */
    size_t n_missing;
};
/* `only`: one signature, NULL for all. Release with inspect_ops_free also on failure. */
tare_status inspect_ops_count(struct inspect_ops *ops, const struct tare_graph_model *model, const char *only);
void inspect_ops_free(struct inspect_ops *ops);

/* The graph of --graph: a function by name or alias, "" or "graph" for the main graph. */
tare_status inspect_find_graph(const struct tare_graph **out, const struct tare_graph_model *model, const char *name);
/* Appends the input in GraphDef notation: "node", "node:1". */
void inspect_input_name(struct tare_strbuf *out, struct tare_edge edge);
/* Size of a variable's value in bytes from dtype and shape; -1 if unknown. */
int64_t inspect_variable_bytes(const struct tare_variable *variable);

/* The model, or only the graph options->graph, as JSON (docs/json.md). The caller owns *out, also after a failure. */
tare_status inspect_json(json_t **out, const struct tare_graph_model *model, const struct inspect_options *options);
/* Writes the same as indented text, one function and node at a time, since the whole JSON takes many times the memory
 * of the model. */
tare_status inspect_write_json(FILE *out, const struct tare_graph_model *model, const struct inspect_options *options);

/* ---- on standard output: the command's own ---- */

tare_status inspect_print_text(const struct tare_graph_model *model, const struct inspect_options *options);
tare_status inspect_print_suggestions(const struct tare_graph_model *model);

#endif

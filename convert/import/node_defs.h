/* The NodeDefs of a graph and the FunctionDefs of its library, either as messages in memory or on the wire, from where
 * they are read one at a time: a graph of many nodes is never in memory as messages. Private to convert. */
#ifndef TARE_CONVERT_NODE_DEFS_H
#define TARE_CONVERT_NODE_DEFS_H

#include "proto/message.h"
#include "proto/tensorflow/saved_model.pb-c.h"

/* The GraphDefs of a MetaGraph on the wire (several are merged). Parts point into the mapped file. */
struct tare_wire_graph {
    const Tensorflow__MetaGraphDef *meta;
    struct tare_message_part *parts;
    size_t n_parts, parts_capacity;
    struct tare_message_part *functions; /* a FunctionDef each */
    size_t n_functions, functions_capacity;
    struct tare_message_reading reading; /* for messages inside a GraphDef */
};

/* Where NodeDefs are: `defs`, or field `field` of messages on the wire. */
struct tare_node_defs {
    Tensorflow__NodeDef *const *defs;
    size_t n_defs;
    const struct tare_message_part *parts;
    size_t n_parts;
    uint32_t field;
    struct tare_message_reading reading;
};
struct tare_node_defs tare_node_defs_of_graph(const Tensorflow__GraphDef *graph, const struct tare_wire_graph *wire);
/* `part` NULL: the nodes of the message. */
struct tare_node_defs tare_node_defs_of_function(const Tensorflow__FunctionDef *function,
                                                 const struct tare_message_part *part,
                                                 const struct tare_wire_graph *wire);

/* An iteration over the nodes in order. Zero it except `all`; release it with tare_node_walk_end. */
struct tare_node_walk {
    const struct tare_node_defs *all;
    bool without_attrs;             /* attributes are passed by */
    const Tensorflow__NodeDef *def; /* the current one; valid until the next */
    struct tare_message_part wire;  /* its bytes; data NULL for a message in memory */
    size_t at;
    struct tare_message_part rest;
    struct tare_arena scratch;
};
/* def is NULL at the end. */
tare_status tare_node_walk_next(struct tare_node_walk *walk) TARE_WARN_UNUSED;
void tare_node_walk_end(struct tare_node_walk *walk);
/* The number of nodes. */
tare_status tare_node_defs_count(size_t *out, const struct tare_node_defs *all) TARE_WARN_UNUSED;
/* The bytes of all attributes of a node if they are contiguous; otherwise data is NULL. */
struct tare_message_part tare_node_attr_bytes(const struct tare_message_part *node);

/* A FunctionDef without its nodes, in `arena`. */
tare_status tare_function_def_read(Tensorflow__FunctionDef **out, struct tare_arena *arena,
                                   const struct tare_message_part *part,
                                   const struct tare_wire_graph *wire) TARE_WARN_UNUSED;

/* Adds a GraphDef on the wire: lists its functions, and reads everything once to validate it. */
tare_status tare_wire_graph_add(struct tare_wire_graph *wire, struct tare_message_part part) TARE_WARN_UNUSED;
void tare_wire_graph_free(struct tare_wire_graph *wire);

#endif

/* The graph IR: one graph is the main graph of a model or the body of one function.
 *
 * Nodes have stable addresses (arena) and refer to each other by pointer; graph->nodes has the order of the file, which
 * has no meaning. Function arguments are nodes of op "_Arg" that live in graph->args, not in graph->nodes. This file
 * does not know SavedModels or protobuf messages.
 *
 * Cancellation and time limits: functions that passes call for each node poll tare_control_check
 * (tare_node_each_function, tare_call_site, tare_graph_order), so a pass that returns their status stops early. A pass
 * that does long work without them polls itself. */
#ifndef TARE_GRAPH_GRAPH_H
#define TARE_GRAPH_GRAPH_H

#include "base/map.h"
#include "graph/attr.h"

#include <string.h>

struct tare_node;
struct tare_graph_model;
struct tare_op_def; /* graph/op.h */

/* Output `index` of `node` (a flat index over all output arguments of its op). */
struct tare_edge {
    struct tare_node *node;
    int index;
};

/* One use of an output: input `input` of `user`. The uses of an output are in the order in which they were added. */
struct tare_use {
    struct tare_node *user;
    size_t input;
    struct tare_use *previous, *next; /* in its list */
};

struct tare_use_list {
    struct tare_use *first, *last; /* by inputs of nodes */
    size_t first_return;           /* index + 1 of a function return; 0: none */
};

struct tare_node_uses {
    struct tare_use **by_input;  /* the uses that this node's own inputs are; NULL for a node that was swept */
    struct tare_use_list *lists; /* one an output; output 0's also contains edges with an index outside the array */
    size_t n_lists;              /* at least 1 */
    struct tare_use_list first;  /* `lists` of a node with one output */
};

/* What most passes read of each node comes first: it is in one or two lines of the cache. */
struct tare_node {
    struct tare_graph *graph;
    const char *op;                 /* the op's name, or the name of a function of the model (a legal call) */
    const struct tare_op_def *def;  /* NULL: a function call by name, or an op without a definition */
    const struct tare_edge *inputs; /* changed only by tare_node_add_input and its siblings, which maintain the uses */
    size_t n_inputs, n_controls;
    size_t position;             /* index in graph->nodes (or graph->args); maintained by the functions below */
    bool dead;                   /* removed by a pass; swept by tare_graph_sweep */
    bool has_no_functions;       /* no attribute refers to a function; false also where that is not known */
    uint32_t stand_in;           /* place in the model's list of stand-ins + 1; 0: not in it */
    struct tare_node **controls; /* run before this node; without duplicates */
    struct tare_attr *attrs;
    size_t n_attrs;
    int *output_dtypes; /* may be reference dtypes; set by tare_node_resolve */
    size_t n_outputs;
    struct tare_node_uses *uses; /* NULL until tare_graph_index_uses */
    const char *name;
    const void *edit; /* scratch of the pass that currently works on the graph */
    const char *device;
    size_t attrs_capacity, inputs_capacity, controls_capacity;
    struct tare_control_set *control_set; /* of long lists; NULL: none. Reset it after changing `controls` directly */
    const void *origin; /* the NodeDef it was read from, whose unknown fields are kept; NULL: created by tare */
};

/* A returned value of a function. */
struct tare_return {
    const char *name;
    int dtype;
    struct tare_edge edge;
    size_t previous, next; /* in the list of the output's uses: index + 1, 0: none; see tare_graph_index_uses */
};
struct tare_control_return {
    const char *name;
    struct tare_node *node;
};

struct tare_graph {
    struct tare_graph_model *model;
    const char *name; /* function name; "" for the main graph */
    size_t number;    /* among all graphs that the model ever had; 0 is the main graph */
    struct tare_node **nodes;
    size_t n_nodes, nodes_capacity;
    struct tare_map by_name; /* name -> node, args included */
    struct tare_node **args; /* functions only: op "_Arg", attr T; in order */
    size_t n_args, args_capacity;
    const struct tare_return *returns; /* changed only by tare_graph_add_return and its siblings */
    size_t n_returns, returns_capacity;
    struct tare_control_return *control_returns;
    size_t n_control_returns, control_returns_capacity; /* capacity: of a list that was added to; otherwise 0 */
    struct tare_attr *attrs; /* of the function (_noinline, _implements, _XlaMustCompile …) */
    size_t n_attrs, attrs_capacity;
    bool has_uses;            /* the lists of uses are built and maintained: tare_graph_index_uses */
    struct tare_map suffixes; /* stem of a node name -> struct tare_name_suffix: the last one tried */
    bool removed;             /* from the model */
    bool is_stateful;
    bool must_not_jit;    /* XLA cannot compile it: it reaches a TPU call or a batcher */
    bool arg_shapes_void; /* what `origin` records of the arguments' shapes no longer holds (tare_graph_drop_arg_shapes)
                           */
    const void *origin;   /* the FunctionDef it was read from */
    const char *copied_from; /* name of the function that it was copied from for one of its callers; otherwise NULL */
    const char *body_of;     /* name of the function that its nodes were copied from; NULL: its own */
};

/* Predicates; false for a NULL node. */
static inline bool tare_node_is(const struct tare_node *node, const char *op) {
    return node && strcmp(node->op, op) == 0;
}
/* The name of the function that first had the nodes: what was copied or moved has the same nodes by another name. */
static inline const char *tare_graph_body_name(const struct tare_graph *graph) {
    return graph->body_of ? graph->body_of : graph->name;
}
/* A function argument: its position is an index into graph->args. */
static inline bool tare_node_is_arg(const struct tare_node *node) {
    return node->position < node->graph->n_args && node->graph->args[node->position] == node;
}
/* Whether an argument of the function is a resource: a variable, a table. */
static inline bool tare_graph_takes_resource(const struct tare_graph *function) {
    bool takes = false;
    for (size_t i = 0; i < function->n_args && !takes; i++)
        takes = function->args[i]->output_dtypes[0] == TARE_DT_RESOURCE;
    return takes;
}
/* The op whose output is the back edge of a TF1 loop. */
static inline bool tare_node_is_back_edge(const struct tare_node *node) {
    return tare_node_is(node, "NextIteration") || tare_node_is(node, "RefNextIteration");
}
/* True when the list, which ends with NULL, contains the op name. */
bool tare_op_is_one_of(const char *op, const char *const *ops);
/* Output 0 of a node. */
static inline struct tare_edge tare_node_output0(struct tare_node *node) {
    return (struct tare_edge){ node, 0 };
}
static inline bool tare_edge_equal(struct tare_edge a, struct tare_edge b) {
    return a.node == b.node && a.index == b.index;
}

/* Attributes with the shapes of arguments are hints, but loaders take them as static shapes: _input_shapes of the
 * function, and per argument arg_attr (written back from `origin`). Every pass that changes the shape of an argument,
 * or moves a body to a function whose arguments have other shapes, calls this; removing an argument removes its item
 * (graph/calls.h). */
tare_status tare_graph_drop_arg_shapes(struct tare_graph *function) TARE_WARN_UNUSED;

/* Releases what is not in the model's arena: when the model is freed, and when a function is removed from it. */
void tare_graph_free_maps(struct tare_graph *graph);
/* TensorFlow's rule for names of nodes: parts that ">" separates, each a letter, a digit or "." and then also "_", "-"
 * and "/". Names of functions have no rule: "__inference_<lambda>_6". */
bool tare_node_name_is_valid(const char *name);
/* Whether TensorFlow loads a node of this name: a session that imports the main graph also allows names that begin with
 * "_"; a loader of functions does not. */
bool tare_node_is_loadable(const struct tare_node *node);
/* A valid name that resembles `text`, in the arena: what the rule does not allow becomes "_", and is dropped where the
 * name begins. NULL: no memory. */
const char *tare_node_name_from(struct tare_arena *arena, const char *text);
/* Adds a node at the end of the graph. The name is made valid; one in use gets the first free suffix _1, _2 …. NULL: no
 * memory. `op` is looked up in the registry. Add inputs and attributes, then call tare_node_resolve. */
struct tare_node *tare_graph_add(struct tare_graph *graph, const char *op, const char *name);
/* As tare_graph_add for a node that is read from a file, which keeps its name: other parts of the file refer to it. */
struct tare_node *tare_graph_add_read(struct tare_graph *graph, const char *op, const char *name);
/* As tare_graph_add for a function argument. */
struct tare_node *tare_graph_add_arg(struct tare_graph *graph, const char *name, int dtype);
/* As tare_graph_add_arg, with the dtype and, shared, the attributes of `like`: an argument with the same index. For
 * models that are not changed. */
struct tare_node *tare_graph_add_arg_like(struct tare_graph *graph, const char *name, const struct tare_node *like);
/* Reserves space for exactly `n_nodes` more nodes. */
tare_status tare_graph_reserve(struct tare_graph *graph, size_t n_nodes);
struct tare_node *tare_graph_find(const struct tare_graph *graph, const char *name);
tare_status tare_graph_add_return(struct tare_graph *graph, const char *name, int dtype, struct tare_edge edge);
/* Replaces the value or the dtype of return i (i < n_returns). */
void tare_graph_set_return(struct tare_graph *graph, size_t i, struct tare_edge edge);
void tare_graph_set_return_type(struct tare_graph *graph, size_t i, int dtype);
/* Removes each return i with removed[i]; the following ones move up. */
void tare_graph_remove_returns(struct tare_graph *graph, const bool *removed);
/* A node of the function that every call runs. The name is borrowed. */
tare_status tare_graph_add_control_return(struct tare_graph *graph, const char *name, struct tare_node *node);

tare_status tare_node_add_input(struct tare_node *node, struct tare_edge edge);
/* Replaces input k (k < n_inputs). */
void tare_node_set_input(struct tare_node *node, size_t k, struct tare_edge edge);
/* Removes each input first + i with removed[i], i < count; the following ones move up. */
void tare_node_remove_inputs(struct tare_node *node, size_t first, const bool *removed, size_t count);
/* Reserves space for `count` inputs in total. */
tare_status tare_node_reserve_inputs(struct tare_node *node, size_t count);
tare_status tare_node_add_control(struct tare_node *node, struct tare_node *before);
/* Finds the op definition and computes n_outputs and output_dtypes from it and the attributes.
 * TARE_NOT_FOUND for an unknown op, TARE_INVALID_ARGUMENT for a missing or ill-kinded attribute. */
tare_status tare_node_resolve(struct tare_node *node);
/* Gives a copy of a node the definition and the outputs of the original. */
tare_status tare_node_resolve_like(struct tare_node *node, const struct tare_node *like);
/* The dtype of an edge as a base dtype (TARE_DT_INVALID when the index is out of range). */
int tare_edge_dtype(struct tare_edge edge);

/* Attributes. `find` returns NULL when absent. The typed getters return the value written on the node, else the op
 * definition's default, else `fallback` (also when the attribute has another kind). */
const struct tare_attr *tare_node_find_attr(const struct tare_node *node, const char *name);
int64_t tare_node_int(const struct tare_node *node, const char *name, int64_t fallback);
float tare_node_float(const struct tare_node *node, const char *name, float fallback);
bool tare_node_bool(const struct tare_node *node, const char *name, bool fallback);
int tare_node_type(const struct tare_node *node, const char *name, int fallback);
/* NUL-terminated; borrowed from the node or the definition. */
const char *tare_node_string(const struct tare_node *node, const char *name, const char *fallback);
const struct tare_attr *tare_node_list(const struct tare_node *node, const char *name); /* with default; NULL if there
                                                                 is none of the kind that the definition requires */
const struct tare_tensor *tare_node_tensor(const struct tare_node *node, const char *name);
bool tare_node_shape(const struct tare_node *node, const char *name, struct tare_shape *out);
/* The function that attribute `name` refers to; NULL when the model does not have it. */
struct tare_graph *tare_node_function(const struct tare_node *node, const char *name);

/* Set or replace. Strings and arrays are copied into the model's arena; the tensor is shared. */
tare_status tare_node_set_int(struct tare_node *node, const char *name, int64_t value);
tare_status tare_node_set_float(struct tare_node *node, const char *name, float value);
tare_status tare_node_set_bool(struct tare_node *node, const char *name, bool value);
tare_status tare_node_set_type(struct tare_node *node, const char *name, int dtype);
tare_status tare_node_set_string(struct tare_node *node, const char *name, const void *data, size_t size);
tare_status tare_node_set_shape(struct tare_node *node, const char *name, const struct tare_shape *shape);
tare_status tare_node_set_tensor(struct tare_node *node, const char *name, const struct tare_tensor *tensor);
tare_status tare_node_set_func(struct tare_node *node, const char *name, const char *function);
tare_status tare_node_set_int_list(struct tare_node *node, const char *name, const int64_t *values, size_t count);
tare_status tare_node_set_type_list(struct tare_node *node, const char *name, const int *dtypes, size_t count);
tare_status tare_node_set_shape_list(struct tare_node *node, const char *name, const struct tare_shape *shapes,
                                     size_t count);
tare_status tare_node_set_func_list(struct tare_node *node, const char *name, struct tare_graph *const *functions,
                                    size_t count);
void tare_node_remove_attr(struct tare_node *node, const char *name);
/* Copies every attribute of `from` (values shared). */
tare_status tare_node_copy_attrs(struct tare_node *node, const struct tare_node *from);
/* The same on a function. */
const struct tare_attr *tare_graph_find_attr(const struct tare_graph *graph, const char *name);
tare_status tare_graph_remove_attr(struct tare_graph *graph, const char *name);

/* Uses. Each output has a list of its uses, so that counting and replacing the uses of an edge takes time in their
 * number, not in the size of the graph or in the number of outputs of the node. The lists are built when they are first
 * needed (a model that is only read has none) and maintained from then on. They may contain uses by nodes that are
 * marked dead but not swept: skip those.
 *
 * Builds the lists; the functions below may be called afterwards. TARE_NO_MEMORY. */
tare_status tare_graph_index_uses(const struct tare_graph *graph);
/* The uses of one output; NULL after the last one. */
struct tare_use *tare_edge_first_use(struct tare_edge edge);
struct tare_use *tare_edge_next_use(const struct tare_use *use);
/* The uses of all outputs of a node, one output after another. */
struct tare_use *tare_node_first_use(const struct tare_node *node);
struct tare_use *tare_node_next_use(const struct tare_use *use);
/* Replaces every use of `from` (inputs, function returns, signatures of the main graph) by `to`, except in the node
 * `except` (NULL: none). Returns the number of uses changed. */
size_t tare_graph_replace_uses(struct tare_graph *graph, struct tare_edge from, struct tare_edge to,
                               const struct tare_node *except);
/* Replaces every use of output i of the node by to[i], an output of the same graph, in one pass over the node's uses.
 * to[i] may be another output of the node itself. */
void tare_node_replace_outputs(struct tare_node *node, const struct tare_edge *to);
/* Number of data uses of an output (returns and signatures included); *user gets the last user (NULL: only returns). */
size_t tare_graph_count_uses(const struct tare_graph *graph, struct tare_edge edge, struct tare_node **user);
/* As tare_graph_count_uses, but stops counting at `limit`: whether an output is used at all, or once. */
size_t tare_graph_count_uses_to(const struct tare_graph *graph, struct tare_edge edge, size_t limit,
                                struct tare_node **user);
void tare_node_remove(struct tare_node *node); /* marks dead; inputs stay readable until the sweep */
/* Drops dead nodes and fixes positions. */
void tare_graph_sweep(struct tare_graph *graph);
/* Removes every node that no return, control return, signature, kept root or stateful op depends on, and sweeps.
 * Adds the number of nodes removed to *removed (NULL: not counted). Arguments stay. */
tare_status tare_graph_remove_unreachable(struct tare_graph *graph, size_t *removed) TARE_WARN_UNUSED;
/* Nodes in an order in which inputs and controls come first; NextIteration back edges are cut. The array is arena
 * memory. TARE_INVALID_ARGUMENT names a node of a cycle. */
tare_status tare_graph_order(struct tare_node ***out, struct tare_arena *arena, const struct tare_graph *graph);

/* The constant value of an edge, looking through Identity; NULL when it is not a Const. */
const struct tare_tensor *tare_edge_constant(struct tare_edge edge);
/* Adds a Const node. */
struct tare_node *tare_graph_add_const(struct tare_graph *graph, const char *name, const struct tare_tensor *value);

#endif

/* The state of a session, shared by the files of interpreter/execution. */
#ifndef TARE_INTERPRETER_EXECUTION_STATE_H
#define TARE_INTERPRETER_EXECUTION_STATE_H

#include "graph/graph_table.h"
#include "interpreter/session.h"

struct tare_plan;

/* The session's record of one node. */
struct tare_node_state {
    const struct tare_node *node;
    void *kernel; /* made by the row's prepare */
    bool prepared;
    bool checked;               /* inputs and attributes fit the definition */
    bool keep;                  /* a plan reads `values` in its runs */
    bool computed;              /* `values` are there */
    struct tare_tensor *values; /* outputs of a constant node */
    int64_t calls, nanoseconds;
    struct tare_kept_tiling *tilings; /* of kernels that begin with this node (interpreter/kernel.h) */
    struct tare_exec_sides *sides;    /* that the node has taken; NULL: none */
};

/* The session's record of one graph. */
struct tare_exec_graph {
    const struct tare_graph *graph;
    struct tare_node_state *nodes; /* by position */
    size_t n_nodes;
    struct tare_plan *plan; /* of a function's body; NULL until it is entered */
    int64_t runs;
};

/* How often each side of an If, Case or While was taken; sides from `count` on were not. */
struct tare_exec_sides {
    size_t count;
    int64_t runs[];
};

/* One function call in progress. */
struct tare_exec_call {
    const struct tare_graph *function;
    const struct tare_exec_call *caller;
};

/* Resources of one kind by name. */
struct tare_resource_kind {
    const char *name;
    struct tare_map by_name; /* -> struct tare_object */
    struct tare_resource_kind *next;
};

struct tare_session {
    const struct tare_graph_model *model;
    struct tare_session_options options;
    struct tare_arena arena; /* plans, node states, names */
    struct tare_buffer_pool *pool;
    struct tare_graph_table graphs; /* -> struct tare_exec_graph */
    struct tare_exec_graph **graph_list;
    size_t n_graphs, graphs_capacity;
    struct tare_map plans;        /* feeds, fetches, targets of a main-graph run -> struct tare_plan */
    struct tare_plan *first_plan; /* every plan, linked */
    struct tare_resource_kind *kinds;
    struct tare_object **resource_list;
    size_t n_resources, resources_capacity;
    struct tare_object **run_objects; /* of this run from outside only: what string handles number */
    size_t n_run_objects, run_objects_capacity;
    struct tare_map variables;  /* bytes of a main-graph node's address -> struct tare_object, borrowed */
    struct tare_tensor *assets; /* paths, by model->assets */

    /* tare_plan_run, set when the session is made: steps call functions through it (call.c) */
    tare_status (*run_plan)(struct tare_session *session, struct tare_plan *plan, struct tare_tensor *feeds,
                            struct tare_tensor *results);

    tare_observe_fn observe;
    bool (*accepts)(void *arg, const struct tare_node *node, size_t output);
    void *observe_arg;
    int observe_epoch; /* counts changes, so that plans ask again */

    const struct tare_exec_call *call; /* innermost function */
    int depth;
    bool located;                  /* the error text names its node already */
    struct tare_tensor **last_use; /* of the running node: input i's slot if the node may move it out, else NULL */
    int64_t nested_ns;             /* time of nodes inside the one that runs */
    uint64_t random;               /* numbers drawn in this run */
    struct tare_arena *scratches;  /* unused scratch memory of frames, with room for what frames have taken */
    size_t n_scratches, n_scratches_taken, scratches_capacity;
    struct tare_pool *op_pool; /* threads for one op; NULL until they are asked for */
};

/* The session's record of a graph; created on first use. NULL: out of memory. */
struct tare_exec_graph *tare_exec_graph_of(struct tare_session *session, const struct tare_graph *graph);
/* Prefixes the error text with "function/node (Op): ", once per run. */
tare_status tare_exec_locate(struct tare_session *session, const struct tare_node *node, tare_status status);

/* Runs a function. Takes over the arguments' references (all zeroed afterwards, also on failure). `results` are
 * zeroed on failure. Checks the number and the dtypes of the arguments. */
tare_status tare_exec_call(struct tare_session *session, const struct tare_graph *function, struct tare_tensor *args,
                           size_t n_args, struct tare_tensor *results, size_t n_results);
/* Records that a node takes one of its sides. */
tare_status tare_exec_count_side(struct tare_session *session, const struct tare_node *node, size_t side);
/* For kernels that call functions: input i as the caller's own reference, moved out of its slot if this node is its
 * last user. At most once per input; the kernel must not access the input afterwards. */
void tare_exec_take_input(struct tare_kernel *kernel, size_t i, struct tare_tensor *out);

/* Frees the objects added with tare_session_add_run_object. */
void tare_session_drop_run_objects(struct tare_session *session);

#endif

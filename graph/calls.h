/* Call sites: which inputs of a node become which arguments of the functions that it calls. */
#ifndef TARE_GRAPH_CALLS_H
#define TARE_GRAPH_CALLS_H

#include "graph/model.h"

/* How a node calls functions. */
enum tare_call_kind {
    TARE_CALL_NONE,   /* calls no function of the model */
    TARE_CALL_PLAIN,  /* one function, all inputs: PartitionedCall, BatchFunction, a call by op name */
    TARE_CALL_TPU,    /* one function, all inputs but the last (the device ordinal) */
    TARE_CALL_BRANCH, /* several functions, all inputs but the first: If, Case */
    TARE_CALL_LOOP,   /* condition and body, all inputs; the body's returns are its next arguments: While */
    TARE_CALL_OTHER,  /* refers to functions in an unknown way (a dataset op) */
};

struct tare_call_site {
    enum tare_call_kind kind;
    size_t first; /* node input that becomes argument 0 */
    size_t n_args;
    struct tare_graph **callees; /* arena memory; for TARE_CALL_LOOP condition, then body */
    size_t n_callees;
};

/* Describes how `node` calls functions; kind TARE_CALL_NONE when it does not. `arena` holds the callee list. */
tare_status tare_call_site(struct tare_call_site *out, struct tare_arena *arena, const struct tare_node *node);

/* Sets Tin and Tout of a call node to the dtypes of the function's arguments and returns. */
tare_status tare_call_set_types(struct tare_node *call, const struct tare_graph *callee);

/* Marks, by position, the main-graph nodes that signatures and initialisers depend on, but not the nodes of the saver,
 * which refer to every variable. `arena` memory. */
tare_status tare_model_served_nodes(bool **served, struct tare_arena *arena, const struct tare_graph_model *model);
/* Marks, by position, the main-graph nodes of variables to which the main op or a table initializer assigns a value
 * when the model is loaded, as the local variables of TensorFlow 1. `arena` memory. */
tare_status tare_model_initialized_nodes(bool **nodes, struct tare_arena *arena, const struct tare_graph_model *model);
/* Marks the functions that are needed: reached from signatures, the init node and table initialisers, and (when
 * with_aliases) from aliased functions and what the object graph lists under `concretes`, with the gradients that nodes
 * of these keep. live[i] belongs to
 * model->functions[i]; `arena` memory. */
tare_status tare_model_reachable_functions(bool **live, struct tare_arena *arena, const struct tare_graph_model *model,
                                           bool with_aliases);
/* Whether a function was traced by tf.function(jit_compile=True). */
bool tare_function_must_compile(const struct tare_graph *function);
/* Whether XLA compiles a function: such a one, or one that it calls, directly or not. */
tare_status tare_function_is_compiled(bool *out, const struct tare_graph *function);
/* The loader may call the function as a method: it stays although no signature, alias or function calls it any more. */
void tare_model_keep_method(struct tare_graph_model *model, const struct tare_graph *function);
/* Removes the functions that are not live, and their concretes and aliases. */
void tare_model_remove_functions(struct tare_graph_model *model, const bool *live);

struct tare_node_list {
    struct tare_node **nodes;
    size_t count;
};

/* Removes the arguments i of a function with removed[i], and the inputs at every call site that pass them. They must be
 * unused. `callers`: the nodes that call the function (NULL: all nodes of the model are searched). TARE_UNSUPPORTED,
 * with nothing changed, where a call site does not allow it: branches and loops share their arguments with other
 * functions. Captures in model->concretes follow. */
tare_status tare_function_remove_args(struct tare_graph *function, const bool *removed,
                                      const struct tare_node_list *callers) TARE_WARN_UNUSED;
/* Removes the arguments i with removed[i] of all branches of an If or Case, and the inputs that pass them. No branch
 * uses them, all branches have the same number of arguments, and no other node calls a branch. */
tare_status tare_branches_remove_args(struct tare_node *node, struct tare_graph *const *branches, size_t n_branches,
                                      const bool *removed) TARE_WARN_UNUSED;
/* Removes the variables i with removed[i] of a While, which its body returns unchanged and neither function uses
 * otherwise; users of the loop's outputs get its inputs. No other node calls either function. */
tare_status tare_loop_remove_variables(struct tare_node *loop, struct tare_graph *condition, struct tare_graph *body,
                                       const bool *removed) TARE_WARN_UNUSED;
/* Removes the arguments that no function uses and the loop variables that are only carried, until none is left, so that
 * a variable which was passed through calls, branches and loops becomes unused; adds their number to *removed.
 * Arguments that a user of the model passes (those of aliased and concrete functions, captures excepted) stay, as do
 * those of functions that several branches or loops share. */
tare_status tare_model_remove_unused_args(size_t *removed, struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif

/* A session: one model being run by one thread. Holds the state (variables, tables, stacks), the plans and the memory.
 * Sessions of one model share its constants and the variables' checkpoint memory, which are never written. */
#ifndef TARE_INTERPRETER_SESSION_H
#define TARE_INTERPRETER_SESSION_H

#include "graph/model.h"
#include "interpreter/kernel.h"

struct tare_session;

/* Called, if an observer is set, for each output of an executed node, each fed tensor and each function
 * argument. `value` is borrowed. A failure stops the run. */
typedef tare_status (*tare_observe_fn)(void *arg, const struct tare_node *node, size_t output,
                                       const struct tare_tensor *value);

struct tare_session_options {
    bool use_reference_kernels; /* plain kernels where a row has one */
    bool check_numerics;        /* fail at the first NaN or infinity, naming the node */
    /* Called after each node with a line of its name, op, dtypes and shapes, on the thread that ran it; NULL: not
     * called. */
    void (*trace)(const char *line);
    bool profile;         /* collect the time of each node: tare_session_profile */
    uint64_t seed;        /* of random ops without a seed */
    int64_t memory_limit; /* bytes of tensors in one run; 0: the limit of the process, or 64 GiB */
    int max_call_depth;   /* 0: TARE_MOST_NESTED_CALLS */
    int op_threads;       /* that one kernel may use (convolutions, products, tare_op_parallel_for of plugins); 0: 1 */
};

/* Sets the variables from the checkpoint and runs initialisers (main op, tables). NULL options: all default. */
tare_status tare_session_new(struct tare_session **out, const struct tare_graph_model *model,
                             const struct tare_session_options *options);
void tare_session_free(struct tare_session *session);
/* Frees the buffers that are reused between runs; useful when the next run has other shapes. */
void tare_session_trim(struct tare_session *session);
/* The most bytes of tensors in use since the previous call, without those that are in use now: the activations of the
 * runs in between. */
int64_t tare_session_activation_bytes(struct tare_session *session);

/* Sets the observer. `accepts` (NULL: all) selects the observed outputs; it is called once per output and plan, not in
 * each run. fn is called with the value of each observed output. */
void tare_session_observe(struct tare_session *session, tare_observe_fn fn,
                          bool (*accepts)(void *arg, const struct tare_node *node, size_t output), void *arg);

/* Runs the nodes of the main graph that `fetches` depend on; feeds replace the edges' values (an edge may be any
 * tensor; one whose value has no dtype is not fed). The caller resets the outputs. Targets are nodes to run for their
 * side effect. */
tare_status tare_session_run(struct tare_session *session, const struct tare_edge *feeds,
                             const struct tare_tensor *values, size_t n_feeds, const struct tare_edge *fetches,
                             struct tare_tensor *results, size_t n_fetches, struct tare_node *const *targets,
                             size_t n_targets);
/* Runs a signature: inputs in the order of signature->inputs, outputs likewise. An input that the graph computes itself
 * may be omitted (no dtype). dtypes and shapes are checked. */
tare_status tare_session_run_signature(struct tare_session *session, const struct tare_signature *signature,
                                       const struct tare_tensor *inputs, struct tare_tensor *outputs);
/* Calls a function: all arguments, captures included. */
tare_status tare_session_call(struct tare_session *session, const struct tare_graph *function,
                              const struct tare_tensor *args, size_t n_args, struct tare_tensor *results,
                              size_t n_results);

/* Lists every op without a kernel that the signature (NULL: all) or the initialisers reach: one line "Op: used by
 * function/node, …" each into `text`, with the reason after the op when there are kernels for other dtypes. *count:
 * number of lines; a graph that cannot be ordered is one more, with its error. Fails only when memory runs out or on
 * cancellation. */
struct tare_strbuf;
tare_status tare_session_missing_ops(size_t *count, const struct tare_graph_model *model,
                                     const struct tare_signature *signature, struct tare_strbuf *text) TARE_WARN_UNUSED;
/* Lists, in the same form, the ops reached by the signature that change state read by later runs; `text` may be NULL.
 * *stateful: there are any, so the outputs for a record may depend on the records before it. */
tare_status tare_session_state_ops(bool *stateful, const struct tare_graph_model *model,
                                   const struct tare_signature *signature, struct tare_strbuf *text) TARE_WARN_UNUSED;

/* TARE_UNSUPPORTED with the missing ops in one line that names --plugin; the error of a graph that cannot be ordered;
 * TARE_OK when no op is missing. Errors begin with the model's path. */
tare_status tare_session_check_ops(const struct tare_graph_model *model, const struct tare_signature *signature);

/* One line of the profile. */
struct tare_profile_row {
    const struct tare_node *node;
    int64_t calls, nanoseconds;
};
/* Rows of the nodes that ran, slowest first; arena memory. The time of a fused epilogue (bias, ReLU) is attributed
 * to the node of the kernel. */
tare_status tare_session_profile(struct tare_profile_row **rows, size_t *count, struct tare_arena *arena,
                                 const struct tare_session *session);

/* Named state for kernels: tables, variables, stacks, by container and name. Returns a borrowed object, NULL when
 * absent.
 */
struct tare_object *tare_session_find_resource(struct tare_session *session, const char *kind, const char *name);
/* Takes over the caller's reference. */
tare_status tare_session_add_resource(struct tare_session *session, const char *kind, const char *name,
                                      struct tare_object *object);
/* Objects of the current run, by number, for handles that are plain strings. `add` takes over the caller's reference
 * and returns the number; `find` returns a borrowed object, NULL for a number not added in this run. */
tare_status tare_session_add_run_object(size_t *number, struct tare_session *session, struct tare_object *object);
struct tare_object *tare_session_find_run_object(const struct tare_session *session, int64_t number);
/* How often the body of `function` was run in this session, including calls inlined in a plan. Shows which branches of
 * If, Case and While were reached. */
int64_t tare_session_function_runs(const struct tare_session *session, const struct tare_graph *function);
/* How often an If, Case or While took one of its sides: If 0 then, 1 else; While 0 condition, 1 body; Case the branch's
 * number. Unlike the function's runs, these are the node's own where several nodes name one function. */
int64_t tare_session_side_runs(const struct tare_session *session, const struct tare_node *node, size_t side);
const struct tare_graph_model *tare_session_model(const struct tare_session *session);
/* A stream of random 64-bit numbers for op-level seeds; see interpreter/ops/random/random.c. */
uint64_t tare_session_next_random(struct tare_session *session);

/* Changes op_threads, between two runs. Outputs do not depend on it. */
void tare_session_set_op_threads(struct tare_session *session, int threads);
/* The thread pool of one op, created on first use; NULL (one thread) for op_threads 1, without a session, and when it
 * cannot be created. */
struct tare_pool;
struct tare_pool *tare_session_op_pool(struct tare_session *session);
/* Memory that lives as long as the session. */
struct tare_arena *tare_session_arena(struct tare_session *session);

/* ---- for the executor and control-flow kernels only ---- */
tare_status tare_kernel_call(struct tare_kernel *kernel, const struct tare_graph *function,
                             const struct tare_tensor *args, size_t n_args, struct tare_tensor *results,
                             size_t n_results);

#endif

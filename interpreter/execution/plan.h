/* Plans: what to run for given feeds and fetches, in which order, where the values lie and when they end.
 *
 * A value number says where a value is: v >= 0 is slot v of the run, v < 0 is constant ~v of the plan. */
#ifndef TARE_INTERPRETER_EXECUTION_PLAN_H
#define TARE_INTERPRETER_EXECUTION_PLAN_H

#include "interpreter/execution/state.h"

enum tare_step_kind {
    TARE_STEP_PLAIN,
    TARE_STEP_SWITCH, /* leaves one output without value */
    TARE_STEP_MERGE,  /* runs when any input has a value */
    TARE_STEP_ENTER,
    TARE_STEP_EXIT,
    TARE_STEP_NEXT,
};

/* Operator fusion: steps that the preceding step (the head) may compute in its epilogue. */
enum { TARE_FUSION_MAX_STEPS = 8 };
struct tare_fusion {
    int steps[TARE_FUSION_MAX_STEPS]; /* in order, after the head */
    int n_steps;
    int output; /* slot of the last one's output */
    bool has_bias, has_addend, relu;
    bool bias_is_vector; /* must have rank 1 */
    int bias, addend;    /* value numbers */
    float limit;
    bool active; /* the present observer requests no intermediate value */
};

/* Tiled execution: a step and the following ones that may run together with it (tare_op.run_tiled), each with its
 * fusion. Each is the only reader of the previous one's output. */
enum { TARE_TILED_STEPS_MAX = 12 };
struct tare_tiled_steps {
    int heads[TARE_TILED_STEPS_MAX]; /* the first is the step itself */
    int n_heads;
    int n_active; /* how many may run together with the present observer; 0: none */
};

/* One node of a plan. */
struct tare_step {
    const struct tare_node *node;
    const struct tare_op *op;        /* NULL: nobody defined it, or a call by name */
    const struct tare_graph *callee; /* call by name */
    struct tare_node_state *state;
    enum tare_step_kind kind;
    int *inputs; /* value numbers */
    size_t n_inputs;
    bool *reads;      /* input i is a variable's reference that is to be read; NULL: none is */
    bool *last_use;   /* this step is the last use of input i's slot, and reads it through no other input */
    int first_output; /* slots of the outputs follow each other; -1 for a constant step */
    size_t n_outputs;
    int *drops; /* slots that end with this step */
    size_t n_drops;
    int *controls; /* steps that come before; only where steps may be left out */
    size_t n_controls;
    bool *observed;                 /* by output; NULL: none */
    struct tare_fusion *fusion;     /* of which this step is the head; NULL: none */
    struct tare_tiled_steps *tiled; /* of which this step is the first; NULL: none */
};

/* Output `output` of a constant node. */
struct tare_plan_constant {
    struct tare_node_state *state;
    int output;
};

/* Values and scratch of one run of a plan; kept for the next. */
struct tare_exec_frame {
    struct tare_tensor *slots;
    struct tare_tensor *inputs; /* of the node that runs: borrowed, but for read references */
    struct tare_tensor **last_use;
    bool *dead;     /* by step: on a branch of a TF1 conditional that was not taken */
    bool *computed; /* by step: already computed by a fusion or a tiled run */
    struct tare_arena scratch;
};

struct tare_plan {
    const struct tare_graph *graph;
    struct tare_plan *next; /* in the session's list */
    struct tare_step *steps;
    size_t n_steps;
    struct tare_step *constant_steps;
    size_t n_constant_steps;
    bool constants_ready;
    struct tare_plan_constant *constants;
    size_t n_constants;
    int *feeds; /* slot of feed i */
    size_t n_feeds;
    int *fetches;      /* value numbers */
    bool *fetch_reads; /* fetch i is a reference, read when all has run */
    size_t n_fetches;
    size_t n_slots;
    size_t max_inputs;
    bool may_die;           /* Switch or Merge in it */
    bool has_frames;        /* Enter in it */
    struct tare_flow *flow; /* of frames.c, arena memory; NULL until needed */
    int observe_epoch;
    bool *fed_wanted; /* the observer wants feed i; NULL: not asked yet */
    int fed_epoch;    /* of the observer that was asked */
    struct tare_exec_frame *spare;
};

/* What a run is asked for. For a function's body only `graph` is set. */
struct tare_plan_request {
    const struct tare_graph *graph;
    const struct tare_edge *feeds;
    size_t n_feeds;
    const struct tare_edge *fetches;
    size_t n_fetches;
    struct tare_node *const *targets;
    size_t n_targets;
};

/* The nodes that a request needs, inputs and controls first, NextIteration's back edges cut; arena memory. */
tare_status tare_plan_order(struct tare_node ***out, size_t *count, struct tare_arena *arena,
                            const struct tare_plan_request *request);
/* True for the nodes of a function's body that run though no result needs them. */
bool tare_plan_is_root(const struct tare_node *node);

/* Makes a plan in the session's arena. Faults of nodes name the node. */
tare_status tare_plan_new(struct tare_plan **out, struct tare_session *session,
                          const struct tare_plan_request *request);
/* Ends the memory of a plan that the arena does not hold. */
void tare_plan_release(struct tare_plan *plan);
/* Whether the node fits its definition: number and dtypes of inputs, attributes. `arena` is scratch. */
tare_status tare_plan_check_node(struct tare_arena *arena, const struct tare_node *node);

/* Runs a plan. Takes over the feeds' references (zeroed afterwards, also on failure); results are zero on failure. */
tare_status tare_plan_run(struct tare_session *session, struct tare_plan *plan, struct tare_tensor *feeds,
                          struct tare_tensor *results);
/* The same for a plan with has_frames, called by tare_plan_run: the slots of the feeds are set in `frame`. */
tare_status tare_flow_run(struct tare_session *session, struct tare_plan *plan, struct tare_exec_frame *frame);

/* Runs one step on gathered inputs; `frame->last_use` holds the slots that may be moved out. Outputs are zero on
 * failure. `epilogue`: what the kernel may compute in the same pass; NULL: nothing. */
tare_status tare_step_run(struct tare_session *session, const struct tare_step *step, struct tare_exec_frame *frame,
                          struct tare_tensor *outputs, struct tare_epilogue *epilogue);
/* The row's prepare, once. On failure nothing but the error text is left. */
tare_status tare_step_prepare(struct tare_kernel *kernel, struct tare_node_state *state);
/* Shows the step's outputs to the observer, who wants some of them. */
tare_status tare_step_show(struct tare_session *session, const struct tare_step *step,
                           const struct tare_tensor *outputs);

/* Which step makes a slot and which one uses it. */
enum { TARE_NO_STEP = -1, TARE_MANY_STEPS = -2 };
struct tare_plan_uses {
    int *made_by; /* by slot: step; TARE_NO_STEP for a feed */
    int *used_by; /* by slot: the only step, TARE_NO_STEP, or TARE_MANY_STEPS (also for a result) */
};
tare_status tare_plan_note_uses(struct tare_plan_uses *uses, const struct tare_plan *plan, struct tare_arena *arena);
/* The value is there before step `head` runs. */
bool tare_plan_is_before(const struct tare_plan_uses *uses, int value, int head);
/* The value of a number in a run. */
const struct tare_tensor *tare_plan_value(const struct tare_plan *plan, const struct tare_exec_frame *frame, int value);

/* Find the fusions and tilings of a complete plan (arena memory). Not for plans with dead branches or loop frames. */
tare_status tare_plan_find_fusions(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena);
tare_status tare_plan_find_tilings(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena);
/* Selects the tilings that the present observer allows; the fusions must have been selected. */
void tare_plan_select_tilings(const struct tare_session *session, const struct tare_plan *plan);
/* Runs the step together with the following ones if that is faster: *done reports whether, frame->computed which. */
tare_status tare_tiled_steps_run(struct tare_session *session, const struct tare_plan *plan,
                                 struct tare_exec_frame *frame, const struct tare_step *step, bool *done);
/* Selects the fusions that the present observer allows. */
void tare_plan_select_fusions(const struct tare_session *session, const struct tare_plan *plan);
/* Runs the head of an active fusion on gathered inputs, and marks the steps computed with it in frame->computed. */
tare_status tare_fusion_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                            const struct tare_step *head, const struct tare_tensor *bias,
                            const struct tare_tensor *addend);
/* Makes `out` a share of what the reference held by `handle` reads now; shares `handle` itself if it is none. */
tare_status tare_step_read(struct tare_tensor *out, const struct tare_tensor *handle);

#endif

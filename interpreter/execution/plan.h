/* Plans: the steps to run for given feeds and fetches, in order, with the value slots and their lifetimes.
 *
 * A value number locates a value: v >= 0 is slot v of the run's frame, v < 0 is constant ~v of the plan. A plan does
 * not change while it runs, except for what depends on the observer (observed, active, n_active), the spare frame, kept
 * epilogues and the inputs of tiled steps.
 */
#ifndef TARE_INTERPRETER_EXECUTION_PLAN_H
#define TARE_INTERPRETER_EXECUTION_PLAN_H

#include "interpreter/execution/state.h"
#include "interpreter/kernel.h"
#include "interpreter/kernels/expression.h"
#include "interpreter/kernels/simd/pointwise.h"

enum tare_step_kind {
    TARE_STEP_PLAIN,
    TARE_STEP_SWITCH, /* one of its outputs has no value */
    TARE_STEP_MERGE,  /* runs when any input has a value */
    TARE_STEP_ENTER,
    TARE_STEP_EXIT,
    TARE_STEP_NEXT,
};

/* Operator fusion: steps that the preceding step (the head) may compute in its epilogue. */
enum { TARE_FUSION_MAX_STEPS = 8 + TARE_POINTWISE_MOST };
struct tare_fusion {
    int reshape;                      /* a Reshape between the head, a matrix product, and the others; -1: none */
    int steps[TARE_FUSION_MAX_STEPS]; /* in order, after the head; without `reshape` */
    int n_steps;
    int output;                                           /* slot of the last one's output */
    bool has_scale, has_bias, has_norm, has_addend, relu; /* applied in this order */
    bool bias_is_vector;                                  /* must have rank 1 */
    bool addend_ends;                                  /* nothing uses the addend after the head, except the fusion */
    int scale, bias, addend, norm[TARE_NORM_OPERANDS]; /* value numbers */
    float limit, epsilon;
    const struct tare_pointwise *activation; /* what the steps after these compute of their result; NULL: none */
    int n_before, argument;                  /* with an activation: the steps before it; the slot of their result */
    struct tare_kept_epilogue *kept;         /* NULL: an operand is not constant */
    bool active;                             /* the present observer requests no intermediate value */
    bool activates;                          /* it requests none within the activation, which may run by itself */
    /* That of all the steps, and the next shorter one: where a value within is observed, the longest that ends there is
     * the step's fusion. */
    struct tare_fusion *full, *shorter;
};

/* Tiled execution: a step and the following ones that may run together with it (tare_op.run_tiled), each with its
 * fusion. Each is the only user of the previous one's output. */
enum { TARE_TILED_STEPS_MAX = 12 };
struct tare_tiled_steps {
    int heads[TARE_TILED_STEPS_MAX]; /* the first is the step itself */
    int n_heads;
    int n_active; /* how many may run together with the present observer; 0: none */
    /* The last run with the present observer: the shape of the first one's input 0, what division between threads
     * depended on, and how many ran together; n_run -1: there was none. */
    struct tare_shape input;
    double least_work;
    int threads, n_run;
    struct tare_tensor *inputs[TARE_TILED_STEPS_MAX]; /* by head, without input 0 of later ones; NULL: not run yet */
    bool has_constants;                               /* the constants among them, as they are in all runs */
};

struct tare_mixed_steps;    /* int8 and float steps that run line by line (mixed.h) */
struct tare_section;        /* steps that run for some records at a time (sections.h) */
struct tare_scalar_program; /* steps on single elements (scalars.c) */

/* The smallest and largest value of a tensor, as Min and Max over axes that contain all of it: one pass computes both,
 * or the group or mixed tiling that computes the tensor (ranges.c). Their outputs have the rank of the source. */
struct tare_step_range {
    int source;    /* slot of the tensor, which may be flattened */
    int steps[2];  /* Min and Max */
    unsigned axes; /* bits 1 << axis of the source: others must have one element */
    bool is_flattened;
    struct tare_step_group *group;  /* computes the tensor; NULL: another step, or a feed */
    struct tare_mixed_steps *mixed; /* computes the tensor where its shapes fit; NULL: none */
    bool is_used[2];                /* by steps that are in no scalar program */
    bool has_tensors;               /* is_used, or a scalar program that uses one does not run */
    bool active;                    /* the present observer requests neither */
};

/* A group: steps whose results one expression computes, element by element (grouping.c). */
enum { TARE_GROUP_MAX_STEPS = 40 };
struct tare_step_group {
    /* What every run reads comes first: fewer cache lines are read. */
    bool active; /* the present observer requests no intermediate value */
    int product; /* the step that passes its values to the expression; -1: none */
    int pad;     /* the PadV2 or XlaPad that makes the product's input 0, which the product may include; -1: none */
    /* The Cast whose input the product takes in place of its input 0: of bytes to floats, or of int16 to the int32 that
     * is divided into halves; -1: none */
    int cast;
    bool joins_halves; /* the latter: `steps` has all steps of both halves, the product and `cast` too */
    int sink;          /* the last of all: the group runs in its place */
    int output;        /* slot of the result */
    int output_dtype;
    /* A group whose source is the result: it runs with this one, on each block of the result; NULL: none. */
    struct tare_step_group *next;
    bool runs_next;                /* the present observer and number of threads permit it */
    bool is_next;                  /* of another group */
    bool is_stored;                /* the result is made although `next` runs on its blocks: other steps use it, too */
    struct tare_step_range *range; /* of the result; NULL: none */
    /* Of the tensor that a group without product begins with, set before the group runs; NULL: none. */
    const struct tare_step_range *source_range;
    int values[TARE_EXPRESSION_MAX_OPERANDS];   /* by operand: value number; not used where a branch computes it */
    bool is_bias[TARE_EXPRESSION_MAX_OPERANDS]; /* by operand: must be a vector, as BiasAdd requires */
    enum tare_lane_type lanes[TARE_EXPRESSION_MAX_OPERANDS]; /* by operand that a branch computes: int32 or float */
    struct tare_expression expression;
    int steps[TARE_GROUP_MAX_STEPS]; /* the others, in order */
    int n_steps;
};

enum { TARE_NO_STEP = -1, TARE_MANY_STEPS = -2 };

/* Whether an input is a variable that is read before the step, and whether another step writes that variable. */
enum tare_plan_read { TARE_READ_NONE, TARE_READ_PLAIN, TARE_READ_WRITTEN };

/* One node of a plan. */
struct tare_step {
    /* What the executor reads of each step that it visits comes first: fewer cache lines are read. */
    struct tare_step_group *group;       /* of which this step is part; NULL: none */
    struct tare_step_range *range;       /* of which this step is the Min or Max; NULL: none */
    struct tare_scalar_program *scalars; /* of which this step is the first; NULL: none */
    struct tare_step_range *flattens;    /* whose source this step makes, for nothing else; NULL: none */
    bool *observed;                      /* by output: requested by the observer; NULL: none */
    int *drops; /* slots freed after this step; the first n_planned_drops may have values if all runs as planned */
    size_t n_drops, n_planned_drops;
    /* Of which this step is the sink of the product's group or of the quantizer, or without quantizer the depthwise
     * step; NULL: none. */
    struct tare_mixed_steps *mixed;
    struct tare_step_range *result_range; /* of the tensor that this step computes; NULL: none */
    const struct tare_node *node;
    const struct tare_op *op;        /* NULL: an undefined op, or a call by name */
    const struct tare_graph *callee; /* call by name */
    struct tare_node_state *state;
    enum tare_step_kind kind;
    int first_output; /* slot of output 0, the others follow; -1 for a constant step */
    size_t n_outputs;
    int *inputs; /* value numbers */
    size_t n_inputs;
    uint8_t *reads;    /* enum tare_plan_read of input i, a reference to a variable; NULL: all are TARE_READ_NONE */
    bool *last_use;    /* this step is the last use of input i's slot, and reads it through no other input */
    bool keeps_inputs; /* most are constants, which are gathered once */
    bool is_parameter; /* follows from variables alone (tare_plan_hoist_parameters) */
    int *controls;     /* steps that must have run; set only if may_die */
    size_t n_controls;
    struct tare_fusion *fusion;     /* of which this step is the head; NULL: none */
    struct tare_fusion *carried;    /* of which this step is the Reshape; NULL: none */
    struct tare_fusion *activation; /* of whose activation this step is the first; NULL: none */
    struct tare_tiled_steps *tiled; /* of which this step is the first; NULL: none */
    bool is_internal;               /* only scalar programs use its result, a single element, which has no tensor */
    bool is_scalar;                 /* computes one element from others, derived from ranges */
    bool is_lent;                   /* the program keeps the memory of its result (scalars.c) */
    int computed_with;              /* of a step of a scalar program: the first one; otherwise TARE_NO_STEP */
};

/* Output `output` of a constant node. */
struct tare_plan_constant {
    struct tare_node_state *state;
    int output;
};

/* Steps that check shapes of feeds and compute nothing else (shape_checks.c). */
struct tare_shape_checks {
    int *steps; /* in order */
    size_t n_steps;
    int *sources; /* slots of the feeds whose shapes they depend on */
    size_t n_sources;
    struct tare_shape *seen; /* by source: in the last run of the steps */
    bool passed;             /* that run succeeded */
};

/* A tensor of a whole batch for the values of a slot, of which some records are computed at a time (sections.h). */
struct tare_placement {
    int slot;
    int64_t first, batch;     /* the next record; records of the tensor */
    struct tare_tensor whole; /* without dtype: not created yet */
};

struct tare_group_binding; /* a group with its operands (grouping_binding.h) */

/* A value of a range, and the rank of its tensor. */
struct tare_extreme {
    float value;
    int rank;
};

/* Values and scratch of one run of a plan; kept for the next. */
struct tare_exec_frame {
    struct tare_tensor *slots;
    struct tare_tensor *inputs;        /* of the running node; borrowed, except for values read from references */
    struct tare_tensor *any_inputs;    /* where they are, except for steps that keep them */
    struct tare_tensor **kept_inputs;  /* by step that keeps them; NULL: not gathered yet */
    struct tare_tensor **last_use;     /* by input: the slot that the running node may move out; else NULL */
    bool *dead;                        /* by step: on a branch of a TF1 conditional that was not taken */
    bool *computed;                    /* by step: already computed by a fusion or a tiled run, or skipped */
    struct tare_extreme *extremes;     /* by step of a range that is computed */
    struct tare_tensor **singles;      /* by step of a scalar program: the tensor of its last result; NULL: none */
    union tare_lane *lent;             /* by step of a scalar program: the result, if it is lent */
    struct tare_placement *placements; /* where groups store their results; n_placements of them */
    size_t n_placements;
    /* Something did not run as planned: slots that no step frees in its place may have values, and steps that are
     * skipped otherwise may have to run. */
    bool keeps_values;
    bool skips_checks;                    /* `computed` is set for the steps of the plan's checks */
    struct tare_group_binding **bindings; /* by step: of the group that runs in its place; NULL: not bound yet */
    size_t n_bindings;
    struct tare_arena scratch;
};

/* Steps that a run does not need to look at, since nothing happens in their place: TARE_STEP_IS_QUIET, part of an
 * active group that runs later, or the number of a step that has been computed. */
enum { TARE_STEP_RUNS = -1, TARE_STEP_IS_QUIET = -2 };

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
    int *fetches;           /* value numbers */
    bool *fetch_reads;      /* fetch i is a reference, read at the end of the run */
    bool writes_references; /* results are copies of what a later run could write */
    size_t n_fetches;
    size_t n_slots;
    size_t max_inputs;
    bool may_die;                     /* has Switch or Merge: steps may be skipped as dead */
    bool has_frames;                  /* has Enter: TF1 loops */
    struct tare_section *sections;    /* in order; NULL: none */
    struct tare_flow *flow;           /* arena memory; NULL until the first run of a plan with has_frames */
    struct tare_shape_checks *checks; /* NULL: none */
    int observe_epoch;
    int *quiet;      /* by step, with the present observer */
    int *next_step;  /* by quiet step: the first one after it that is not known to be skipped with it */
    int *next_run;   /* by step: the first one after it that is not skipped if all runs as planned */
    bool *may_have;  /* by slot: it has a value if all groups and scalar programs run as planned */
    int *kept_slots; /* those that no step frees; the first n_planned_kept may have values if all runs as planned */
    size_t n_kept_slots, n_planned_kept;
    bool *fed_wanted; /* feed i is requested by the observer; NULL: not asked yet */
    int fed_epoch;    /* observe_epoch of fed_wanted */
    struct tare_exec_frame *spare;
};

/* A request to run. For a function body only `graph` is set. */
struct tare_plan_request {
    const struct tare_graph *graph;
    const struct tare_edge *feeds;
    size_t n_feeds;
    const struct tare_edge *fetches;
    size_t n_fetches;
    struct tare_node *const *targets;
    size_t n_targets;
};

/* The nodes that a request needs, in topological order (back edges of NextIteration are ignored); arena memory. */
tare_status tare_plan_order(struct tare_node ***out, size_t *count, struct tare_arena *arena,
                            const struct tare_plan_request *request);
/* Moves the factors and summands that follow from variables alone, such as those of a batch normalization, and what
 * computes them to the front, so that epilogues can use them. Sets `parameter` of these nodes, zero before.
 * `parameter`, `constant`: by node position; n_nodes: of the graph. */
tare_status tare_plan_hoist_parameters(bool *parameter, struct tare_node **order, size_t count, size_t n_nodes,
                                       const bool *constant, struct tare_arena *scratch);
/* Then moves epilogue ops with constants and parameters as operands to directly after their first input, so that other
 * ops' epilogues can use their results as addends. */
tare_status tare_plan_join_epilogues(struct tare_node **order, size_t count, const bool *constant,
                                     const bool *parameter, size_t n_nodes);

/* Builds a plan in the session's arena. Errors name the node. */
tare_status tare_plan_new(struct tare_plan **out, struct tare_session *session,
                          const struct tare_plan_request *request);
/* Frees the memory of a plan that is not in the arena. */
void tare_plan_release(struct tare_plan *plan);
/* Checks a node against its op definition: number and dtypes of inputs, attributes. `arena` is scratch. */
tare_status tare_plan_check_node(struct tare_arena *arena, const struct tare_node *node);

/* A frame for runs of the plan; NULL: no memory. */
struct tare_exec_frame *tare_exec_frame_new(const struct tare_plan *plan);
void tare_exec_frame_free(struct tare_exec_frame *frame);
/* The tensor of a value number in a run. */
const struct tare_tensor *tare_plan_value(const struct tare_plan *plan, const struct tare_exec_frame *frame, int value);

/* ---- producers and users of slots ---- */

struct tare_plan_uses {
    int *made_by; /* by slot: step; TARE_NO_STEP for a feed */
    int *used_by; /* by slot: the only step, TARE_NO_STEP, or TARE_MANY_STEPS (also for a result) */
    int *n_uses;  /* by slot: as an input of a step, or a result */
};
tare_status tare_plan_note_uses(struct tare_plan_uses *uses, const struct tare_plan *plan, struct tare_arena *arena);
/* The value is computed before step `head` runs. */
bool tare_plan_is_before(const struct tare_plan_uses *uses, int value, int head);
/* ---- fusion, grouping and tiling ---- */

/* Find the fusions and tilings of a complete plan (arena memory). Not for plans with dead branches or loop frames. */
tare_status tare_plan_find_fusions(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena);
/* Adds the steps after `head` that compute a function of the value in `slot` alone, such as x * sigmoid(x) or a form of
 * GELU, and sets fusion->activation; the slot of the function's value, or `slot`. */
tare_status tare_plan_find_activation(struct tare_fusion *fusion, const struct tare_plan *plan,
                                      const struct tare_plan_uses *uses, int head, int *slot, struct tare_arena *arena);
tare_status tare_plan_find_tilings(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena);
/* Finds the groups of element-wise steps among those that are in no fusion. */
tare_status tare_plan_find_groups(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                                  struct tare_arena *scratch);
/* Finds the steps that only check shapes of feeds, among those that run one by one; sets plan->checks. */
tare_status tare_plan_find_shape_checks(struct tare_plan *plan, const struct tare_plan_uses *uses,
                                        struct tare_arena *arena, struct tare_arena *scratch);
/* Decides whether a run with the feeds of `frame` skips the plan's checks: all shapes are those of the last successful
 * run. If it does not, plan->checks->passed must be set when the run has succeeded. */
bool tare_shape_checks_begin(const struct tare_session *session, struct tare_plan *plan, struct tare_exec_frame *frame);
/* Finds the groups that run with the one before them; selects them after the groups. */
tare_status tare_plan_find_next_groups(struct tare_plan *plan, const struct tare_plan_uses *uses,
                                       struct tare_arena *scratch);
void tare_plan_select_next_groups(const struct tare_session *session, const struct tare_plan *plan);
/* Finds the mixed tilings, after the next groups; selects them after fusions and groups. */
tare_status tare_plan_find_mixed(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena);
void tare_plan_select_mixed(const struct tare_session *session, const struct tare_plan *plan);
/* Finds the sections, after the lifetimes of the slots are known. */
tare_status tare_plan_find_sections(struct tare_plan *plan, struct tare_arena *arena, struct tare_arena *scratch);
void tare_plan_select_sections(const struct tare_session *session, const struct tare_plan *plan);
/* The lane type of a dtype; TARE_LANE_NONE: expressions do not support it. */
enum tare_lane_type tare_plan_lane_of(int dtype);
/* Finds the ranges, before the groups; tare_plan_join_ranges finds the groups that compute or read their tensors. */
tare_status tare_plan_find_ranges(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                                  struct tare_arena *scratch);
tare_status tare_plan_join_ranges(struct tare_plan *plan, const struct tare_plan_uses *uses,
                                  struct tare_arena *scratch);
/* Marks the scalar steps, after the ranges; groups do not contain them. tare_plan_find_scalars finds the programs of
 * which they are part, after the groups. */
void tare_plan_mark_scalars(struct tare_plan *plan, const struct tare_plan_uses *uses);
tare_status tare_plan_find_scalars(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                                   struct tare_arena *scratch);
void tare_plan_select_scalars(const struct tare_session *session, const struct tare_plan *plan);
void tare_plan_select_ranges(const struct tare_session *session, const struct tare_plan *plan);
/* The step in whose place a step may run: the last of its group, or itself. */
int tare_plan_runs_at(const struct tare_plan *plan, int step);
/* Part of tare_plan_select_quiet: the slots that have no values if the kernels apply the fusions, and the steps that
 * are computed with the first one of their fusion. If a kernel does not apply it, the run keeps values. */
void tare_plan_mark_fused(const struct tare_plan *plan);
void tare_plan_select_fused(const struct tare_plan *plan);
/* After the other selections. */
void tare_plan_select_quiet(struct tare_plan *plan);
void tare_plan_select_groups(const struct tare_session *session, const struct tare_plan *plan);
/* Select the fusions, then the tilings, that the session's options and the current observer allow. */
void tare_plan_select_fusions(const struct tare_session *session, const struct tare_plan *plan);
void tare_plan_select_tilings(const struct tare_session *session, const struct tare_plan *plan);
/* True if all operands of the fusion (NULL: none) are computed before step `head` runs. */
bool tare_plan_fusion_is_before(const struct tare_plan_uses *uses, const struct tare_fusion *fusion, int head);
/* The epilogue of a fusion in a run; false if an operand has a rank that the op does not allow. */
bool tare_plan_epilogue(struct tare_epilogue *epilogue, const struct tare_plan *plan,
                        const struct tare_exec_frame *frame, const struct tare_fusion *fusion);
/* Creates the tensor of a placement if it does not exist, for values of dtype and shape `of` except for the batch. */
tare_status tare_placement_open(struct tare_placement *place, int dtype, const struct tare_shape *of,
                                struct tare_buffer_pool *pool);
/* The step has no fusion, or the present observer allows all of it: those after it may join. */
bool tare_plan_fuses_all(const struct tare_step *head);
/* The slot of a step's output after its fusion, and the step that computes it: the last of the fusion. */
int tare_plan_output_slot(const struct tare_step *step);
const struct tare_step *tare_plan_last_step(const struct tare_plan *plan, const struct tare_step *head);

/* ---- observation ---- */

/* Determines which outputs the session's observer requests, and selects fusions and tilings accordingly. */
tare_status tare_plan_ask_observer(struct tare_session *session, struct tare_plan *plan);
/* Pass requested values to the observer: the plan's constants, the outputs of one step, and the first `count` feeds
 * (floating-point ones only), of which `edges` are the edges. */
tare_status tare_plan_observe_constants(struct tare_session *session, const struct tare_plan *plan);
tare_status tare_step_show(struct tare_session *session, const struct tare_step *step,
                           const struct tare_tensor *outputs);
tare_status tare_plan_observe_fed(struct tare_session *session, struct tare_plan *plan, const struct tare_edge *edges,
                                  const struct tare_tensor *values, size_t count);

#endif

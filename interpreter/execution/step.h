/* Running steps and plans. Step functions take a plan and the frame of the run; plan functions run a whole plan. */
#ifndef TARE_INTERPRETER_EXECUTION_STEP_H
#define TARE_INTERPRETER_EXECUTION_STEP_H

#include "interpreter/execution/plan.h"

/* Runs one step on gathered inputs; `frame->last_use` holds the slots that may be moved out. `epilogue`: what the
 * kernel may compute in the same pass; NULL: nothing. `consumer`: what takes output 0 instead of a tensor, if it
 * accepts; NULL: nothing. Outputs are zero on failure; the error names the node. */
tare_status tare_step_run(struct tare_session *session, const struct tare_step *step, struct tare_exec_frame *frame,
                          struct tare_tensor *outputs, struct tare_epilogue *epilogue, struct tare_consumer *consumer);
/* Calls the row's `prepare`, once per session. On failure only the error text changes. */
tare_status tare_step_prepare(struct tare_kernel *kernel, struct tare_node_state *state);

/* Runs the head of an active fusion on gathered inputs, and marks the steps computed with it in frame->computed. */
tare_status tare_fusion_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                            const struct tare_step *head);
/* Runs the activation of a fusion in the place of its first step, where the fusion does not; *done: it did. */
tare_status tare_activation_run(struct tare_session *session, const struct tare_plan *plan,
                                struct tare_exec_frame *frame, const struct tare_fusion *fusion, bool *done);
/* After the Reshape of a fusion: if the fusion has run, makes its output of that of the Reshape. */
tare_status tare_fusion_carry(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                              const struct tare_step *reshape);
/* Gathers a step's inputs into frame->inputs. tare_step_ungather releases the values that were read from references. */
tare_status tare_step_gather(const struct tare_plan *plan, struct tare_exec_frame *frame, const struct tare_step *step);
void tare_step_ungather(struct tare_exec_frame *frame, const struct tare_step *step);
/* Runs an active group, and the next one if its place is not after step `last`: then it is marked in frame->computed
 * until its place. *done is false if the operands do not fit an expression: the product has then run, if the group has
 * one, and the other steps must run one by one. */
tare_status tare_group_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                           struct tare_step_group *group, int last, bool *done);
/* Runs the product of a group on `input` instead of its own input 0. *result: that of the group, or of the product
 * alone if the operands do not fit an expression. */
tare_status tare_group_run_on(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                              const struct tare_step_group *group, const struct tare_tensor *input,
                              struct tare_tensor *result);
/* Binds a group without product for a source of which only dtype, shape and number of elements are set, and creates its
 * result: the caller passes values of the source to *bound. *bound: NULL if the operands do not fit an expression. */
tare_status tare_group_open(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                            const struct tare_step_group *group, const struct tare_tensor *source,
                            struct tare_tensor *result, struct tare_bound_expression **bound);
/* True if the range of a tensor of this shape is that of all its elements. */
bool tare_range_covers(const struct tare_step_range *range, const struct tare_shape *shape);
/* Sets the values of an active range in frame->extremes, and the outputs of its steps if other steps use them, and
 * marks the steps in frame->computed, if `values`, those of a tensor of `shape`, determine them; otherwise they must
 * run. */
tare_status tare_range_set(const struct tare_plan *plan, struct tare_exec_frame *frame,
                           const struct tare_step_range *range, const struct tare_shape *shape,
                           const struct tare_value_range *values);
/* [1, 1, …], the shape of a value of a range. */
struct tare_shape tare_shape_of_ones(int rank);
/* Creates the output of a step of a range that is computed, if it does not exist. */
tare_status tare_range_store(const struct tare_plan *plan, struct tare_exec_frame *frame, int step);
/* True if the group that computes the tensor has set the range in this run. */
bool tare_range_is_known(const struct tare_exec_frame *frame, const struct tare_step_range *range);
/* Before a step of a range: does so if the range is active, unless the group that computed the tensor has. */
tare_status tare_range_run(const struct tare_plan *plan, struct tare_exec_frame *frame, int step);
/* Runs a scalar program in the place of its first step, and marks its steps in frame->computed; otherwise they must
 * run.
 */
tare_status tare_scalars_run(const struct tare_plan *plan, struct tare_exec_frame *frame,
                             struct tare_scalar_program *program);
/* Runs the step together with the following ones if that is faster: *done reports whether, frame->computed which. */
tare_status tare_tiled_steps_run(struct tare_session *session, const struct tare_plan *plan,
                                 struct tare_exec_frame *frame, const struct tare_step *step, bool *done);

/* Runs a plan (tare_session.run_plan). Takes over the feeds' references (zeroed afterwards, also on failure); results
 * are zero on failure. */
tare_status tare_plan_run(struct tare_session *session, struct tare_plan *plan, struct tare_tensor *feeds,
                          struct tare_tensor *results);
/* The part of tare_plan_run for a plan with has_frames; the slots of the feeds are set in `frame`. */
tare_status tare_flow_run(struct tare_session *session, struct tare_plan *plan, struct tare_exec_frame *frame);

#endif

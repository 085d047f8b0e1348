/* Runs plans: acyclic graphs, with the dead values of TF1 conditionals. Loops of frames are in frames.c. */
#include "base/alloc.h"
#include "base/control.h"
#include "interpreter/execution/mixed.h"
#include "interpreter/execution/sections.h"
#include "interpreter/execution/variable.h"

#include <string.h>

/* Scratch memory belongs to the session while no frame uses it: a product takes half a MiB, which the frames of
 * thousands of functions must not keep. */
static bool take_scratch(struct tare_session *session, struct tare_arena *out) {
    const size_t taken = session->n_scratches_taken + 1;
    if (taken > session->scratches_capacity &&
        !tare_grow((void **)&session->scratches, &session->scratches_capacity, taken, sizeof *session->scratches))
        return false;
    *out = session->n_scratches ? session->scratches[--session->n_scratches] : (struct tare_arena){ 0 };
    session->n_scratches_taken++;
    return true;
}

static void give_scratch(struct tare_session *session, struct tare_arena *scratch) {
    session->scratches[session->n_scratches++] = *scratch; /* there is room for all that are taken */
    session->n_scratches_taken--;
    *scratch = (struct tare_arena){ 0 };
}

/* A recursive call finds no unused frame and creates one. */
static struct tare_exec_frame *take_frame(struct tare_session *session, struct tare_plan *plan) {
    struct tare_exec_frame *frame = plan->spare;
    if (!frame) frame = tare_exec_frame_new(plan);
    plan->spare = NULL;
    if (!frame || take_scratch(session, &frame->scratch)) return frame;
    tare_exec_frame_free(frame);
    return NULL;
}

/* A frame whose run failed is not used again: marks in it may not be those that a run begins with. */
static void give_frame(struct tare_session *session, struct tare_plan *plan, struct tare_exec_frame *frame,
                       bool succeeded) {
    const bool all = frame->keeps_values || plan->may_die || plan->has_frames;
    for (size_t i = 0; i < (all ? plan->n_slots : plan->n_planned_kept); i++) {
        struct tare_tensor *slot = &frame->slots[all ? (int)i : plan->kept_slots[i]];
        if (slot->dtype) tare_tensor_reset(slot);
    }
    frame->keeps_values = false;
    give_scratch(session, &frame->scratch);
    if (plan->spare || !succeeded)
        tare_exec_frame_free(frame);
    else
        plan->spare = frame;
}

/* ---- constants ---- */

/* Compressed constants are expanded before a kernel runs. */
static tare_status expand(struct tare_tensor *values, size_t count) {
    for (size_t k = 0; k < count; k++) {
        struct tare_tensor copy;
        if (!values[k].splat) continue;
        TARE_TRY(tare_tensor_copy(&copy, &values[k]));
        tare_tensor_reset(&values[k]);
        values[k] = copy;
    }
    return TARE_OK;
}

static tare_status compute(struct tare_session *session, const struct tare_plan *plan, struct tare_step *step,
                           struct tare_exec_frame *frame) {
    struct tare_node_state *state = step->state;
    bool *observed = step->observed;
    tare_status status;
    if (!state->values) state->values = TARE_NEW_ARRAY(&session->arena, struct tare_tensor, step->n_outputs + 1);
    if (!state->values) return TARE_NO_MEMORY;
    frame->inputs = frame->any_inputs;
    for (size_t i = 0; i < step->n_inputs; i++) {
        frame->inputs[i] = *tare_plan_value(plan, frame, step->inputs[i]);
        frame->last_use[i] = NULL;
    }
    step->observed = NULL; /* shown at each run instead */
    status = tare_step_run(session, step, frame, state->values, NULL, NULL);
    step->observed = observed;
    if (status == TARE_OK) status = expand(state->values, step->n_outputs);
    state->computed = status == TARE_OK;
    return status;
}

static void drop_values(const struct tare_step *step) {
    struct tare_node_state *state = step->state;
    if (!state->values) return;
    for (size_t k = 0; k < step->n_outputs; k++)
        tare_tensor_reset(&state->values[k]);
    state->computed = false;
}

/* Computes the constants that have no value yet; values that were used only to compute other constants are freed. */
static tare_status make_constants(struct tare_session *session, struct tare_plan *plan, struct tare_exec_frame *frame) {
    tare_status status = TARE_OK;
    bool missing = false;
    for (size_t s = 0; s < plan->n_constant_steps && !missing; s++)
        missing = plan->constant_steps[s].state->keep && !plan->constant_steps[s].state->computed;
    for (size_t s = 0; s < plan->n_constant_steps && status == TARE_OK && missing; s++)
        if (!plan->constant_steps[s].state->computed) status = compute(session, plan, &plan->constant_steps[s], frame);
    for (size_t s = 0; s < plan->n_constant_steps; s++)
        if (!plan->constant_steps[s].state->keep) drop_values(&plan->constant_steps[s]);
    plan->constants_ready = status == TARE_OK;
    return status;
}

/* ---- steps ---- */

/* Dead values propagate: a step is skipped if an input or a control input is dead, a Merge if all its inputs are dead.
 */
static bool is_dead(const struct tare_plan *plan, const struct tare_exec_frame *frame, const struct tare_step *step) {
    size_t missing = 0;
    for (size_t i = 0; i < step->n_controls; i++)
        if (frame->dead[step->controls[i]]) return true;
    for (size_t i = 0; i < step->n_inputs; i++)
        missing += tare_plan_value(plan, frame, step->inputs[i])->dtype == TARE_DT_INVALID;
    return step->kind == TARE_STEP_MERGE ? missing == step->n_inputs : missing > 0;
}

static tare_status run_step(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                            const struct tare_step *step) {
    TARE_TRY(tare_control_check());
    if (step->tiled) {
        bool done;
        TARE_TRY(tare_tiled_steps_run(session, plan, frame, step, &done));
        if (done) return TARE_OK;
    }
    if (step->activation) {
        bool done;
        TARE_TRY(tare_activation_run(session, plan, frame, step->activation, &done));
        if (done) return TARE_OK;
    }
    tare_status status = tare_step_gather(plan, frame, step);
    if (status != TARE_OK) return tare_exec_locate(session, step->node, status);
    for (int i = 0; step->fusion && i < step->fusion->full->n_steps; i++)
        frame->computed[step->fusion->full->steps[i]] = false;
    if (step->fusion && step->fusion->active) {
        status = tare_fusion_run(session, plan, frame, step);
        frame->keeps_values |= !frame->computed[step->fusion->steps[0]];
    } else {
        status = tare_step_run(session, step, frame, frame->slots + step->first_output, NULL, NULL);
    }
    tare_step_ungather(frame, step);
    return status;
}

static void drop_after(struct tare_exec_frame *frame, const struct tare_step *step) {
    const size_t count = frame->keeps_values ? step->n_drops : step->n_planned_drops;
    for (size_t i = 0; i < count; i++)
        if (frame->slots[step->drops[i]].dtype) tare_tensor_reset(&frame->slots[step->drops[i]]);
}

/* A group runs in the place of its last step. */
static tare_status run_group(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                             struct tare_step_group *group, int last) {
    bool done;
    TARE_TRY(tare_group_run(session, plan, frame, group, last, &done));
    frame->keeps_values |= !done;
    for (int i = 0; !done && group->range && i < 2; i++)
        frame->computed[group->range->steps[i]] = false;
    for (int i = 0; !done && i < group->n_steps; i++) {
        const struct tare_step *step = &plan->steps[group->steps[i]];
        TARE_TRY(run_step(session, plan, frame, step));
        if (group->steps[i] != group->sink) drop_after(frame, step);
    }
    return TARE_OK;
}

/* The group that runs in the place of a step, unless a mixed tiling or the previous group has computed it or a mixed
 * tiling does so now. */
static tare_status run_sink(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                            int s, int last) {
    const struct tare_step *step = &plan->steps[s];
    bool done = false;
    if (step->mixed && frame->computed[s]) {
        tare_mixed_mark(plan, frame, step->mixed, false);
        return TARE_OK;
    }
    if (step->group->is_next && frame->computed[s]) {
        frame->computed[s] = false;
        return TARE_OK;
    }
    if (step->mixed && step->mixed->product->sink == s)
        TARE_TRY(tare_mixed_run(session, plan, frame, step->mixed, &done));
    return done ? TARE_OK : run_group(session, plan, frame, step->group, last);
}

static bool is_quiet(const struct tare_plan *plan, const struct tare_exec_frame *frame, size_t step) {
    const int quiet = plan->quiet[step];
    return quiet == TARE_STEP_IS_QUIET || (quiet >= 0 && frame->computed[quiet]);
}

static tare_status run_range(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                             size_t first, size_t last) {
    for (size_t s = first, next; s <= last; s = next) {
        const struct tare_step *step = &plan->steps[s];
        next = s + 1;
        if (is_quiet(plan, frame, s)) {
            next = (size_t)(frame->keeps_values ? plan->next_step : plan->next_run)[s];
            continue;
        }
        if (plan->may_die) frame->dead[s] = is_dead(plan, frame, step);
        if (step->range) TARE_TRY(tare_range_run(plan, frame, (int)s));
        if (step->scalars) TARE_TRY(tare_scalars_run(plan, frame, step->scalars));
        const bool is_needed = !step->flattens || step->observed || !tare_range_is_known(frame, step->flattens);
        if (step->group && step->group->active) {
            if (step->group->sink == (int)s) TARE_TRY(run_sink(session, plan, frame, (int)s, (int)last));
        } else if (!frame->dead[s] && !frame->computed[s] && is_needed) {
            frame->keeps_values |= step->flattens && !plan->may_have[step->first_output];
            TARE_TRY(run_step(session, plan, frame, step));
            if (step->carried) TARE_TRY(tare_fusion_carry(session, plan, frame, step));
        } else if (step->mixed && frame->computed[s]) {
            tare_mixed_pass(frame, step->mixed);
        }
        drop_after(frame, step);
        if (!frame->keeps_values) next = (size_t)plan->next_run[s];
    }
    return TARE_OK;
}

static tare_status run_steps(struct tare_session *session, const struct tare_plan *plan,
                             struct tare_exec_frame *frame) {
    size_t first = 0;
    for (struct tare_section *section = plan->sections; section; section = section->next) {
        const size_t begin = (size_t)section->first;
        if (begin > first) TARE_TRY(run_range(session, plan, frame, first, begin - 1));
        TARE_TRY(tare_section_run(session, plan, frame, section, run_range));
        first = (size_t)section->last + 1;
    }
    return first < plan->n_steps ? run_range(session, plan, frame, first, plan->n_steps - 1) : TARE_OK;
}

/* A copy of its own in place of a share. */
static tare_status keep(struct tare_tensor *result) {
    struct tare_tensor copy;
    TARE_TRY(tare_tensor_copy(&copy, result));
    tare_tensor_reset(result);
    *result = copy;
    return TARE_OK;
}

static tare_status collect(const struct tare_plan *plan, const struct tare_exec_frame *frame,
                           struct tare_tensor *results) {
    for (size_t i = 0; i < plan->n_fetches; i++) {
        const struct tare_tensor *value = tare_plan_value(plan, frame, plan->fetches[i]);
        if (!value->dtype)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "result %zu has no value: it lies on a branch that was not taken",
                             i);
        if (plan->fetch_reads[i])
            TARE_TRY(tare_reference_read(&results[i], value, false));
        else
            tare_tensor_share(&results[i], value);
        if (plan->writes_references) TARE_TRY(keep(&results[i]));
    }
    return TARE_OK;
}

static tare_status run_in_frame(struct tare_session *session, struct tare_plan *plan, struct tare_exec_frame *frame) {
    TARE_TRY(tare_control_check()); /* a loop whose body has no step comes by here only */
    if (plan->observe_epoch != session->observe_epoch) TARE_TRY(tare_plan_ask_observer(session, plan));
    if (!plan->constants_ready) TARE_TRY(make_constants(session, plan, frame));
    if (session->observe) TARE_TRY(tare_plan_observe_constants(session, plan));
    if (plan->has_frames) return tare_flow_run(session, plan, frame);
    const bool is_checked = !plan->checks || tare_shape_checks_begin(session, plan, frame);
    TARE_TRY(run_steps(session, plan, frame));
    if (!is_checked) plan->checks->passed = true;
    return TARE_OK;
}

tare_status tare_plan_run(struct tare_session *session, struct tare_plan *plan, struct tare_tensor *feeds,
                          struct tare_tensor *results) {
    struct tare_exec_frame *frame = take_frame(session, plan);
    tare_status status = TARE_NO_MEMORY;
    for (size_t i = 0; i < plan->n_fetches; i++)
        results[i] = (struct tare_tensor){ 0 };
    if (!frame) {
        for (size_t i = 0; i < plan->n_feeds; i++)
            tare_tensor_reset(&feeds[i]);
        return status;
    }
    if (plan->n_feeds) memcpy(frame->slots, feeds, plan->n_feeds * sizeof *feeds);
    for (size_t i = 0; i < plan->n_feeds; i++)
        feeds[i] = (struct tare_tensor){ 0 };
    status = run_in_frame(session, plan, frame);
    if (status == TARE_OK) status = tare_control_check(); /* the last kernel may have stopped early */
    if (status == TARE_OK) status = collect(plan, frame, results);
    frame->keeps_values |= status != TARE_OK;
    if (status != TARE_OK)
        for (size_t i = 0; i < plan->n_fetches; i++)
            tare_tensor_reset(&results[i]);
    give_frame(session, plan, frame, status == TARE_OK);
    return status;
}

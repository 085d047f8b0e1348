/* Strips: steps of which each reads what the one before it ends with, and nobody else does, may run together band by
 * band (tare_op.strip), so that what lies between is never whole in memory. Every element goes through the same
 * operations in the same order. The op's function decides at each run, by the shapes, how many of them. */
#include "interpreter/execution/plan.h"

/* Where the step's value is when its chain was run with it. */
static int end_of(const struct tare_step *step) {
    return step->chain ? step->chain->output : step->first_output;
}

static bool may_join(const struct tare_plan_uses *uses, const struct tare_step *step, int first) {
    const struct tare_chain *chain = step->chain;
    if (!step->op || !step->op->strip || step->n_outputs != 1 || step->reads || step->n_controls) return false;
    if (step->node->output_dtypes[0] != TARE_DT_FLOAT) return false;
    for (size_t i = 1; i < step->n_inputs; i++)
        if (!tare_plan_is_before(uses, step->inputs[i], first)) return false;
    return !chain || ((!chain->has_bias || tare_plan_is_before(uses, chain->bias, first)) &&
                      (!chain->has_addend || tare_plan_is_before(uses, chain->addend, first)));
}

static tare_status find_strip(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                              int first) {
    struct tare_strip_steps strip = { .heads = { first }, .n_heads = 1 };
    const struct tare_step *last = &plan->steps[first];
    if (!may_join(uses, last, first)) return TARE_OK;
    while (strip.n_heads < TARE_STRIP_STEPS_MOST) {
        const int slot = end_of(last), user = uses->used_by[slot];
        if (user < 0 || plan->steps[user].op == NULL || plan->steps[user].op->strip != last->op->strip) break;
        if (plan->steps[user].inputs[0] != slot || !may_join(uses, &plan->steps[user], first)) break;
        strip.heads[strip.n_heads++] = user;
        last = &plan->steps[user];
    }
    if (strip.n_heads < 2) return TARE_OK;
    plan->steps[first].strip = tare_arena_alloc(arena, sizeof strip);
    if (!plan->steps[first].strip) return TARE_NO_MEMORY;
    *plan->steps[first].strip = strip;
    return TARE_OK;
}

tare_status tare_plan_find_strips(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena) {
    for (size_t s = 0; s < plan->n_steps; s++)
        TARE_TRY(find_strip(plan, uses, arena, (int)s));
    return TARE_OK;
}

/* The step that makes what the head ends with. */
static const struct tare_step *last_of(const struct tare_plan *plan, const struct tare_step *head) {
    return head->chain ? &plan->steps[head->chain->steps[head->chain->n_steps - 1]] : head;
}

void tare_plan_choose_strips(const struct tare_session *session, const struct tare_plan *plan) {
    const struct tare_session_options *options = &session->options;
    const bool any = !options->trace && !options->check_numerics && !options->use_reference_kernels;
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_strip_steps *strip = plan->steps[s].strip;
        if (!strip) continue;
        strip->n_active = 0;
        while (any && strip->n_active < strip->n_heads) {
            const struct tare_step *head = &plan->steps[strip->heads[strip->n_active]];
            if (head->chain ? !head->chain->active : head->observed != NULL) break;
            strip->n_active++;
            if (last_of(plan, head)->observed) break; /* it is shown: nothing may be left out behind it */
        }
        if (strip->n_active < 2) strip->n_active = 0;
    }
}

/* ---- running ---- */

static void mark(const struct tare_plan *plan, struct tare_exec_frame *frame, const struct tare_strip_steps *strip,
                 int count, bool dead) {
    for (int h = 0; h < count; h++) {
        const struct tare_chain *chain = plan->steps[strip->heads[h]].chain;
        if (h > 0) frame->dead[strip->heads[h]] = dead;
        for (int i = 0; chain && i < chain->n_steps; i++)
            frame->dead[chain->steps[i]] = dead;
    }
}

/* What one kernel needs beside itself. */
struct room {
    struct tare_tensor output;
    struct tare_finish finish;
};

static tare_status open_kernel(struct tare_session *session, const struct tare_plan *plan,
                               struct tare_exec_frame *frame, const struct tare_step *step, bool is_first,
                               struct tare_kernel *kernel, struct room *room) {
    const struct tare_chain *chain = step->chain;
    struct tare_tensor *inputs = TARE_NEW_ARRAY(&frame->scratch, struct tare_tensor, step->n_inputs + 1);
    if (!inputs) return TARE_NO_MEMORY;
    for (size_t i = is_first ? 0 : 1; i < step->n_inputs; i++)
        inputs[i] = *tare_plan_value(plan, frame, step->inputs[i]);
    *room = (struct room){ .finish.applied = false };
    *kernel = (struct tare_kernel){ .node = step->node,
                                    .op = step->op,
                                    .n_inputs = step->n_inputs,
                                    .inputs = inputs,
                                    .n_outputs = 1,
                                    .outputs = &room->output,
                                    .scratch = &frame->scratch,
                                    .pool = session->pool,
                                    .session = session,
                                    .state = step->state->kernel };
    if (chain) {
        const struct tare_tensor *bias = chain->has_bias ? tare_plan_value(plan, frame, chain->bias) : NULL;
        if (chain->bias_is_vector && bias->shape.rank != 1)
            return TARE_FAIL(TARE_SHAPE, "bias has rank %d (expected 1)", bias->shape.rank);
        room->finish = (struct tare_finish){
            .bias = bias,
            .addend = chain->has_addend ? tare_plan_value(plan, frame, chain->addend) : NULL,
            .relu = chain->relu,
            .limit = chain->limit,
        };
        kernel->finish = &room->finish;
    }
    return tare_step_prepare(kernel, step->state);
}

static size_t run_kernels(struct tare_session *session, const struct tare_step *first, struct tare_kernel *kernels,
                          size_t count) {
    if (!session->options.profile) return first->op->strip(kernels, count);
    const int64_t start = tare_step_clock();
    const size_t run = first->op->strip(kernels, count);
    const int64_t elapsed = tare_step_clock() - start;
    if (run == 0) return 0;
    first->state->calls++;
    first->state->nanoseconds += elapsed;
    session->nested_ns += elapsed;
    return run;
}

tare_status tare_strip_steps_run(struct tare_session *session, const struct tare_plan *plan,
                                 struct tare_exec_frame *frame, const struct tare_step *step, bool *done) {
    const struct tare_strip_steps *strip = step->strip;
    struct tare_kernel kernels[TARE_STRIP_STEPS_MOST];
    struct room rooms[TARE_STRIP_STEPS_MOST];
    size_t run = 0;
    int open = 0;
    *done = false;
    mark(plan, frame, strip, strip->n_heads, false);
    while (open < strip->n_active && open_kernel(session, plan, frame, &plan->steps[strip->heads[open]], open == 0,
                                                 &kernels[open], &rooms[open]) == TARE_OK)
        open++;
    if (open < strip->n_active) tare_error_clear(); /* the step run alone says so again */
    if (open >= 2) run = run_kernels(session, step, kernels, (size_t)open);
    tare_arena_reset(&frame->scratch);
    if (run == 0) return TARE_OK;
    const struct tare_step *head = &plan->steps[strip->heads[run - 1]];
    const struct tare_step *last = last_of(plan, head);
    frame->slots[end_of(head)] = rooms[run - 1].output;
    mark(plan, frame, strip, (int)run, true);
    *done = true;
    return last->observed ? tare_step_show(session, last, &frame->slots[end_of(head)]) : TARE_OK;
}

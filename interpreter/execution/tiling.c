/* Tiled execution: consecutive steps, each the only reader of the previous one's output, may run together tile by tile
 * (tare_op.run_tiled), so that the intermediate tensors are never whole in memory. Every element goes through the same
 * operations in the same order. The op's function decides at each run, by the shapes, how many of them. */
#include "base/clock.h"
#include "interpreter/execution/plan.h"

/* Where the step's value is when its fusion was run with it. */
static int end_of(const struct tare_step *step) {
    return step->fusion ? step->fusion->output : step->first_output;
}

static bool may_join(const struct tare_plan_uses *uses, const struct tare_step *step, int first) {
    const struct tare_fusion *fusion = step->fusion;
    if (!step->op || !step->op->run_tiled || step->n_outputs != 1 || step->reads || step->n_controls) return false;
    if (step->node->output_dtypes[0] != TARE_DT_FLOAT) return false;
    for (size_t i = 1; i < step->n_inputs; i++)
        if (!tare_plan_is_before(uses, step->inputs[i], first)) return false;
    return !fusion || ((!fusion->has_bias || tare_plan_is_before(uses, fusion->bias, first)) &&
                       (!fusion->has_addend || tare_plan_is_before(uses, fusion->addend, first)));
}

static tare_status find_tiling(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                               int first) {
    struct tare_tiled_steps tiled = { .heads = { first }, .n_heads = 1 };
    const struct tare_step *last = &plan->steps[first];
    if (!may_join(uses, last, first)) return TARE_OK;
    while (tiled.n_heads < TARE_TILED_STEPS_MAX) {
        const int slot = end_of(last), user = uses->used_by[slot];
        if (user < 0 || !plan->steps[user].op || plan->steps[user].op->run_tiled != last->op->run_tiled) break;
        if (plan->steps[user].inputs[0] != slot || !may_join(uses, &plan->steps[user], first)) break;
        tiled.heads[tiled.n_heads++] = user;
        last = &plan->steps[user];
    }
    if (tiled.n_heads < 2) return TARE_OK;
    plan->steps[first].tiled = tare_arena_alloc(arena, sizeof tiled);
    if (!plan->steps[first].tiled) return TARE_NO_MEMORY;
    *plan->steps[first].tiled = tiled;
    return TARE_OK;
}

tare_status tare_plan_find_tilings(struct tare_plan *plan, const struct tare_plan_uses *uses,
                                   struct tare_arena *arena) {
    for (size_t s = 0; s < plan->n_steps; s++)
        TARE_TRY(find_tiling(plan, uses, arena, (int)s));
    return TARE_OK;
}

/* The step that computes the final output of the head and its fusion. */
static const struct tare_step *last_of(const struct tare_plan *plan, const struct tare_step *head) {
    return head->fusion ? &plan->steps[head->fusion->steps[head->fusion->n_steps - 1]] : head;
}

void tare_plan_select_tilings(const struct tare_session *session, const struct tare_plan *plan) {
    const struct tare_session_options *options = &session->options;
    const bool any = !options->trace && !options->check_numerics && !options->use_reference_kernels;
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_tiled_steps *tiled = plan->steps[s].tiled;
        if (!tiled) continue;
        tiled->n_active = 0;
        while (any && tiled->n_active < tiled->n_heads) {
            const struct tare_step *head = &plan->steps[tiled->heads[tiled->n_active]];
            if (head->fusion ? !head->fusion->active : head->observed != NULL) break;
            tiled->n_active++;
            if (last_of(plan, head)->observed) break; /* it is shown: nothing may be left out behind it */
        }
        if (tiled->n_active < 2) tiled->n_active = 0;
    }
}

/* ---- running ---- */

static void mark(const struct tare_plan *plan, struct tare_exec_frame *frame, const struct tare_tiled_steps *tiled,
                 int count, bool computed) {
    for (int h = 0; h < count; h++) {
        const struct tare_fusion *fusion = plan->steps[tiled->heads[h]].fusion;
        if (h > 0) frame->computed[tiled->heads[h]] = computed;
        for (int i = 0; fusion && i < fusion->n_steps; i++)
            frame->computed[fusion->steps[i]] = computed;
    }
}

/* What one kernel needs beside itself. */
struct room {
    struct tare_tensor output;
    struct tare_epilogue epilogue;
};

static tare_status open_kernel(struct tare_session *session, const struct tare_plan *plan,
                               struct tare_exec_frame *frame, const struct tare_step *step, bool is_first,
                               struct tare_kernel *kernel, struct room *room) {
    const struct tare_fusion *fusion = step->fusion;
    struct tare_tensor *inputs = TARE_NEW_ARRAY(&frame->scratch, struct tare_tensor, step->n_inputs + 1);
    if (!inputs) return TARE_NO_MEMORY;
    for (size_t i = is_first ? 0 : 1; i < step->n_inputs; i++)
        inputs[i] = *tare_plan_value(plan, frame, step->inputs[i]);
    *room = (struct room){ .epilogue.applied = false };
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
    if (fusion) {
        const struct tare_tensor *bias = fusion->has_bias ? tare_plan_value(plan, frame, fusion->bias) : NULL;
        if (fusion->bias_is_vector && bias->shape.rank != 1)
            return TARE_FAIL(TARE_SHAPE, "bias has rank %d (expected 1)", bias->shape.rank);
        room->epilogue = (struct tare_epilogue){
            .bias = bias,
            .addend = fusion->has_addend ? tare_plan_value(plan, frame, fusion->addend) : NULL,
            .relu = fusion->relu,
            .limit = fusion->limit,
        };
        kernel->epilogue = &room->epilogue;
    }
    return tare_step_prepare(kernel, step->state);
}

static size_t run_kernels(struct tare_session *session, const struct tare_step *first, struct tare_kernel *kernels,
                          size_t count) {
    if (!session->options.profile) return first->op->run_tiled(kernels, count);
    const int64_t start = tare_clock_ns();
    const size_t run = first->op->run_tiled(kernels, count);
    const int64_t elapsed = tare_clock_ns() - start;
    if (run == 0) return 0;
    first->state->calls++;
    first->state->nanoseconds += elapsed;
    session->nested_ns += elapsed;
    return run;
}

tare_status tare_tiled_steps_run(struct tare_session *session, const struct tare_plan *plan,
                                 struct tare_exec_frame *frame, const struct tare_step *step, bool *done) {
    const struct tare_tiled_steps *tiled = step->tiled;
    struct tare_kernel kernels[TARE_TILED_STEPS_MAX];
    struct room rooms[TARE_TILED_STEPS_MAX];
    size_t run = 0;
    int open = 0;
    *done = false;
    mark(plan, frame, tiled, tiled->n_heads, false);
    while (open < tiled->n_active && open_kernel(session, plan, frame, &plan->steps[tiled->heads[open]], open == 0,
                                                 &kernels[open], &rooms[open]) == TARE_OK)
        open++;
    if (open < tiled->n_active) tare_error_clear(); /* the step run alone says so again */
    if (open >= 2) run = run_kernels(session, step, kernels, (size_t)open);
    tare_arena_reset(&frame->scratch);
    if (run == 0) return TARE_OK;
    const struct tare_step *head = &plan->steps[tiled->heads[run - 1]];
    const struct tare_step *last = last_of(plan, head);
    frame->slots[end_of(head)] = rooms[run - 1].output;
    mark(plan, frame, tiled, (int)run, true);
    *done = true;
    return last->observed ? tare_step_show(session, last, &frame->slots[end_of(head)]) : TARE_OK;
}

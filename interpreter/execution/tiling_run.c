/* Tiled execution of a group of steps. When the kernels cannot be tiled, nothing is done and the steps run one by one.
 */
#include "interpreter/execution/step.h"
#include "base/clock.h"
#include "interpreter/ops/support/split.h"

static void mark(const struct tare_plan *plan, struct tare_exec_frame *frame, const struct tare_tiled_steps *tiled,
                 int count, bool computed) {
    for (int h = 0; h < count; h++) {
        const struct tare_fusion *applied = plan->steps[tiled->heads[h]].fusion,
                                 *fusion = computed || !applied ? applied : applied->full;
        if (h > 0) frame->computed[tiled->heads[h]] = computed;
        for (int i = 0; fusion && i < fusion->n_steps; i++)
            frame->computed[fusion->steps[i]] = computed;
    }
}

/* Output and epilogue of one kernel. */
struct room {
    struct tare_tensor output;
    struct tare_epilogue epilogue;
};

/* Constants are copied once: of XlaConvV2 most inputs are. NULL: no memory. */
static struct tare_tensor *inputs_of(struct tare_session *session, const struct tare_plan *plan,
                                     const struct tare_exec_frame *frame, struct tare_tiled_steps *tiled, int head) {
    const struct tare_step *step = &plan->steps[tiled->heads[head]];
    if (!tiled->inputs[head])
        tiled->inputs[head] = TARE_NEW_ARRAY(&session->arena, struct tare_tensor, step->n_inputs + 1);
    struct tare_tensor *inputs = tiled->inputs[head];
    for (size_t i = head == 0 ? 0 : 1; inputs && i < step->n_inputs; i++)
        if (step->inputs[i] >= 0 || !tiled->has_constants) inputs[i] = *tare_plan_value(plan, frame, step->inputs[i]);
    return inputs;
}

static tare_status open_kernel(struct tare_session *session, const struct tare_plan *plan,
                               struct tare_exec_frame *frame, struct tare_tiled_steps *tiled, int head,
                               struct tare_kernel *kernel, struct room *room) {
    const struct tare_step *step = &plan->steps[tiled->heads[head]];
    const struct tare_fusion *fusion = step->fusion;
    const struct tare_tensor *inputs = inputs_of(session, plan, frame, tiled, head);
    if (!inputs) return TARE_NO_MEMORY;
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
                                    .state = step->state->kernel,
                                    .tilings = &step->state->tilings };
    if (fusion) {
        if (!tare_plan_epilogue(&room->epilogue, plan, frame, fusion))
            return TARE_FAIL(TARE_SHAPE, "bias has rank %d (expected 1)", room->epilogue.bias->shape.rank);
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

/* How many steps to try: as many as ran together in the last run, if what determines it is the same. */
static int begin(struct tare_tiled_steps *tiled, const struct tare_shape *shape, struct tare_pool *pool) {
    const double least_work = pool ? tare_split_least_work(pool) : 0;
    const int threads = tare_pool_size(pool);
    const bool is_same = tiled->n_run >= 0 && tiled->threads == threads && tiled->least_work == least_work &&
                         tare_shape_equal(&tiled->input, shape);
    tiled->input = *shape;
    tiled->least_work = least_work;
    tiled->threads = threads;
    return is_same ? tiled->n_run : tiled->n_active;
}

tare_status tare_tiled_steps_run(struct tare_session *session, const struct tare_plan *plan,
                                 struct tare_exec_frame *frame, const struct tare_step *step, bool *done) {
    struct tare_tiled_steps *tiled = step->tiled;
    const struct tare_tensor *input = tare_plan_value(plan, frame, step->inputs[0]);
    const int count = begin(tiled, &input->shape, tare_session_op_pool(session));
    struct tare_kernel kernels[TARE_TILED_STEPS_MAX];
    struct room rooms[TARE_TILED_STEPS_MAX];
    size_t run = 0;
    int open = 0;
    *done = false;
    mark(plan, frame, tiled, tiled->n_heads, false);
    while (open < count && open_kernel(session, plan, frame, tiled, open, &kernels[open], &rooms[open]) == TARE_OK)
        open++;
    tiled->has_constants |= open == tiled->n_active;
    if (open < count) tare_error_clear(); /* the step reports the error again when it runs alone */
    if (open >= 2) run = run_kernels(session, step, kernels, (size_t)open);
    tare_arena_reset(&frame->scratch);
    tiled->n_run = (int)run;
    if (run == 0) return TARE_OK;
    const struct tare_step *head = &plan->steps[tiled->heads[run - 1]];
    const struct tare_step *last = tare_plan_last_step(plan, head);
    frame->slots[tare_plan_output_slot(head)] = rooms[run - 1].output;
    mark(plan, frame, tiled, (int)run, true);
    *done = true;
    return last->observed ? tare_step_show(session, last, &frame->slots[tare_plan_output_slot(head)]) : TARE_OK;
}

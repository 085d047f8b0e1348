/* Frames: the slots and scratch memory of one run of a plan. */
#include "interpreter/execution/grouping_binding.h"
#include "base/alloc.h"

static void free_binding(struct tare_group_binding *binding) {
    if (!binding) return;
    tare_arena_free(&binding->arena);
    tare_arena_free(&binding->requantize_arena);
    tare_free(binding);
}

void tare_exec_frame_free(struct tare_exec_frame *frame) {
    if (!frame) return;
    tare_free(frame->slots);
    tare_free(frame->any_inputs);
    for (size_t i = 0; frame->kept_inputs && i < frame->n_bindings; i++)
        tare_free(frame->kept_inputs[i]);
    tare_free(frame->kept_inputs);
    tare_free(frame->last_use);
    tare_free(frame->dead);
    tare_free(frame->computed);
    tare_free(frame->extremes);
    tare_free(frame->lent);
    for (size_t i = 0; frame->singles && i < frame->n_bindings; i++) {
        if (frame->singles[i]) tare_tensor_reset(frame->singles[i]);
        tare_free(frame->singles[i]);
    }
    tare_free(frame->singles);
    for (size_t i = 0; frame->bindings && i < frame->n_bindings; i++)
        free_binding(frame->bindings[i]);
    tare_free(frame->bindings);
    tare_arena_free(&frame->scratch);
    tare_free(frame);
}

struct tare_exec_frame *tare_exec_frame_new(const struct tare_plan *plan) {
    struct tare_exec_frame *frame = tare_calloc(1, sizeof *frame);
    if (!frame) return NULL;
    frame->slots = tare_calloc(plan->n_slots + 1, sizeof *frame->slots);
    frame->inputs = frame->any_inputs = tare_calloc(plan->max_inputs + 1, sizeof *frame->inputs);
    frame->kept_inputs = tare_calloc(plan->n_steps + 1, sizeof *frame->kept_inputs);
    frame->last_use = tare_calloc(plan->max_inputs + 1, sizeof *frame->last_use);
    frame->dead = tare_calloc(plan->n_steps + 1, sizeof *frame->dead);
    frame->computed = tare_calloc(plan->n_steps + 1, sizeof *frame->computed);
    frame->extremes = tare_calloc(plan->n_steps + 1, sizeof *frame->extremes);
    frame->singles = tare_calloc(plan->n_steps + 1, sizeof *frame->singles);
    frame->lent = tare_calloc(plan->n_steps + 1, sizeof *frame->lent);
    frame->bindings = tare_calloc(plan->n_steps + 1, sizeof *frame->bindings);
    frame->n_bindings = plan->n_steps;
    if (frame->slots && frame->inputs && frame->kept_inputs && frame->last_use && frame->dead && frame->computed &&
        frame->extremes && frame->singles && frame->lent && frame->bindings)
        return frame;
    tare_exec_frame_free(frame);
    return NULL;
}

const struct tare_tensor *tare_plan_value(const struct tare_plan *plan, const struct tare_exec_frame *frame,
                                          int value) {
    const struct tare_plan_constant *constant;
    if (value >= 0) return &frame->slots[value];
    constant = &plan->constants[~value];
    return &constant->state->values[constant->output];
}

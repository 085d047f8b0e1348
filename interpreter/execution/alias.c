/* Steps that only pass on a value, perhaps with another shape: Identity, Reshape and the ops around the function of a
 * TPU. In a small network they take as long as their kernels take to find the same shape again. The shapes of the last
 * run replace the kernel, and the value moves to the output's slot if this step is its last use. */
#include "interpreter/execution/plan.h"

#include <string.h>

static bool may_be_alias(const struct tare_step *step) {
    if (!step->op || !(step->op->flags & TARE_OP_ALIAS) || step->n_outputs != 1 || step->n_inputs < 1) return false;
    if (step->reads || step->fusion || step->tiled || step->kind != TARE_STEP_PLAIN) return false;
    for (size_t i = 1; i < step->n_inputs; i++)
        if (step->inputs[i] >= 0) return false;
    return step->inputs[0] >= 0;
}

tare_status tare_plan_find_aliases(struct tare_plan *plan, struct tare_arena *arena) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step *step = &plan->steps[s];
        if (!may_be_alias(step)) continue;
        step->alias = TARE_NEW(arena, struct tare_step_alias);
        if (!step->alias) return TARE_NO_MEMORY;
        step->alias->input = tare_shape_unknown();
    }
    return TARE_OK;
}

void tare_plan_select_aliases(const struct tare_session *session, const struct tare_plan *plan) {
    const struct tare_session_options *options = &session->options;
    const bool any =
        !options->trace && !options->check_numerics && !options->use_reference_kernels && !options->profile;
    for (size_t s = 0; s < plan->n_steps; s++)
        if (plan->steps[s].alias) plan->steps[s].alias->active = any && !plan->steps[s].observed;
}

bool tare_alias_run(struct tare_exec_frame *frame, const struct tare_step *step) {
    const struct tare_step_alias *alias = step->alias;
    struct tare_tensor *input = &frame->slots[step->inputs[0]], *output = &frame->slots[step->first_output];
    if (!alias->active || input->dtype != step->node->output_dtypes[0]) return false;
    if (!tare_shape_equal(&input->shape, &alias->input)) return false;
    if (step->last_use[0]) {
        *output = *input;
        *input = (struct tare_tensor){ 0 };
    } else {
        tare_tensor_share(output, input);
    }
    output->shape = alias->output;
    return true;
}

void tare_alias_note(const struct tare_exec_frame *frame, const struct tare_step *step) {
    step->alias->input = frame->inputs[0].shape;
    step->alias->output = frame->slots[step->first_output].shape;
}

/* Runs a fusion: the kernel of its first step with an epilogue. */
#include "interpreter/execution/step.h"

tare_status tare_fusion_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                            const struct tare_step *head, const struct tare_tensor *bias,
                            const struct tare_tensor *addend) {
    const struct tare_fusion *fusion = head->fusion;
    struct tare_epilogue epilogue = { .bias = bias, .addend = addend, .relu = fusion->relu, .limit = fusion->limit };
    struct tare_tensor output = { 0 };
    const bool fits = !fusion->bias_is_vector || bias->shape.rank == 1;
    TARE_TRY(tare_step_run(session, head, frame, &output, fits ? &epilogue : NULL, NULL));
    frame->slots[epilogue.applied ? fusion->output : head->first_output] = output;
    if (!epilogue.applied) return TARE_OK;
    for (int i = 0; i < fusion->n_steps; i++)
        frame->computed[fusion->steps[i]] = true;
    const struct tare_step *last = &plan->steps[fusion->steps[fusion->n_steps - 1]];
    return last->observed ? tare_step_show(session, last, &frame->slots[fusion->output]) : TARE_OK;
}

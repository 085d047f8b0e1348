/* Runs a fusion: the kernel of its first step with an epilogue. */
#include "interpreter/execution/step.h"

bool tare_plan_epilogue(struct tare_epilogue *epilogue, const struct tare_plan *plan,
                        const struct tare_exec_frame *frame, const struct tare_fusion *fusion) {
    *epilogue = (struct tare_epilogue){ .relu = fusion->relu,
                                        .limit = fusion->limit,
                                        .epsilon = fusion->epsilon,
                                        .activation = fusion->activation,
                                        .kept = fusion->kept };
    if (fusion->has_scale) epilogue->scale = tare_plan_value(plan, frame, fusion->scale);
    if (fusion->has_bias) epilogue->bias = tare_plan_value(plan, frame, fusion->bias);
    if (fusion->has_addend) epilogue->addend = tare_plan_value(plan, frame, fusion->addend);
    for (int i = 0; fusion->has_norm && i < TARE_NORM_OPERANDS; i++)
        epilogue->norm[i] = tare_plan_value(plan, frame, fusion->norm[i]);
    return !fusion->bias_is_vector || epilogue->bias->shape.rank == 1;
}

tare_status tare_fusion_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                            const struct tare_step *head) {
    const struct tare_fusion *fusion = head->fusion;
    struct tare_epilogue epilogue;
    struct tare_tensor output = { 0 };
    const bool fits = tare_plan_epilogue(&epilogue, plan, frame, fusion);
    if (fusion->addend_ends) epilogue.addend_slot = &frame->slots[fusion->addend];
    TARE_TRY(tare_step_run(session, head, frame, &output, fits ? &epilogue : NULL, NULL));
    frame->slots[epilogue.applied ? fusion->output : head->first_output] = output;
    if (!epilogue.applied) return TARE_OK;
    for (int i = 0; i < fusion->n_steps; i++)
        frame->computed[fusion->steps[i]] = true;
    const struct tare_step *last = &plan->steps[fusion->steps[fusion->n_steps - 1]];
    return last->observed ? tare_step_show(session, last, &frame->slots[fusion->output]) : TARE_OK;
}

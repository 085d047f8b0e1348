/* Runs a fusion: the kernel of its first step with an epilogue. */
#include "interpreter/execution/step.h"

#include <string.h>

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

static tare_status show(struct tare_session *session, const struct tare_plan *plan, const struct tare_exec_frame *frame,
                        const struct tare_fusion *fusion) {
    const struct tare_step *last = &plan->steps[fusion->steps[fusion->n_steps - 1]];
    return last->observed ? tare_step_show(session, last, &frame->slots[fusion->output]) : TARE_OK;
}

tare_status tare_fusion_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                            const struct tare_step *head) {
    const struct tare_fusion *fusion = head->fusion;
    struct tare_epilogue epilogue;
    struct tare_tensor output = { 0 };
    const bool fits = tare_plan_epilogue(&epilogue, plan, frame, fusion);
    if (fusion->addend_ends) epilogue.addend_slot = &frame->slots[fusion->addend];
    TARE_TRY(tare_step_run(session, head, frame, &output, fits ? &epilogue : NULL, NULL));
    frame->slots[epilogue.applied && fusion->reshape < 0 ? fusion->output : head->first_output] = output;
    if (!epilogue.applied) return TARE_OK;
    for (int i = 0; i < fusion->n_steps; i++)
        frame->computed[fusion->steps[i]] = true;
    return fusion->reshape < 0 ? show(session, plan, frame, fusion) : TARE_OK;
}

/* Values are copied a block at a time, unless they are in place: the function replaces a block in the cache. */
static void activate(struct tare_tensor *y, const float *from, const struct tare_pointwise *activation) {
    enum { BLOCK = 2048 };
    const int64_t columns = y->elements < BLOCK ? y->elements : BLOCK;
    for (int64_t at = 0; at < y->elements; at += columns) {
        const int64_t count = y->elements - at < columns ? y->elements - at : columns;
        float *to = TARE_DATA(float, y) + at;
        if (to != from + at) memcpy(to, from + at, (size_t)count * sizeof *to);
        tare_pointwise_rows_at(tare_cpu_level(), activation, to, count, 1, count);
    }
}

tare_status tare_activation_run(struct tare_session *session, const struct tare_plan *plan,
                                struct tare_exec_frame *frame, const struct tare_fusion *fusion, bool *done) {
    struct tare_tensor *x = &frame->slots[fusion->argument], *y = &frame->slots[fusion->output];
    *done = fusion->activates && x->dtype == TARE_DT_FLOAT && !x->splat;
    for (int i = fusion->n_before + 1; i < fusion->n_steps; i++)
        frame->computed[fusion->steps[i]] = *done;
    if (!*done) return TARE_OK;
    const float *from = TARE_CONST_DATA(float, x);
    if (tare_tensor_is_exclusive(x)) { /* only the activation uses it */
        *y = *x;
        *x = (struct tare_tensor){ 0 };
    } else {
        TARE_TRY(tare_tensor_new_pooled(y, TARE_DT_FLOAT, &x->shape, session->pool));
    }
    activate(y, from, fusion->activation);
    return show(session, plan, frame, fusion);
}

tare_status tare_fusion_carry(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                              const struct tare_step *reshape) {
    const struct tare_fusion *fusion = reshape->carried;
    struct tare_tensor *value = &frame->slots[reshape->first_output];
    if (!fusion->active || !frame->computed[fusion->steps[0]]) return TARE_OK;
    if (fusion->has_bias) { /* as BiasAdd requires; the product has checked that its columns have a bias each */
        const struct tare_tensor *bias = tare_plan_value(plan, frame, fusion->bias);
        const int64_t last = value->shape.rank > 1 ? value->shape.dims[value->shape.rank - 1] : 0;
        if (last != bias->elements)
            return tare_exec_locate(session, plan->steps[fusion->steps[0]].node,
                                    TARE_FAIL(TARE_SHAPE, "bias has %lld elements (expected %lld)",
                                              (long long)bias->elements, (long long)last));
    }
    frame->slots[fusion->output] = *value;
    *value = (struct tare_tensor){ 0 };
    return show(session, plan, frame, fusion);
}

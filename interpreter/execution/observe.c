/* Observation: determines which values the session's observer requests, and passes them to it. The selection is cached
 * in the plan until the observer changes (session->observe_epoch). */
#include "interpreter/execution/plan.h"
#include "interpreter/execution/variable.h"

/* ---- requested values ---- */

static tare_status ask(struct tare_session *session, struct tare_step *step, bool *any) {
    *any = false;
    if (!session->observe) {
        step->observed = NULL;
        return TARE_OK;
    }
    if (!step->observed) step->observed = TARE_NEW_ARRAY(&session->arena, bool, step->n_outputs + 1);
    if (!step->observed) return TARE_NO_MEMORY;
    for (size_t k = 0; k < step->n_outputs; k++) {
        step->observed[k] = !session->accepts || session->accepts(session->observe_arg, step->node, k);
        *any |= step->observed[k];
    }
    if (!*any) step->observed = NULL;
    return TARE_OK;
}

tare_status tare_plan_ask_observer(struct tare_session *session, struct tare_plan *plan) {
    bool any;
    for (size_t s = 0; s < plan->n_steps; s++)
        TARE_TRY(ask(session, &plan->steps[s], &any));
    for (size_t s = 0; s < plan->n_constant_steps; s++) {
        TARE_TRY(ask(session, &plan->constant_steps[s], &any));
        if (!any) continue;
        plan->constant_steps[s].state->keep = true;
        plan->constants_ready = false;
    }
    tare_plan_select_fusions(session, plan);
    tare_plan_select_groups(session, plan);
    tare_plan_select_ranges(session, plan);
    tare_plan_select_scalars(session, plan);
    tare_plan_select_tilings(session, plan);
    tare_plan_select_next_groups(session, plan);
    tare_plan_select_mixed(session, plan);
    tare_plan_select_quiet(plan);
    tare_plan_select_sections(session, plan);
    plan->observe_epoch = session->observe_epoch;
    return TARE_OK;
}

/* ---- passing values ---- */

tare_status tare_plan_observe_constants(struct tare_session *session, const struct tare_plan *plan) {
    for (size_t s = 0; s < plan->n_constant_steps; s++) {
        const struct tare_step *step = &plan->constant_steps[s];
        for (size_t k = 0; k < step->n_outputs && step->observed; k++) {
            if (!step->observed[k]) continue;
            TARE_TRY(tare_exec_locate(session, step->node,
                                      session->observe(session->observe_arg, step->node, k, &step->state->values[k])));
        }
    }
    return TARE_OK;
}

tare_status tare_step_show(struct tare_session *session, const struct tare_step *step,
                           const struct tare_tensor *outputs) {
    for (size_t k = 0; k < step->n_outputs && step->observed; k++) {
        struct tare_tensor value;
        tare_status status;
        if (!step->observed[k] || !outputs[k].dtype) continue;
        if (!tare_dtype_is_ref(step->node->output_dtypes[k])) {
            TARE_TRY(session->observe(session->observe_arg, step->node, k, &outputs[k]));
            continue;
        }
        if (tare_reference_read(&value, &outputs[k], false) != TARE_OK) { /* not initialised: nothing to see */
            tare_error_clear();
            continue;
        }
        status = session->observe(session->observe_arg, step->node, k, &value);
        tare_tensor_reset(&value);
        if (status != TARE_OK) return status;
    }
    return TARE_OK;
}

/* Determines, once per plan and observer, which of the fed tensors are observed. */
static tare_status ask_for_fed(struct tare_session *session, struct tare_plan *plan, const struct tare_edge *edges,
                               size_t count) {
    if (plan->fed_wanted && plan->fed_epoch == session->observe_epoch) return TARE_OK;
    if (!plan->fed_wanted) plan->fed_wanted = TARE_NEW_ARRAY(&session->arena, bool, plan->n_feeds + 1);
    if (!plan->fed_wanted) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        plan->fed_wanted[i] =
            !session->accepts || session->accepts(session->observe_arg, edges[i].node, (size_t)edges[i].index);
    plan->fed_epoch = session->observe_epoch;
    return TARE_OK;
}

/* Fed values are observed like the outputs of nodes: an argument or a fed placeholder may be the input of a
 * convolution, and integers such as a mask the input of a block that is trained. Integers come first: the number of an
 * iteration, which the statistics of other arguments belong to. */
tare_status tare_plan_observe_fed(struct tare_session *session, struct tare_plan *plan, const struct tare_edge *edges,
                                  const struct tare_tensor *values, size_t count) {
    if (!session->observe) return TARE_OK;
    TARE_TRY(ask_for_fed(session, plan, edges, count));
    for (int floats = 0; floats < 2; floats++)
        for (size_t i = 0; i < count; i++)
            if (plan->fed_wanted[i] && tare_dtype_is_integer(values[i].dtype) != floats)
                TARE_TRY(session->observe(session->observe_arg, edges[i].node, (size_t)edges[i].index, &values[i]));
    return TARE_OK;
}

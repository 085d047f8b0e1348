/* Tiled execution: consecutive steps, each the only user of the previous step's output, may run together tile by tile
 * (tare_op.run_tiled), so that the intermediate tensors are never materialised as a whole. The operations on each
 * element and their order do not change. In each run the op's function chooses the number of steps from the shapes. */
#include "base/clock.h"
#include "interpreter/execution/plan.h"

/* Where the step's value is stored after its fusion was executed. */
int tare_plan_output_slot(const struct tare_step *step) {
    return step->fusion ? step->fusion->output : step->first_output;
}

static bool may_join(const struct tare_plan_uses *uses, const struct tare_step *step, int first) {
    if (!step->op || !step->op->run_tiled || step->n_outputs != 1 || step->reads || step->n_controls) return false;
    const int dtype = step->node->output_dtypes[0];
    const bool rounds = !(step->op->flags & TARE_OP_EPILOGUE) || (step->op->flags & TARE_OP_ROUNDS);
    if (dtype != TARE_DT_FLOAT && (dtype != TARE_DT_BFLOAT16 || !rounds)) return false;
    for (size_t i = 1; i < step->n_inputs; i++)
        if (!tare_plan_is_before(uses, step->inputs[i], first)) return false;
    return tare_plan_fusion_is_before(uses, step->fusion, first);
}

static tare_status find_tiling(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                               int first) {
    struct tare_tiled_steps tiled = { .heads = { first }, .n_heads = 1 };
    const struct tare_step *last = &plan->steps[first];
    if (!may_join(uses, last, first)) return TARE_OK;
    while (tiled.n_heads < TARE_TILED_STEPS_MAX) {
        const int slot = tare_plan_output_slot(last), user = uses->used_by[slot];
        if (user < 0 || !plan->steps[user].op || plan->steps[user].op->run_tiled != last->op->run_tiled) break;
        if (plan->steps[user].inputs[0] != slot || !may_join(uses, &plan->steps[user], first)) break;
        if (plan->steps[user].node->output_dtypes[0] != last->node->output_dtypes[0]) break;
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
const struct tare_step *tare_plan_last_step(const struct tare_plan *plan, const struct tare_step *head) {
    return head->fusion ? &plan->steps[head->fusion->steps[head->fusion->n_steps - 1]] : head;
}

void tare_plan_select_tilings(const struct tare_session *session, const struct tare_plan *plan) {
    const struct tare_session_options *options = &session->options;
    const bool any = !options->trace && !options->check_numerics && !options->use_reference_kernels;
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_tiled_steps *tiled = plan->steps[s].tiled;
        if (!tiled) continue;
        tiled->n_active = 0;
        tiled->n_run = -1;
        tiled->has_constants = false;
        while (any && tiled->n_active < tiled->n_heads) {
            const struct tare_step *head = &plan->steps[tiled->heads[tiled->n_active]];
            if (head->fusion ? !head->fusion->active : head->observed != NULL) break;
            tiled->n_active++;
            /* where its output, or a value within its fusion, is observed, the tiling ends */
            if (tare_plan_last_step(plan, head)->observed || !tare_plan_fuses_all(head)) break;
        }
        if (tiled->n_active < 2) tiled->n_active = 0;
    }
}

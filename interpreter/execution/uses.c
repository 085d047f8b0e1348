/* Producers and users of the values of a plan, from which fusions and tilings are found. */
#include "interpreter/execution/plan.h"

static void note(struct tare_plan_uses *uses, int value, int step) {
    if (value < 0) return;
    uses->used_by[value] = uses->used_by[value] == TARE_NO_STEP ? step : TARE_MANY_STEPS;
    uses->n_uses[value]++;
}

tare_status tare_plan_note_uses(struct tare_plan_uses *uses, const struct tare_plan *plan, struct tare_arena *arena) {
    uses->made_by = TARE_NEW_ARRAY(arena, int, plan->n_slots + 1);
    uses->used_by = TARE_NEW_ARRAY(arena, int, plan->n_slots + 1);
    uses->n_uses = TARE_NEW_ARRAY(arena, int, plan->n_slots + 1);
    if (!uses->made_by || !uses->used_by || !uses->n_uses) return TARE_NO_MEMORY;
    for (size_t v = 0; v < plan->n_slots; v++)
        uses->made_by[v] = uses->used_by[v] = TARE_NO_STEP;
    for (size_t s = 0; s < plan->n_steps; s++) {
        for (size_t i = 0; i < plan->steps[s].n_inputs; i++)
            note(uses, plan->steps[s].inputs[i], (int)s);
        for (size_t k = 0; k < plan->steps[s].n_outputs; k++)
            uses->made_by[plan->steps[s].first_output + (int)k] = (int)s;
    }
    for (size_t i = 0; i < plan->n_fetches; i++)
        note(uses, plan->fetches[i], TARE_MANY_STEPS);
    return TARE_OK;
}

bool tare_plan_is_before(const struct tare_plan_uses *uses, int value, int head) {
    return value < 0 || uses->made_by[value] < head;
}

/* Groups that run with the group before them (tare_step_group.next): the result of a product or of element-wise steps
 * that a group of element-wise steps takes as its source, such as the argument of x * sigmoid(x), whose two uses end
 * the first group, or a sum that is also quantized. Both run on one block of elements after the other. If no other step
 * uses the result of the first group, it is never stored. */
#include "interpreter/execution/plan.h"

struct finder {
    struct tare_plan *plan;
    const struct tare_plan_uses *uses;
    int *count; /* by slot: how often steps and the caller use it */
};

static void count_uses(const struct finder *f) {
    const struct tare_plan *plan = f->plan;
    for (size_t s = 0; s < plan->n_steps; s++)
        for (size_t i = 0; i < plan->steps[s].n_inputs; i++)
            if (plan->steps[s].inputs[i] >= 0) f->count[plan->steps[s].inputs[i]]++;
    for (size_t i = 0; i < plan->n_fetches; i++)
        if (plan->fetches[i] >= 0) f->count[plan->fetches[i]]++;
}

static int uses_within(const struct finder *f, const struct tare_step_group *group, int slot) {
    int count = 0;
    for (int i = 0; i < group->n_steps; i++) {
        const struct tare_step *step = &f->plan->steps[group->steps[i]];
        for (size_t k = 0; k < step->n_inputs; k++)
            count += step->inputs[k] == slot;
    }
    return count;
}

/* The value exists in the place of step `place`. */
static bool exists_at(const struct finder *f, int value, int place) {
    if (value < 0 || f->uses->made_by[value] == TARE_NO_STEP) return true;
    return tare_plan_runs_at(f->plan, f->uses->made_by[value]) < place;
}

/* The group whose result is the source of `group`, if they may run together; NULL: none. */
static struct tare_step_group *previous_of(const struct finder *f, const struct tare_step_group *group) {
    const int operand = group->expression.branches[0].source;
    if (group->product >= 0 || group->range || group->source_range || operand < 0) return NULL;
    const int slot = group->values[operand], step = slot < 0 ? TARE_NO_STEP : f->uses->made_by[slot];
    struct tare_step_group *previous = step < 0 ? NULL : f->plan->steps[step].group;
    if (!previous || previous->output != slot || previous->next || previous->is_next || previous->range) return NULL;
    if (previous->source_range || previous->sink >= group->sink) return NULL;
    for (int i = 0; i < group->expression.n_operands; i++) {
        const bool is_value = !group->expression.branch_of[i] && group->values[i] != slot;
        if (is_value && !exists_at(f, group->values[i], previous->sink)) return NULL;
    }
    return previous;
}

tare_status tare_plan_find_next_groups(struct tare_plan *plan, const struct tare_plan_uses *uses,
                                       struct tare_arena *scratch) {
    const struct finder f = { plan, uses, TARE_NEW_ARRAY(scratch, int, plan->n_slots + 1) };
    if (!f.count) return TARE_NO_MEMORY;
    count_uses(&f);
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step_group *group = plan->steps[s].group;
        if (!group || group->sink != (int)s) continue;
        struct tare_step_group *previous = previous_of(&f, group);
        if (!previous) continue;
        previous->next = group;
        previous->is_stored = f.count[previous->output] > uses_within(&f, group, previous->output);
        group->is_next = true;
    }
    return TARE_OK;
}

/* A consumer takes the blocks of all threads one after another, so that several threads gain nothing. */
void tare_plan_select_next_groups(const struct tare_session *session, const struct tare_plan *plan) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step_group *group = plan->steps[s].group;
        if (!group || group->sink != (int)s || !group->next) continue;
        group->runs_next = session->options.op_threads <= 1 && group->active && group->next->active &&
                           (group->is_stored || !plan->steps[s].observed);
    }
}

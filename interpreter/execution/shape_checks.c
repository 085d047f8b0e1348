/* Assertions on shapes. JAX exports each constraint of a symbolic dimension as an Assert of a comparison of sizes, and
 * other frameworks have the like. Steps that depend on nothing but the shapes of the feeds, and whose results only such
 * assertions use, run when a shape differs from that of the last successful run, and are skipped otherwise. */
#include "interpreter/execution/plan.h"

#include "interpreter/inference/evaluate.h"

#include <string.h>

/* Of each slot: the feed whose tensor it has; -1: none. */
static int *find_feeds(const struct tare_plan *plan, struct tare_arena *scratch) {
    int *feeds = TARE_NEW_ARRAY(scratch, int, plan->n_slots + 1);
    for (size_t v = 0; feeds && v < plan->n_slots; v++)
        feeds[v] = v < plan->n_feeds ? (int)v : -1;
    for (size_t s = 0; feeds && s < plan->n_steps; s++) {
        const struct tare_step *step = &plan->steps[s];
        if (strcmp(step->node->op, "Identity") == 0 && step->n_inputs == 1 && step->inputs[0] >= 0 && !step->reads)
            feeds[step->first_output] = feeds[step->inputs[0]];
    }
    return feeds;
}

static bool is_joined(const struct tare_step *step) {
    return step->fusion || step->tiled || step->group || step->kind != TARE_STEP_PLAIN || step->reads;
}

static bool reads_shape(const struct tare_node *node) {
    static const char *const ops[] = { "Shape", "ShapeN", "Size", "Rank" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(node->op, ops[i]) == 0) return true;
    return false;
}

static bool is_assert(const struct tare_step *step) {
    return strcmp(step->node->op, "Assert") == 0;
}

/* By step: its value depends on shapes of feeds alone. */
static bool *find_shape_steps(const struct tare_plan *plan, const struct tare_plan_uses *uses, const int *feeds,
                              struct tare_arena *scratch) {
    bool *found = TARE_NEW_ARRAY(scratch, bool, plan->n_steps + 1);
    for (size_t s = 0; found && s < plan->n_steps; s++) {
        const struct tare_step *step = &plan->steps[s];
        const bool reads = reads_shape(step->node);
        found[s] = !is_joined(step) && step->n_inputs && (is_assert(step) || tare_node_is_pure(step->node));
        for (size_t i = 0; found[s] && i < step->n_inputs; i++) {
            const int value = step->inputs[i], maker = value >= 0 ? uses->made_by[value] : TARE_NO_STEP;
            found[s] = value < 0 || (maker >= 0 && found[maker]) || (reads && feeds[value] >= 0);
        }
    }
    return found;
}

/* Clears the steps whose results other steps or the caller use, and those that no assertion needs. */
static void keep_assertions(bool *found, const struct tare_plan *plan, struct tare_arena *scratch) {
    bool *used = TARE_NEW_ARRAY(scratch, bool, plan->n_slots + 1),
         *needed = TARE_NEW_ARRAY(scratch, bool, plan->n_slots + 1);
    if (!used || !needed) {
        memset(found, 0, plan->n_steps);
        return;
    }
    for (size_t i = 0; i < plan->n_fetches; i++)
        if (plan->fetches[i] >= 0) used[plan->fetches[i]] = true;
    for (size_t s = plan->n_steps; s-- > 0;) {
        const struct tare_step *step = &plan->steps[s];
        bool is_needed = is_assert(step);
        for (size_t k = 0; k < step->n_outputs; k++) {
            if (used[step->first_output + (int)k]) found[s] = false;
            is_needed |= needed[step->first_output + (int)k];
        }
        found[s] &= is_needed;
        for (size_t i = 0; i < step->n_inputs; i++)
            if (step->inputs[i] >= 0) (found[s] ? needed : used)[step->inputs[i]] = true;
    }
}

static tare_status note_sources(struct tare_shape_checks *checks, const struct tare_plan *plan, const int *feeds,
                                struct tare_arena *arena) {
    checks->sources = TARE_NEW_ARRAY(arena, int, plan->n_feeds + 1);
    checks->seen = TARE_NEW_ARRAY(arena, struct tare_shape, plan->n_feeds + 1);
    if (!checks->sources || !checks->seen) return TARE_NO_MEMORY;
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_step *step = &plan->steps[s];
        for (size_t i = 0; i < step->n_inputs && reads_shape(step->node); i++) {
            const int feed = step->inputs[i] >= 0 ? feeds[step->inputs[i]] : -1;
            size_t k = 0;
            while (k < checks->n_sources && checks->sources[k] != feed)
                k++;
            if (feed >= 0 && k == checks->n_sources) checks->sources[checks->n_sources++] = feed;
        }
    }
    return TARE_OK;
}

tare_status tare_plan_find_shape_checks(struct tare_plan *plan, const struct tare_plan_uses *uses,
                                        struct tare_arena *arena, struct tare_arena *scratch) {
    bool any = false;
    for (size_t s = 0; s < plan->n_steps && !any; s++)
        any = is_assert(&plan->steps[s]);
    if (!any) return TARE_OK;
    const int *feeds = find_feeds(plan, scratch);
    bool *found = feeds ? find_shape_steps(plan, uses, feeds, scratch) : NULL;
    struct tare_shape_checks *checks = TARE_NEW(arena, struct tare_shape_checks);
    if (!found || !checks) return TARE_NO_MEMORY;
    checks->steps = TARE_NEW_ARRAY(arena, int, plan->n_steps + 1);
    if (!checks->steps) return TARE_NO_MEMORY;
    keep_assertions(found, plan, scratch);
    for (size_t s = 0; s < plan->n_steps; s++)
        if (found[s]) checks->steps[checks->n_steps++] = (int)s;
    if (!checks->n_steps) return TARE_OK;
    TARE_TRY(note_sources(checks, plan, feeds, arena));
    plan->checks = checks;
    return TARE_OK;
}

bool tare_shape_checks_begin(const struct tare_session *session, struct tare_plan *plan,
                             struct tare_exec_frame *frame) {
    struct tare_shape_checks *checks = plan->checks;
    bool known = checks->passed && !session->observe;
    for (size_t i = 0; i < checks->n_sources && known; i++)
        known = tare_shape_equal(&frame->slots[checks->sources[i]].shape, &checks->seen[i]);
    if (known != frame->skips_checks)
        for (size_t i = 0; i < checks->n_steps; i++)
            frame->computed[checks->steps[i]] = known;
    frame->skips_checks = known;
    if (known) return true;
    checks->passed = false;
    for (size_t i = 0; i < checks->n_sources; i++)
        checks->seen[i] = frame->slots[checks->sources[i]].shape;
    return false;
}

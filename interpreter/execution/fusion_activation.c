/* Activations of several steps, such as x * sigmoid(x), GELU as exporters write it, or x * relu6(x + 3) / 6: steps
 * after the head of a fusion that compute a function of its value alone, from it, from each other and from constants.
 * The epilogue of the head computes them as a program (interpreter/kernels/simd/pointwise.h). */
#include "interpreter/execution/stages.h"

#include <string.h>

/* How many of the plan's next steps are looked at. */
enum { WINDOW = 64 };

/* Value 0 is the head's, value i + 1 that of step i. */
struct region {
    const struct tare_plan *plan;
    struct tare_pointwise program;
    int steps[TARE_POINTWISE_MOST];
    int slots[TARE_POINTWISE_MOST + 1];
    int uses_left[TARE_POINTWISE_MOST + 1]; /* by steps that are not in the region */
};

static int value_of(const struct region *region, int slot) {
    for (int i = 0; i <= region->program.n_steps; i++)
        if (region->slots[i] == slot) return i;
    return -1;
}

static bool uses_any(const struct region *region, const struct tare_step *step) {
    for (size_t i = 0; i < step->n_inputs; i++)
        if (step->inputs[i] >= 0 && value_of(region, step->inputs[i]) >= 0) return true;
    return false;
}

/* Sets the operand of a step that is input `i`; false if it is neither a constant scalar nor a value of the region. */
static bool take_operand(const struct region *region, struct tare_pointwise_step *out, const struct tare_step *step,
                         int i) {
    out->y = step->inputs[i] < 0 ? -1 : value_of(region, step->inputs[i]);
    if (out->y >= 0) return true;
    const struct tare_tensor *constant = step->inputs[i] < 0 ? tare_edge_constant(step->node->inputs[i]) : NULL;
    if (!constant || constant->shape.rank != 0 || constant->dtype != TARE_DT_FLOAT) return false;
    out->constant = *TARE_CONST_DATA(float, constant);
    return true;
}

/* Appends a step that fits. */
static bool take_step(struct region *region, const struct tare_plan_uses *uses, int s) {
    const struct tare_step *step = &region->plan->steps[s];
    const int n = region->program.n_steps;
    struct tare_pointwise_step *out = &region->program.steps[n];
    struct tare_step_stages stages;
    int main = 0;
    if (n == TARE_POINTWISE_MOST || step->n_inputs > 2 || step->n_outputs != 1) return false;
    if (step->node->output_dtypes[0] != TARE_DT_FLOAT) return false;
    while (step->inputs[main] < 0 || value_of(region, step->inputs[main]) < 0)
        main++;
    if (!tare_plan_array_stages_of(&stages, step, main) || stages.n_codes != 1 || !tare_pointwise_has(stages.codes[0]))
        return false;
    *out = (struct tare_pointwise_step){ .code = stages.codes[0], .x = value_of(region, step->inputs[main]), .y = -1 };
    if (stages.operand >= 0 && !take_operand(region, out, step, stages.operand)) return false;
    region->uses_left[out->x]--;
    if (out->y >= 0) region->uses_left[out->y]--;
    region->steps[n] = s;
    region->slots[n + 1] = step->first_output;
    region->uses_left[n + 1] = uses->n_uses[step->first_output];
    region->program.n_steps++;
    return true;
}

/* Only the last value is used outside of the region. */
static bool is_closed(const struct region *region) {
    for (int i = 0; i < region->program.n_steps; i++)
        if (region->uses_left[i] > 0) return false;
    return true;
}

/* Otherwise other parts of the epilogue compute it, or groups do. */
static bool is_worth_it(const struct region *region, int first_uses) {
    bool is_elementary = false;
    for (int i = 0; i < region->program.n_steps; i++)
        is_elementary |= tare_stage_is_elementary(region->program.steps[i].code);
    return is_elementary || first_uses > 1;
}

/* Drops products with 1 whose results are operands, as exporters write swish with a factor. */
static void drop_ones(struct tare_pointwise *program) {
    int values[TARE_POINTWISE_MOST + 1] = { 0 }, n = 0; /* new numbers of the values */
    for (int i = 0; i < program->n_steps; i++) {
        struct tare_pointwise_step step = program->steps[i];
        const bool is_last = i + 1 == program->n_steps;
        step.x = values[step.x];
        if (step.y >= 0) step.y = values[step.y];
        values[i + 1] = step.x;
        if (!is_last && step.code == TARE_STAGE_MUL && step.y < 0 && step.constant == 1) continue;
        program->steps[n++] = step;
        values[i + 1] = n;
    }
    program->n_steps = n;
}

tare_status tare_plan_find_activation(struct tare_fusion *fusion, const struct tare_plan *plan,
                                      const struct tare_plan_uses *uses, int head, int *slot,
                                      struct tare_arena *arena) {
    struct region region = { .plan = plan, .slots = { *slot }, .uses_left = { uses->n_uses[*slot] } };
    int n_closed = 0;
    if (plan->steps[head].node->output_dtypes[0] != TARE_DT_FLOAT) return TARE_OK;
    for (int s = head + 1; s < (int)plan->n_steps && s <= head + WINDOW; s++) {
        if (!uses_any(&region, &plan->steps[s])) continue;
        if (!take_step(&region, uses, s)) break;
        if (is_closed(&region) && is_worth_it(&region, uses->n_uses[*slot])) n_closed = region.program.n_steps;
    }
    if (n_closed == 0) return TARE_OK;
    struct tare_pointwise *activation = tare_arena_alloc(arena, sizeof *activation);
    if (!activation) return TARE_NO_MEMORY;
    *activation = region.program;
    activation->n_steps = n_closed;
    drop_ones(activation);
    for (int i = 0; i < n_closed; i++)
        fusion->steps[fusion->n_steps++] = region.steps[i];
    fusion->activation = activation;
    *slot = region.slots[n_closed];
    return TARE_OK;
}

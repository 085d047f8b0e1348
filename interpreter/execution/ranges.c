/* Ranges: Min and Max over the same axes of the same tensor, which contain all of its elements (one image, one row),
 * from which dynamic quantization computes its parameters. The group that computes the tensor (grouping.c) collects
 * both while the values are in registers, and a mixed tiling (mixed.h) while they are in the cache; where another step
 * computes it, one pass over the tensor collects both. Where the tensor has several rows, the result depends on the
 * order of comparisons (NaN, zeros of both signs), or a step is observed, the ops run as any others. */
#include "interpreter/execution/mixed.h"
#include "interpreter/kernels/value_range.h"

#include <string.h>

enum { MINIMUM, MAXIMUM };

struct finder {
    struct tare_plan *plan;
    const struct tare_plan_uses *uses;
    int *first;   /* by slot: the Min or Max of it that was found first; TARE_NO_STEP: none yet, or both found */
    int *n_users; /* by slot */
};

/* The axes of a reduction as bits; 0 if they are not constant, or counted from the last one. */
static unsigned axes_of(struct tare_edge edge) {
    const struct tare_tensor *constant = tare_edge_constant(edge);
    unsigned axes = 0;
    for (int64_t i = 0; constant && i < constant->elements; i++) {
        const int64_t axis = tare_tensor_get_i64(constant, i);
        if (axis < 0 || axis >= TARE_MAX_RANK) return 0;
        axes |= 1u << axis;
    }
    return axes;
}

/* MINIMUM or MAXIMUM for a step that reduces axes of a float tensor and keeps them; -1 for any other step. */
static int extreme_of(const struct tare_step *step) {
    const int which = strcmp(step->node->op, "Min") == 0 ? MINIMUM : strcmp(step->node->op, "Max") == 0 ? MAXIMUM : -1;
    if (which < 0 || !step->op || step->reads || step->n_inputs != 2 || step->inputs[0] < 0) return -1;
    if (step->node->output_dtypes[0] != TARE_DT_FLOAT || !axes_of(step->node->inputs[1])) return -1;
    return tare_node_bool(step->node, "keep_dims", false) ? which : -1;
}

/* True if the step only makes a vector of all elements. */
static bool flattens(const struct tare_step *step) {
    if (strcmp(step->node->op, "Reshape") != 0 || step->reads || step->n_inputs != 2) return false;
    const struct tare_tensor *shape = tare_edge_constant(step->node->inputs[1]);
    return shape && shape->shape.rank == 1 && shape->elements == 1 && tare_tensor_get_i64(shape, 0) == -1;
}

static tare_status add_range(const struct finder *f, struct tare_arena *arena, int minimum, int maximum) {
    struct tare_step *steps = f->plan->steps;
    struct tare_step_range *range = tare_arena_alloc(arena, sizeof *range);
    if (!range) return TARE_NO_MEMORY;
    const int source = steps[minimum].inputs[0], made_by = f->uses->made_by[source];
    *range = (struct tare_step_range){ .source = source,
                                       .steps = { minimum, maximum },
                                       .axes = axes_of(steps[minimum].node->inputs[1]),
                                       .is_flattened = made_by >= 0 && flattens(&steps[made_by]) };
    steps[minimum].range = steps[maximum].range = range;
    if (range->is_flattened && f->n_users[source] == 2) steps[made_by].flattens = range;
    return TARE_OK;
}

/* The number of uses of each slot, by inputs of steps and by results. */
static void count_users(const struct finder *f) {
    const struct tare_plan *plan = f->plan;
    for (size_t s = 0; s < plan->n_steps; s++) {
        for (size_t i = 0; i < plan->steps[s].n_inputs; i++)
            if (plan->steps[s].inputs[i] >= 0) f->n_users[plan->steps[s].inputs[i]]++;
    }
    for (size_t i = 0; i < plan->n_fetches; i++)
        if (plan->fetches[i] >= 0) f->n_users[plan->fetches[i]]++;
}

/* Groups that begin with the tensor of a range and run after the range is set. `ranges`: by slot of the tensor. */
static void join_sources(const struct tare_plan *plan, struct tare_step_range *const *ranges) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step_group *group = plan->steps[s].group;
        if (!group || group->sink != (int)s || group->product >= 0) continue;
        const int value = group->values[group->expression.branches[0].source];
        const struct tare_step_range *range = value < 0 ? NULL : ranges[value];
        if (!range || (range->steps[MINIMUM] > (int)s && range->steps[MAXIMUM] > (int)s)) continue;
        group->source_range = range;
    }
}

tare_status tare_plan_join_ranges(struct tare_plan *plan, const struct tare_plan_uses *uses,
                                  struct tare_arena *scratch) {
    struct tare_step_range **ranges = TARE_NEW_ARRAY(scratch, struct tare_step_range *, plan->n_slots + 1);
    if (!ranges) return TARE_NO_MEMORY;
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step_range *range = plan->steps[s].range;
        if (!range || range->steps[MINIMUM] != (int)s) continue;
        const int tensor = range->is_flattened ? plan->steps[uses->made_by[range->source]].inputs[0] : range->source;
        if (tensor < 0) continue;
        ranges[tensor] = range;
        const int made_by = uses->made_by[tensor];
        if (made_by >= 0) plan->steps[made_by].result_range = range;
        struct tare_step_group *group = made_by < 0 ? NULL : plan->steps[made_by].group;
        if (!group || group->range || group->output != tensor || group->output_dtype != TARE_DT_FLOAT) continue;
        group->range = range;
        range->group = group;
    }
    join_sources(plan, ranges);
    return TARE_OK;
}

tare_status tare_plan_find_ranges(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                                  struct tare_arena *scratch) {
    const struct finder f = { plan, uses, TARE_NEW_ARRAY(scratch, int, plan->n_slots + 1),
                              TARE_NEW_ARRAY(scratch, int, plan->n_slots + 1) };
    if (!f.first || !f.n_users) return TARE_NO_MEMORY;
    count_users(&f);
    for (size_t v = 0; v < plan->n_slots; v++)
        f.first[v] = TARE_NO_STEP;
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_step *step = &plan->steps[s];
        const int which = extreme_of(step);
        if (which < 0) continue;
        int *first = &f.first[step->inputs[0]];
        const struct tare_step *other = *first < 0 ? NULL : &plan->steps[*first];
        if (!other || other->range || extreme_of(other) == which ||
            axes_of(other->node->inputs[1]) != axes_of(step->node->inputs[1])) {
            *first = (int)s;
            continue;
        }
        TARE_TRY(add_range(&f, arena, which == MINIMUM ? (int)s : *first, which == MAXIMUM ? (int)s : *first));
    }
    return TARE_OK;
}

void tare_plan_select_ranges(const struct tare_session *session, const struct tare_plan *plan) {
    const struct tare_session_options *options = &session->options;
    const bool any = !options->trace && !options->check_numerics && !options->use_reference_kernels;
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step_range *range = plan->steps[s].range;
        if (range && range->steps[MINIMUM] == (int)s)
            range->active =
                any && !plan->steps[range->steps[MINIMUM]].observed && !plan->steps[range->steps[MAXIMUM]].observed;
        if (range) range->has_tensors = range->is_used[MINIMUM] || range->is_used[MAXIMUM];
    }
}

struct tare_shape tare_shape_of_ones(int rank) {
    struct tare_shape shape = { .rank = rank };
    for (int i = 0; i < rank; i++)
        shape.dims[i] = 1;
    return shape;
}

tare_status tare_range_store(const struct tare_plan *plan, struct tare_exec_frame *frame, int step) {
    const struct tare_shape shape = tare_shape_of_ones(frame->extremes[step].rank);
    struct tare_tensor *output = &frame->slots[plan->steps[step].first_output];
    if (output->dtype) return TARE_OK;
    TARE_TRY(tare_tensor_new(output, TARE_DT_FLOAT, &shape));
    TARE_DATA(float, output)[0] = frame->extremes[step].value;
    return TARE_OK;
}

bool tare_range_covers(const struct tare_step_range *range, const struct tare_shape *shape) {
    for (int i = 0; i < shape->rank && !range->is_flattened; i++)
        if (!(range->axes >> i & 1) && shape->dims[i] != 1) return false;
    return true;
}

tare_status tare_range_set(const struct tare_plan *plan, struct tare_exec_frame *frame,
                           const struct tare_step_range *range, const struct tare_shape *shape,
                           const struct tare_value_range *values) {
    float extremes[2] = { 0 };
    const bool is_known =
        tare_range_covers(range, shape) && tare_value_range_end(&extremes[MINIMUM], &extremes[MAXIMUM], values);
    frame->keeps_values |= !is_known;
    for (int i = 0; i < 2; i++) {
        frame->extremes[range->steps[i]] = (struct tare_extreme){ extremes[i], range->is_flattened ? 1 : shape->rank };
        frame->computed[range->steps[i]] = is_known;
        if (is_known && range->has_tensors) TARE_TRY(tare_range_store(plan, frame, range->steps[i]));
    }
    return TARE_OK;
}

/* True where what computes the tensor also collects its range, unless that did not run as planned. */
static bool is_collected(const struct tare_step_range *range) {
    return (range->group && range->group->active) || (range->mixed && range->mixed->active);
}

bool tare_range_is_known(const struct tare_exec_frame *frame, const struct tare_step_range *range) {
    return range->active && is_collected(range) && frame->computed[range->steps[MINIMUM]];
}

tare_status tare_range_run(const struct tare_plan *plan, struct tare_exec_frame *frame, int step) {
    const struct tare_step_range *range = plan->steps[step].range;
    const int first = range->steps[MINIMUM] < range->steps[MAXIMUM] ? range->steps[MINIMUM] : range->steps[MAXIMUM];
    const struct tare_tensor *source = tare_plan_value(plan, frame, range->source);
    struct tare_value_range values;
    if (range->mixed && step != first) tare_mixed_mark(plan, frame, range->mixed, false);
    if (!range->active) frame->computed[step] = false;
    if (!range->active || step != first) return TARE_OK;
    if (is_collected(range) && frame->computed[step]) return TARE_OK;
    tare_value_range_begin(&values);
    if (source->dtype == TARE_DT_FLOAT && !source->splat && tare_range_covers(range, &source->shape))
        tare_value_range_add(&values, source->data, source->elements);
    return tare_range_set(plan, frame, range, &source->shape, &values);
}

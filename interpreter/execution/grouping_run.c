/* Running a group of element-wise steps (grouping.c): the operands' shapes decide whether they form an expression.
 *
 * The bound expression is kept in the frame for the next run. It remains valid if the result has the same shape and the
 * operands have the same kinds. Of arrays only the addresses change; what depends on the values of other operands that
 * are not constants is computed again.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "interpreter/execution/grouping_binding.h"
#include "interpreter/execution/step.h"

#include <string.h>

/* What takes the values of a group's product, or reads its source. */
struct group_run {
    struct tare_consumer consumer; /* first: the product's kernel passes it back */
    const struct tare_plan *plan;
    struct tare_exec_frame *frame;
    const struct tare_step_group *group;
    struct tare_tensor output; /* not made where only `next` uses the result */
    struct tare_group_binding *binding;
    struct tare_buffer_pool *pool;
    struct group_run *next; /* takes the result block by block; NULL: none */
    char *block;            /* of a result that is not made */
};

static int64_t last_dim(const struct tare_shape *shape) {
    return shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
}

static int64_t elements_of(const struct tare_shape *shape) {
    int64_t elements = 1;
    for (int i = 0; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

/* True if the first axes are those of `shape`, and the others have one element. */
static bool are_rows(const struct tare_shape *rows, const struct tare_shape *shape) {
    int axis = 0;
    if (rows->rank != shape->rank) return false;
    while (axis < rows->rank && rows->dims[axis] == shape->dims[axis])
        axis++;
    while (axis < rows->rank && rows->dims[axis] == 1)
        axis++;
    return axis == rows->rank;
}

/* True if the first axes and the last one are those of `shape`, and the others have one element. */
static bool are_records(const struct tare_shape *records, const struct tare_shape *shape) {
    struct tare_shape rows = *records;
    if (rows.rank != shape->rank || last_dim(&rows) != last_dim(shape)) return false;
    rows.dims[rows.rank - 1] = 1;
    return are_rows(&rows, shape);
}

/* The kind of an operand of a result of `shape`; false if it fits no kind. */
static bool classify(struct tare_operand *operand, const struct tare_tensor *tensor, bool is_bias,
                     const struct tare_shape *shape) {
    const int64_t columns = last_dim(shape);
    *operand = (struct tare_operand){ .type = tare_plan_lane_of(tensor->dtype), .data = tensor->data };
    if (!operand->type || tensor->splat || tensor->shape.rank > shape->rank) return false;
    if (is_bias && (tensor->shape.rank != 1 || shape->rank < 2 || tensor->elements != columns)) return false;
    if (tare_shape_equal(&tensor->shape, shape))
        operand->kind = TARE_OPERAND_ARRAY;
    else if (tensor->elements == 1)
        operand->kind = TARE_OPERAND_ONE;
    else if (tensor->elements == columns && last_dim(&tensor->shape) == columns)
        operand->kind = TARE_OPERAND_VECTOR;
    else if (are_rows(&tensor->shape, shape))
        operand->kind = TARE_OPERAND_ROW;
    else if (are_records(&tensor->shape, shape))
        operand->kind = TARE_OPERAND_RECORD;
    else
        return false;
    operand->run = elements_of(shape) / tensor->elements * (operand->kind == TARE_OPERAND_RECORD ? columns : 1);
    return true;
}

/* ---- branches that depend on neither rows nor arrays: computed once ---- */

static enum tare_operand_kind kind_of_branch(const struct tare_bound_expression *bound, int b) {
    const struct tare_expression_branch *branch = &bound->expression->branches[b];
    enum tare_operand_kind kind = bound->operands[branch->source].kind;
    for (int s = 0; s < branch->n_stages; s++) {
        const int operand = branch->stages[s].operand;
        if (operand >= 0 && bound->operands[operand].kind > kind) kind = bound->operands[operand].kind;
    }
    return kind;
}

/* Sets the branch's operands from the group's. */
static void set_branch_operands(struct tare_computed_branch *branch, const struct tare_bound_expression *group) {
    struct tare_bound_expression *bound = &branch->bound;
    const struct tare_operand *source = &group->operands[branch->source];
    const size_t size = tare_lane_size(source->type);
    memcpy(bound->operands, group->operands, sizeof bound->operands);
    for (int64_t i = 0; branch->repeated && i < bound->elements; i++)
        memcpy((char *)branch->repeated + (size_t)i * size, source->data, size);
    if (branch->repeated) bound->operands[branch->source].data = branch->repeated;
}

/* A branch of kind ONE or VECTOR, which computes lanes. */
static tare_status bind_branch(struct tare_computed_branch **out, const struct tare_bound_expression *group,
                               int operand, enum tare_operand_kind kind, enum tare_lane_type lanes,
                               struct tare_arena *arena) {
    const struct tare_expression_branch *stages = &group->expression->branches[group->expression->branch_of[operand]];
    const int64_t count = kind == TARE_OPERAND_ONE ? 1 : group->columns;
    struct tare_expression *part = tare_arena_alloc(arena, sizeof *part);
    struct tare_computed_branch *branch = *out = tare_arena_alloc(arena, sizeof *branch);
    if (!part || !branch) return TARE_NO_MEMORY;
    /* the other members of these large structs are not used */
    part->from = group->operands[stages->source].type;
    part->to = lanes;
    part->n_branches = 1;
    part->n_operands = group->expression->n_operands;
    part->branches[0] = *stages;
    memset(part->branch_of, 0, sizeof part->branch_of);
    branch->source = stages->source;
    branch->repeated = NULL;
    branch->bound.expression = part;
    branch->bound.level = group->level;
    branch->bound.elements = branch->bound.columns = count;
    branch->bound.range = NULL;
    branch->bound.to = tare_arena_alloc(arena, (size_t)count * sizeof(float));
    if (!branch->bound.to) return TARE_NO_MEMORY;
    if (count > 1 && group->operands[stages->source].kind == TARE_OPERAND_ONE) {
        branch->repeated = tare_arena_alloc(arena, (size_t)count * tare_lane_size(part->from));
        if (!branch->repeated) return TARE_NO_MEMORY;
    }
    set_branch_operands(branch, group);
    return tare_expression_bind(&branch->bound, arena);
}

/* Decides for each branch whether it is computed with the result or before it. */
static tare_status bind_branches(struct group_run *run) {
    struct tare_bound_expression *bound = &run->binding->bound;
    struct tare_arena *arena = &run->binding->arena;
    struct tare_expression *expression = tare_arena_alloc(arena, sizeof *expression);
    if (!expression) return TARE_NO_MEMORY;
    *expression = run->group->expression;
    bound->expression = expression;
    for (int i = 0; i < expression->n_operands; i++) {
        const int b = expression->branch_of[i];
        if (b == 0) continue;
        const enum tare_operand_kind kind = kind_of_branch(bound, b);
        if (kind >= TARE_OPERAND_ROW) {
            bound->operands[i] = (struct tare_operand){ .kind = TARE_OPERAND_ARRAY, .type = run->group->lanes[i] };
        } else {
            struct tare_computed_branch **branch = &run->binding->branches[run->binding->n_branches];
            TARE_TRY(bind_branch(branch, bound, i, kind, run->group->lanes[i], arena));
            run->binding->n_branches++;
            tare_expression_run(&(*branch)->bound, NULL, 0, (*branch)->bound.elements);
            bound->operands[i] =
                (struct tare_operand){ .kind = kind, .type = run->group->lanes[i], .data = (*branch)->bound.to };
            expression->branch_of[i] = 0;
            expression->branches[b].n_stages = 0;
        }
    }
    return TARE_OK;
}

/* ---- the group ---- */

/* Sets the operands for a result of `shape`; false if one does not fit. */
static bool set_operands(struct group_run *run, const struct tare_shape *shape) {
    const struct tare_step_group *group = run->group;
    struct tare_operand *operands = run->binding->bound.operands;
    for (int i = 0; i < group->expression.n_operands; i++) {
        if (group->expression.branch_of[i]) continue;
        if (!classify(&operands[i], tare_plan_value(run->plan, run->frame, group->values[i]), group->is_bias[i], shape))
            return false;
    }
    const int source = group->expression.branches[0].source;
    return source < 0 || operands[source].kind == TARE_OPERAND_ARRAY;
}

static void find_requantization(struct tare_group_binding *binding, const struct tare_step_group *group) {
    tare_arena_reset(&binding->requantize_arena);
    binding->requantizes = tare_requantize_find(&binding->requantize, &binding->bound, &binding->requantize_arena);
    binding->is_stale = false;
    tare_group_find_update(binding, group);
}

/* Computes again what was computed from operands that are neither arrays nor constants. */
static void bind_again(struct tare_group_binding *binding, const struct tare_step_group *group) {
    for (int b = 0; b < binding->n_branches; b++) {
        struct tare_bound_expression *branch = &binding->branches[b]->bound;
        set_branch_operands(binding->branches[b], &binding->bound);
        tare_expression_rebind(branch);
        tare_expression_run(branch, NULL, 0, branch->elements);
    }
    tare_expression_rebind(&binding->bound);
    find_requantization(binding, group);
}

/* True for a result that a scalar program lends, and has lent in this run as well: only its value differs. */
static bool is_lent(const struct group_run *run, const struct tare_operand *operand) {
    const struct tare_exec_frame *frame = run->frame;
    const uintptr_t at = (uintptr_t)operand->data, first = (uintptr_t)frame->lent;
    return !frame->keeps_values && at >= first && at < first + run->plan->n_steps * sizeof *frame->lent;
}

/* Updates the operands that are not constants; false if the binding does not remain valid. */
static bool rebind(struct group_run *run, const struct tare_shape *shape) {
    const struct tare_step_group *group = run->group;
    struct tare_group_binding *binding = run->binding;
    bool are_arrays = true;
    if (!binding->is_kept || !tare_shape_equal(&binding->shape, shape)) return false;
    for (int i = 0; i < group->expression.n_operands; i++) {
        if (group->expression.branch_of[i] || group->values[i] < 0) continue;
        struct tare_operand *operand = &binding->bound.operands[i];
        const enum tare_operand_kind kind = operand->kind;
        if (is_lent(run, operand)) {
            are_arrays = false;
            continue;
        }
        if (!classify(operand, tare_plan_value(run->plan, run->frame, group->values[i]), group->is_bias[i], shape) ||
            operand->kind != kind)
            return false;
        are_arrays &= kind >= TARE_OPERAND_ROW;
    }
    if (!are_arrays && !tare_group_update(binding)) bind_again(binding, group);
    return true;
}

/* Binds the operands for a result of `shape` if it is not empty and they fit. */
static tare_status bind_operands(struct group_run *run, const struct tare_shape *shape, bool *fits) {
    struct tare_group_binding *binding = run->binding;
    int64_t elements;
    if (tare_shape_elements(&elements, shape) != TARE_OK || elements == 0) {
        tare_error_clear();
        return TARE_OK;
    }
    binding->is_kept = binding->takes_sums = false;
    binding->n_branches = 0;
    tare_arena_reset(&binding->arena);
    binding->bound.elements = elements;
    binding->bound.columns = last_dim(shape);
    binding->bound.range = run->group->range && tare_range_covers(run->group->range, shape) ? &binding->range : NULL;
    binding->bound.level = tare_cpu_level();
    *fits = set_operands(run, shape);
    if (!*fits) return TARE_OK;
    TARE_TRY(bind_branches(run));
    TARE_TRY(tare_expression_bind(&binding->bound, &binding->arena));
    find_requantization(binding, run->group);
    binding->shape = *shape;
    binding->is_kept = true;
    return TARE_OK;
}

/* Where the group quantizes a tensor whose range is known, no value needs to be clamped. */
static void set_bounds(const struct group_run *run) {
    const struct tare_step_range *range = run->group->source_range;
    if (!run->binding->has_quotient || !range || !range->active || !run->frame->computed[range->steps[0]]) return;
    struct tare_stage *stage = &run->binding->bound.pipelines[0].stages[0];
    tare_pipeline_set_bounds(stage, run->frame->extremes[range->steps[0]].value,
                             run->frame->extremes[range->steps[1]].value);
}

static struct tare_group_binding *binding_of(const struct group_run *run) {
    struct tare_group_binding **binding = &run->frame->bindings[run->group->sink];
    if (!*binding) *binding = tare_calloc(1, sizeof **binding);
    return *binding;
}

/* The tensor of the placement does not exist yet or has records of this shape. */
static bool may_hold(const struct tare_placement *place, int dtype, const struct tare_shape *shape) {
    struct tare_shape whole = place->whole.shape;
    if (!place->whole.dtype) return true;
    whole.dims[0] = shape->dims[0];
    return place->whole.dtype == dtype && tare_shape_equal(&whole, shape);
}

/* Where the records are part of a larger batch, the result is a part of its tensor. */
static tare_status place_output(struct group_run *run, bool *done) {
    const struct tare_exec_frame *frame = run->frame;
    for (size_t i = 0; i < frame->n_placements && !*done; i++) {
        struct tare_placement *place = &frame->placements[i];
        if (place->slot != run->group->output || !may_hold(place, run->group->output_dtype, &run->binding->shape))
            continue;
        TARE_TRY(tare_placement_open(place, run->group->output_dtype, &run->binding->shape, run->pool));
        TARE_TRY(tare_tensor_share_rows(&run->output, &place->whole, place->first, run->binding->shape.dims[0]));
        *done = true;
    }
    return TARE_OK;
}

/* Creates the result. */
static tare_status make_output(struct group_run *run) {
    struct tare_group_binding *binding = run->binding;
    bool placed = false;
    TARE_TRY(place_output(run, &placed));
    if (!placed) TARE_TRY(tare_tensor_new_pooled(&run->output, run->group->output_dtype, &binding->shape, run->pool));
    binding->bound.to = run->output.data;
    if (binding->requantizes) tare_requantize_bind(&binding->requantize, &binding->bound);
    return TARE_OK;
}

/* Binds the group's operands for a result of `shape`, if they fit. */
static tare_status bind_values(struct group_run *run, const struct tare_shape *shape, struct tare_buffer_pool *pool,
                               bool *fits) {
    *fits = false;
    run->binding = binding_of(run);
    if (!run->binding) return TARE_NO_MEMORY;
    *fits = rebind(run, shape);
    if (!*fits) TARE_TRY(bind_operands(run, shape, fits));
    if (!*fits) return TARE_OK;
    run->pool = pool;
    set_bounds(run);
    if (run->group->range) tare_value_range_begin(&run->binding->range);
    return TARE_OK;
}

/* Binds the next group to the blocks of a result of `shape`; there is none if its operands do not fit. */
static tare_status bind_next(struct group_run *run, const struct tare_shape *shape) {
    struct tare_tensor *slot = &run->frame->slots[run->group->output];
    bool fits;
    *slot = (struct tare_tensor){ .dtype = run->group->output_dtype, .shape = *shape, .data = run->block };
    tare_status status = tare_shape_elements(&slot->elements, shape);
    if (status == TARE_OK) status = bind_values(run->next, shape, run->pool, &fits);
    *slot = (struct tare_tensor){ 0 };
    if (status == TARE_OK && fits) return make_output(run->next);
    run->next = NULL;
    return status;
}

/* Binds the group and the next one for a result of `shape` and creates their results, if the group's operands fit. */
static tare_status bind_group(struct group_run *run, const struct tare_shape *shape, struct tare_buffer_pool *pool,
                              bool *fits) {
    *fits = false;
    TARE_TRY(bind_values(run, shape, pool, fits));
    if (*fits && run->next) TARE_TRY(bind_next(run, shape));
    return *fits && (!run->next || run->group->is_stored) ? make_output(run) : TARE_OK;
}

static tare_status begin(struct tare_consumer *consumer, struct tare_kernel *kernel, const struct tare_shape *shape,
                         bool *accepted) {
    struct group_run *run = (struct group_run *)consumer;
    TARE_TRY(bind_group(run, shape, kernel->pool, accepted));
    struct tare_requantize *requantize = *accepted && run->binding->requantizes ? &run->binding->requantize : NULL;
    if (run->next && requantize && !requantize->is_real) requantize = NULL;
    if (requantize) requantize->real.is_passed = run->next != NULL;
    if (requantize && run->next && !run->output.dtype) { /* the result is not stored */
        run->binding->bound.to = NULL;
        tare_requantize_bind(requantize, &run->binding->bound);
    }
    consumer->requantize = requantize;
    return TARE_OK;
}

/* Elements [first, first + count) of the result and of that of the next group. `values`: those of the product; NULL:
 * none. */
static void run_blocks(struct group_run *run, const void *values, int64_t first, int64_t count) {
    struct tare_bound_expression *bound = &run->binding->bound;
    const int64_t size = (int64_t)tare_lane_size(bound->expression->from), end = first + count;
    const int64_t to_size = (int64_t)tare_lane_size(bound->expression->to);
    for (int64_t at = first, n; at < end; at += n) {
        char *block = run->output.dtype ? (char *)run->output.data + at * to_size : run->block;
        n = end - at < TARE_EXPRESSION_BLOCK ? end - at : TARE_EXPRESSION_BLOCK;
        tare_expression_run_to(bound, block, !values ? NULL : (const char *)values + (at - first) * size, at, n);
        tare_expression_run(&run->next->binding->bound, block, at, n);
    }
}

/* A kernel that passes sums instead of requantizing them stores the result. */
static void take(struct tare_consumer *consumer, void *values, int64_t first, int64_t count) {
    struct group_run *run = (struct group_run *)consumer;
    if (run->binding->is_stale) {
        bind_again(run->binding, run->group);
        tare_requantize_bind(&run->binding->requantize, &run->binding->bound);
    }
    run->binding->takes_sums = true;
    if (run->next)
        run_blocks(run, values, first, count);
    else
        tare_expression_run(&run->binding->bound, values, first, count);
}

static void drop_outputs(struct group_run *run) {
    if (run->output.dtype) tare_tensor_reset(&run->output);
    if (run->next && run->next->output.dtype) tare_tensor_reset(&run->next->output);
}

/* The kernel has converted sums to elements of the result, which are stored already if it is. */
static void take_floats(struct tare_consumer *consumer, const float *floats, int64_t first, int64_t count) {
    struct group_run *run = (struct group_run *)consumer;
    tare_expression_run(&run->next->binding->bound, floats, first, count);
}

/* Runs the product, whose input 0 is `input` instead of its own; NULL: its own. */
static tare_status run_product_on(struct tare_session *session, struct tare_exec_frame *frame, struct group_run *run,
                                  const struct tare_tensor *input) {
    const struct tare_step *product = &run->plan->steps[run->group->product];
    tare_status status = tare_step_gather(run->plan, frame, product);
    if (status != TARE_OK) return tare_exec_locate(session, product->node, status);
    if (input) frame->inputs[0] = *input;
    if (input) frame->last_use[0] = NULL;
    status = tare_step_run(session, product, frame, frame->slots + product->first_output, NULL, &run->consumer);
    tare_step_ungather(frame, product);
    if (status != TARE_OK) drop_outputs(run);
    return status;
}

/* The paddings of a step: those of a PadV2, or rows of the three of each dimension of an XlaPad, in `rows`. */
static const struct tare_tensor *paddings_of(struct group_run *run, struct tare_exec_frame *frame,
                                             const struct tare_step *pad, struct tare_tensor *rows,
                                             int64_t values[3 * TARE_MAX_RANK]) {
    if (strcmp(pad->node->op, "XlaPad") != 0) return tare_plan_value(run->plan, frame, pad->inputs[1]);
    const int64_t rank = tare_plan_value(run->plan, frame, pad->inputs[0])->shape.rank;
    for (int k = 0; k < 3; k++) {
        const struct tare_tensor *amounts = tare_plan_value(run->plan, frame, pad->inputs[2 + k]);
        for (int64_t i = 0; i < rank; i++)
            values[3 * i + k] = i < amounts->elements ? tare_tensor_get_i64(amounts, i) : -1; /* the op reports it */
    }
    *rows = (struct tare_tensor){
        .dtype = TARE_DT_INT64, .shape = tare_shape_make(2, rank, (int64_t)3), .elements = 3 * rank, .data = values
    };
    return rows;
}

/* The product first tries to include the padding before it. */
static tare_status run_padded(struct tare_session *session, struct tare_exec_frame *frame, struct group_run *run) {
    const struct tare_plan *plan = run->plan;
    const struct tare_step *pad = &plan->steps[run->group->pad];
    int64_t values[3 * TARE_MAX_RANK];
    struct tare_tensor rows;
    run->consumer.paddings = paddings_of(run, frame, pad, &rows, values);
    run->consumer.pad_value = tare_plan_value(plan, frame, pad->inputs[run->consumer.paddings == &rows ? 1 : 2]);
    TARE_TRY(run_product_on(session, frame, run, tare_plan_value(plan, frame, pad->inputs[0])));
    if (run->consumer.accepted) return TARE_OK;
    run->consumer.paddings = run->consumer.pad_value = NULL;
    frame->keeps_values = true;
    const tare_status status = tare_step_gather(plan, frame, pad);
    if (status != TARE_OK) return tare_exec_locate(session, pad->node, status);
    tare_tensor_reset(&frame->slots[pad->first_output]); /* of the product's first run */
    TARE_TRY(tare_step_run(session, pad, frame, frame->slots + pad->first_output, NULL, NULL));
    return run_product_on(session, frame, run, NULL);
}

static tare_status run_product(struct tare_session *session, struct tare_exec_frame *frame, struct group_run *run) {
    if (run->group->pad >= 0) return run_padded(session, frame, run);
    const struct tare_step *cast = run->group->cast < 0 ? NULL : &run->plan->steps[run->group->cast];
    run->consumer.joins_halves = run->group->joins_halves;
    return run_product_on(session, frame, run, cast ? tare_plan_value(run->plan, frame, cast->inputs[0]) : NULL);
}

/* The time of a group without product is attributed to its last step. */
static tare_status run_elements(struct tare_session *session, struct tare_exec_frame *frame, struct group_run *run) {
    struct tare_node_state *state = run->plan->steps[run->group->sink].state;
    const struct tare_tensor *source =
        tare_plan_value(run->plan, frame, run->group->values[run->group->expression.branches[0].source]);
    const int64_t start = session->options.profile ? tare_clock_ns() : 0;
    tare_status status = bind_group(run, &source->shape, session->pool, &run->consumer.accepted);
    if (status == TARE_OK && run->consumer.accepted && run->next)
        run_blocks(run, NULL, 0, run->binding->bound.elements);
    else if (status == TARE_OK && run->consumer.accepted)
        status = tare_group_run_parts(session, frame, &run->binding->bound);
    if (status != TARE_OK) {
        drop_outputs(run);
        return tare_exec_locate(session, run->plan->steps[run->group->sink].node, status);
    }
    if (!session->options.profile || !run->consumer.accepted) return TARE_OK;
    const int64_t elapsed = tare_clock_ns() - start;
    state->calls++;
    state->nanoseconds += elapsed;
    session->nested_ns += elapsed;
    return TARE_OK;
}

/* Stores the result and shows it to the observer. */
static tare_status end_group(struct tare_session *session, struct tare_exec_frame *frame, const struct group_run *run) {
    const struct tare_step_group *group = run->group;
    const struct tare_step *sink = &run->plan->steps[group->sink];
    frame->slots[group->output] = run->output;
    if (group->range && group->range->active)
        TARE_TRY(tare_range_set(run->plan, frame, group->range, &run->output.shape, &run->binding->range));
    return sink->observed ? tare_step_show(session, sink, &frame->slots[group->output]) : TARE_OK;
}

tare_status tare_group_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                           struct tare_step_group *group, int last, bool *done) {
    _Alignas(64) char block[TARE_EXPRESSION_BLOCK * sizeof(float)];
    struct group_run next = { .plan = plan, .frame = frame, .group = group->next };
    struct group_run run = { .consumer = { .begin = begin, .take = take, .take_floats = take_floats },
                             .plan = plan,
                             .frame = frame,
                             .group = group,
                             .next = group->runs_next && group->next->sink <= last ? &next : NULL,
                             .block = block };
    *done = false;
    TARE_TRY(group->product >= 0 ? run_product(session, frame, &run) : run_elements(session, frame, &run));
    if (!run.consumer.accepted) return TARE_OK;
    *done = true;
    TARE_TRY(end_group(session, frame, &run));
    if (!run.next) return TARE_OK;
    frame->computed[group->next->sink] = true; /* until its place */
    return end_group(session, frame, &next);
}

tare_status tare_group_run_on(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                              const struct tare_step_group *group, const struct tare_tensor *input,
                              struct tare_tensor *result) {
    _Alignas(64) char block[TARE_EXPRESSION_BLOCK * sizeof(float)];
    struct group_run next = { .plan = plan, .frame = frame, .group = group->next };
    struct group_run run = {
        .consumer = { .begin = begin, .take = take, .take_floats = take_floats, .joins_halves = group->joins_halves },
        .plan = plan,
        .frame = frame,
        .group = group,
        .next = group->runs_next ? &next : NULL,
        .block = block
    };
    const struct tare_step *product = &plan->steps[group->product];
    TARE_TRY(run_product_on(session, frame, &run, input));
    *result = run.consumer.accepted ? (run.next ? &next : &run)->output : frame->slots[product->first_output];
    if (!run.consumer.accepted) frame->slots[product->first_output] = (struct tare_tensor){ 0 };
    return TARE_OK;
}

tare_status tare_group_open(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                            const struct tare_step_group *group, const struct tare_tensor *source,
                            struct tare_tensor *result, struct tare_bound_expression **bound) {
    struct group_run run = { .plan = plan, .frame = frame, .group = group };
    const int slot = group->values[group->expression.branches[0].source];
    bool fits;
    frame->slots[slot] = *source;
    const tare_status status = bind_group(&run, &source->shape, session->pool, &fits);
    frame->slots[slot] = (struct tare_tensor){ 0 };
    *bound = status == TARE_OK && fits ? &run.binding->bound : NULL;
    *result = run.output;
    return status;
}

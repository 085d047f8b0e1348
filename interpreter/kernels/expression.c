/* Running element-wise expressions (expression.h).
 *
 * Binding translates each branch into a pipeline. Scalars and vectors become 32-bit lanes; a vector is repeated until a
 * block may start at any of its elements, but not before the first run: a kernel that requantizes by itself needs no
 * more than the lanes of one vector register beyond the last column. Constant additions to int32 values that follow
 * each other (zero-point correction and bias) become one, which is exact because int32 sums wrap. Blocks that do not
 * fill whole units are computed in a buffer, so pipelines never access elements outside of their arrays. */
#include "interpreter/kernels/expression.h"

#include "base/tensor/number.h"

#include <string.h>
#include <wchar.h>

_Static_assert(sizeof(wchar_t) == 4, "wmemset fills lanes");

enum { LANE = 4, BLOCK = TARE_EXPRESSION_BLOCK, UNIT = TARE_PIPELINE_UNIT };

/* ---- binding ---- */

/* `count` elements as lanes. */
static void widen(void *to, const void *from, enum tare_lane_type type, int64_t count) {
    if (tare_lane_size(type) == LANE) {
        memcpy(to, from, (size_t)count * LANE);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        switch (type) {
        case TARE_LANE_INT8:
            ((int32_t *)to)[i] = ((const int8_t *)from)[i];
            break;
        case TARE_LANE_UINT8:
            ((int32_t *)to)[i] = ((const uint8_t *)from)[i];
            break;
        case TARE_LANE_INT16:
            ((int32_t *)to)[i] = ((const int16_t *)from)[i];
            break;
        default: /* TARE_LANE_BFLOAT16 */
            ((float *)to)[i] = tare_float_from_bfloat16(((const uint16_t *)from)[i]);
            break;
        }
    }
}

/* Lanes of a repeated vector: a block may begin at any column. A result of one row has only blocks within it. */
static int64_t repeated_lanes(const struct tare_bound_expression *bound) {
    const int64_t block = bound->elements <= bound->columns ? 0 : bound->elements < BLOCK ? bound->elements : BLOCK;
    return bound->columns + block + UNIT;
}

static int64_t bound_lanes(const struct tare_bound_expression *bound) {
    return bound->columns + TARE_EXPRESSION_LANES;
}

/* Repeats the columns of a vector up to lane `count`. */
static void repeat(char *lanes, int64_t columns, int64_t count) {
    for (int64_t filled = columns; filled < count;) { /* whole periods, twice as many each time */
        const int64_t more = filled < count - filled ? filled : count - filled;
        memcpy(lanes + filled * LANE, lanes, (size_t)more * LANE);
        filled += more;
    }
}

static void repeat_vectors(struct tare_bound_expression *bound) {
    for (int at = 0; at < bound->expression->n_operands; at++)
        if (bound->vectors[at]) repeat(bound->vectors[at], bound->columns, repeated_lanes(bound));
    bound->is_repeated = true;
}

/* Room for the lanes of an operand: all of them for a scalar or a vector, those of a block for rows or an array. */
static tare_status make_lanes(struct tare_bound_expression *bound, int at, struct tare_arena *arena) {
    const enum tare_operand_kind kind = bound->operands[at].kind;
    const int64_t count = kind == TARE_OPERAND_ONE ? 1 : kind == TARE_OPERAND_VECTOR ? repeated_lanes(bound) : BLOCK;
    char *lanes = tare_arena_alloc(arena, (size_t)count * LANE);
    bound->lanes[at] = lanes;
    if (kind == TARE_OPERAND_VECTOR) bound->vectors[at] = lanes;
    if (kind >= TARE_OPERAND_ROW) bound->buffers[at] = lanes;
    return lanes ? TARE_OK : TARE_NO_MEMORY;
}

/* True if the source of a branch has fewer elements than its result. */
static bool is_spread(const struct tare_bound_expression *bound, int source) {
    return source >= 0 && bound->operands[source].kind != TARE_OPERAND_ARRAY;
}

/* Branches that were computed before are no longer used. */
static bool is_used(const struct tare_expression *expression, int b) {
    bool used = b == 0;
    for (int at = 0; at < expression->n_operands; at++)
        used = used || expression->branch_of[at] == b;
    return used;
}

static tare_status make_block(struct tare_bound_expression *bound, int at, struct tare_arena *arena) {
    bound->buffers[at] = tare_arena_alloc(arena, (size_t)BLOCK * LANE);
    return bound->buffers[at] ? TARE_OK : TARE_NO_MEMORY;
}

static void bind_operand(const struct tare_bound_expression *bound, struct tare_stage *stage) {
    const struct tare_operand *operand = &bound->operands[stage->tag];
    char *lanes = bound->lanes[stage->tag];
    stage->operand = lanes;
    stage->is_one = operand->kind == TARE_OPERAND_ONE;
    if (stage->is_one) widen(lanes, operand->data, operand->type, 1);
    if (operand->kind != TARE_OPERAND_VECTOR) return;
    widen(lanes, operand->data, operand->type, bound->columns);
    repeat(lanes, bound->columns, bound_lanes(bound));
}

static bool is_constant_sum(const struct tare_bound_expression *bound, const struct tare_stage *stage) {
    return (stage->code == TARE_STAGE_INT_ADD || stage->code == TARE_STAGE_INT_SUB) && !bound->buffers[stage->tag];
}

/* Joins consecutive constant additions, in the lanes of the first one's operand. */
static void join_sums(struct tare_bound_expression *bound, struct tare_pipeline *pipeline) {
    int n = 0;
    for (int s = 0; s < pipeline->n_stages; s++) {
        const struct tare_stage *stage = &pipeline->stages[s], *last = n > 0 ? &pipeline->stages[n - 1] : NULL;
        if (!last || !is_constant_sum(bound, last) || !is_constant_sum(bound, stage) ||
            (last->is_one && !stage->is_one)) {
            pipeline->stages[n++] = *stage;
            continue;
        }
        const int64_t lanes = last->is_one ? 1 : bound_lanes(bound);
        int32_t *sums = (int32_t *)(uintptr_t)last->operand; /* this binding's own copy */
        const int32_t *more = stage->operand;
        for (int64_t i = 0; i < lanes; i++) {
            const uint32_t x = (uint32_t)sums[i], y = (uint32_t)more[stage->is_one ? 0 : i];
            sums[i] = (int32_t)(stage->code == last->code ? x + y : x - y);
        }
    }
    pipeline->n_stages = n;
}

/* The source of a branch that is not an array is read as lanes. */
static enum tare_lane_type source_type(const struct tare_bound_expression *bound, int source) {
    const struct tare_operand *operand = &bound->operands[source];
    if (operand->kind == TARE_OPERAND_ARRAY) return operand->type;
    return tare_lane_is_float(operand->type) ? TARE_LANE_FLOAT : TARE_LANE_INT32;
}

static void bind_branch(struct tare_bound_expression *bound, int b) {
    const struct tare_expression *expression = bound->expression;
    const struct tare_expression_branch *branch = &expression->branches[b];
    struct tare_pipeline *pipeline = &bound->pipelines[b];
    pipeline->n_stages = branch->n_stages;
    pipeline->range = b == 0 ? bound->range : NULL;
    pipeline->from = branch->source < 0 ? expression->from : source_type(bound, branch->source);
    pipeline->to = b == 0 ? expression->to : TARE_LANE_INT32; /* lanes of either kind */
    for (int s = 0; s < branch->n_stages; s++) {
        struct tare_stage *stage = &pipeline->stages[s];
        *stage = (struct tare_stage){ .code = branch->stages[s].code, .tag = branch->stages[s].operand };
        if (stage->tag >= 0) bind_operand(bound, stage);
    }
    join_sums(bound, pipeline);
    tare_pipeline_simplify(pipeline);
}

void tare_expression_rebind(struct tare_bound_expression *bound) {
    bound->is_repeated = false;
    for (int b = 0; b < bound->expression->n_branches; b++)
        bind_branch(bound, b);
}

tare_status tare_expression_bind(struct tare_bound_expression *bound, struct tare_arena *arena) {
    memset(bound->buffers, 0, sizeof bound->buffers);
    memset(bound->vectors, 0, sizeof bound->vectors);
    for (int b = 0; b < bound->expression->n_branches; b++) {
        const struct tare_expression_branch *branch = &bound->expression->branches[b];
        if (is_spread(bound, branch->source) && is_used(bound->expression, b))
            TARE_TRY(make_block(bound, branch->source, arena));
        for (int s = 0; s < branch->n_stages; s++)
            if (branch->stages[s].operand >= 0) TARE_TRY(make_lanes(bound, branch->stages[s].operand, arena));
    }
    bound->is_uniform = bound->expression->n_branches == 1;
    for (int at = 0; at < bound->expression->n_operands; at++)
        bound->is_uniform = bound->is_uniform && !bound->vectors[at] && !bound->buffers[at];
    tare_expression_rebind(bound);
    return TARE_OK;
}

struct tare_bound_expression *tare_expression_copy(struct tare_bound_expression *bound, struct tare_value_range *range,
                                                   struct tare_arena *arena) {
    struct tare_bound_expression *copy = tare_arena_alloc(arena, sizeof *copy);
    if (!copy) return NULL;
    if (!bound->is_repeated) repeat_vectors(bound);
    *copy = *bound;
    copy->range = copy->pipelines[0].range = range;
    for (int at = 0; at < bound->expression->n_operands; at++) {
        if (!bound->buffers[at]) continue;
        copy->buffers[at] = copy->lanes[at] = tare_arena_alloc(arena, (size_t)BLOCK * LANE);
        if (!copy->buffers[at]) return NULL;
    }
    for (int b = 0; b < bound->expression->n_branches; b++) {
        for (int s = 0; s < copy->pipelines[b].n_stages; s++) {
            struct tare_stage *stage = &copy->pipelines[b].stages[s];
            if (stage->tag >= 0 && copy->buffers[stage->tag]) stage->operand = copy->buffers[stage->tag];
        }
    }
    return copy;
}

/* ---- running ---- */

/* The range of a unit that is filled up does not contain the elements that fill it. */
static void run_filled_unit(const struct tare_bound_expression *bound, const struct tare_pipeline *pipeline, void *to,
                            const void *from, int64_t count) {
    struct tare_pipeline whole;
    if (!pipeline->range) {
        tare_pipeline_run_at(bound->level, to, from, pipeline, UNIT);
        return;
    }
    whole = *pipeline;
    whole.range = NULL;
    tare_pipeline_run_at(bound->level, to, from, &whole, UNIT);
    tare_value_range_add_at(bound->level, pipeline->range, to, count);
}

/* Runs a pipeline on whole units, or on fewer elements than one unit, which pass it in buffers of a unit. */
static void run_pipeline(const struct tare_bound_expression *bound, const struct tare_pipeline *pipeline, void *to,
                         const void *from, int64_t count) {
    _Alignas(64) char source[UNIT * LANE] = { 0 }, result[UNIT * LANE];
    if (count >= UNIT) {
        tare_pipeline_run_at(bound->level, to, from, pipeline, count);
        return;
    }
    memcpy(source, from, (size_t)count * tare_lane_size(pipeline->from));
    run_filled_unit(bound, pipeline, result, source, count);
    memcpy(to, result, (size_t)count * tare_lane_size(pipeline->to));
}

static const char *element(const struct tare_operand *operand, int64_t at) {
    return (const char *)operand->data + at * (int64_t)tare_lane_size(operand->type);
}

/* The lanes of a block of an operand with a vector for each record. */
static const void *record_lanes(const struct tare_bound_expression *bound, int at, int64_t first, int64_t count) {
    const struct tare_operand *operand = &bound->operands[at];
    const int64_t columns = bound->columns;
    for (int64_t i = 0, n; i < count; i += n) {
        const int64_t row = (first + i) / operand->run, column = (first + i) % columns;
        n = columns - column < count - i ? columns - column : count - i;
        widen(bound->buffers[at] + i * LANE, element(operand, row * columns + column), operand->type, n);
    }
    return bound->buffers[at];
}

/* The lanes of a block, filled with the elements that it uses of an operand that has fewer than the result. */
static const void *spread_lanes(const struct tare_bound_expression *bound, int at, int64_t first, int64_t count) {
    const struct tare_operand *operand = &bound->operands[at];
    if (operand->kind == TARE_OPERAND_RECORD) return record_lanes(bound, at, first, count);
    const bool is_vector = operand->kind == TARE_OPERAND_VECTOR;
    const int64_t run = is_vector ? 1 : operand->run;
    wchar_t *lanes = (wchar_t *)(void *)bound->buffers[at]; /* filled by the C library's vector loops */
    for (int64_t i = 0, end; i < count; i = end) {
        const int64_t row = (first + i) / run, next = (row + 1) * run - first;
        wchar_t value;
        widen(&value, element(operand, is_vector ? row % bound->columns : row), operand->type, 1);
        end = next < count ? next : count;
        wmemset(lanes + i, value, (size_t)(end - i));
    }
    return lanes;
}

/* Elements from `first` on of an array. `values`: those of the main pipeline's source, which other operands may be. */
static const void *array_elements(const struct tare_bound_expression *bound, int at, const void *values,
                                  int64_t first) {
    const struct tare_operand *operand = &bound->operands[at];
    const int source = bound->expression->branches[0].source;
    return values && source >= 0 && operand->data == bound->operands[source].data ? values : element(operand, first);
}

/* The lanes of a block of an operand of rows or an array that no branch computes. */
static const void *array_lanes(const struct tare_bound_expression *bound, int at, const void *values, int64_t first,
                               int64_t count) {
    const struct tare_operand *operand = &bound->operands[at];
    if (operand->kind != TARE_OPERAND_ARRAY) return spread_lanes(bound, at, first, count);
    const struct tare_pipeline widening = { .from = operand->type, .to = TARE_LANE_INT32 };
    const void *from = array_elements(bound, at, values, first);
    if (tare_lane_size(operand->type) == LANE && count >= UNIT) return from;
    run_pipeline(bound, &widening, bound->buffers[at], from, count);
    return bound->buffers[at];
}

/* Elements [first, first + count) of a branch: whole units of a block, or fewer elements than one unit. */
static void run_branch(struct tare_bound_expression *bound, int b, void *to, const void *values, int64_t first,
                       int64_t count) {
    const struct tare_expression *expression = bound->expression;
    struct tare_pipeline *pipeline = &bound->pipelines[b];
    const int source = expression->branches[b].source;
    for (int s = 0; s < pipeline->n_stages; s++) {
        struct tare_stage *stage = &pipeline->stages[s];
        if (stage->tag < 0) continue;
        if (bound->vectors[stage->tag]) stage->operand = bound->vectors[stage->tag] + first % bound->columns * LANE;
        if (bound->buffers[stage->tag] && !expression->branch_of[stage->tag])
            stage->operand = array_lanes(bound, stage->tag, values, first, count);
    }
    const void *from = values;
    if (b > 0 || !values)
        from = is_spread(bound, source) ? spread_lanes(bound, source, first, count)
                                        : array_elements(bound, source, values, first);
    run_pipeline(bound, pipeline, to, from, count);
}

/* The branches above 0 first: their results are operands. */
static void run_block(struct tare_bound_expression *bound, void *to, const void *values, int64_t first, int64_t count) {
    const struct tare_expression *expression = bound->expression;
    for (int at = 0; at < expression->n_operands; at++) {
        const int b = expression->branch_of[at];
        if (b > 0) run_branch(bound, b, bound->buffers[at], values, first, count);
    }
    run_branch(bound, 0, to, values, first, count);
}

void tare_expression_run(struct tare_bound_expression *bound, const void *values, int64_t first, int64_t count) {
    const int64_t size = (int64_t)tare_lane_size(bound->expression->to);
    tare_expression_run_to(bound, (char *)bound->to + first * size, values, first, count);
}

void tare_expression_run_to(struct tare_bound_expression *bound, void *to, const void *values, int64_t first,
                            int64_t count) {
    const int64_t size = (int64_t)tare_lane_size(bound->expression->from), end = first + count;
    const int64_t to_size = (int64_t)tare_lane_size(bound->expression->to);
    if (!bound->is_repeated) repeat_vectors(bound);
    for (int64_t at = first; at < end;) {
        int64_t piece = end - at < BLOCK || bound->is_uniform ? end - at : BLOCK;
        if (piece > UNIT) piece -= piece % UNIT;
        run_block(bound, (char *)to + (at - first) * to_size,
                  !values ? NULL : (const char *)values + (at - first) * size, at, piece);
        at += piece;
    }
}

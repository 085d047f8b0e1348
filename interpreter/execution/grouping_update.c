/* What changes in a bound group from one run to the next where its scales are computed, as in dynamic quantization.
 *
 * Binding a group again translates and simplifies all of its pipelines. In dynamically quantized layers only a few
 * numbers depend on the run, and they enter the bound form in two ways:
 * - a product's sums are converted with vectors that are a constant vector times one value: the zero-point offset (the
 *   sums of the weights times the zero point) and the scale (those of the weights times that of the input). These
 *   factors are computed directly into the arrays of the requantization;
 * - quantization divides by one value and adds another one: its single stage is set directly.
 * The operations are those of the stages, so the results have the same bits. The bound expression itself is then out of
 * date; it is bound again only if the kernel passes sums to it instead of using the requantization. */
#include "interpreter/execution/grouping_binding.h"

#include <string.h>

enum { LANE = 4 };

/* ---- factors ---- */

struct finder {
    const struct tare_step_group *group;
    struct tare_group_binding *binding;
};

static bool is_constant(const struct finder *f, int operand) {
    return f->group->values[operand] < 0;
}

/* The constant as lanes of the result's columns and those beyond them. NULL: no memory. */
static void *constant_lanes(const struct finder *f, int operand) {
    const struct tare_operand *from = &f->binding->bound.operands[operand];
    const int64_t columns = f->binding->bound.columns, count = columns + TARE_EXPRESSION_LANES;
    char *lanes = tare_arena_alloc(&f->binding->requantize_arena, (size_t)count * LANE);
    for (int64_t i = 0; lanes && i < count; i++) {
        const int64_t at = from->kind == TARE_OPERAND_ONE ? 0 : i % columns;
        memcpy(lanes + i * LANE, (const char *)from->data + at * LANE, LANE);
    }
    return lanes;
}

/* The product of a constant with one value, which branch b computes. */
static bool take_branch(struct tare_group_factor *factor, const struct finder *f, int b) {
    const struct tare_expression_branch *branch = &f->group->expression.branches[b];
    const struct tare_operand *operands = f->binding->bound.operands;
    if (branch->n_stages != 1 || branch->stages[0].operand < 0) return false;
    const int first = branch->source, second = branch->stages[0].operand;
    const int constant = is_constant(f, first) ? first : second, value = constant == first ? second : first;
    const enum tare_stage_code code = branch->stages[0].code;
    const enum tare_lane_type type = code == TARE_STAGE_MUL ? TARE_LANE_FLOAT : TARE_LANE_INT32;
    if (code != TARE_STAGE_MUL && code != TARE_STAGE_INT_MUL) return false;
    if (!is_constant(f, constant) || is_constant(f, value) || f->group->expression.branch_of[second]) return false;
    if (operands[constant].type != type || operands[value].type != type) return false;
    if (operands[value].kind != TARE_OPERAND_ONE || operands[constant].kind >= TARE_OPERAND_ROW) return false;
    *factor = (struct tare_group_factor){ .value = value,
                                          .is_float = type == TARE_LANE_FLOAT,
                                          .constant = constant_lanes(f, constant) };
    return factor->constant != NULL;
}

/* The operand of a stage of the main pipeline as a factor of the requantization. */
static bool take_factor(struct tare_group_binding *binding, const struct finder *f, enum tare_stage_code code,
                        int operand) {
    const bool is_scale = code == TARE_STAGE_MUL;
    if (!is_scale && code != TARE_STAGE_INT_ADD && code != TARE_STAGE_INT_SUB) return false;
    if (binding->n_factors == TARE_GROUP_FACTORS) return false;
    struct tare_group_factor *factor = &binding->factors[binding->n_factors];
    if (!take_branch(factor, f, f->group->expression.branch_of[operand]) || factor->is_float != is_scale) return false;
    const void *to = is_scale ? (const void *)binding->requantize.scale : binding->requantize.offset;
    factor->to = (void *)(uintptr_t)to; /* this binding's own copy */
    factor->is_negated = code == TARE_STAGE_INT_SUB;
    binding->n_factors++;
    return true;
}

/* True if everything in the requantization that depends on the run is a factor, or the address of an array. */
static bool find_factors(struct tare_group_binding *binding, const struct finder *f) {
    const struct tare_expression_branch *branch = &f->group->expression.branches[0];
    int n_sums = 0, n_products = 0;
    if (!binding->requantizes || f->group->expression.to != TARE_LANE_FLOAT) return false;
    for (int s = 0; s < branch->n_stages; s++) {
        const enum tare_stage_code code = branch->stages[s].code;
        const int operand = branch->stages[s].operand;
        n_sums += code == TARE_STAGE_INT_ADD || code == TARE_STAGE_INT_SUB;
        n_products += code == TARE_STAGE_MUL;
        if (operand < 0) continue;
        if (f->group->expression.branch_of[operand]) {
            if (!take_factor(binding, f, code, operand)) return false;
        } else if (!is_constant(f, operand) && binding->bound.operands[operand].kind != TARE_OPERAND_ARRAY) {
            return false;
        }
    }
    return n_sums <= 1 && n_products == 1;
}

/* ---- quotients ---- */

static bool is_value(const struct finder *f, int operand) {
    return operand >= 0 && !f->group->expression.branch_of[operand] &&
           f->binding->bound.operands[operand].kind == TARE_OPERAND_ONE;
}

/* True if the group only quantizes an array by a division, and all that depends on the run are the divisor and the
 * zero point. */
static bool find_quotient(struct tare_group_binding *binding, const struct finder *f) {
    const struct tare_expression_branch *branch = &f->group->expression.branches[0];
    const struct tare_pipeline *pipeline = &binding->bound.pipelines[0];
    if (f->group->expression.n_branches != 1 || branch->source < 0 || pipeline->n_stages != 1 ||
        pipeline->stages[0].code != TARE_STAGE_QUANTIZE_QUOTIENT)
        return false;
    binding->divisor = branch->stages[0].operand;
    binding->zero_point = branch->stages[1].operand;
    for (int s = 2; s < branch->n_stages; s++)
        if (branch->stages[s].operand >= 0 && !is_constant(f, branch->stages[s].operand)) return false;
    return is_value(f, binding->divisor) && is_value(f, binding->zero_point);
}

void tare_group_find_update(struct tare_group_binding *binding, const struct tare_step_group *group) {
    const struct finder f = { group, binding };
    binding->n_factors = 0;
    binding->has_quotient = find_quotient(binding, &f);
    binding->has_factors = !binding->has_quotient && find_factors(binding, &f);
}

/* ---- updating ---- */

#define FORM(level, target)                                                                                            \
    static target void scale_ints_##level(int32_t *to, const int32_t *constant, uint32_t value, int64_t count) {       \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = (int32_t)((uint32_t)constant[i] * value);                                                          \
    }                                                                                                                  \
    static target void scale_floats_##level(float *to, const float *constant, float value, int64_t count) {            \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = constant[i] * value;                                                                               \
    }
TARE_EVERY_FORM(FORM)
#undef FORM

static void run_factor(const struct tare_group_factor *factor, const struct tare_bound_expression *bound) {
    const int64_t count = bound->columns + TARE_EXPRESSION_LANES;
    const void *value = bound->operands[factor->value].data;
    const enum tare_cpu_level level = tare_cpu_level();
    const uint32_t bits = *(const uint32_t *)value, times = factor->is_negated ? 0u - bits : bits;
    if (factor->is_float)
        TARE_FORM(level, scale_floats)(factor->to, factor->constant, *(const float *)value, count);
    else
        TARE_FORM(level, scale_ints)(factor->to, factor->constant, times, count);
}

bool tare_group_update(struct tare_group_binding *binding) {
    struct tare_bound_expression *bound = &binding->bound;
    if (binding->has_factors && !binding->takes_sums) {
        for (int i = 0; i < binding->n_factors; i++)
            run_factor(&binding->factors[i], bound);
        binding->is_stale = true;
        return true;
    }
    if (!binding->has_quotient) return false;
    struct tare_stage *stage = &bound->pipelines[0].stages[0], joined;
    if (!tare_pipeline_join_quotient(&joined, *(const float *)bound->operands[binding->divisor].data,
                                     *(const float *)bound->operands[binding->zero_point].data, stage->low,
                                     stage->high))
        return false;
    *stage = joined;
    return true;
}

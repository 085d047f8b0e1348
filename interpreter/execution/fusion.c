/* Operator fusion: a convolution or product whose result is used only by a multiplication with a constant (the scale of
 * int8 weights) or a parameter (of a batch normalization), BiasAdd, Add, a batch normalization, Relu or Relu6 may
 * compute these in its own epilogue (struct tare_epilogue in interpreter/kernel.h), and the steps of an activation
 * (fusion_activation.c). This saves passes over memory. The operations on each element and their order do not change.
 * When an intermediate value is observed, the steps run one by one. */
#include "interpreter/execution/plan.h"

#include <math.h>
#include <string.h>

struct finder {
    struct tare_plan *plan;
    const struct tare_plan_uses *uses;
};

static bool is_before(const struct finder *f, int value, int head) {
    return tare_plan_is_before(f->uses, value, head);
}

static bool is_op(const struct tare_step *step, const char *op) {
    return step->op && strcmp(step->op->name, op) == 0;
}

/* A constant, or a vector that follows from variables, as far as it can be known before the run. */
static bool is_parameter(const struct finder *f, int value) {
    const int maker = value < 0 ? TARE_NO_STEP : f->uses->made_by[value];
    return value < 0 || (maker >= 0 && f->plan->steps[maker].is_parameter);
}

/* Additions: the other operand is a bias if the op is BiasAdd or the operand is a parameter, otherwise an addend of the
 * output's shape. */
static bool take_addition(const struct finder *f, struct tare_fusion *fusion, const struct tare_step *step, int slot,
                          int head) {
    const bool is_bias = is_op(step, "BiasAdd");
    if (!is_bias && !is_op(step, "AddV2") && !is_op(step, "Add")) return false;
    if (fusion->reshape >= 0 && !is_bias) return false; /* it may be broadcast to another shape */
    if (is_bias && strcmp(tare_node_string(step->node, "data_format", "NHWC"), "NHWC") != 0) return false;
    if (step->inputs[0] == step->inputs[1] || (is_bias && step->inputs[0] != slot)) return false;
    const int other = step->inputs[step->inputs[0] == slot ? 1 : 0];
    if (!is_before(f, other, head) || fusion->has_addend) return false;
    if (!is_bias && !is_parameter(f, other)) {
        fusion->has_addend = true;
        fusion->addend = other;
        return true;
    }
    if (fusion->has_bias || fusion->has_norm) return false;
    fusion->has_bias = true;
    fusion->bias_is_vector = is_bias;
    fusion->bias = other;
    return true;
}

/* The product with a parameter. */
static bool take_scale(const struct finder *f, struct tare_fusion *fusion, const struct tare_step *step, int slot,
                       int head) {
    if (!is_op(step, "Mul") || step->inputs[0] == step->inputs[1]) return false;
    const int other = step->inputs[step->inputs[0] == slot ? 1 : 0];
    if (fusion->reshape >= 0 || !is_parameter(f, other) || !is_before(f, other, head) || fusion->has_scale ||
        fusion->has_bias || fusion->has_norm || fusion->has_addend)
        return false;
    fusion->has_scale = true;
    fusion->scale = other;
    return true;
}

/* A batch normalization for inference, of which only y is used. */
static bool take_norm(const struct finder *f, struct tare_fusion *fusion, const struct tare_step *step, int slot,
                      int head) {
    const struct tare_node *node = step->node;
    if (!is_op(step, "FusedBatchNormV3") && !is_op(step, "FusedBatchNormV2") && !is_op(step, "FusedBatchNorm"))
        return false;
    if (fusion->reshape >= 0 || tare_node_bool(node, "is_training", true) || fusion->has_norm || fusion->has_addend)
        return false;
    if (strcmp(tare_node_string(node, "data_format", "NHWC"), "NHWC") != 0 || step->inputs[0] != slot) return false;
    for (size_t i = 1; i < step->n_outputs; i++)
        if (f->uses->used_by[step->first_output + (int)i] != TARE_NO_STEP) return false;
    for (int i = 0; i < TARE_NORM_OPERANDS; i++) {
        fusion->norm[i] = step->inputs[1 + i];
        if (fusion->norm[i] == slot || !is_before(f, fusion->norm[i], head)) return false;
    }
    fusion->has_norm = true;
    fusion->epsilon = tare_node_float(node, "epsilon", 1e-4f);
    return true;
}

static bool take_relu(struct tare_fusion *fusion, const struct tare_step *step) {
    if (!is_op(step, "Relu") && !is_op(step, "Relu6")) return false;
    fusion->relu = true;
    fusion->limit = is_op(step, "Relu6") ? 6.0f : INFINITY;
    return true;
}

/* True when the step is `op` of the slot and a constant scalar. */
static bool is_with_scalar(const struct tare_step *step, const char *op, int slot, float *scalar) {
    const struct tare_tensor *constant;
    if (!is_op(step, op) || step->inputs[0] != slot || step->inputs[1] >= 0) return false;
    constant = tare_edge_constant(step->node->inputs[1]);
    if (!constant || constant->shape.rank != 0) return false;
    if (constant->dtype != TARE_DT_FLOAT && constant->dtype != TARE_DT_BFLOAT16) return false;
    *scalar = (float)tare_tensor_get_f64(constant, 0);
    return true;
}

/* max(min(x, limit), 0), as in clip_by_value: with a limit of at least 0 this equals the epilogue's relu, also for NaN
 * and -0. */
static bool take_clip(const struct finder *f, struct tare_fusion *fusion, int first) {
    const struct tare_step *step = &f->plan->steps[first];
    float limit, low;
    if (!is_op(step, "Minimum") || fusion->n_steps + 2 > TARE_FUSION_MAX_STEPS) return false;
    const int slot = step->first_output, second = f->uses->used_by[slot];
    if (!is_with_scalar(step, "Minimum", step->inputs[0], &limit) || !(limit >= 0) || second < 0) return false;
    if (!is_with_scalar(&f->plan->steps[second], "Maximum", slot, &low) || low != 0 || signbit(low)) return false;
    fusion->relu = true;
    fusion->limit = limit;
    fusion->steps[fusion->n_steps++] = first;
    fusion->steps[fusion->n_steps++] = second;
    return true;
}

/* True if there are operands except for the addend, and all of them are constant. */
static bool has_constants(const struct tare_fusion *fusion) {
    bool all = (!fusion->has_scale || fusion->scale < 0) && (!fusion->has_bias || fusion->bias < 0);
    for (int i = 0; fusion->has_norm && i < TARE_NORM_OPERANDS; i++)
        all = all && fusion->norm[i] < 0;
    return all && (fusion->has_scale || fusion->has_bias || fusion->has_norm);
}

static tare_status keep_epilogue(struct tare_fusion *fusion, struct tare_arena *arena) {
    if (!has_constants(fusion)) return TARE_OK;
    fusion->kept = TARE_NEW(arena, struct tare_kept_epilogue);
    if (!fusion->kept) return TARE_NO_MEMORY;
    fusion->kept->arena = arena;
    return TARE_OK;
}

/* Adds step `user` of `slot`, and the one after it that it forms a clip with. After a clamp only Identity follows. */
static bool take_step(const struct finder *f, struct tare_fusion *fusion, int user, int slot, int head) {
    const struct tare_step *step = &f->plan->steps[user];
    if (!fusion->relu && take_clip(f, fusion, user)) return true;
    if (!is_op(step, "Identity") &&
        (fusion->relu || (!take_scale(f, fusion, step, slot, head) && !take_addition(f, fusion, step, slot, head) &&
                          !take_norm(f, fusion, step, slot, head) && !take_relu(fusion, step))))
        return false;
    fusion->steps[fusion->n_steps++] = user;
    return true;
}

/* The Reshape of a product's result to rows of more dimensions, such as a dense layer has for sequences, before the
 * bias; -1: none. */
static int find_reshape(const struct finder *f, const struct tare_step *head) {
    const int user = f->uses->used_by[head->first_output];
    if (!is_op(head, "MatMul") || head->node->output_dtypes[0] != TARE_DT_FLOAT || user < 0) return -1;
    const struct tare_step *step = &f->plan->steps[user];
    return is_op(step, "Reshape") && step->inputs[0] == head->first_output && !step->reads ? user : -1;
}

/* Makes the fusion of the steps so far that of the head, ending with `slot`. */
static tare_status add_fusion(struct finder *f, struct tare_fusion *fusion, struct tare_arena *arena, int head,
                              int slot) {
    struct tare_step *step = &f->plan->steps[head];
    fusion->output = slot;
    fusion->shorter = step->fusion;
    TARE_TRY(keep_epilogue(fusion, arena));
    step->fusion = tare_arena_alloc(arena, sizeof *fusion);
    if (!step->fusion) return TARE_NO_MEMORY;
    *step->fusion = *fusion;
    for (struct tare_fusion *each = step->fusion; each; each = each->shorter)
        each->full = step->fusion;
    return TARE_OK;
}

static tare_status find_fusion(struct finder *f, struct tare_arena *arena, int head) {
    struct tare_step *steps = f->plan->steps;
    struct tare_fusion fusion = { .limit = INFINITY, .reshape = find_reshape(f, &steps[head]) };
    int slot = steps[fusion.reshape < 0 ? head : fusion.reshape].first_output;
    while (fusion.n_steps < TARE_FUSION_MAX_STEPS) {
        const int user = f->uses->used_by[slot];
        if (user < 0 || steps[user].reads || !take_step(f, &fusion, user, slot, head)) break;
        slot = steps[fusion.steps[fusion.n_steps - 1]].first_output;
        if (fusion.reshape < 0) TARE_TRY(add_fusion(f, &fusion, arena, head, slot));
    }
    fusion.n_before = fusion.n_steps;
    fusion.argument = slot;
    if (!fusion.relu) TARE_TRY(tare_plan_find_activation(&fusion, f->plan, f->uses, head, &slot, arena));
    if (fusion.n_steps > fusion.n_before || (fusion.reshape >= 0 && fusion.n_steps > 0))
        TARE_TRY(add_fusion(f, &fusion, arena, head, slot));
    if (fusion.activation) steps[fusion.steps[fusion.n_before]].activation = steps[head].fusion;
    if (fusion.reshape >= 0) steps[fusion.reshape].carried = steps[head].fusion;
    return TARE_OK;
}

/* Results in float, and channels-last ones in bfloat16 of kernels that round in the epilogue. */
static bool may_head(const struct tare_step *step) {
    if (!step->op || !(step->op->flags & TARE_OP_EPILOGUE) || step->n_outputs != 1) return false;
    const int dtype = tare_dtype_base(step->node->output_dtypes[0]);
    return dtype == TARE_DT_FLOAT || (dtype == TARE_DT_BFLOAT16 && (step->op->flags & TARE_OP_ROUNDS) &&
                                      strcmp(tare_node_string(step->node, "data_format", "NHWC"), "NHWC") == 0);
}

tare_status tare_plan_find_fusions(struct tare_plan *plan, const struct tare_plan_uses *uses,
                                   struct tare_arena *arena) {
    struct finder f = { .plan = plan, .uses = uses };
    for (size_t s = 0; s < plan->n_steps; s++) {
        if (may_head(&plan->steps[s])) TARE_TRY(find_fusion(&f, arena, (int)s));
    }
    return TARE_OK;
}

/* No value of the steps from `first` on is observed, except that of the last one. */
static bool is_hidden(const struct tare_plan *plan, const struct tare_fusion *fusion, int first) {
    for (int i = first; i < fusion->n_steps; i++) {
        const struct tare_step *step = &plan->steps[fusion->steps[i]];
        const bool is_result = i + 1 == fusion->n_steps && step->n_outputs == 1;
        if (!is_result && step->observed) return false;
    }
    return true;
}

/* The longest fusion within which nothing is observed; NULL: none. */
static struct tare_fusion *longest_hidden(const struct tare_plan *plan, struct tare_fusion *full) {
    while (full && !is_hidden(plan, full, 0))
        full = full->shorter;
    return full;
}

void tare_plan_select_fusions(const struct tare_session *session, const struct tare_plan *plan) {
    const struct tare_session_options *options = &session->options;
    const bool any = !options->trace && !options->check_numerics && !options->use_reference_kernels;
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step *step = &plan->steps[s];
        if (!step->fusion) continue;
        struct tare_fusion *full = step->fusion->full, *longest = longest_hidden(plan, full);
        const bool is_observed = step->observed || (full->reshape >= 0 && plan->steps[full->reshape].observed);
        step->fusion = longest ? longest : full;
        step->fusion->active = any && longest && !is_observed;
        full->activates = any && full->activation && options->op_threads <= 1 && is_hidden(plan, full, full->n_before);
    }
}

bool tare_plan_fuses_all(const struct tare_step *head) {
    return !head->fusion || head->fusion == head->fusion->full;
}

/* ---- steps that a run need not look at ---- */

/* The fusion of a step alone, which its kernel is expected to apply; NULL: none. */
static const struct tare_fusion *planned_fusion(const struct tare_plan *plan, const struct tare_step *head) {
    return head->fusion && head->fusion->active && !head->group && !plan->may_die ? head->fusion : NULL;
}

void tare_plan_mark_fused(const struct tare_plan *plan) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_fusion *fusion = planned_fusion(plan, &plan->steps[s]);
        if (!fusion) continue;
        plan->may_have[plan->steps[fusion->reshape < 0 ? (int)s : fusion->reshape].first_output] = false;
        for (int i = 0; i < fusion->n_steps; i++) {
            const struct tare_step *step = &plan->steps[fusion->steps[i]];
            for (size_t k = 0; k < step->n_outputs; k++)
                plan->may_have[step->first_output + (int)k] = false;
        }
        plan->may_have[fusion->output] = true;
    }
}

void tare_plan_select_fused(const struct tare_plan *plan) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_fusion *fusion = planned_fusion(plan, &plan->steps[s]);
        for (int i = 0; fusion && i < fusion->n_steps; i++) {
            const struct tare_step *step = &plan->steps[fusion->steps[i]];
            const bool is_joined = step->group || step->range || step->scalars || step->flattens || step->mixed;
            if (!is_joined && !step->n_planned_drops) plan->quiet[fusion->steps[i]] = fusion->steps[0];
        }
    }
}

bool tare_plan_fusion_is_before(const struct tare_plan_uses *uses, const struct tare_fusion *fusion, int head) {
    if (!fusion) return true;
    bool is_before = (!fusion->has_scale || tare_plan_is_before(uses, fusion->scale, head)) &&
                     (!fusion->has_bias || tare_plan_is_before(uses, fusion->bias, head)) &&
                     (!fusion->has_addend || tare_plan_is_before(uses, fusion->addend, head));
    for (int i = 0; fusion->has_norm && i < TARE_NORM_OPERANDS; i++)
        is_before = is_before && tare_plan_is_before(uses, fusion->norm[i], head);
    return is_before;
}

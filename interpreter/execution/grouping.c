/* Groups of element-wise steps: steps that form one expression (interpreter/kernels/expression.h), computed in one pass
 * over memory. A group is a chain of steps, each the only user of the previous one's output: the main pipeline. It may
 * begin with a product, such as XlaConvV2 with int32 sums, which passes its values to the expression block by block.
 * The other operand of a binary step may have a chain of its own, for example the dequantization of a residual. Values
 * are computed where the last step of the group stands in the plan; the lifetimes of their inputs extend to it.
 *
 * A product whose kernel takes bytes, in place of the floats of their Cast, or int16 in place of its halves, is found
 * before the product that computes them, so that these are not stored as floats or int32.
 *
 * The shapes of the operands are known only in a run: where they do not fit an expression, or where an intermediate
 * value is observed, the steps run one by one. */
#include "interpreter/execution/stages.h"

#include <math.h>
#include <string.h>

struct finder {
    struct tare_plan *plan;
    const struct tare_plan_uses *uses;
    bool *taken; /* by step: part of a fusion, of tiled steps or of a group */
};

/* ---- stages ---- */

enum tare_lane_type tare_plan_lane_of(int dtype) {
    switch (tare_dtype_base(dtype)) {
    case TARE_DT_INT8:
        return TARE_LANE_INT8;
    case TARE_DT_UINT8:
        return TARE_LANE_UINT8;
    case TARE_DT_INT16:
        return TARE_LANE_INT16;
    case TARE_DT_INT32:
        return TARE_LANE_INT32;
    case TARE_DT_BFLOAT16:
        return TARE_LANE_BFLOAT16;
    case TARE_DT_FLOAT:
        return TARE_LANE_FLOAT;
    default:
        return TARE_LANE_NONE;
    }
}

static void put(struct tare_step_stages *piece, enum tare_stage_code code) {
    piece->codes[piece->n_codes++] = code;
}

/* Values of a narrow type stay values of that type. */
static void put_narrowing(struct tare_step_stages *piece, enum tare_lane_type type) {
    if (type == TARE_LANE_INT8) put(piece, TARE_STAGE_INT8);
    if (type == TARE_LANE_UINT8) put(piece, TARE_STAGE_UINT8);
    if (type == TARE_LANE_INT16) put(piece, TARE_STAGE_INT16);
    if (type == TARE_LANE_BFLOAT16) put(piece, TARE_STAGE_BFLOAT16);
}

static bool cast_piece(struct tare_step_stages *piece, const struct tare_node *node) {
    const enum tare_lane_type from = tare_plan_lane_of(node->inputs[0].node->output_dtypes[node->inputs[0].index]);
    const enum tare_lane_type to = tare_plan_lane_of(node->output_dtypes[0]);
    if (!from || !to || tare_node_bool(node, "Truncate", false)) return false;
    if (tare_lane_is_float(from) && !tare_lane_is_float(to)) put(piece, TARE_STAGE_TO_INT);
    if (!tare_lane_is_float(from) && tare_lane_is_float(to)) put(piece, TARE_STAGE_TO_FLOAT);
    if (to != from) put_narrowing(piece, to);
    return true;
}

static bool unary_piece(struct tare_step_stages *piece, const struct tare_node *node, enum tare_lane_type type) {
    static const struct {
        const char *op;
        enum tare_stage_code code;
    } ops[] = { { "Relu", TARE_STAGE_RELU },  { "Relu6", TARE_STAGE_RELU6 }, { "Round", TARE_STAGE_ROUND },
                { "Rint", TARE_STAGE_ROUND }, { "Floor", TARE_STAGE_FLOOR }, { "Neg", TARE_STAGE_NEG },
                { "Exp", TARE_STAGE_EXP },    { "Tanh", TARE_STAGE_TANH },   { "Sigmoid", TARE_STAGE_SIGMOID },
                { "Erf", TARE_STAGE_ERF },    { "Erfc", TARE_STAGE_ERFC } };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(node->op, ops[i].op) != 0) continue;
        /* ops on bfloat16 compute elementary functions by the C library */
        if (!tare_lane_is_float(type) || (tare_stage_is_elementary(ops[i].code) && type != TARE_LANE_FLOAT))
            return false;
        put(piece, ops[i].code);
        put_narrowing(piece, type);
        return true;
    }
    return false;
}

enum { NO_STAGE = -1 };

/* `main`: which input is the pipeline's value. */
static bool binary_piece(struct tare_step_stages *piece, const struct tare_node *node, enum tare_lane_type type,
                         int main) {
    static const struct {
        const char *op;
        int integer, real, real_second; /* codes; real_second: the pipeline's value is input 1 */
    } ops[] = {
        { "AddV2", TARE_STAGE_INT_ADD, TARE_STAGE_ADD, TARE_STAGE_ADD },
        { "Add", TARE_STAGE_INT_ADD, TARE_STAGE_ADD, TARE_STAGE_ADD },
        { "BiasAdd", TARE_STAGE_INT_ADD, TARE_STAGE_ADD, NO_STAGE },
        { "Sub", TARE_STAGE_INT_SUB, TARE_STAGE_SUB, TARE_STAGE_SUB_FROM },
        { "Mul", TARE_STAGE_INT_MUL, TARE_STAGE_MUL, TARE_STAGE_MUL },
        { "Div", NO_STAGE, TARE_STAGE_DIV, NO_STAGE },
        { "RealDiv", NO_STAGE, TARE_STAGE_DIV, NO_STAGE },
        { "Maximum", TARE_STAGE_INT_MAXIMUM, TARE_STAGE_MAXIMUM, TARE_STAGE_MAXIMUM },
        { "Minimum", TARE_STAGE_INT_MINIMUM, TARE_STAGE_MINIMUM, TARE_STAGE_MINIMUM },
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(node->op, ops[i].op) != 0) continue;
        const bool is_real = tare_lane_is_float(type), commutes = ops[i].integer != TARE_STAGE_INT_SUB;
        const int code = is_real ? (main == 0 ? ops[i].real : ops[i].real_second)
                         : main == 0 || (commutes && ops[i].real_second != NO_STAGE) ? ops[i].integer
                                                                                     : NO_STAGE;
        if (code == NO_STAGE || strcmp(tare_node_string(node, "data_format", "NHWC"), "NHWC") != 0) return false;
        put(piece, (enum tare_stage_code)code);
        put_narrowing(piece, type);
        piece->operand = 1 - main;
        return true;
    }
    return false;
}

bool tare_plan_stages_of(struct tare_step_stages *piece, const struct tare_step *step, int main) {
    const struct tare_node *node = step->node;
    *piece = (struct tare_step_stages){ .operand = -1 };
    if (!step->op || !step->op->run || step->n_outputs != 1 || step->reads) return false;
    const enum tare_lane_type type = tare_plan_lane_of(node->output_dtypes[0]);
    if (!type) return false;
    if (strcmp(node->op, "Cast") == 0) return cast_piece(piece, node);
    if (strcmp(node->op, "Identity") == 0) return true;
    if (step->n_inputs == 1) return unary_piece(piece, node, type);
    return step->n_inputs == 2 && binary_piece(piece, node, type, main);
}

static bool is_limit(const struct tare_step *step, int input) {
    const struct tare_tensor *constant = tare_edge_constant(step->node->inputs[input]);
    if (input != 1 || !constant) return false;
    for (int64_t i = 0; i < constant->elements; i++)
        if (isnan(tare_tensor_get_f64(constant, i))) return false;
    return true;
}

bool tare_plan_array_stages_of(struct tare_step_stages *piece, const struct tare_step *step, int main) {
    if (!tare_plan_stages_of(piece, step, main)) return false;
    const bool is_extreme =
        piece->n_codes > 0 && (piece->codes[0] == TARE_STAGE_MAXIMUM || piece->codes[0] == TARE_STAGE_MINIMUM);
    return !is_extreme || is_limit(step, piece->operand);
}

/* ---- chains ---- */

/* The input that a chain follows: the first that is not constant. */
static int main_input(const struct tare_step *step) {
    return step->n_inputs == 2 && step->inputs[0] < 0 && step->inputs[1] >= 0 ? 1 : 0;
}

static bool is_free(const struct finder *f, int step) {
    return step >= 0 && !f->taken[step];
}

static int size_of_value(const struct tare_step *step) {
    return (int)tare_dtype_size(tare_dtype_base(step->node->output_dtypes[0]));
}

/* An operand for a plan's value; -1: no room. */
static int add_operand(struct tare_step_group *group, int value) {
    struct tare_expression *expression = &group->expression;
    if (expression->n_operands == TARE_EXPRESSION_MAX_OPERANDS) return -1;
    group->values[expression->n_operands] = value;
    group->is_bias[expression->n_operands] = false;
    expression->branch_of[expression->n_operands] = 0;
    return expression->n_operands++;
}

/* Appends a step's stages; `operand` is what its other input is. False if there is no room. */
static bool append(struct tare_step_group *group, struct tare_expression_branch *branch,
                   const struct tare_step_stages *piece, int operand, int step) {
    if (branch->n_stages + piece->n_codes > TARE_PIPELINE_MAX_STAGES || group->n_steps == TARE_GROUP_MAX_STEPS)
        return false;
    for (int i = 0; i < piece->n_codes; i++) {
        branch->stages[branch->n_stages].code = piece->codes[i];
        branch->stages[branch->n_stages++].operand = i == 0 && piece->operand >= 0 ? operand : -1;
    }
    group->steps[group->n_steps++] = step;
    return true;
}

/* Steps that compute `value` for one user, from the last to the first, of which a branch may consist. A chain that
 * begins at a product ends where its values are smallest: the product's own group computes them. */
static int walk_back(const struct finder *f, int value, int chain[TARE_GROUP_MAX_STEPS]) {
    int n = 0, step = f->uses->made_by[value];
    struct tare_step_stages piece;
    while (n < TARE_GROUP_MAX_STEPS && is_free(f, step) &&
           f->uses->used_by[f->plan->steps[step].first_output] != TARE_MANY_STEPS) {
        const struct tare_step *s = &f->plan->steps[step];
        const int main = main_input(s);
        if (!tare_plan_array_stages_of(&piece, s, main) || s->inputs[main] < 0) break;
        chain[n++] = step;
        value = s->inputs[main];
        step = f->uses->made_by[value];
    }
    if (n == 0 || step < 0 || !f->plan->steps[step].op || !(f->plan->steps[step].op->flags & TARE_OP_PRODUCT)) return n;
    int best = 0; /* the number of steps after the smallest value */
    for (int i = 1; i < n; i++) {
        if (size_of_value(&f->plan->steps[chain[i]]) < size_of_value(&f->plan->steps[chain[best]])) best = i;
    }
    return best;
}

/* An operand that is a value of the plan, or a branch that computes it. -1: no room. */
static int operand_of(const struct finder *f, struct tare_step_group *group, int value) {
    struct tare_expression *expression = &group->expression;
    struct tare_expression_branch *branch = &expression->branches[expression->n_branches];
    int chain[TARE_GROUP_MAX_STEPS], n = 0;
    const int operand = add_operand(group, value), steps_before = group->n_steps;
    if (operand < 0) return -1;
    if (value >= 0 && expression->n_branches < TARE_EXPRESSION_MAX_BRANCHES) n = walk_back(f, value, chain);
    if (n == 0) return operand;
    const struct tare_step *first = &f->plan->steps[chain[n - 1]];
    *branch = (struct tare_expression_branch){ .source = add_operand(group, first->inputs[main_input(first)]) };
    bool fits = branch->source >= 0;
    for (int i = n; fits && i-- > 0;) {
        const struct tare_step *step = &f->plan->steps[chain[i]];
        const int main = main_input(step);
        struct tare_step_stages piece;
        fits = tare_plan_array_stages_of(&piece, step, main);
        const int other = fits && piece.operand >= 0 ? add_operand(group, step->inputs[1 - main]) : 0;
        fits = fits && other >= 0 && append(group, branch, &piece, other, chain[i]);
    }
    if (!fits) { /* the value itself */
        group->n_steps = steps_before;
        expression->n_operands = operand + 1;
        return operand;
    }
    const struct tare_step *last = &f->plan->steps[chain[0]];
    const bool is_float = tare_lane_is_float(tare_plan_lane_of(last->node->output_dtypes[0]));
    group->lanes[operand] = is_float ? TARE_LANE_FLOAT : TARE_LANE_INT32;
    expression->branch_of[operand] = expression->n_branches++;
    return operand;
}

static bool has_elementary(const struct tare_expression_branch *branch) {
    for (int i = 0; i < branch->n_stages; i++)
        if (tare_stage_is_elementary(branch->stages[i].code)) return true;
    return false;
}

/* An elementary function is often computed of fewer values than the next step has, such as the gate of each channel,
 * and shapes are not known here. So the chain goes on after it only with operands that are constant or are made of the
 * chain's own source, as those of x * sigmoid(x) and of the forms of GELU. */
static bool is_of_source(const struct tare_step_group *group, int operand) {
    const struct tare_expression *expression = &group->expression;
    const int source = expression->branches[0].source, b = expression->branch_of[operand];
    const int from = b ? expression->branches[b].source : operand;
    return group->values[from] < 0 || (source >= 0 && group->values[from] == group->values[source]);
}

/* True if the chain is computed from a mean or another reduction of `value`, as a gate of each channel is: the step
 * that joins them has the shape of `value`, and belongs to the chain of that. */
static bool is_gate_of(const struct finder *f, const struct tare_step_group *group, int value) {
    enum { MOST_STEPS = 64 };
    static const char *const reductions[] = { "Mean", "Max", "Min", "Sum", NULL };
    const int operand = group->expression.branches[0].source;
    int at = group->product >= 0 ? f->plan->steps[group->product].inputs[0] : group->values[operand];
    for (int i = 0; i < MOST_STEPS && value >= 0 && at >= 0 && f->uses->made_by[at] >= 0; i++) {
        const struct tare_step *step = &f->plan->steps[f->uses->made_by[at]];
        if (step->n_inputs == 0) return false;
        at = step->inputs[main_input(step)];
        if (at == value) return tare_op_is_one_of(step->node->op, reductions);
    }
    return false;
}

/* Extends the main pipeline from the value in `slot` as far as possible; returns the slot of the result. */
static int extend(const struct finder *f, struct tare_step_group *group, int slot) {
    struct tare_expression_branch *branch = &group->expression.branches[0];
    for (;;) {
        const int user = f->uses->used_by[slot];
        struct tare_step_stages piece;
        if (!is_free(f, user)) return slot;
        const struct tare_step *step = &f->plan->steps[user];
        const int main = step->n_inputs > 0 && step->inputs[0] == slot ? 0 : 1;
        if (!tare_plan_array_stages_of(&piece, step, main)) return slot;
        const struct tare_step_group before = *group;
        const int operand = piece.operand < 0 ? 0 : operand_of(f, group, step->inputs[1 - main]);
        const bool fits =
            operand >= 0 && (piece.operand < 0 || ((!has_elementary(branch) || is_of_source(group, operand)) &&
                                                   !is_gate_of(f, group, step->inputs[1 - main])));
        if (!fits || !append(group, branch, &piece, operand, user)) {
            *group = before;
            return slot;
        }
        if (piece.operand >= 0) group->is_bias[operand] = strcmp(step->node->op, "BiasAdd") == 0;
        slot = step->first_output;
    }
}

/* ---- groups ---- */

static int later(int a, int b) {
    return a > b ? a : b;
}

static tare_status add_group(const struct finder *f, const struct tare_step_group *found, struct tare_arena *arena) {
    struct tare_step_group *group = tare_arena_alloc(arena, sizeof *group);
    if (!group) return TARE_NO_MEMORY;
    *group = *found;
    const int first[] = { group->pad, group->cast, group->product };
    enum { FIRST = sizeof first / sizeof *first };
    for (int i = 0; i < FIRST + group->n_steps; i++) {
        const int step = i < FIRST ? first[i] : group->steps[i - FIRST];
        if (step < 0) continue;
        f->taken[step] = true;
        f->plan->steps[step].group = group;
        group->sink = later(group->sink, step);
    }
    return TARE_OK;
}

/* Sorts the steps, so that they can run one by one. */
static void sort_steps(struct tare_step_group *group) {
    for (int i = 1; i < group->n_steps; i++) {
        for (int j = i; j > 0 && group->steps[j] < group->steps[j - 1]; j--) {
            const int step = group->steps[j];
            group->steps[j] = group->steps[j - 1];
            group->steps[j - 1] = step;
        }
    }
}

/* Float results of rows with an epilogue belong to fusions and tilings. */
static bool passes_rows(const struct tare_step *step) {
    if (!step->op || !(step->op->flags & TARE_OP_PASSES_ROWS) || step->n_outputs != 1 || step->reads) return false;
    return !(step->op->flags & TARE_OP_EPILOGUE) || tare_dtype_base(step->node->output_dtypes[0]) != TARE_DT_FLOAT;
}

/* The PadV2 or XlaPad of int8 values with constant paddings that only `product` uses; -1: none. */
static int find_pad(const struct finder *f, const struct tare_step *product) {
    const int value = product->inputs[0], step = value < 0 ? TARE_NO_STEP : f->uses->made_by[value];
    if (!is_free(f, step) || f->uses->used_by[value] == TARE_MANY_STEPS) return -1;
    const struct tare_step *pad = &f->plan->steps[step];
    const bool is_xla = strcmp(pad->node->op, "XlaPad") == 0;
    bool fits = (is_xla || strcmp(pad->node->op, "PadV2") == 0) && pad->op && !pad->reads && pad->inputs[0] >= 0 &&
                tare_dtype_base(pad->node->output_dtypes[0]) == TARE_DT_INT8;
    for (size_t i = is_xla ? 2 : 1; fits && i < (is_xla ? pad->n_inputs : 2); i++)
        fits = pad->inputs[i] < 0;
    return fits && strcmp(product->node->op, "XlaConvV2") == 0 ? step : -1;
}

/* The Cast of bytes that only `product` uses, whose kernel takes bytes; -1: none. */
static int find_cast(const struct finder *f, const struct tare_step *product) {
    if (!passes_rows(product) || !(product->op->flags & TARE_OP_TAKES_CODES)) return -1;
    const int value = product->inputs[0], step = value < 0 ? TARE_NO_STEP : f->uses->made_by[value];
    if (!is_free(f, step) || f->uses->used_by[value] == TARE_MANY_STEPS) return -1;
    const struct tare_step *cast = &f->plan->steps[step];
    if (strcmp(cast->node->op, "Cast") != 0 || cast->inputs[0] < 0 || cast->reads) return -1;
    const struct tare_edge bytes = cast->node->inputs[0];
    const enum tare_lane_type type = tare_plan_lane_of(bytes.node->output_dtypes[bytes.index]);
    const bool fits =
        cast->node->output_dtypes[0] == TARE_DT_FLOAT && (type == TARE_LANE_INT8 || type == TARE_LANE_UINT8);
    return fits ? step : -1;
}

/* Makes `first`, a product of 16-bit activations if it is one, the product of the group; the slot of its sums. */
static int take_halves(const struct finder *f, struct tare_step_group *group, int first) {
    struct tare_step_halves halves;
    const int slot = f->plan->steps[first].first_output;
    if (!tare_plan_find_halves(&halves, f->plan, f->uses, first)) return slot;
    for (int i = 0; i < halves.n_steps; i++)
        if (!is_free(f, halves.steps[i])) return slot;
    memcpy(group->steps, halves.steps, (size_t)halves.n_steps * sizeof *halves.steps);
    group->n_steps = halves.n_steps;
    group->product = halves.product;
    group->cast = halves.cast;
    group->pad = -1;
    group->joins_halves = true;
    return f->plan->steps[halves.sum].first_output;
}

/* The steps other than Identity, which alone passes its input on instead of copying it. */
static int computing_steps(const struct finder *f, const struct tare_step_group *group) {
    int count = 0;
    for (int i = 0; i < group->n_steps; i++)
        count += strcmp(f->plan->steps[group->steps[i]].node->op, "Identity") != 0;
    return count;
}

/* The group that begins with the product or the element-wise step `first`. */
static tare_status find_group(const struct finder *f, struct tare_arena *arena, int first) {
    const struct tare_step *step = &f->plan->steps[first];
    const bool is_product = passes_rows(step);
    struct tare_step_group group = { .product = is_product ? first : -1,
                                     .pad = is_product ? find_pad(f, step) : -1,
                                     .cast = find_cast(f, step),
                                     .expression = { .n_branches = 1 } };
    int slot = is_product ? take_halves(f, &group, first) : -1;
    if (is_product) {
        const enum tare_lane_type type = tare_plan_lane_of(step->node->output_dtypes[0]);
        if (type != TARE_LANE_INT32 && !tare_lane_is_float(type)) return TARE_OK;
        group.expression.from = type == TARE_LANE_INT32 ? type : TARE_LANE_FLOAT;
        group.expression.branches[0].source = -1;
        if (type == TARE_LANE_BFLOAT16) {
            group.expression.branches[0].stages[0].code = TARE_STAGE_BFLOAT16;
            group.expression.branches[0].stages[0].operand = -1;
            group.expression.branches[0].n_stages = 1;
        }
    } else {
        const int main = main_input(step);
        struct tare_step_stages piece;
        if (step->n_inputs == 0 || step->inputs[main] < 0 || !tare_plan_array_stages_of(&piece, step, main))
            return TARE_OK;
        const struct tare_edge source = step->node->inputs[main];
        group.expression.from = tare_plan_lane_of(source.node->output_dtypes[source.index]);
        if (!group.expression.from || tare_dtype_is_ref(source.node->output_dtypes[source.index])) return TARE_OK;
        group.expression.branches[0].source = add_operand(&group, step->inputs[main]);
        const int operand = piece.operand < 0 ? 0 : operand_of(f, &group, step->inputs[1 - main]);
        append(&group, &group.expression.branches[0], &piece, operand, first);
        if (piece.operand >= 0) group.is_bias[operand] = strcmp(step->node->op, "BiasAdd") == 0;
        slot = step->first_output;
    }
    group.output = extend(f, &group, slot);
    group.output_dtype = tare_dtype_base(f->plan->steps[f->uses->made_by[group.output]].node->output_dtypes[0]);
    /* The ops' own kernels for bfloat16 convert whole tensors to float and back. */
    const bool alone = is_product || (group.output_dtype == TARE_DT_BFLOAT16 && group.expression.branches[0].n_stages);
    if (computing_steps(f, &group) < (alone ? 1 : 2)) return TARE_OK;
    group.expression.to = tare_plan_lane_of(group.output_dtype);
    sort_steps(&group);
    return add_group(f, &group, arena);
}

/* Products that take what a Cast reads, other products, element-wise steps. */
enum { TURNS = 3 };
static int turn_of(const struct finder *f, int s) {
    const struct tare_step *step = &f->plan->steps[s];
    struct tare_step_halves halves;
    if (!passes_rows(step)) return 2;
    return find_cast(f, step) >= 0 || tare_plan_find_halves(&halves, f->plan, f->uses, s) ? 0 : 1;
}

tare_status tare_plan_find_groups(struct tare_plan *plan, const struct tare_plan_uses *uses, struct tare_arena *arena,
                                  struct tare_arena *scratch) {
    const struct finder f = { plan, uses, TARE_NEW_ARRAY(scratch, bool, plan->n_steps + 1) };
    if (!f.taken) return TARE_NO_MEMORY;
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_fusion *fusion = plan->steps[s].fusion;
        f.taken[s] |= fusion != NULL || plan->steps[s].is_scalar;
        for (int i = 0; fusion && i < fusion->n_steps; i++)
            f.taken[fusion->steps[i]] = true;
        const struct tare_tiled_steps *tiled = plan->steps[s].tiled;
        for (int i = 0; tiled && i < tiled->n_heads; i++)
            f.taken[tiled->heads[i]] = true;
    }
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < (int)plan->n_steps; i++) {
            const int s =
                turn == 0 ? (int)plan->n_steps - 1 - i : i; /* a Cast may be part of an earlier product's chain */
            if (!f.taken[s] && turn_of(&f, s) == turn) TARE_TRY(find_group(&f, arena, s));
        }
    }
    return TARE_OK;
}

int tare_plan_runs_at(const struct tare_plan *plan, int step) {
    const struct tare_step_group *group = plan->steps[step].group;
    return group ? group->sink : step;
}

/* True if the range is set in the place of the group that computes its tensor. */
static bool is_set_by_group(const struct tare_step_range *range) {
    return range->active && range->group && range->group->active;
}

/* True if no value of the step becomes a tensor, unless its group or program does not run as planned. */
static bool makes_no_tensor(const struct tare_step *step) {
    if (step->group && step->group->active) return step->first_output != step->group->output;
    if (step->range) return step->is_internal && is_set_by_group(step->range) && !step->range->has_tensors;
    if (step->flattens) return is_set_by_group(step->flattens) && !step->observed;
    return step->is_internal || step->is_lent;
}

/* Moves the slots that may have values if all runs as planned to the front; returns their number. */
static size_t sort_slots(const struct tare_plan *plan, int *slots, size_t count) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const int slot = slots[i];
        if (!plan->may_have[slot]) continue;
        slots[i] = slots[n];
        slots[n++] = slot;
    }
    return n;
}

/* After a step that is skipped, those are skipped in whose place nothing happens, or that depend on the same step. */
static void select_next(const struct tare_plan *plan) {
    for (int s = (int)plan->n_steps - 1; s >= 0; s--) {
        const int quiet = plan->quiet[s];
        int next = s + 1;
        while (quiet != TARE_STEP_RUNS && next < (int)plan->n_steps &&
               (plan->quiet[next] == TARE_STEP_IS_QUIET || plan->quiet[next] == quiet))
            next = plan->next_step[next];
        plan->next_step[s] = next;
        plan->next_run[s] = s + 1;
        if (s + 1 < (int)plan->n_steps && plan->quiet[s + 1] != TARE_STEP_RUNS)
            plan->next_run[s] = plan->next_run[s + 1];
    }
}

void tare_plan_select_quiet(struct tare_plan *plan) {
    for (size_t v = 0; v < plan->n_slots; v++)
        plan->may_have[v] = true;
    for (size_t s = 0; s < plan->n_steps; s++)
        for (size_t k = 0; k < plan->steps[s].n_outputs && makes_no_tensor(&plan->steps[s]); k++)
            plan->may_have[plan->steps[s].first_output + (int)k] = false;
    tare_plan_mark_fused(plan);
    plan->n_planned_kept = sort_slots(plan, plan->kept_slots, plan->n_kept_slots);
    for (size_t s = 0; s < plan->n_steps; s++)
        plan->steps[s].n_planned_drops = sort_slots(plan, plan->steps[s].drops, plan->steps[s].n_drops);
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_step *step = &plan->steps[s];
        const bool is_grouped = step->group && step->group->active;
        plan->quiet[s] = TARE_STEP_RUNS;
        if (plan->may_die || step->scalars || step->n_planned_drops) continue;
        if (is_grouped && step->group->sink != (int)s)
            plan->quiet[s] = TARE_STEP_IS_QUIET;
        else if (!is_grouped && step->computed_with >= 0)
            plan->quiet[s] = step->computed_with;
        else if (!is_grouped && makes_no_tensor(step))
            plan->quiet[s] = (step->flattens ? step->flattens : step->range)->steps[0];
    }
    tare_plan_select_fused(plan);
    select_next(plan);
}

void tare_plan_select_groups(const struct tare_session *session, const struct tare_plan *plan) {
    const struct tare_session_options *options = &session->options;
    const bool any = !options->trace && !options->check_numerics && !options->use_reference_kernels;
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step_group *group = plan->steps[s].group;
        if (group && group->sink == (int)s) group->active = any;
    }
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step_group *group = plan->steps[s].group;
        if (group && plan->steps[s].observed && plan->steps[s].first_output != group->output) group->active = false;
    }
}

/* Products of 16-bit activations. A TPU has int8 products only, so a quantized model has two: x = 256 h + l + 128 is
 * divided into h and l, each is multiplied with the weights, and the sums are 256 times those of h plus those of l
 * (quant/methods/static.c). Where an int8 product widens its operands to int16 anyway, one product of x computes the
 * same sums modulo 2^32, in half of the time: it is the product of h, which gets x in its place (struct tare_consumer).
 *
 * A padded position is 0 in h and -128 in l, by a PadV2: x is 0 there, as the product's own padding has it. */
#include "interpreter/execution/stages.h"
#include "interpreter/kernels/integer/gemm_int.h"

#include <string.h>

struct finder {
    const struct tare_plan *plan;
    const struct tare_plan_uses *uses;
};

static const struct tare_step *step_at(const struct finder *f, int step) {
    return &f->plan->steps[step];
}

/* The step that makes a value for `users` uses, if it is `op`; -1: it is not. */
static int maker(const struct finder *f, int value, const char *op, int users) {
    const int step = value < 0 ? TARE_NO_STEP : f->uses->made_by[value];
    if (step < 0 || strcmp(step_at(f, step)->node->op, op) != 0 || step_at(f, step)->reads) return -1;
    return f->uses->n_uses[value] == users ? step : -1;
}

static const struct tare_tensor *constant_of(const struct tare_step *step, size_t input) {
    return step->inputs[input] < 0 ? tare_edge_constant(step->node->inputs[input]) : NULL;
}

/* Input 1 is this integer. */
static bool has_integer(const struct tare_step *step, int64_t integer) {
    const struct tare_tensor *value = constant_of(step, 1);
    return value && value->elements == 1 && value->shape.rank == 0 && tare_tensor_get_i64(value, 0) == integer;
}

/* The int8 Cast that makes a value alone. */
static int narrowing(const struct finder *f, int value) {
    const int step = maker(f, value, "Cast", 1);
    return step >= 0 && step_at(f, step)->node->output_dtypes[0] == TARE_DT_INT8 ? step : -1;
}

static bool are_equal(const struct tare_tensor *a, const struct tare_tensor *b) {
    if (!a || !b || a->dtype != b->dtype || !tare_shape_equal(&a->shape, &b->shape)) return false;
    for (int64_t i = 0; i < a->elements; i++)
        if (tare_tensor_get_i64(a, i) != tare_tensor_get_i64(b, i)) return false;
    return true;
}

static bool are_zeros(const struct tare_tensor *tensor) {
    for (int64_t i = 0; i < tensor->elements; i++)
        if (tare_tensor_get_i64(tensor, i) != 0) return false;
    return true;
}

static bool have_same_string(const struct tare_node *a, const struct tare_node *b, const char *name) {
    return strcmp(tare_node_string(a, name, ""), tare_node_string(b, name, "")) == 0;
}

/* Inputs of XlaConvV2 after the operands. */
enum { PADDING = 3, GROUPS = 6, CONV_INPUTS = 7 };

/* The paddings of the PadV2 are those of the convolution's spatial dimensions: all of its dimensions with numbers. */
static bool pads_alike(const struct tare_tensor *paddings, const struct tare_tensor *padding) {
    int64_t at = 0;
    for (int64_t i = 0; i < paddings->elements; i += 2) {
        const int64_t low = tare_tensor_get_i64(paddings, i), high = tare_tensor_get_i64(paddings, i + 1);
        const bool is_spatial = i > 0 && at < padding->elements && i + 2 < paddings->elements;
        if (!is_spatial && (low != 0 || high != 0)) return false;
        if (!is_spatial) continue;
        if (low != tare_tensor_get_i64(padding, at) || high != tare_tensor_get_i64(padding, at + 1)) return false;
        at += 2;
    }
    return at == padding->elements;
}

/* The products differ in their left operand alone; `pad`: the PadV2 of that of `low`, or -1. */
static bool are_alike(const struct finder *f, const struct tare_step *high, const struct tare_step *low, int pad) {
    const bool is_conv = strcmp(high->node->op, "XlaConvV2") == 0;
    if (!is_conv && strcmp(high->node->op, "XlaDotV2") != 0) return false;
    if (strcmp(high->node->op, low->node->op) != 0 || high->n_inputs != low->n_inputs) return false;
    if (high->inputs[1] != low->inputs[1] || high->inputs[1] >= 0) return false;
    if (high->node->output_dtypes[0] != TARE_DT_INT32 || low->node->output_dtypes[0] != TARE_DT_INT32) return false;
    const struct tare_edge weights = high->node->inputs[1];
    if (weights.node->output_dtypes[weights.index] != TARE_DT_INT8) return false;
    if (!have_same_string(high->node, low->node, "dimension_numbers")) return false;
    if (!is_conv) return pad < 0;
    if (high->n_inputs != CONV_INPUTS || tare_node_int(high->node, "batch_group_count", 1) != 1 ||
        tare_node_int(low->node, "batch_group_count", 1) != 1)
        return false;
    for (size_t i = 2; i < CONV_INPUTS; i++) {
        const struct tare_tensor *a = constant_of(high, i), *b = constant_of(low, i);
        if (!a || !b || (i != PADDING && !are_equal(a, b))) return false;
    }
    const struct tare_tensor *padding = constant_of(high, PADDING);
    if (tare_tensor_get_i64(constant_of(high, GROUPS), 0) != 1 || !are_zeros(constant_of(low, PADDING))) return false;
    if (pad < 0) return are_zeros(padding);
    const struct tare_tensor *paddings = constant_of(step_at(f, pad), 1), *value = constant_of(step_at(f, pad), 2);
    return paddings && value && tare_tensor_get_i64(value, 0) == -128 && pads_alike(paddings, padding);
}

/* The sum of `product` times 256 and another product, or of another one times 256 and `product`; sets the products. */
static int find_sum(const struct finder *f, struct tare_step_halves *h, int product) {
    const int user = f->uses->used_by[step_at(f, product)->first_output];
    if (user < 0) return -1;
    const int sum =
        strcmp(step_at(f, user)->node->op, "Mul") == 0 ? f->uses->used_by[step_at(f, user)->first_output] : user;
    if (sum < 0 || strcmp(step_at(f, sum)->node->op, "AddV2") != 0) return -1;
    const int scaled = maker(f, step_at(f, sum)->inputs[0], "Mul", 1);
    if (scaled < 0 || !has_integer(step_at(f, scaled), 256)) return -1;
    const char *op = step_at(f, product)->node->op;
    const int high = maker(f, step_at(f, scaled)->inputs[0], op, 1), low = maker(f, step_at(f, sum)->inputs[1], op, 1);
    if (high < 0 || low < 0) return -1;
    h->product = high;
    h->steps[h->n_steps++] = low;
    h->steps[h->n_steps++] = scaled;
    return sum;
}

static void add_steps(struct tare_step_halves *h, const int *steps, int count) {
    for (int i = 0; i < count; i++)
        if (steps[i] >= 0) h->steps[h->n_steps++] = steps[i];
}

bool tare_plan_find_halves(struct tare_step_halves *h, const struct tare_plan *plan, const struct tare_plan_uses *uses,
                           int product) {
    const struct finder f = { plan, uses };
    *h = (struct tare_step_halves){ .n_steps = 0 };
    if (!tare_igemm_is_pairs(tare_igemm_form_at(tare_cpu_level()))) return false;
    h->sum = find_sum(&f, h, product);
    if (h->sum < 0) return false;
    const struct tare_step *high = &plan->steps[h->product], *low = &plan->steps[h->steps[0]];
    const int pad = maker(&f, low->inputs[0], "PadV2", 1);
    const int high_cast = narrowing(&f, high->inputs[0]);
    const int low_cast = narrowing(&f, pad < 0 ? low->inputs[0] : plan->steps[pad].inputs[0]);
    if (high_cast < 0 || low_cast < 0 || !are_alike(&f, high, low, pad)) return false;
    const int shift = maker(&f, plan->steps[high_cast].inputs[0], "RightShift", 1);
    const int half = maker(&f, plan->steps[low_cast].inputs[0], "Sub", 1);
    const int mask = half < 0 ? -1 : maker(&f, plan->steps[half].inputs[0], "BitwiseAnd", 1);
    if (shift < 0 || mask < 0 || plan->steps[shift].inputs[0] != plan->steps[mask].inputs[0]) return false;
    if (!has_integer(&plan->steps[shift], 8) || !has_integer(&plan->steps[half], 128) ||
        !has_integer(&plan->steps[mask], 255))
        return false;
    h->cast = maker(&f, plan->steps[shift].inputs[0], "Cast", 2);
    if (h->cast < 0 || plan->steps[h->cast].inputs[0] < 0) return false;
    const struct tare_edge x = plan->steps[h->cast].node->inputs[0];
    const int all[] = { h->product, h->cast, h->sum, pad, high_cast, low_cast, shift, half, mask };
    add_steps(h, all, sizeof all / sizeof *all);
    return x.node->output_dtypes[x.index] == TARE_DT_INT16 &&
           plan->steps[h->cast].node->output_dtypes[0] == TARE_DT_INT32;
}

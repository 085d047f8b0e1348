#include "interpreter/ops/support/elementwise.h"

#include <string.h>

/* The operand's dim for output dim d, 1 where it has none. */
static int64_t operand_dim(const struct tare_shape *shape, int d, int rank) {
    const int own = d - (rank - shape->rank);
    return own < 0 ? 1 : shape->dims[own];
}

static tare_status output_shape(struct tare_shape *out, const struct tare_tensor *operands, int count) {
    *out = operands[0].shape;
    for (int i = 1; i < count; i++) {
        char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
        struct tare_shape merged;
        if (tare_shape_broadcast(&merged, out, &operands[i].shape) != TARE_OK)
            return TARE_FAIL(TARE_SHAPE, "Incompatible shapes: %s vs. %s", tare_shape_text(a, out),
                             tare_shape_text(b, &operands[i].shape));
        *out = merged;
    }
    return TARE_OK;
}

/* A run of output dims along which every operand is either full or one. */
struct group {
    int64_t size;
    unsigned full; /* bit i: operand i has the dims */
};

/* Groups from the innermost dim outwards; dims of size 1 belong to any. */
static int make_groups(struct group *groups, const struct tare_shape *shape, const struct tare_tensor *operands,
                       int count) {
    int n = 0;
    for (int d = shape->rank; d-- > 0;) {
        unsigned full = 0;
        if (shape->dims[d] == 1) continue;
        for (int i = 0; i < count; i++)
            full |= (unsigned)(operand_dim(&operands[i].shape, d, shape->rank) != 1) << i;
        if (n > 0 && groups[n - 1].full == full)
            groups[n - 1].size *= shape->dims[d];
        else
            groups[n++] = (struct group){ shape->dims[d], full };
    }
    if (n == 0) groups[n++] = (struct group){ 1, (1u << count) - 1 };
    return n;
}

tare_status tare_broadcast_plan(struct tare_broadcast *plan, const struct tare_tensor *operands, int count) {
    struct group groups[TARE_MAX_RANK + 1];
    memset(plan, 0, sizeof *plan);
    plan->operands = count;
    TARE_TRY(output_shape(&plan->shape, operands, count));
    int64_t elements;
    TARE_TRY(tare_shape_elements(&elements, &plan->shape));
    if (elements == 0) return TARE_OK;
    const int n = make_groups(groups, &plan->shape, operands, count);
    plan->inner = groups[0].size;
    plan->outer = elements / groups[0].size;
    plan->rank = n - 1;
    for (int i = 0; i < count; i++) {
        const bool full = groups[0].full >> i & 1;
        int64_t step = full ? groups[0].size : 1;
        plan->is_one[i] = !full;
        for (int g = 1; g < n; g++) {
            plan->dims[g - 1] = groups[g].size;
            plan->steps[i][g - 1] = groups[g].full >> i & 1 ? step : 0;
            if (groups[g].full >> i & 1) step *= groups[g].size;
        }
    }
    return TARE_OK;
}

void tare_broadcast_next(struct tare_broadcast_walk *walk, const struct tare_broadcast *plan) {
    for (int d = 0; d < plan->rank; d++) {
        const bool carry = ++walk->at[d] == plan->dims[d];
        for (int i = 0; i < plan->operands; i++)
            walk->offsets[i] += carry ? -(plan->dims[d] - 1) * plan->steps[i][d] : plan->steps[i][d];
        if (!carry) return;
        walk->at[d] = 0;
    }
}

static tare_status no_loop(const struct tare_kernel *kernel) {
    return TARE_FAIL(TARE_UNSUPPORTED, "dtype %s", tare_dtype_name(kernel->inputs[0].dtype));
}

tare_status tare_elementwise_run1(struct tare_kernel *kernel, tare_loop1 loop, int dtype) {
    const struct tare_tensor *input = &kernel->inputs[0];
    if (!loop) return no_loop(kernel);
    if (dtype == input->dtype)
        TARE_TRY(tare_kernel_output_like0(kernel, 0));
    else
        TARE_TRY(tare_kernel_output(kernel, 0, dtype, &input->shape));
    if (input->elements > 0) loop(kernel->outputs[0].data, input->data, input->elements);
    return TARE_OK;
}

/* Output 0 for a plan: input 0's memory where allowed and large enough, else a new tensor. */
static tare_status elementwise_output(struct tare_kernel *kernel, const struct tare_broadcast *plan, int dtype) {
    const struct tare_tensor *first = &kernel->inputs[0];
    if (dtype == first->dtype && tare_shape_equal(&plan->shape, &first->shape))
        return tare_kernel_output_like0(kernel, 0);
    return tare_kernel_output(kernel, 0, dtype, &plan->shape);
}

tare_status tare_elementwise_run2(struct tare_kernel *kernel, tare_loop2 loop, int dtype) {
    struct tare_broadcast plan;
    struct tare_broadcast_walk walk = { { 0 }, { 0 } };
    if (!loop) return no_loop(kernel);
    TARE_TRY(tare_broadcast_plan(&plan, kernel->inputs, 2));
    TARE_TRY(elementwise_output(kernel, &plan, dtype));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    char *to = kernel->outputs[0].data;
    const char *a = kernel->inputs[0].data, *b = kernel->inputs[1].data;
    const int64_t size = (int64_t)tare_dtype_size(kernel->inputs[0].dtype);
    const int64_t row = plan.inner * (int64_t)tare_dtype_size(dtype);
    for (int64_t i = 0; i < plan.outer; i++, to += row) {
        loop(to, a + walk.offsets[0] * size, b + walk.offsets[1] * size, plan.inner, plan.is_one[0], plan.is_one[1]);
        tare_broadcast_next(&walk, &plan);
    }
    return TARE_OK;
}

/* XlaDot and XlaDotV2, which quantized models use: int8 operands with exact int32 sums, float or bfloat16 operands, and
 * float operands with int8 weights. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/linalg/product.h"
#include "interpreter/ops/support/few_rows_product.h"
#include "interpreter/ops/xla/dot_dims.h"
#include "interpreter/ops/xla/xla_product.h"

#include "base/alloc.h"
#include "interpreter/session.h"

#include <string.h>

struct dot_state {
    struct tare_xla_kept kept;
    bool has_dot; /* the product's dimensions were read, for operands of these shapes */
    struct tare_dot dot;
    struct tare_shape lhs, rhs;
    struct tare_exact_choice choice; /* for `dot` */
};

static tare_status prepare_dot(struct tare_kernel *kernel) {
    kernel->state = tare_xla_state_new(kernel, sizeof(struct dot_state));
    return !kernel->state ? TARE_NO_MEMORY : TARE_OK;
}

static void release_dot(void *pointer) {
    struct dot_state *state = pointer;
    if (!state) return;
    tare_weights_reset(&state->kept.weights);
    tare_free(state);
}

static tare_status infer_xla_dot(struct tare_infer *infer) {
    struct tare_dot dot;
    if (infer->inputs[0].rank < 0 || infer->inputs[1].rank < 0) return TARE_OK;
    TARE_TRY(tare_dot_set(&dot, infer->node, &infer->inputs[0], &infer->inputs[1]));
    infer->outputs[0] = dot.output;
    return TARE_OK;
}

static tare_status exact_dot(struct tare_kernel *kernel, int32_t *result, const struct tare_dot *dot, bool plain) {
    struct dot_state *state = kernel->state;
    const struct tare_tensor *rhs = &kernel->inputs[1];
    const int left = tare_xla_left_dtype(kernel);
    const bool is_packed = tare_xla_is_packed(kernel, tare_exact_product_key(left, rhs->dtype), plain) ||
                           (!plain && tare_few_rows_is_packed(&state->kept.weights, rhs, dot->m, dot->n, dot->k));
    struct tare_exact exact;
    TARE_TRY(tare_xla_exact(&exact, kernel, dot->lhs_order, dot->rhs_order, !is_packed || dot->batch != 1, plain));
    if (dot->m > 0 && dot->n > 0 && dot->k > 0) {
        tare_exact_choose_product(&state->choice, dot->m, dot->n, dot->k, left, rhs->dtype);
        exact.choice = &state->choice;
    }
    return tare_exact_product(result, &exact, dot->batch, dot->m, dot->n, dot->k);
}

/* Float rows times int8 weights with the kernels for few rows; *done is false if they are not for the product. */
static tare_status few_rows_dot(struct tare_kernel *kernel, float *result, const struct tare_dot *dot, bool *done) {
    struct dot_state *state = kernel->state;
    const struct tare_tensor *lhs = &kernel->inputs[0], *rhs = &kernel->inputs[1];
    struct tare_few_rows few = { .m = dot->m, .n = dot->n, .k = dot->k };
    *done = false;
    if (dot->batch != 1 || !tare_xla_is_int8(rhs->dtype) || !tare_gemv_is_for(dot->m, dot->n, dot->k)) return TARE_OK;
    few.rhs = tare_xla_operand(kernel, TARE_XLA_EXACT, rhs, dot->rhs_order);
    const float *a = tare_xla_operand(kernel, TARE_XLA_FLOATS, lhs, dot->lhs_order);
    if (!few.rhs || !a) return TARE_NO_MEMORY;
    TARE_TRY(tare_few_rows_pack(&few, &state->kept.weights, rhs, 0, kernel->scratch));
    if (!few.packed) return TARE_OK;
    *done = true;
    return tare_few_rows_float(result, a, &few, tare_session_op_pool(kernel->session));
}

static tare_status wide_dot(struct tare_kernel *kernel, void *result, const struct tare_dot *dot,
                            enum tare_xla_arithmetic arithmetic, bool plain) {
    bool done = false;
    if (arithmetic == TARE_XLA_FLOATS && !plain) TARE_TRY(few_rows_dot(kernel, result, dot, &done));
    if (done) return TARE_OK;
    struct dot_state *state = kernel->state;
    const struct tare_tensor *rhs = &kernel->inputs[1];
    struct tare_product product = {
        .pool = plain ? NULL : tare_session_op_pool(kernel->session),
        .dtype = tare_xla_sum_dtype(arithmetic),
        .batch = dot->batch,
        .m = dot->m,
        .n = dot->n,
        .k = dot->k,
        .a = tare_xla_operand(kernel, arithmetic, &kernel->inputs[0], dot->lhs_order),
        .c = result,
    };
    const bool without = arithmetic == TARE_XLA_FLOATS && tare_xla_is_packed(kernel, 0, plain);
    if (!without) product.b = tare_xla_operand(kernel, arithmetic, rhs, dot->rhs_order);
    if (!product.a || (!without && !product.b)) return TARE_NO_MEMORY;
    TARE_TRY(tare_product_set_dense(&product, kernel->scratch));
    if (!plain) return tare_product_run(&product, &state->kept.weights, rhs, kernel->scratch);
    tare_product_plain(&product);
    return TARE_OK;
}

/* The float result of a product whose values a consumer takes: `count` elements. */
static tare_status float_room(struct tare_kernel *kernel, float **values, int64_t count) {
    size_t bytes;
    if (!tare_mul_size(&bytes, (size_t)count, sizeof **values)) return TARE_NO_MEMORY;
    *values = tare_arena_alloc(kernel->scratch, bytes);
    return !*values ? TARE_NO_MEMORY : TARE_OK;
}

static tare_status pass_dot(struct tare_kernel *kernel, enum tare_xla_arithmetic arithmetic,
                            const struct tare_dot *dot) {
    const int64_t count = dot->batch * dot->m * dot->n;
    float *values;
    if (arithmetic == TARE_XLA_EXACT) return exact_dot(kernel, NULL, dot, false);
    TARE_TRY(float_room(kernel, &values, count));
    TARE_TRY(wide_dot(kernel, values, dot, arithmetic, false));
    kernel->consumer->take(kernel->consumer, values, 0, count);
    return TARE_OK;
}

/* The dimensions of an execution, computed again only if a shape has changed. */
static tare_status dot_of(const struct tare_dot **out, const struct tare_kernel *kernel) {
    struct dot_state *state = kernel->state;
    const struct tare_shape *lhs = &kernel->inputs[0].shape, *rhs = &kernel->inputs[1].shape;
    *out = &state->dot;
    if (state->has_dot && tare_shape_equal(&state->lhs, lhs) && tare_shape_equal(&state->rhs, rhs)) return TARE_OK;
    state->has_dot = state->choice.is_set = false;
    TARE_TRY(tare_dot_set(&state->dot, kernel->node, lhs, rhs));
    state->lhs = *lhs, state->rhs = *rhs;
    state->has_dot = true;
    return TARE_OK;
}

static tare_status run_dot_any(struct tare_kernel *kernel, bool plain) {
    const struct tare_dot *dot;
    enum tare_xla_arithmetic arithmetic;
    const int dtype = tare_xla_output_dtype(kernel);
    TARE_TRY(tare_xla_choose(&arithmetic, kernel->inputs[0].dtype, kernel->inputs[1].dtype, dtype));
    TARE_TRY(dot_of(&dot, kernel));
    TARE_TRY(tare_xla_begin_output(kernel, arithmetic, dtype, &dot->output, !plain && dot->k > 0));
    if (tare_xla_taking_consumer(kernel)) return pass_dot(kernel, arithmetic, dot);
    if (kernel->consumer && kernel->consumer->joins_halves) return TARE_OK;
    struct tare_tensor *output = &kernel->outputs[0];
    if (output->elements == 0) return TARE_OK;
    if (dot->k == 0) {
        memset(output->data, 0, tare_tensor_bytes(output));
        return TARE_OK;
    }
    void *result = tare_xla_result_room(kernel, arithmetic, true);
    if (!result) return TARE_NO_MEMORY;
    if (arithmetic == TARE_XLA_EXACT)
        TARE_TRY(exact_dot(kernel, result, dot, plain));
    else
        TARE_TRY(wide_dot(kernel, result, dot, arithmetic, plain));
    tare_xla_store(output, arithmetic, result);
    return TARE_OK;
}

static tare_status run_xla_dot(struct tare_kernel *kernel) {
    return run_dot_any(kernel, false);
}
static tare_status reference_xla_dot(struct tare_kernel *kernel) {
    return run_dot_any(kernel, true);
}

#define DOT_ROW(op)                                                                                                    \
    {                                                                                                                  \
        .name = op, .infer = infer_xla_dot, .run = run_xla_dot, .prepare = prepare_dot, .release = release_dot,        \
        .reference = reference_xla_dot, .flags = TARE_OP_PRODUCT | TARE_OP_PASSES_ROWS, .quant = TARE_QUANT_WEIGHTED   \
    }

const struct tare_op tare_ops_xla_dot[] = {
    DOT_ROW("XlaDot"),
    DOT_ROW("XlaDotV2"),
    { 0 },
};
#undef DOT_ROW

#include "interpreter/ops/xla/xla_product.h"
#include "interpreter/ops/linalg/product.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/xla/general_conv.h"

#include "base/alloc.h"
#include "interpreter/session.h"

#include <string.h>

void *tare_xla_state_new(const struct tare_kernel *kernel, size_t state_size) {
    struct tare_xla_kept *kept = tare_calloc(1, state_size);
    if (kept) kept->weights.owner = kernel->node;
    return kept;
}

int tare_xla_output_dtype(const struct tare_kernel *kernel) {
    struct tare_xla_kept *state = kernel->state;
    const struct tare_node *node = kernel->node;
    if (state->output_dtype == 0)
        state->output_dtype =
            tare_node_type(node, "preferred_element_type", tare_node_type(node, "T", kernel->inputs[0].dtype));
    return state->output_dtype;
}

static bool is_long(int dtype) {
    return dtype == TARE_DT_INT64 || dtype == TARE_DT_UINT64;
}

tare_status tare_xla_choose(enum tare_xla_arithmetic *out, int lhs, int rhs, int output) {
    bool fits = true;
    if (tare_floats_dtype(output)) {
        *out = TARE_XLA_FLOATS;
    } else if (output == TARE_DT_DOUBLE) {
        *out = TARE_XLA_DOUBLES;
    } else if (tare_dtype_is_complex(output)) {
        *out = output == TARE_DT_COMPLEX64 ? TARE_XLA_COMPLEX64 : TARE_XLA_COMPLEX128;
        fits = lhs == output && rhs == output;
    } else if (is_long(output)) {
        *out = TARE_XLA_LONGS;
        fits = (tare_exact_dtype(lhs) || is_long(lhs)) && (tare_exact_dtype(rhs) || is_long(rhs));
    } else {
        *out = TARE_XLA_EXACT;
        fits = tare_exact_dtype(output) && tare_exact_dtype(lhs) && tare_exact_dtype(rhs);
    }
    if (fits) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "%s times %s giving %s", tare_dtype_name(lhs), tare_dtype_name(rhs),
                     tare_dtype_name(output));
}

int tare_xla_sum_dtype(enum tare_xla_arithmetic arithmetic) {
    static const int dtypes[] = {
        [TARE_XLA_EXACT] = TARE_DT_INT32,         [TARE_XLA_FLOATS] = TARE_DT_FLOAT,
        [TARE_XLA_DOUBLES] = TARE_DT_DOUBLE,      [TARE_XLA_LONGS] = TARE_DT_INT64,
        [TARE_XLA_COMPLEX64] = TARE_DT_COMPLEX64, [TARE_XLA_COMPLEX128] = TARE_DT_COMPLEX128,
    };
    return dtypes[arithmetic];
}

size_t tare_xla_element_size(enum tare_xla_arithmetic arithmetic) {
    return tare_dtype_size(tare_xla_sum_dtype(arithmetic));
}

const void *tare_xla_operand(struct tare_kernel *kernel, enum tare_xla_arithmetic arithmetic,
                             const struct tare_tensor *tensor, const int *order) {
    const void *data = arithmetic == TARE_XLA_EXACT
                           ? tensor->data
                           : tare_product_operand(kernel, tensor, tare_xla_sum_dtype(arithmetic));
    if (!data) return NULL;
    const size_t size =
        arithmetic == TARE_XLA_EXACT ? tare_dtype_size(tensor->dtype) : tare_xla_element_size(arithmetic);
    return tare_in_order(kernel->scratch, data, size, &tensor->shape, order);
}

bool tare_xla_is_packed(const struct tare_kernel *kernel, int64_t key, bool plain) {
    struct tare_xla_kept *state = kernel->state;
    return !plain && tare_weights_find(&state->weights, &kernel->inputs[1], key);
}

bool tare_xla_is_int8(int dtype) {
    return dtype == TARE_DT_INT8 || dtype == TARE_DT_QINT8;
}

void *tare_xla_result_room(struct tare_kernel *kernel, enum tare_xla_arithmetic arithmetic, bool in_place) {
    struct tare_tensor *output = &kernel->outputs[0];
    if (in_place && tare_dtype_size(output->dtype) == tare_xla_element_size(arithmetic)) return output->data;
    size_t bytes;
    if (!tare_mul_size(&bytes, (size_t)output->elements, tare_xla_element_size(arithmetic))) return NULL;
    return tare_arena_alloc(kernel->scratch, bytes);
}

void tare_xla_store(struct tare_tensor *output, enum tare_xla_arithmetic arithmetic, const void *values) {
    if (values == output->data) return;
    const size_t size = tare_dtype_size(output->dtype);
    if (arithmetic == TARE_XLA_FLOATS) {
        tare_floats_to(output->data, output->dtype, values, output->elements);
        return;
    }
    for (int64_t i = 0; i < output->elements; i++)
        memcpy((char *)output->data + (size_t)i * size,
               (const char *)values + (size_t)i * tare_xla_element_size(arithmetic), size);
}

tare_status tare_xla_begin_output(struct tare_kernel *kernel, enum tare_xla_arithmetic arithmetic, int dtype,
                                  const struct tare_shape *shape, bool may_pass) {
    const bool lanes =
        arithmetic == TARE_XLA_FLOATS || (arithmetic == TARE_XLA_EXACT && tare_dtype_size(dtype) == sizeof(int32_t));
    if (may_pass && lanes) TARE_TRY(tare_kernel_begin_rows(kernel, shape));
    if (kernel->consumer && (kernel->consumer->accepted || kernel->consumer->joins_halves)) return TARE_OK;
    return tare_kernel_output(kernel, 0, dtype, shape);
}

struct tare_consumer *tare_xla_taking_consumer(const struct tare_kernel *kernel) {
    return kernel->consumer && kernel->consumer->accepted ? kernel->consumer : NULL;
}

int tare_xla_left_dtype(const struct tare_kernel *kernel) {
    return kernel->consumer && kernel->consumer->joins_halves ? TARE_EXACT_HALVES : kernel->inputs[0].dtype;
}

tare_status tare_xla_exact(struct tare_exact *exact, struct tare_kernel *kernel, const int *lhs_order,
                           const int *rhs_order, bool needs_rhs, bool plain) {
    struct tare_xla_kept *kept = kernel->state;
    const struct tare_tensor *lhs = &kernel->inputs[0], *rhs = &kernel->inputs[1];
    *exact = (struct tare_exact){
        .lhs_dtype = tare_xla_left_dtype(kernel),
        .rhs_dtype = rhs->dtype,
        .lhs = tare_xla_operand(kernel, TARE_XLA_EXACT, lhs, lhs_order),
        .weights = &kept->weights,
        .source = rhs,
        .scratch = kernel->scratch,
        .threads = tare_session_op_pool(kernel->session),
        .plain = plain,
        .consumer = tare_xla_taking_consumer(kernel),
    };
    const bool is_narrow = tare_xla_is_int8(lhs->dtype) || exact->lhs_dtype == TARE_EXACT_HALVES;
    const bool without = !needs_rhs && is_narrow;
    if (!without) exact->rhs = tare_xla_operand(kernel, TARE_XLA_EXACT, rhs, rhs_order);
    return !exact->lhs || (!without && !exact->rhs) ? TARE_NO_MEMORY : TARE_OK;
}

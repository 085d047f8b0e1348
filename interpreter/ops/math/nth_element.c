/* NthElement: the element at position n of each row in sorted order. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"

#include <stdlib.h>
#include <string.h>

static tare_status infer_nth(struct tare_infer *infer) {
    struct tare_shape *out = &infer->outputs[0];
    *out = infer->inputs[0];
    TARE_TRY(tare_operand_rank(infer, 1, "n", 0));
    if (out->rank < 0) return TARE_OK;
    if (out->rank < 1) return TARE_FAIL(TARE_SHAPE, "Input must be >= 1-D, got shape []");
    out->rank--;
    return TARE_OK;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static int by_integer(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
static int by_unsigned(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static tare_status run_nth(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_tensor *out = &kernel->outputs[0];
    TARE_TRY(tare_operand_output(kernel, 0));
    const int64_t width = input->shape.dims[input->shape.rank - 1];
    int64_t n = tare_tensor_get_i64(&kernel->inputs[1], 0);
    if (n < 0 || n >= width)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "n is %lld (expected 0 to %lld, the last dimension less 1)",
                         (long long)n, (long long)width - 1);
    if (tare_node_bool(kernel->node, "reverse", false)) n = width - n - 1;
    const bool real = tare_dtype_is_floating(input->dtype);
    uint64_t *row = TARE_NEW_ARRAY(kernel->scratch, uint64_t, (size_t)width);
    if (!row) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < out->elements; i++) {
        for (int64_t k = 0; k < width; k++) {
            const double x = tare_tensor_get_f64(input, i * width + k);
            const int64_t whole = tare_tensor_get_i64(input, i * width + k);
            memcpy(row + k, real ? (const void *)&x : &whole, sizeof *row);
        }
        qsort(row, (size_t)width, sizeof *row,
              real                             ? by_value
              : input->dtype == TARE_DT_UINT64 ? by_unsigned
                                               : by_integer);
        double x;
        memcpy(&x, row + n, sizeof x);
        if (real)
            tare_tensor_set_f64(out, i, x);
        else
            tare_tensor_set_i64(out, i, (int64_t)row[n]);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_nth_element[] = {
    { .name = "NthElement", .infer = infer_nth, .run = run_nth },
    { 0 },
};

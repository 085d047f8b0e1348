/* InplaceUpdate, InplaceAdd, InplaceSub and related ops, which TensorFlow runs in place: replaces or updates rows of
 * a tensor. */
#include "base/alloc.h"
#include "interpreter/ops/support/accumulate.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

/* A row's aux; SET replaces the row. */
struct change {
    int how;
};
enum { SET = -1 };
static const struct change set = { SET }, add = { TARE_ACCUMULATE_ADD }, subtract = { TARE_ACCUMULATE_SUB };

/* `i` contains the row number of each row of v; a scalar i and a v without the leading dimension address one row.
 * Row numbers are taken modulo the number of rows. */
static tare_status run_change(struct tare_kernel *kernel) {
    const struct tare_tensor *x = &kernel->inputs[0], *at = &kernel->inputs[1], *v = &kernel->inputs[2];
    const int how = ((const struct change *)kernel->op->aux)->how;
    const size_t size = tare_dtype_size(x->dtype);
    if (x->shape.rank < 1) return TARE_FAIL(TARE_SHAPE, "x is a scalar: it has no rows");
    const int64_t rows = x->shape.dims[0], width = tare_move_product(&x->shape, 1, x->shape.rank);
    int64_t expected;
    if (at->shape.rank > 1 || !tare_mul_i64(&expected, at->elements, width) || expected != v->elements)
        return TARE_FAIL(TARE_SHAPE, "%lld elements for %lld rows of %lld", (long long)v->elements,
                         (long long)at->elements, (long long)width);
    if (at->elements && !rows) return TARE_FAIL(TARE_INVALID_ARGUMENT, "x has no rows");
    TARE_TRY(tare_kernel_output(kernel, 0, x->dtype, &x->shape));
    TARE_TRY(tare_move_run(&kernel->outputs[0], 0, x, 0, x->elements));
    for (int64_t i = 0; i < at->elements; i++) {
        int64_t row = tare_tensor_get_i64(at, i) % rows;
        if (row < 0) row += rows;
        if (how == SET)
            TARE_TRY(tare_move_run(&kernel->outputs[0], row * width, v, i * width, width));
        else if (width)
            TARE_TRY(tare_accumulate((enum tare_accumulate)how, x->dtype,
                                     (char *)kernel->outputs[0].data + (size_t)(row * width) * size,
                                     (const char *)v->data + (size_t)(i * width) * size, width, false));
    }
    return TARE_OK;
}

/* Each input is one row. */
static tare_status infer_concat(struct tare_infer *infer) {
    struct tare_shape *out = &infer->outputs[0];
    if (tare_node_shape(infer->node, "shape", out) != TARE_OK) *out = tare_shape_unknown();
    for (size_t i = 0; i < infer->n_inputs; i++) {
        struct tare_shape row = infer->inputs[i];
        if (row.rank < 0) continue;
        if (row.rank < 1 || (row.dims[0] >= 0 && row.dims[0] != 1))
            return TARE_FAIL(TARE_SHAPE, "Size of first dimension must be 1.");
        row.dims[0] = (int64_t)infer->n_inputs;
        TARE_TRY(tare_shape_merge(out, out, &row));
    }
    return TARE_OK;
}

static tare_status run_concat(struct tare_kernel *kernel) {
    TARE_TRY(tare_operand_output(kernel, 0));
    for (size_t i = 0; i < kernel->n_inputs; i++)
        TARE_TRY(tare_move_run(&kernel->outputs[0], (int64_t)i * kernel->inputs[0].elements, &kernel->inputs[i], 0,
                               kernel->inputs[i].elements));
    return TARE_OK;
}

const struct tare_op tare_ops_inplace[] = {
    { .name = "InplaceUpdate", .infer = tare_infer_same, .run = run_change, .aux = &set },
    { .name = "InplaceAdd", .infer = tare_infer_same, .run = run_change, .aux = &add },
    { .name = "InplaceSub", .infer = tare_infer_same, .run = run_change, .aux = &subtract },
    { .name = "ParallelConcat", .infer = infer_concat, .run = run_concat, .flags = TARE_OP_MOVE },
    { 0 },
};

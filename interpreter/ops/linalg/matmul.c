/* MatMul, BatchMatMul (V1 to V3) and SparseMatMul: matrix products with transposed operands and broadcast batch
 * dimensions. */
#include "interpreter/ops/support/exact.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/epilogue.h"
#include "interpreter/ops/linalg/product.h"
#include "interpreter/kernels/transpose.h"

#include "interpreter/session.h"

/* A row's aux. */
struct matmul_kind {
    bool matrices;  /* both inputs are plain matrices */
    bool broadcast; /* leading dimensions broadcast; otherwise they must be equal */
};
static const struct matmul_kind kind_matrix = { true, false }, kind_batch = { false, false },
                                kind_broadcast = { false, true };

struct flags {
    bool a, b; /* transposed */
};
static struct flags flags_of(const struct tare_node *node, const struct matmul_kind *kind) {
    return (struct flags){ tare_node_bool(node, kind->matrices ? "transpose_a" : "adj_x", false),
                           tare_node_bool(node, kind->matrices ? "transpose_b" : "adj_y", false) };
}

/* ---- shapes ---- */

static struct tare_shape leading(const struct tare_shape *shape) {
    struct tare_shape batch = *shape;
    batch.rank -= 2;
    return batch;
}

/* Computes the output's shape; unknown dimensions stay unknown. */
static tare_status matmul_shape(struct tare_shape *out, const struct matmul_kind *kind, struct flags flags,
                                const struct tare_shape *a, const struct tare_shape *b) {
    for (int i = 0; i < 2; i++) {
        const struct tare_shape *shape = i ? b : a;
        if (kind->matrices ? shape->rank != 2 : shape->rank < 2)
            return TARE_FAIL(TARE_SHAPE, "input %d has rank %d (expected %s)", i, shape->rank,
                             kind->matrices ? "2" : "at least 2");
    }
    const int64_t m = a->dims[a->rank - (flags.a ? 1 : 2)], n = b->dims[b->rank - (flags.b ? 2 : 1)];
    const int64_t k = a->dims[a->rank - (flags.a ? 2 : 1)], k2 = b->dims[b->rank - (flags.b ? 1 : 2)];
    if (k >= 0 && k2 >= 0 && k != k2) {
        char left[TARE_SHAPE_TEXT_SIZE], right[TARE_SHAPE_TEXT_SIZE];
        return TARE_FAIL(TARE_SHAPE, "inner sizes differ: %s%s times %s%s", tare_shape_text(left, a),
                         flags.a ? " transposed" : "", tare_shape_text(right, b), flags.b ? " transposed" : "");
    }
    const struct tare_shape batch_a = leading(a), batch_b = leading(b);
    if (kind->broadcast)
        TARE_TRY(tare_shape_broadcast(out, &batch_a, &batch_b));
    else
        TARE_TRY(tare_shape_merge(out, &batch_a, &batch_b));
    out->dims[out->rank++] = m;
    out->dims[out->rank++] = n;
    return TARE_OK;
}

static tare_status infer_matmul(struct tare_infer *infer) {
    const struct matmul_kind *kind = infer->node->def->row->aux;
    struct flags flags = flags_of(infer->node, kind);
    const struct tare_shape *a = &infer->inputs[0], *b = &infer->inputs[1];
    const struct tare_shape matrix = tare_shape_make(2, -1, -1);
    if (kind->matrices) {
        if (a->rank < 0) a = &matrix;
        if (b->rank < 0) b = &matrix;
    }
    if (a->rank < 0 || b->rank < 0) return TARE_OK;
    return matmul_shape(&infer->outputs[0], kind, flags, a, b);
}

static void cost_matmul(const struct tare_infer *infer, struct tare_cost *cost) {
    int64_t outputs;
    const struct matmul_kind *kind = infer->node->def->row->aux;
    const struct tare_shape *a = &infer->inputs[0];
    if (a->rank < 2 || tare_shape_elements(&outputs, &infer->outputs[0]) != TARE_OK) {
        tare_error_clear();
        return;
    }
    const int64_t k = a->dims[a->rank - (flags_of(infer->node, kind).a ? 2 : 1)];
    if (k > 0) cost->macs = (double)outputs * (double)k;
}

/* ---- execution ---- */

static tare_status set_up(struct tare_kernel *kernel, struct tare_product *product, struct flags flags) {
    const struct tare_tensor *a = &kernel->inputs[0], *b = &kernel->inputs[1], *output = &kernel->outputs[0];
    const int rank = output->shape.rank;
    product->dtype = tare_product_dtype(output->dtype);
    product->m = output->shape.dims[rank - 2];
    product->n = output->shape.dims[rank - 1];
    product->k = a->shape.dims[a->shape.rank - (flags.a ? 2 : 1)];
    product->batch = output->elements / (product->m * product->n);
    product->a_row = flags.a ? 1 : product->k;
    product->a_column = flags.a ? product->m : 1;
    product->b_row = flags.b ? 1 : product->n;
    product->b_column = flags.b ? product->k : 1;
    const bool batched = !((const struct matmul_kind *)kernel->op->aux)->matrices;
    product->conjugate_a = batched && flags.a;
    product->conjugate_b = batched && flags.b;
    product->a_first = tare_product_offsets(kernel->scratch, product->batch, &output->shape, &a->shape);
    product->b_first = tare_product_offsets(kernel->scratch, product->batch, &output->shape, &b->shape);
    return !product->a_first || !product->b_first ? TARE_NO_MEMORY : TARE_OK;
}

/* Converts the elements to the dtype of the computation, except those of B if they are packed already. */
static tare_status set_elements(struct tare_kernel *kernel, struct tare_product *product, bool plain) {
    const struct tare_tensor *b = &kernel->inputs[1];
    product->a = tare_product_operand(kernel, &kernel->inputs[0], product->dtype);
    product->b = plain ? NULL : tare_product_packed(product, kernel->state, b);
    if (!product->b) product->b = tare_product_operand(kernel, b, product->dtype);
    product->c = tare_product_room(kernel, 0);
    return !product->a || !product->b || !product->c ? TARE_NO_MEMORY : TARE_OK;
}

/* Returns an int32 matrix with contiguous rows: in place, or transposed into scratch. NULL: no memory. */
static const int32_t *dense_int32(struct tare_kernel *kernel, const int32_t *from, bool transposed, int64_t rows,
                                  int64_t columns) {
    if (!transposed) return from;
    int32_t *copy = TARE_NEW_ARRAY(kernel->scratch, int32_t, (size_t)(rows * columns));
    if (copy) tare_transpose(copy, from, sizeof *copy, columns, rows);
    return copy;
}

/* int32: models quantized with TensorFlow's own ops store int8 values in it, which have an exact fast kernel. */
static tare_status run_int32(struct tare_kernel *kernel, const struct tare_product *product, struct flags flags) {
    const struct tare_tensor *a = &kernel->inputs[0], *b = &kernel->inputs[1];
    for (int64_t i = 0; i < product->batch; i++) {
        struct tare_exact exact = { .lhs_dtype = TARE_DT_INT32,
                                    .rhs_dtype = TARE_DT_INT32,
                                    .weights = b->shape.rank == 2 ? kernel->state : NULL,
                                    .source = b,
                                    .scratch = kernel->scratch,
                                    .threads = tare_session_op_pool(kernel->session) };
        exact.lhs =
            dense_int32(kernel, TARE_CONST_DATA(int32_t, a) + product->a_first[i], flags.a, product->m, product->k);
        exact.rhs =
            dense_int32(kernel, TARE_CONST_DATA(int32_t, b) + product->b_first[i], flags.b, product->k, product->n);
        if (!exact.lhs || !exact.rhs) return TARE_NO_MEMORY;
        TARE_TRY(tare_exact_product(TARE_DATA(int32_t, &kernel->outputs[0]) + i * product->m * product->n, &exact, 1,
                                    product->m, product->n, product->k));
    }
    return TARE_OK;
}

static tare_status run_any(struct tare_kernel *kernel, bool plain) {
    const struct matmul_kind *kind = kernel->op->aux;
    const struct flags flags = flags_of(kernel->node, kind);
    struct tare_shape shape;
    struct tare_product product = { .pool = plain ? NULL : tare_session_op_pool(kernel->session) };
    struct tare_gemm_epilogue epilogue;
    TARE_TRY(matmul_shape(&shape, kind, flags, &kernel->inputs[0].shape, &kernel->inputs[1].shape));
    if (shape.rank > TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "rank %d", shape.rank);
    const int dtype = tare_dtype_base(kernel->node->output_dtypes[0]);
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &shape));
    struct tare_tensor *output = &kernel->outputs[0];
    if (output->elements == 0) return TARE_OK;
    const bool is_int32 =
        dtype == TARE_DT_INT32 && kernel->inputs[0].dtype == TARE_DT_INT32 && kernel->inputs[1].dtype == TARE_DT_INT32;
    TARE_TRY(set_up(kernel, &product, flags));
    if (is_int32 && !plain && product.k > 0) return run_int32(kernel, &product, flags);
    TARE_TRY(set_elements(kernel, &product, plain));
    const bool is_mixed = kernel->inputs[0].dtype != dtype || kernel->inputs[1].dtype != dtype;
    if (!plain && product.k > 0 && kernel->epilogue && !kernel->epilogue->addend && !is_mixed)
        product.epilogue = tare_take_epilogue(&epilogue, kernel);
    if (plain || is_int32)
        tare_product_plain(&product);
    else
        TARE_TRY(tare_product_run(&product, kernel->state, &kernel->inputs[1], kernel->scratch));
    tare_product_store(kernel, 0, product.c);
    return TARE_OK;
}

static tare_status run_matmul(struct tare_kernel *kernel) {
    return run_any(kernel, false);
}
static tare_status reference_matmul(struct tare_kernel *kernel) {
    return run_any(kernel, true);
}

#define ROW(op, kind)                                                                                                  \
    {                                                                                                                  \
        .name = op, .infer = infer_matmul, .run = run_matmul, .prepare = tare_product_prepare,                         \
        .release = tare_product_release, .reference = reference_matmul, .cost = cost_matmul, .aux = &kind,             \
        .flags = TARE_OP_EPILOGUE | TARE_OP_ROUNDS | TARE_OP_PRODUCT, .quant = TARE_QUANT_WEIGHTED                     \
    }

const struct tare_op tare_ops_matmul[] = {
    ROW("MatMul", kind_matrix),
    /* dense matrices in which many elements are expected to be zero */
    ROW("SparseMatMul", kind_matrix),
    ROW("BatchMatMul", kind_batch),
    ROW("BatchMatMulV2", kind_broadcast),
    ROW("BatchMatMulV3", kind_broadcast),
    { 0 },
};
#undef ROW

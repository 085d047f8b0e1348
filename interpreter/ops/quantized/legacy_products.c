/* TensorFlow 1's quantized products, convolutions and pools: 8-bit operands with ranges, exact 32-bit sums, and the
 * range that the sums represent. */
#include "interpreter/kernels/pool.h"
#include "interpreter/ops/quantized/channels.h"
#include "interpreter/ops/support/exact.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/quantized/quantized_range.h"
#include "interpreter/ops/support/window.h"

#include "base/alloc.h"
#include "interpreter/session.h"

#include <string.h>

/* The operands of a product with zero points subtracted, so that padding is zero. */
struct operands {
    struct tare_span a, b, c;
    int32_t *values[2];
};

static tare_status open_operands(struct operands *operands, struct tare_kernel *kernel) {
    for (size_t i = 0; i < 2; i++) {
        const struct tare_tensor *tensor = &kernel->inputs[i];
        struct tare_span *span = i ? &operands->b : &operands->a;
        if (tare_dtype_size(tensor->dtype) != 1)
            return TARE_FAIL(TARE_UNSUPPORTED, "%s is %s (expected qint8 or quint8)", kernel->node->def->inputs[i].name,
                             tare_dtype_name(tensor->dtype));
        TARE_TRY(tare_span_proper(span, kernel, 2 + 2 * i, tensor->dtype));
        const int32_t zero = (int32_t)tare_span_steps(span, 0);
        int32_t *values = TARE_NEW_ARRAY(kernel->scratch, int32_t, (size_t)tensor->elements);
        if (!values) return TARE_NO_MEMORY;
        for (int64_t k = 0; k < tensor->elements; k++)
            values[k] = (int32_t)((uint32_t)tare_quantized_get(tensor, k) - (uint32_t)zero);
        operands->values[i] = values;
    }
    if (kernel->node->output_dtypes[0] != TARE_DT_QINT32)
        return TARE_FAIL(TARE_UNSUPPORTED, "the output is %s (expected qint32)",
                         tare_dtype_name(kernel->node->output_dtypes[0]));
    operands->c = tare_span_of_products(&operands->a, &operands->b, TARE_DT_QINT32);
    return TARE_OK;
}

static struct tare_exact exact_of(const struct operands *operands, struct tare_kernel *kernel) {
    return (struct tare_exact){ .lhs_dtype = TARE_DT_INT32,
                                .rhs_dtype = TARE_DT_INT32,
                                .lhs = operands->values[0],
                                .rhs = operands->values[1],
                                .scratch = kernel->scratch,
                                .threads = tare_session_op_pool(kernel->session) };
}

/* ---- matrices ---- */

static tare_status infer_matmul(struct tare_infer *infer) {
    const struct tare_shape *a = &infer->inputs[0], *b = &infer->inputs[1];
    const bool ta = tare_node_bool(infer->node, "transpose_a", false),
               tb = tare_node_bool(infer->node, "transpose_b", false);
    infer->outputs[0] = tare_shape_make(2, (int64_t)-1, (int64_t)-1);
    infer->outputs[1] = infer->outputs[2] = tare_shape_scalar();
    for (int i = 0; i < 2; i++)
        if (infer->inputs[i].rank >= 0 && infer->inputs[i].rank != 2)
            return TARE_FAIL(TARE_SHAPE, "%s has rank %d (expected 2)", i ? "b" : "a", infer->inputs[i].rank);
    if (a->rank == 2) infer->outputs[0].dims[0] = a->dims[ta ? 1 : 0];
    if (b->rank == 2) infer->outputs[0].dims[1] = b->dims[tb ? 0 : 1];
    if (a->rank < 0 || b->rank < 0) return TARE_OK;
    const int64_t k = a->dims[ta ? 0 : 1], k2 = b->dims[tb ? 1 : 0];
    if (k < 0 || k2 < 0 || k == k2) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "inner sizes differ: %lld and %lld", (long long)k, (long long)k2);
}

/* Transposes an array of `rows` by `columns` elements. */
static int32_t *transposed(struct tare_arena *arena, const int32_t *from, int64_t rows, int64_t columns) {
    int32_t *to = TARE_NEW_ARRAY(arena, int32_t, (size_t)(rows * columns));
    if (to) tare_layout_to_last(to, from, 1, rows, columns, sizeof *to);
    return to;
}

static tare_status run_matmul(struct tare_kernel *kernel) {
    struct operands operands;
    struct tare_shape *outputs;
    TARE_TRY(tare_operand_shapes(kernel, &outputs));
    TARE_TRY(open_operands(&operands, kernel));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_QINT32, &outputs[0]));
    TARE_TRY(tare_span_outputs(kernel, 1, &operands.c));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    const int64_t m = outputs[0].dims[0], n = outputs[0].dims[1], k = kernel->inputs[0].elements / m;
    if (k == 0) {
        memset(kernel->outputs[0].data, 0, (size_t)(m * n) * sizeof(int32_t));
        return TARE_OK;
    }
    if (tare_node_bool(kernel->node, "transpose_a", false))
        operands.values[0] = transposed(kernel->scratch, operands.values[0], k, m);
    if (tare_node_bool(kernel->node, "transpose_b", false))
        operands.values[1] = transposed(kernel->scratch, operands.values[1], n, k);
    if (!operands.values[0] || !operands.values[1]) return TARE_NO_MEMORY;
    const struct tare_exact exact = exact_of(&operands, kernel);
    return tare_exact_product(kernel->outputs[0].data, &exact, 1, m, n, k);
}

/* ---- convolution ---- */

static tare_status conv_of(struct tare_conv *conv, struct tare_shape *output, const struct tare_node *node,
                           const struct tare_shape *input, const struct tare_shape *filter) {
    struct tare_window window;
    TARE_TRY(tare_window_parse(&window, node, 2));
    if (window.stride_of_batch != 1 || window.stride_of_channels != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "strides along batch or channels");
    if (input->rank != 4 || filter->rank != 4)
        return TARE_FAIL(TARE_SHAPE, "input has rank %d and filter %d (expected 4)", input->rank, filter->rank);
    *conv = (struct tare_conv){ .batch = input->dims[0],
                                .in = { 1, input->dims[1], input->dims[2] },
                                .in_channels = input->dims[3],
                                .kernel = { 1, filter->dims[0], filter->dims[1] },
                                .out_channels = filter->dims[3],
                                .base_dilation = { 1, 1, 1 },
                                .groups = 1 };
    if (conv->in_channels >= 0 && filter->dims[2] >= 0 && conv->in_channels != filter->dims[2])
        return TARE_FAIL(TARE_SHAPE, "input and filter must have the same depth: %lld vs %lld",
                         (long long)conv->in_channels, (long long)filter->dims[2]);
    *output = tare_shape_make(4, conv->batch, (int64_t)-1, (int64_t)-1, conv->out_channels);
    for (int i = 0; i < 3; i++) {
        conv->stride[i] = window.stride[i];
        conv->dilation[i] = window.dilation[i];
        if (conv->in[i] < 0 || conv->kernel[i] < 0) continue;
        TARE_TRY(tare_window_output(&conv->out[i], &conv->pad[i], &window, i, conv->in[i], conv->kernel[i]));
        if (i > 0) output->dims[i] = conv->out[i];
    }
    return TARE_OK;
}

static tare_status infer_conv(struct tare_infer *infer) {
    struct tare_conv conv;
    infer->outputs[1] = infer->outputs[2] = tare_shape_scalar();
    if (infer->inputs[0].rank < 0 || infer->inputs[1].rank < 0) return TARE_OK;
    return conv_of(&conv, &infer->outputs[0], infer->node, &infer->inputs[0], &infer->inputs[1]);
}

static tare_status run_conv(struct tare_kernel *kernel) {
    struct operands operands;
    struct tare_conv conv;
    struct tare_shape shape;
    TARE_TRY(conv_of(&conv, &shape, kernel->node, &kernel->inputs[0].shape, &kernel->inputs[1].shape));
    TARE_TRY(tare_conv_check(&conv));
    TARE_TRY(open_operands(&operands, kernel));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_QINT32, &shape));
    TARE_TRY(tare_span_outputs(kernel, 1, &operands.c));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    const struct tare_exact exact = exact_of(&operands, kernel);
    return tare_exact_conv(kernel->outputs[0].data, &exact, &conv);
}

/* ---- pooling: one-byte integers; the range is unchanged ---- */

static tare_status pool_of(struct tare_pooling *pool, struct tare_shape *output, const struct tare_node *node,
                           const struct tare_shape *input) {
    struct tare_window window;
    struct tare_layout layout;
    TARE_TRY(tare_window_parse(&window, node, 2));
    if (window.size_of_batch != 1 || window.size_of_channels != 1 || window.stride_of_batch != 1 ||
        window.stride_of_channels != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "pooling over batch or channels");
    TARE_TRY(tare_layout_of(&layout, input, &window, "input"));
    *pool = (struct tare_pooling){ .batch = layout.batch, .channels = layout.channels };
    for (int i = 0; i < 3; i++) {
        pool->in[i] = layout.spatial[i];
        pool->size[i] = window.size[i];
        pool->stride[i] = window.stride[i];
        if (pool->in[i] < 0) continue;
        TARE_TRY(tare_window_output(&pool->out[i], &pool->pad[i], &window, i, pool->in[i], pool->size[i]));
        layout.spatial[i] = pool->out[i];
    }
    *output = tare_layout_shape(&layout, &window);
    return TARE_OK;
}

static tare_status infer_pool(struct tare_infer *infer) {
    struct tare_pooling pool;
    infer->outputs[1] = infer->outputs[2] = tare_shape_scalar();
    if (infer->inputs[0].rank < 0) return TARE_OK;
    return pool_of(&pool, &infer->outputs[0], infer->node, &infer->inputs[0]);
}

/* The maximum of a window, or its mean truncated to an integer. */
static int32_t pooled(const struct tare_pooling *pool, const struct tare_tensor *input, int64_t image,
                      const int64_t at[3], int64_t channel, bool average) {
    int64_t first[3], last[3], sum = 0, count = 0;
    int32_t most = INT32_MIN;
    for (int axis = 0; axis < 3; axis++)
        tare_pool_range(pool, axis, at[axis], &first[axis], &last[axis]);
    for (int64_t h = first[1]; h < last[1]; h++) {
        for (int64_t w = first[2]; w < last[2]; w++) {
            const int64_t place = ((image * pool->in[1] + h) * pool->in[2] + w) * pool->channels + channel;
            const int32_t value = tare_quantized_get(input, place);
            most = value > most ? value : most;
            sum += value;
            count++;
        }
    }
    if (count == 0) return 0;
    return average ? (int32_t)(sum / count) : most;
}

static tare_status run_pool(struct tare_kernel *kernel, bool average) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_pooling pool;
    struct tare_shape shape;
    struct tare_span span;
    if (tare_dtype_size(input->dtype) != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "input is %s (expected qint8 or quint8)", tare_dtype_name(input->dtype));
    TARE_TRY(tare_span_operand(&span, kernel, 1, input->dtype));
    TARE_TRY(pool_of(&pool, &shape, kernel->node, &input->shape));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    TARE_TRY(tare_span_outputs(kernel, 1, &span));
    int64_t i = 0;
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    for (int64_t b = 0; b < pool.batch; b++)
        for (int64_t h = 0; h < pool.out[1]; h++)
            for (int64_t w = 0; w < pool.out[2]; w++)
                for (int64_t c = 0; c < pool.channels; c++)
                    tare_quantized_set(&kernel->outputs[0], i++,
                                       pooled(&pool, input, b, (const int64_t[]){ 0, h, w }, c, average));
    return TARE_OK;
}

static tare_status run_max_pool(struct tare_kernel *kernel) {
    return run_pool(kernel, false);
}
static tare_status run_average_pool(struct tare_kernel *kernel) {
    return run_pool(kernel, true);
}

#define POOL(op, kernel)                                                                                               \
    {                                                                                                                  \
        .name = op, .inputs = "input: T, min_input: float, max_input: float",                                          \
        .outputs = "output: T, min_output: float, max_output: float",                                                  \
        .attrs = "T: " TARE_SPAN_DTYPES "; ksize: list(int); strides: list(int); padding: {'SAME', 'VALID'}",          \
        .infer = infer_pool, .run = kernel                                                                             \
    }

const struct tare_op tare_ops_legacy_products[] = {
    { .name = "QuantizedMatMul",
      .inputs = "a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float",
      .outputs = "out: Toutput, min_out: float, max_out: float",
      .attrs = "T1: " TARE_SPAN_DTYPES "; T2: " TARE_SPAN_DTYPES "; Toutput: " TARE_SPAN_DTYPES
               " = DT_QINT32; transpose_a: bool = false; "
               "transpose_b: bool = false; Tactivation: " TARE_SPAN_DTYPES " = DT_QUINT8",
      .infer = infer_matmul,
      .run = run_matmul,
      .flags = TARE_OP_PRODUCT },
    { .name = "QuantizedConv2D",
      .inputs = "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, max_filter: "
                "float",
      .outputs = "output: out_type, min_output: float, max_output: float",
      .attrs = "Tinput: " TARE_SPAN_DTYPES "; Tfilter: " TARE_SPAN_DTYPES "; out_type: " TARE_SPAN_DTYPES
               " = DT_QINT32; strides: list(int); "
               "padding: {'SAME', 'VALID'}; dilations: list(int) = [1, 1, 1, 1]",
      .infer = infer_conv,
      .run = run_conv,
      .flags = TARE_OP_PRODUCT },
    POOL("QuantizedMaxPool", run_max_pool),
    POOL("QuantizedAvgPool", run_average_pool),
    { 0 },
};

/* Costs of ops by row: multiply-accumulates of all kinds of products, and bytes of ops that read a part of their
 * inputs.
 */
#include "tpu/cost/rows.h"
#include "base/status.h"
#include "interpreter/ops/support/dims_wire.h"
#include "tpu/cost/product.h"

#include <math.h>
#include <string.h>

static double dim(const struct tare_shape *shape, int i) {
    return i >= 0 && i < shape->rank ? (double)shape->dims[i] : 1;
}

static double last(const struct tare_shape *shape) {
    return dim(shape, shape->rank - 1);
}

/* ---- products ---- */

/* Output elements times the kernel's elements without its output channels. */
static void conv_with(const struct tare_infer *infer, struct tare_cost *cost, enum tare_conv_message message) {
    const struct tare_shape *kernel = &infer->inputs[1];
    struct tare_conv_dims dims;
    double channels = last(kernel);
    if (tare_conv_dims_read(&dims, infer->node, "dimension_numbers", kernel->rank, message) == TARE_OK)
        channels = dim(kernel, dims.kernel_output);
    else
        tare_error_clear();
    cost->macs = tare_tpu_elements(&infer->outputs[0]) * tare_tpu_elements(kernel) / fmax(channels, 1);
}

/* True where zeros are inserted between the input's elements: a transposed convolution. */
static bool is_spread(const struct tare_infer *infer) {
    enum { LHS_DILATION = 4 };
    const struct tare_tensor *dilation =
        infer->node->n_inputs > LHS_DILATION ? tare_edge_constant(infer->node->inputs[LHS_DILATION]) : NULL;
    for (int64_t i = 0; dilation && i < dilation->elements; i++)
        if (tare_tensor_get_i64(dilation, i) > 1) return true;
    return false;
}

/* Zeros are not multiplied: each element of a spread input meets every tap and output channel of its group once. */
static void cost_xla_conv(const struct tare_infer *infer, struct tare_cost *cost) {
    struct tare_conv_dims dims;
    conv_with(infer, cost, TARE_CONV_XLA);
    if (!is_spread(infer)) return;
    if (tare_conv_dims_read(&dims, infer->node, "dimension_numbers", infer->inputs[0].rank, TARE_CONV_XLA) == TARE_OK)
        cost->macs = tare_tpu_elements(&infer->inputs[0]) / fmax(dim(&infer->inputs[0], dims.input_feature), 1) *
                     tare_tpu_elements(&infer->inputs[1]);
    else
        tare_error_clear();
}

static void cost_uniform_conv(const struct tare_infer *infer, struct tare_cost *cost) {
    conv_with(infer, cost, TARE_CONV_UNIFORM);
}

static void cost_xla_dot(const struct tare_infer *infer, struct tare_cost *cost) {
    struct tare_dims_field contracting = { .number = 1 };
    double depth = 1;
    if (tare_dims_read(&contracting, 1, infer->node, "dimension_numbers") != TARE_OK) tare_error_clear();
    for (size_t i = 0; i < contracting.count; i++)
        depth *= dim(&infer->inputs[0], (int)contracting.values[i]);
    cost->macs = tare_tpu_elements(&infer->outputs[0]) * depth;
}

static void cost_matrix(const struct tare_infer *infer, struct tare_cost *cost) {
    cost->macs = tare_tpu_elements(&infer->outputs[0]) * last(&infer->inputs[0]);
}

static void cost_fused_matrix(const struct tare_infer *infer, struct tare_cost *cost) {
    bool transposed = tare_node_bool(infer->node, "transpose_a", false);
    cost->macs = tare_tpu_elements(&infer->outputs[0]) * dim(&infer->inputs[0], transposed ? 0 : 1);
}

static void cost_fused_conv(const struct tare_infer *infer, struct tare_cost *cost) {
    cost->macs =
        tare_tpu_elements(&infer->outputs[0]) * tare_tpu_elements(&infer->inputs[1]) / fmax(last(&infer->inputs[1]), 1);
}

/* Output elements times the sizes of the labels that are summed over. */
static void cost_einsum(const struct tare_infer *infer, struct tare_cost *cost) {
    const char *equation = tare_node_string(infer->node, "equation", ""), *arrow = strstr(equation, "->"),
               *at = equation;
    bool counted[256] = { false };
    double depth = 1;
    if (!arrow || infer->n_inputs < 2) return;
    for (size_t i = 0; i < infer->n_inputs && at < arrow; i++) {
        size_t size = strcspn(at, ",-");
        const char *dots = memchr(at, '.', size);
        for (size_t k = 0; k < size; k++) {
            int axis = dots && at + k > dots ? infer->inputs[i].rank - (int)(size - k) : (int)k;
            unsigned char label = (unsigned char)at[k];
            if (label == '.' || label == ' ' || counted[label] || strchr(arrow, label)) continue;
            counted[label] = true;
            depth *= dim(&infer->inputs[i], axis);
        }
        at += size + 1;
    }
    cost->macs = tare_tpu_elements(&infer->outputs[0]) * depth;
}

/* ---- recurrent cells ---- */

/* Rows of x times the weights of all gates; the first axis of BlockLSTM is time. */
static void cells(const struct tare_infer *infer, struct tare_cost *cost, const char *const *weights, const char *x) {
    const struct tare_op_def *def = infer->node->def;
    double rows = 0, size = 0;
    for (size_t a = 0; a < def->n_inputs && a < infer->n_inputs; a++) {
        const struct tare_shape *shape = &infer->inputs[a];
        if (strcmp(def->inputs[a].name, x) == 0) rows = tare_tpu_elements(shape) / fmax(last(shape), 1);
        for (const char *const *name = weights; *name; name++)
            if (strcmp(def->inputs[a].name, *name) == 0) size += tare_tpu_elements(shape);
    }
    cost->macs = rows * size;
}

static void cost_lstm(const struct tare_infer *infer, struct tare_cost *cost) {
    static const char *const weights[] = { "w", NULL };
    cells(infer, cost, weights, "x");
}

static void cost_gru(const struct tare_infer *infer, struct tare_cost *cost) {
    static const char *const weights[] = { "w_ru", "w_c", NULL };
    cells(infer, cost, weights, "x");
}

/* ---- others that multiply ---- */

/* Two multiply-accumulates per element and butterfly level. */
static void cost_fourier(const struct tare_infer *infer, struct tare_cost *cost) {
    const struct tare_shape *x = &infer->inputs[0], *y = &infer->outputs[0];
    double count = fmax(tare_tpu_elements(x), tare_tpu_elements(y));
    int axes = strstr(infer->node->op, "3D") ? 3 : strstr(infer->node->op, "2D") ? 2 : 1;
    for (int i = 0; i < axes; i++)
        cost->macs += 2 * count * log2(fmax(fmax(dim(x, x->rank - 1 - i), dim(y, y->rank - 1 - i)), 2));
}

static void cost_sparse_matrix(const struct tare_infer *infer, struct tare_cost *cost) {
    cost->macs = tare_tpu_elements(&infer->inputs[1]) * last(&infer->outputs[0]);
}

/* ---- parts of inputs ---- */

static double bytes_of(const struct tare_shape *shape, int dtype) {
    return tare_tpu_elements(shape) * (double)tare_dtype_size(tare_dtype_base(dtype));
}

/* The output's bytes are those read; all other inputs are indices. */
static void cost_part(const struct tare_infer *infer, struct tare_cost *cost) {
    cost->bytes = 2 * bytes_of(&infer->outputs[0], infer->node->output_dtypes[0]);
    for (size_t i = 1; i < infer->n_inputs; i++)
        cost->bytes += bytes_of(&infer->inputs[i], infer->input_dtypes[i]);
}

static const struct {
    const char *op;
    void (*cost)(const struct tare_infer *infer, struct tare_cost *cost);
} rows[] = {
    { "XlaConvV2", cost_xla_conv },
    { "XlaDotV2", cost_xla_dot },
    { "UniformQuantizedConvolution", cost_uniform_conv },
    { "UniformQuantizedConvolutionHybrid", cost_uniform_conv },
    { "UniformQuantizedDot", cost_matrix },
    { "UniformQuantizedDotHybrid", cost_matrix },
    { "_FusedMatMul", cost_fused_matrix },
    { "_FusedConv2D", cost_fused_conv },
    { "Einsum", cost_einsum },
    { "XlaEinsum", cost_einsum },
    { "LSTMBlockCell", cost_lstm },
    { "BlockLSTM", cost_lstm },
    { "BlockLSTMV2", cost_lstm },
    { "GRUBlockCell", cost_gru },
    { "FFT", cost_fourier },
    { "IFFT", cost_fourier },
    { "RFFT", cost_fourier },
    { "IRFFT", cost_fourier },
    { "FFT2D", cost_fourier },
    { "IFFT2D", cost_fourier },
    { "RFFT2D", cost_fourier },
    { "IRFFT2D", cost_fourier },
    { "SparseTensorDenseMatMul", cost_sparse_matrix },
    { "Gather", cost_part },
    { "GatherV2", cost_part },
    { "GatherNd", cost_part },
    { "ResourceGather", cost_part },
    { "ResourceGatherNd", cost_part },
    { "Slice", cost_part },
    { "StridedSlice", cost_part },
};

void tare_tpu_op_cost(const struct tare_infer *infer, struct tare_cost *cost) {
    const struct tare_op *row = infer->node->def ? infer->node->def->row : NULL;
    if (row && row->cost) {
        row->cost(infer, cost);
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op, infer->node->op) == 0) rows[i].cost(infer, cost);
}

bool tare_tpu_op_is_free(const char *op) {
    static const char *const free_ops[] = {
        "Const",
        "Identity",
        "IdentityN",
        "NoOp",
        "Placeholder",
        "PlaceholderWithDefault",
        "VarHandleOp",
        "ReadVariableOp",
        "VariableV2",
        "TPUOrdinalSelector",
        "TPUReplicateMetadata",
        "TPUReplicatedInput",
        "Reshape",
        "XlaSharding",
        "StopGradient",
        "TPUReplicatedOutput",
        "TPUCompilationResult",
    };
    for (size_t i = 0; i < sizeof free_ops / sizeof *free_ops; i++)
        if (strcmp(op, free_ops[i]) == 0) return true;
    return false;
}

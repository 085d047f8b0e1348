/* Counting integers into bins, and finding the bin of a number. */
#include "graph/ops/families.h"

#include <string.h>

/* ---- counting ---- */

struct count {
    const struct tare_tensor *weights; /* NULL: each counts one */
    struct tare_tensor *bins;
    bool binary;
};

static void add_one(struct count *count, int64_t bin, int64_t i) {
    struct tare_tensor *bins = count->bins;
    switch (bins->dtype) {
    case TARE_DT_INT32: {
        uint32_t *to = &TARE_DATA(uint32_t, bins)[bin]; /* wraps */
        *to = count->binary ? 1 : *to + (count->weights ? TARE_CONST_DATA(uint32_t, count->weights)[i] : 1);
        break;
    }
    case TARE_DT_INT64: {
        uint64_t *to = &TARE_DATA(uint64_t, bins)[bin];
        *to = count->binary ? 1 : *to + (count->weights ? TARE_CONST_DATA(uint64_t, count->weights)[i] : 1);
        break;
    }
    case TARE_DT_FLOAT: {
        float *to = &TARE_DATA(float, bins)[bin];
        *to = count->binary ? 1 : *to + (count->weights ? TARE_CONST_DATA(float, count->weights)[i] : 1);
        break;
    }
    default: {
        double *to = &TARE_DATA(double, bins)[bin];
        *to = count->binary ? 1 : *to + (count->weights ? TARE_CONST_DATA(double, count->weights)[i] : 1);
    }
    }
}

static tare_status read_size(int64_t *size, const struct tare_tensor *operand) {
    if (operand->elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Shape must be rank 0 but is rank %d", operand->shape.rank);
    *size = tare_tensor_get_i64(operand, 0);
    if (*size < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "size (%lld) must be non-negative", (long long)*size);
    return TARE_OK;
}

/* [size] for a vector or scalar, [rows, size] for a matrix (DenseBincount only). */
static tare_status bins_shape(struct tare_shape *out, const struct tare_shape *values, int64_t size, bool dense) {
    *out = (struct tare_shape){ .rank = 1, .dims = { size } };
    if (!dense) return TARE_OK;
    if (values->rank < 0) {
        *out = tare_shape_unknown();
        return TARE_OK;
    }
    if (values->rank > 2) return TARE_FAIL(TARE_SHAPE, "input has rank %d (wanted at most 2)", values->rank);
    if (values->rank == 2) *out = (struct tare_shape){ .rank = 2, .dims = { values->dims[0], size } };
    return TARE_OK;
}

static bool is_dense(const struct tare_node *node) {
    return strcmp(node->op, "DenseBincount") == 0;
}

static tare_status infer_bincount(struct tare_infer *infer) {
    int64_t size = TARE_UNKNOWN_DIM;
    if (infer->input_values[1] != NULL) TARE_TRY(read_size(&size, infer->input_values[1]));
    return bins_shape(&infer->outputs[0], &infer->inputs[0], size, is_dense(infer->node));
}

static tare_status run_bincount(struct tare_kernel *kernel) {
    const struct tare_tensor *values = &kernel->inputs[0], *weights = &kernel->inputs[2];
    const bool dense = is_dense(kernel->node);
    struct tare_shape shape;
    int64_t size;
    TARE_TRY(read_size(&size, &kernel->inputs[1]));
    TARE_TRY(bins_shape(&shape, &values->shape, size, dense));
    if (weights->elements != 0 && weights->elements != values->elements)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "weights must be of the shape of the input or empty (got %lld and %lld)",
                         (long long)weights->elements, (long long)values->elements);
    TARE_TRY(tare_kernel_output(kernel, 0, weights->dtype, &shape));
    struct count count = { .weights = weights->elements ? weights : NULL,
                           .bins = &kernel->outputs[0],
                           .binary = dense && tare_node_bool(kernel->node, "binary_output", false) };
    if (count.bins->elements > 0) memset(count.bins->data, 0, tare_tensor_bytes(count.bins));
    const int64_t columns = shape.rank == 2 ? values->shape.dims[1] : 0;
    for (int64_t i = 0; i < values->elements; i++) {
        const int64_t value = tare_tensor_get_i64(values, i);
        if (value < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Input arr must be non-negative! (got %lld)", (long long)value);
        if (value < size) add_one(&count, (columns ? i / columns * size : 0) + value, i);
    }
    return TARE_OK;
}

/* ---- Bucketize: the number of boundaries that are not above the value ---- */

static tare_status run_bucketize(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_attr *boundaries = tare_node_list(kernel->node, "boundaries");
    const size_t n = boundaries ? boundaries->count : 0;
    for (size_t i = 1; i < n; i++) {
        if (boundaries->items[i].f < boundaries->items[i - 1].f)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected sorted boundaries");
    }
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &input->shape));
    for (int64_t i = 0; i < input->elements; i++) {
        const double x = tare_tensor_get_f64(input, i);
        size_t low = 0, high = n; /* boundaries below low are not above x, those from high on are */
        while (low < high) {
            const size_t middle = (low + high) / 2;
            if (x < (double)boundaries->items[middle].f)
                high = middle;
            else
                low = middle + 1;
        }
        TARE_DATA(int32_t, &kernel->outputs[0])[i] = (int32_t)low;
    }
    return TARE_OK;
}

const struct tare_op tare_ops_bins[] = {
    { .name = "Bincount",
      .inputs = "arr: int32, size: int32, weights: T",
      .outputs = "bins: T",
      .attrs = "T: {int32, int64, float, double}",
      .infer = infer_bincount,
      .run = run_bincount },
    { .name = "DenseBincount",
      .inputs = "input: Tidx, size: Tidx, weights: T",
      .outputs = "output: T",
      .attrs = "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = false",
      .infer = infer_bincount,
      .run = run_bincount },
    { .name = "Bucketize",
      .inputs = "input: T",
      .outputs = "output: int32",
      .attrs = "T: {int32, int64, float, double}; boundaries: list(float)",
      .infer = tare_infer_same,
      .run = run_bucketize,
      .flags = TARE_OP_ELEMENTWISE },
    { 0 },
};

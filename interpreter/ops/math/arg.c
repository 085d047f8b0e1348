/* Index of the maximum or minimum along an axis (ArgMax, ArgMin), the k largest entries (TopK, ApproxTopK) and
 * InTopK. Ties are resolved in favour of the lowest index. arg-nan (docs/numerics.md): ArgMax and ArgMin ignore NaN;
 * TopK orders NaN below all other values. */
#include "interpreter/ops/support/axes.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns an element as a number with the same order as the dtype: double for all dtypes except 64-bit integers,
 * which are compared by an integer key. */
static double real_at(const struct tare_tensor *tensor, int64_t i) {
    return tare_tensor_get_f64(tensor, i);
}
static bool is_wide(int dtype) {
    return dtype == TARE_DT_INT64 || dtype == TARE_DT_UINT64;
}
static int64_t key_at(const struct tare_tensor *tensor, int64_t i) {
    const uint64_t bits = (uint64_t)tare_tensor_get_i64(tensor, i);
    return (int64_t)(tensor->dtype == TARE_DT_UINT64 ? bits ^ (UINT64_C(1) << 63) : bits);
}
/* ---- ArgMax, ArgMin ---- */

struct arg {
    bool greatest;
};
static const struct arg arg_max = { true }, arg_min = { false };

static tare_status infer_arg(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    if (infer->inputs[1].rank > 0)
        return TARE_FAIL(TARE_SHAPE, "dimension has rank %d (expected 0)", infer->inputs[1].rank);
    if (input->rank < 0) return TARE_OK;
    if (input->rank == 0) return TARE_FAIL(TARE_SHAPE, "input is a scalar");
    out->rank = input->rank - 1;
    int axis = -1;
    if (infer->input_values[1])
        TARE_TRY(tare_axis_resolve(&axis, tare_tensor_get_i64(infer->input_values[1], 0), input->rank));
    for (int d = 0; d < out->rank; d++)
        out->dims[d] = axis < 0 ? TARE_UNKNOWN_DIM : input->dims[d < axis ? d : d + 1];
    return TARE_OK;
}

/* The search starts at index 0 with a value below every number, so NaN is chosen only if the slice contains nothing
 * else. */
static int64_t arg_of_floats(const float *x, int64_t n, bool greatest) {
    float top = greatest ? -INFINITY : INFINITY;
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        if (greatest ? x[i] > top : x[i] < top) {
            top = x[i];
            best = i;
        }
    }
    return best;
}

static int64_t arg_of_wide(const struct tare_tensor *input, int64_t first, int64_t n, int64_t step, bool greatest) {
    int64_t best = 0, top = key_at(input, first);
    for (int64_t i = 1; i < n; i++) {
        const int64_t x = key_at(input, first + i * step);
        if (greatest ? x > top : x < top) {
            top = x;
            best = i;
        }
    }
    return best;
}

static int64_t arg_of(const struct tare_tensor *input, int64_t first, int64_t n, int64_t step, bool greatest) {
    if (is_wide(input->dtype)) return arg_of_wide(input, first, n, step, greatest);
    if (input->dtype == TARE_DT_FLOAT && step == 1)
        return arg_of_floats(TARE_CONST_DATA(float, input) + first, n, greatest);
    double top = greatest ? -INFINITY : INFINITY;
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = real_at(input, first + i * step);
        if (greatest ? x > top : x < top) {
            top = x;
            best = i;
        }
    }
    return best;
}

static void store_index(struct tare_tensor *to, int64_t i, int64_t value) {
    if (to->dtype == TARE_DT_INT64)
        TARE_DATA(int64_t, to)[i] = value;
    else if (to->dtype == TARE_DT_INT32)
        TARE_DATA(int32_t, to)[i] = (int32_t)value;
    else
        TARE_DATA(uint16_t, to)[i] = (uint16_t)value;
}

static tare_status run_arg(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0], *dimension = &kernel->inputs[1];
    const bool greatest = ((const struct arg *)kernel->op->aux)->greatest;
    struct tare_shape shape;
    bool gone[TARE_MAX_RANK] = { false };
    int axis = 0;
    if (dimension->elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dim must be a scalar, but received tensor with %lld elements",
                         (long long)dimension->elements);
    TARE_TRY(tare_axis_resolve(&axis, tare_tensor_get_i64(dimension, 0), input->shape.rank));
    const struct tare_axis_split split = tare_axis_split(&input->shape, axis);
    if (split.size == 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Reduction axis %d is empty in shape with rank %d", axis,
                         input->shape.rank);
    gone[axis] = true;
    tare_axes_shape(&shape, &input->shape, gone, false);
    TARE_TRY(tare_kernel_output(kernel, 0, tare_dtype_base(kernel->node->output_dtypes[0]), &shape));
    for (int64_t o = 0, at = 0; o < split.outer; o++) {
        for (int64_t i = 0; i < split.inner; i++, at++)
            store_index(&kernel->outputs[0], at,
                        arg_of(input, o * split.size * split.inner + i, split.size, split.inner, greatest));
    }
    return TARE_OK;
}

/* ---- TopK ---- */

static tare_status find_k(int64_t *k, const struct tare_node *node, const struct tare_tensor *operand, bool *known) {
    *known = operand || strcmp(node->op, "TopK") == 0;
    if (!*known) return TARE_OK;
    if (operand && operand->elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "k must be scalar, got %lld elements", (long long)operand->elements);
    *k = operand ? tare_tensor_get_i64(operand, 0) : tare_node_int(node, "k", 0);
    if (*k < 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Need k >= 0, got %lld", (long long)*k);
    return TARE_OK;
}

static tare_status topk_shape(struct tare_shape *out, const struct tare_shape *input, int64_t k) {
    *out = *input;
    if (input->rank < 0) return TARE_OK;
    if (input->rank == 0) return TARE_FAIL(TARE_SHAPE, "input must be >= 1-D, got shape []");
    const int64_t columns = input->dims[input->rank - 1];
    if (columns >= 0 && k > columns)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "input must have at least k columns. Had %lld, needed %lld",
                         (long long)columns, (long long)k);
    out->dims[input->rank - 1] = k;
    return TARE_OK;
}

static tare_status infer_topk(struct tare_infer *infer) {
    int64_t k = TARE_UNKNOWN_DIM;
    bool known;
    TARE_TRY(find_k(&k, infer->node, infer->n_inputs > 1 ? infer->input_values[1] : NULL, &known));
    TARE_TRY(topk_shape(&infer->outputs[0], &infer->inputs[0], known ? k : TARE_UNKNOWN_DIM));
    infer->outputs[1] = infer->outputs[0];
    return TARE_OK;
}

/* One column and its sort key. The key decreases along the result; columns with equal keys are ordered by ascending
 * index. */
struct column {
    double real;
    int64_t key, index;
};

static int compare_columns(const void *a, const void *b) {
    const struct column *x = a, *y = b;
    if (x->real != y->real) return x->real > y->real ? -1 : 1;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The key maps NaN below -inf. */
static void read_columns(struct column *columns, const struct tare_tensor *input, int64_t first, int64_t n) {
    const bool wide = is_wide(input->dtype);
    for (int64_t i = 0; i < n; i++) {
        const double real = wide ? 0 : real_at(input, first + i);
        columns[i].real = isnan(real) ? -INFINITY : real;
        columns[i].key = wide ? key_at(input, first + i) : -(int64_t)isnan(real);
        columns[i].index = i;
    }
}

/* Restores the heap property. The heap contains the k best columns found so far and its root is the worst of them; a
 * better column replaces the root. */
static void sift_down(struct column *heap, int64_t n) {
    for (int64_t at = 0;;) {
        int64_t worst = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++) {
            if (compare_columns(&heap[child], &heap[worst]) > 0) worst = child;
        }
        if (worst == at) return;
        const struct column moved = heap[at];
        heap[at] = heap[worst];
        heap[worst] = moved;
        at = worst;
    }
}

static void select_columns(struct column *columns, int64_t n, int64_t k) {
    if (k < n && k > 0) {
        /* an array sorted worst first is a heap */
        qsort(columns, (size_t)k, sizeof *columns, compare_columns);
        for (int64_t i = 0; i < k / 2; i++) {
            const struct column moved = columns[i];
            columns[i] = columns[k - 1 - i];
            columns[k - 1 - i] = moved;
        }
        for (int64_t i = k; i < n; i++) {
            if (compare_columns(&columns[i], &columns[0]) >= 0) continue;
            columns[0] = columns[i];
            sift_down(columns, k);
        }
    }
    qsort(columns, (size_t)k, sizeof *columns, compare_columns);
}

static tare_status run_topk(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_shape shape;
    int64_t k = 0;
    bool known;
    TARE_TRY(find_k(&k, kernel->node, kernel->n_inputs > 1 ? &kernel->inputs[1] : NULL, &known));
    TARE_TRY(topk_shape(&shape, &input->shape, k));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    TARE_TRY(tare_kernel_output(kernel, 1, tare_dtype_base(kernel->node->output_dtypes[1]), &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    const int64_t n = input->shape.dims[input->shape.rank - 1];
    const size_t size = tare_dtype_size(input->dtype);
    struct column *columns = TARE_NEW_ARRAY(kernel->scratch, struct column, (size_t)n);
    if (!columns) return TARE_NO_MEMORY;
    char *values = kernel->outputs[0].data;
    for (int64_t row = 0; row < input->elements / n; row++) {
        read_columns(columns, input, row * n, n);
        select_columns(columns, n, k);
        for (int64_t i = 0; i < k; i++) {
            memcpy(values + (size_t)(row * k + i) * size,
                   (const char *)input->data + (size_t)(row * n + columns[i].index) * size, size);
            store_index(&kernel->outputs[1], row * k + i, columns[i].index);
        }
    }
    return TARE_OK;
}

/* ---- ApproxTopK: computed exactly, along any dimension, for the maximum or the minimum ---- */

static tare_status approx_shape(struct tare_shape *out, int *axis, const struct tare_node *node,
                                const struct tare_shape *input) {
    const int64_t k = tare_node_int(node, "k", 0);
    if (input->rank == 0) return TARE_FAIL(TARE_SHAPE, "input is a scalar");
    TARE_TRY(tare_axis_resolve(axis, tare_node_int(node, "reduction_dimension", -1), input->rank));
    if (!tare_node_bool(node, "aggregate_to_topk", true))
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "aggregate_to_topk = false is not supported (its result depends on the TPU)");
    if (input->dims[*axis] >= 0 && input->dims[*axis] < k)
        return TARE_FAIL(TARE_SHAPE, "input must have at least k = %lld entries (got %lld)", (long long)k,
                         (long long)input->dims[*axis]);
    *out = *input;
    out->dims[*axis] = k;
    return TARE_OK;
}

static tare_status infer_approx(struct tare_infer *infer) {
    int axis;
    if (infer->inputs[0].rank < 0) return TARE_OK;
    TARE_TRY(approx_shape(&infer->outputs[0], &axis, infer->node, &infer->inputs[0]));
    infer->outputs[1] = infer->outputs[0];
    return TARE_OK;
}

static tare_status run_approx(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const bool greatest = tare_node_bool(kernel->node, "is_max_k", true);
    const size_t size = tare_dtype_size(input->dtype);
    struct tare_shape shape;
    int axis;
    TARE_TRY(approx_shape(&shape, &axis, kernel->node, &input->shape));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_INT32, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    const struct tare_axis_split split = tare_axis_split(&input->shape, axis);
    const int64_t k = shape.dims[axis];
    struct column *columns = TARE_NEW_ARRAY(kernel->scratch, struct column, (size_t)split.size);
    if (!columns) return TARE_NO_MEMORY;
    for (int64_t line = 0; line < split.outer * split.inner; line++) {
        const int64_t first = line / split.inner * split.size * split.inner + line % split.inner;
        const int64_t to = line / split.inner * k * split.inner + line % split.inner;
        for (int64_t i = 0; i < split.size; i++) {
            const double real = real_at(input, first + i * split.inner);
            columns[i] = (struct column){ isnan(real) ? -INFINITY : greatest ? real : -real, -(int64_t)isnan(real), i };
        }
        select_columns(columns, split.size, k);
        for (int64_t i = 0; i < k; i++) {
            memcpy((char *)kernel->outputs[0].data + (size_t)(to + i * split.inner) * size,
                   (const char *)input->data + (size_t)(first + columns[i].index * split.inner) * size, size);
            TARE_DATA(int32_t, &kernel->outputs[1])[to + i * split.inner] = (int32_t)columns[i].index;
        }
    }
    return TARE_OK;
}

/* ---- InTopK: whether the target's prediction is among the k largest; ties at the k-th value are included ---- */

static tare_status infer_in_topk(struct tare_infer *infer) {
    struct tare_shape rows = { .rank = 1, .dims = { infer->inputs[0].rank == 2 ? infer->inputs[0].dims[0] : -1 } };
    if (infer->inputs[0].rank >= 0 && infer->inputs[0].rank != 2)
        return TARE_FAIL(TARE_SHAPE, "predictions must be 2-dimensional");
    TARE_TRY(tare_shape_merge(&rows, &rows, &infer->inputs[1]));
    infer->outputs[0] = rows;
    return TARE_OK;
}

static bool is_in_topk(const float *row, int64_t classes, int64_t target, int64_t k) {
    if (target < 0 || target >= classes || !isfinite(row[target])) return false;
    int64_t above = 0;
    for (int64_t i = 0; i < classes; i++) {
        if (!isfinite(row[i])) return false;
        above += row[i] > row[target];
    }
    return above < k;
}

static tare_status run_in_topk(struct tare_kernel *kernel) {
    const struct tare_tensor *predictions = &kernel->inputs[0], *targets = &kernel->inputs[1];
    int64_t k = tare_node_int(kernel->node, "k", 0);
    if (kernel->n_inputs > 2) {
        if (kernel->inputs[2].elements != 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "k must be 0-D");
        k = tare_tensor_get_i64(&kernel->inputs[2], 0);
    }
    if (predictions->shape.rank != 2 || targets->shape.rank != 1)
        return TARE_FAIL(TARE_SHAPE, "predictions must be 2-dimensional and targets 1-dimensional (got rank %d and %d)",
                         predictions->shape.rank, targets->shape.rank);
    if (predictions->shape.dims[0] != targets->shape.dims[0])
        return TARE_FAIL(TARE_SHAPE, "First dimension of predictions %lld must match length of targets %lld",
                         (long long)predictions->shape.dims[0], (long long)targets->shape.dims[0]);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &targets->shape));
    const int64_t classes = predictions->shape.dims[1];
    for (int64_t i = 0; i < targets->elements; i++)
        TARE_DATA(bool, &kernel->outputs[0])
    [i] = is_in_topk(TARE_CONST_DATA(float, predictions) + i * classes, classes, tare_tensor_get_i64(targets, i), k);
    return TARE_OK;
}

const struct tare_op tare_ops_arg[] = {
    { .name = "ArgMax", .infer = infer_arg, .run = run_arg, .aux = &arg_max, .flags = TARE_OP_RANK },
    { .name = "ArgMin", .infer = infer_arg, .run = run_arg, .aux = &arg_min, .flags = TARE_OP_RANK },
    { .name = "TopK", .infer = infer_topk, .run = run_topk, .flags = TARE_OP_RANK },
    { .name = "TopKV2", .infer = infer_topk, .run = run_topk, .flags = TARE_OP_RANK },
    { .name = "InTopK", .infer = infer_in_topk, .run = run_in_topk, .flags = TARE_OP_RANK },
    { .name = "InTopKV2", .infer = infer_in_topk, .run = run_in_topk, .flags = TARE_OP_RANK },
    { .name = "ApproxTopK", .infer = infer_approx, .run = run_approx, .flags = TARE_OP_RANK },
    { 0 },
};

/* XlaScatter, which combines updates with an operand by a function, and XlaVariadicSort, which sorts by a comparison
 * function. */
#include "interpreter/ops/xla/combiner.h"
#include "interpreter/ops/support/dims_wire.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include "base/alloc.h"

#include <string.h>

/* ---- scatter ---- */

enum { WINDOW, INSERTED, INDEX_MAP, VECTOR_DIM, BATCHING, INDEX_BATCHING, N_FIELDS };

/* xla.ScatterDimensionNumbers. Each dimension of the updates is a window dimension or a dimension of the indices
 * (other than the index vector's). */
struct scatter {
    struct tare_dims_field fields[N_FIELDS];
    int64_t vector, depth;
    int window_of[TARE_MAX_RANK]; /* update dimension -> operand dimension; -1: a dimension of the indices */
    int index_of[TARE_MAX_RANK];  /* update dimension -> dimension of the indices; -1: a window dimension */
    int64_t size[TARE_MAX_RANK];  /* of the window, by operand dimension */
};

static bool holds(const struct tare_dims_field *field, int64_t value) {
    for (size_t i = 0; i < field->count; i++)
        if (field->values[i] == value) return true;
    return false;
}

static tare_status check_field(const struct tare_dims_field *field, int limit, const char *what) {
    for (size_t i = 0; i < field->count; i++)
        if (field->values[i] < 0 || field->values[i] >= limit)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s contains %lld (expected 0 to %d)", what,
                             (long long)field->values[i], limit - 1);
    return TARE_OK;
}

/* Assigns the update dimensions; the number of each kind must match. */
static tare_status assign_dims(struct scatter *s, const struct tare_shape *operand, const struct tare_shape *indices,
                               const struct tare_shape *updates) {
    int own = 0, index = 0;
    for (int d = 0; d < operand->rank; d++)
        s->size[d] = 1;
    for (int d = 0; d < updates->rank; d++) {
        const bool window = holds(&s->fields[WINDOW], d);
        s->window_of[d] = s->index_of[d] = -1;
        if (window) {
            while (own < operand->rank && (holds(&s->fields[INSERTED], own) || holds(&s->fields[BATCHING], own)))
                own++;
            if (own == operand->rank) return TARE_FAIL(TARE_SHAPE, "updates have more window dims than the operand");
            s->size[own] = updates->dims[d];
            s->window_of[d] = own++;
        } else {
            index += index == s->vector;
            if (index >= indices->rank) return TARE_FAIL(TARE_SHAPE, "updates have more dims than the indices");
            if (updates->dims[d] != indices->dims[index])
                return TARE_FAIL(TARE_SHAPE, "dimension %d of updates is %lld (expected %lld)", d,
                                 (long long)updates->dims[d], (long long)indices->dims[index]);
            s->index_of[d] = index++;
        }
    }
    while (own < operand->rank && (holds(&s->fields[INSERTED], own) || holds(&s->fields[BATCHING], own)))
        own++;
    index += index == s->vector;
    if (own != operand->rank || index < indices->rank)
        return TARE_FAIL(TARE_SHAPE, "updates of rank %d have too few dims", updates->rank);
    return TARE_OK;
}

static tare_status open_scatter(struct scatter *s, const struct tare_kernel *kernel) {
    const struct tare_shape *operand = &kernel->inputs[0].shape, *indices = &kernel->inputs[1].shape;
    const struct tare_shape *updates = &kernel->inputs[2].shape;
    memset(s, 0, sizeof *s);
    for (int f = 0; f < N_FIELDS; f++)
        s->fields[f].number = f + 1;
    TARE_TRY(tare_dims_read(s->fields, N_FIELDS, kernel->node, "dimension_numbers"));
    TARE_TRY(check_field(&s->fields[WINDOW], updates->rank, "update_window_dims"));
    TARE_TRY(check_field(&s->fields[INSERTED], operand->rank, "inserted_window_dims"));
    TARE_TRY(check_field(&s->fields[INDEX_MAP], operand->rank, "scatter_dims_to_operand_dims"));
    TARE_TRY(check_field(&s->fields[BATCHING], operand->rank, "input_batching_dims"));
    TARE_TRY(check_field(&s->fields[INDEX_BATCHING], indices->rank, "scatter_indices_batching_dims"));
    if (s->fields[BATCHING].count != s->fields[INDEX_BATCHING].count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%zu input_batching_dims and %zu of the indices",
                         s->fields[BATCHING].count, s->fields[INDEX_BATCHING].count);
    s->vector = tare_dims_single(&s->fields[VECTOR_DIM]);
    if (s->vector < 0 || s->vector > indices->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "index_vector_dim is %lld for indices of rank %d", (long long)s->vector,
                         indices->rank);
    s->depth = s->vector < indices->rank ? indices->dims[s->vector] : 1;
    if (s->depth != (int64_t)s->fields[INDEX_MAP].count)
        return TARE_FAIL(TARE_SHAPE, "vectors of %lld indices (expected %zu)", (long long)s->depth,
                         s->fields[INDEX_MAP].count);
    return assign_dims(s, operand, indices, updates);
}

/* Where the window of the update at `at` starts in the operand. */
static void window_start(int64_t *start, const struct scatter *s, const struct tare_tensor *indices, const int64_t *at,
                         int update_rank) {
    int64_t index[TARE_MAX_RANK] = { 0 }, strides[TARE_MAX_RANK], row = 0;
    tare_move_strides(strides, &indices->shape);
    for (int d = 0; d < update_rank; d++)
        if (s->index_of[d] >= 0) index[s->index_of[d]] = at[d];
    for (int d = 0; d < indices->shape.rank; d++)
        row += index[d] * strides[d];
    for (int64_t k = 0; k < s->depth; k++) {
        const int64_t step = s->vector < indices->shape.rank ? strides[s->vector] : 0;
        start[s->fields[INDEX_MAP].values[k]] = tare_tensor_get_i64(indices, row + k * step);
    }
    for (size_t k = 0; k < s->fields[BATCHING].count; k++)
        start[s->fields[BATCHING].values[k]] = index[s->fields[INDEX_BATCHING].values[k]];
}

/* Operand index for the update at `at`; -1: a part of its window is out of bounds, so that XLA skips all of it. */
static int64_t target(const struct scatter *s, const struct tare_tensor *operand, const struct tare_tensor *indices,
                      const int64_t *at, int update_rank) {
    int64_t place[TARE_MAX_RANK] = { 0 }, element = 0;
    window_start(place, s, indices, at, update_rank);
    for (int d = 0; d < operand->shape.rank; d++)
        if (place[d] < 0 || place[d] > operand->shape.dims[d] - s->size[d]) return -1;
    for (int d = 0; d < update_rank; d++)
        if (s->window_of[d] >= 0) place[s->window_of[d]] += at[d];
    for (int d = 0; d < operand->shape.rank; d++)
        element = element * operand->shape.dims[d] + place[d];
    return element;
}

static tare_status run_scatter(struct tare_kernel *kernel) {
    const struct tare_tensor *operand = &kernel->inputs[0], *updates = &kernel->inputs[2];
    struct tare_combiner combiner;
    struct scatter scatter;
    int64_t at[TARE_MAX_RANK] = { 0 };
    TARE_TRY(open_scatter(&scatter, kernel));
    TARE_TRY(tare_combiner_open(&combiner, kernel, "update_computation", 1, 1));
    TARE_TRY(tare_kernel_output(kernel, 0, operand->dtype, &operand->shape));
    TARE_TRY(tare_move_run(&kernel->outputs[0], 0, operand, 0, operand->elements));
    for (int64_t i = 0; i < updates->elements; i++) {
        const int64_t to = target(&scatter, operand, &kernel->inputs[1], at, updates->shape.rank);
        if (to >= 0) TARE_TRY(tare_combiner_fold(&combiner, kernel->outputs, to, updates, &i, 1));
        for (int d = updates->shape.rank - 1; d >= 0 && ++at[d] == updates->shape.dims[d]; d--)
            at[d] = 0;
    }
    return TARE_OK;
}

/* ---- sorting ---- */

static tare_status infer_sort(struct tare_infer *infer) {
    struct tare_shape all = infer->inputs[0];
    for (size_t i = 1; i < infer->n_outputs; i++)
        TARE_TRY(tare_shape_merge(&all, &all, &infer->inputs[i]));
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = all;
    return tare_operand_rank(infer, infer->n_outputs, "dimension", 0);
}

/* Stable merge of the sorted halves [first, middle) and [middle, last) of `order` through the buffer `room`. */
static tare_status merge(int64_t *order, int64_t *room, int64_t first, int64_t middle, int64_t last,
                         const struct tare_combiner *less, const struct tare_tensor *tensors) {
    int64_t a = first, b = middle;
    for (int64_t i = first; i < last; i++) {
        bool take_second = a == middle;
        if (a < middle && b < last) TARE_TRY(tare_combiner_compare(&take_second, less, tensors, order[b], order[a]));
        room[i] = take_second ? order[b++] : order[a++];
    }
    memcpy(order + first, room + first, (size_t)(last - first) * sizeof *order);
    return TARE_OK;
}

static tare_status sort_line(int64_t *order, int64_t *room, int64_t n, const struct tare_combiner *less,
                             const struct tare_tensor *tensors) {
    for (int64_t width = 1; width < n; width *= 2)
        for (int64_t first = 0; first + width < n; first += 2 * width) {
            const int64_t last = first + 2 * width < n ? first + 2 * width : n;
            TARE_TRY(merge(order, room, first, first + width, last, less, tensors));
        }
    return TARE_OK;
}

static tare_status run_sort(struct tare_kernel *kernel) {
    const size_t n = kernel->n_outputs;
    const struct tare_tensor *dimension = &kernel->inputs[n];
    struct tare_combiner less;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    const struct tare_shape *shape = &kernel->inputs[0].shape;
    if (dimension->elements != 1) return TARE_FAIL(TARE_SHAPE, "dimension is not a scalar");
    const int64_t axis = tare_tensor_get_i64(dimension, 0);
    if (axis < 0 || axis >= shape->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dimension is %lld (expected 0 to %d)", (long long)axis,
                         shape->rank - 1);
    TARE_TRY(tare_combiner_open(&less, kernel, "comparator", n, 1));
    for (size_t k = 0; k < n; k++)
        TARE_TRY(tare_kernel_output(kernel, k, kernel->inputs[k].dtype, shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    const int64_t length = shape->dims[axis], inner = tare_move_product(shape, (int)axis + 1, shape->rank);
    int64_t *order = TARE_NEW_ARRAY(kernel->scratch, int64_t, 2 * (size_t)length + 1);
    if (!order) return TARE_NO_MEMORY;
    for (int64_t line = 0; line < kernel->outputs[0].elements / length; line++) {
        const int64_t first = line / inner * inner * length + line % inner;
        for (int64_t i = 0; i < length; i++)
            order[i] = first + i * inner;
        TARE_TRY(sort_line(order, order + length, length, &less, kernel->inputs));
        for (size_t k = 0; k < n; k++)
            for (int64_t i = 0; i < length; i++)
                TARE_TRY(tare_move_run(&kernel->outputs[k], first + i * inner, &kernel->inputs[k], order[i], 1));
    }
    return TARE_OK;
}

const struct tare_op tare_ops_xla_scatter[] = {
    { .name = "XlaScatter", .infer = tare_infer_same, .run = run_scatter, .flags = TARE_OP_CONTROL },
    { .name = "XlaVariadicSort", .infer = infer_sort, .run = run_sort, .flags = TARE_OP_CONTROL | TARE_OP_RANK },
    { 0 },
};

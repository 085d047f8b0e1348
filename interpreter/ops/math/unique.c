/* Unique, UniqueV2, UniqueWithCounts and ListDiff. A set is an open-addressing hash table of positions; elements
 * compare equal as in their dtype (0 == -0, NaN differs from everything), but single ones of half and bfloat16 only
 * with equal signs, as in TensorFlow, whose hashes of 0 and -0 differ for these types. */
#include "base/alloc.h"
#include "interpreter/ops/support/axes.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

/* Slices of a tensor along one axis: slice i consists of elements (o, i, k) for all o and k. */
struct slices {
    const struct tare_tensor *tensor;
    int64_t outer, count, inner;
};

struct set {
    int64_t *table; /* position + 1; 0: empty slot */
    uint64_t mask;
    int64_t *positions; /* positions of the members in insertion order */
    int64_t members;
};

/* Whether 0 and -0 differ. */
static bool has_signed_zeros(const struct slices *slices) {
    const int dtype = slices->tensor->dtype;
    return (dtype == TARE_DT_HALF || dtype == TARE_DT_BFLOAT16) && slices->outer == 1 && slices->inner == 1;
}

/* A hash key that is identical for equal elements. */
static uint64_t element_key(const struct tare_tensor *tensor, int64_t i, bool signed_zeros) {
    uint64_t key = 0;
    size_t size = tare_dtype_size(tensor->dtype);
    if (tensor->dtype == TARE_DT_STRING) {
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, tensor)[i];
        key = 0xcbf29ce484222325u;
        for (size_t k = 0; k < text->size; k++)
            key = (key ^ (unsigned char)text->data[k]) * 0x100000001b3u;
        return key;
    }
    if (tare_dtype_is_floating(tensor->dtype) && size >= 2) {
        double value = tare_tensor_get_f64(tensor, i);
        if (!signed_zeros) value += 0.0; /* maps -0 to 0 */
        memcpy(&key, &value, sizeof key);
        return key;
    }
    memcpy(&key, (const char *)tensor->data + (size_t)i * size, size < 8 ? size : 8);
    return key;
}

static bool element_equal(const struct tare_tensor *a, int64_t i, const struct tare_tensor *b, int64_t j,
                          bool signed_zeros) {
    size_t size = tare_dtype_size(a->dtype);
    if (a->dtype == TARE_DT_STRING) {
        const struct tare_str *x = &TARE_CONST_DATA(struct tare_str, a)[i],
                              *y = &TARE_CONST_DATA(struct tare_str, b)[j];
        return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
    }
    if (tare_dtype_is_floating(a->dtype) && size >= 2) {
        const double x = tare_tensor_get_f64(a, i), y = tare_tensor_get_f64(b, j);
        return x == y && (!signed_zeros || signbit(x) == signbit(y));
    }
    return memcmp((const char *)a->data + (size_t)i * size, (const char *)b->data + (size_t)j * size, size) == 0;
}

static uint64_t slice_hash(const struct slices *slices, int64_t i) {
    const bool signed_zeros = has_signed_zeros(slices);
    uint64_t hash = 0;
    for (int64_t o = 0; o < slices->outer; o++)
        for (int64_t k = 0; k < slices->inner; k++) {
            hash ^= element_key(slices->tensor, (o * slices->count + i) * slices->inner + k, signed_zeros);
            hash *= 0x9e3779b97f4a7c15u;
            hash ^= hash >> 32;
        }
    return hash;
}

static bool slice_equal(const struct slices *a, int64_t i, const struct slices *b, int64_t j) {
    const bool signed_zeros = has_signed_zeros(a);
    for (int64_t o = 0; o < a->outer; o++)
        for (int64_t k = 0; k < a->inner; k++)
            if (!element_equal(a->tensor, (o * a->count + i) * a->inner + k, b->tensor,
                               (o * b->count + j) * b->inner + k, signed_zeros))
                return false;
    return true;
}

static tare_status set_make(struct set *set, struct tare_arena *arena, int64_t most) {
    uint64_t capacity = 16;
    while (capacity < 2 * (uint64_t)most)
        capacity *= 2;
    *set = (struct set){ .table = TARE_NEW_ARRAY(arena, int64_t, capacity),
                         .mask = capacity - 1,
                         .positions = TARE_NEW_ARRAY(arena, int64_t, (size_t)most + 1) };
    return set->table && set->positions ? TARE_OK : TARE_NO_MEMORY;
}

/* Returns the member number of slice i of `from` in a set of slices of `of`, or -1 if it is not a member. With `add`
 * (`from` and `of` must be the same slices) the slice is inserted. */
static int64_t set_find(struct set *set, const struct slices *of, const struct slices *from, int64_t i, bool add) {
    uint64_t at = slice_hash(from, i) & set->mask;
    for (; set->table[at]; at = (at + 1) & set->mask) {
        int64_t member = set->table[at] - 1;
        if (slice_equal(of, set->positions[member], from, i)) return member;
    }
    if (!add) return -1;
    set->positions[set->members++] = i;
    set->table[at] = set->members;
    return set->members - 1;
}

static void write_integer(struct tare_tensor *out, int64_t i, int64_t value) {
    if (out->dtype == TARE_DT_INT32)
        TARE_DATA(int32_t, out)[i] = (int32_t)value;
    else
        TARE_DATA(int64_t, out)[i] = value;
}

/* The axis of UniqueV2; -1: the whole input is treated as a vector. */
static tare_status unique_axis(int *axis, const struct tare_infer *infer) {
    const struct tare_tensor *value = infer->n_inputs > 1 ? infer->input_values[1] : NULL;
    *axis = -1;
    if (!value || value->elements == 0) {
        if (infer->inputs[0].rank >= 0 && infer->inputs[0].rank != 1 && (infer->n_inputs == 1 || value))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "unique expects a 1D vector.");
        return TARE_OK;
    }
    if (value->elements > 1 || value->shape.rank != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "axis does not support input tensors larger than 1 elements");
    return infer->inputs[0].rank < 0 ? TARE_OK
                                     : tare_operand_axis(axis, tare_tensor_get_i64(value, 0), infer->inputs[0].rank);
}

static tare_status infer_unique(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    int axis;
    TARE_TRY(unique_axis(&axis, infer));
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    infer->outputs[0] = *in;
    if (axis < 0 && in->rank != 1) {
        infer->outputs[0] = tare_operand_unknown_dims(in->rank);
        infer->outputs[1] = tare_operand_vector_shape(-1);
    } else {
        infer->outputs[1] = tare_operand_vector_shape(in->dims[axis < 0 ? 0 : axis]);
        infer->outputs[0].dims[axis < 0 ? 0 : axis] = TARE_UNKNOWN_DIM;
    }
    if (infer->n_outputs > 2) infer->outputs[2] = tare_operand_vector_shape(-1);
    return TARE_OK;
}

static tare_status run_unique(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    struct tare_shape *shapes, counts;
    struct slices slices = { .tensor = in };
    struct set set;
    int axis = 0, dtype = tare_node_type(kernel->node, "out_idx", TARE_DT_INT32);
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (kernel->n_inputs > 1 && kernel->inputs[1].elements)
        TARE_TRY(tare_operand_axis(&axis, tare_tensor_get_i64(&kernel->inputs[1], 0), in->shape.rank));
    const struct tare_axis_split split = tare_axis_split(&in->shape, axis);
    slices.outer = split.outer;
    slices.count = split.size;
    slices.inner = split.inner;
    TARE_TRY(set_make(&set, kernel->scratch, slices.count));
    TARE_TRY(tare_kernel_output(kernel, 1, dtype, &shapes[1]));
    for (int64_t i = 0; i < slices.count; i++)
        write_integer(&kernel->outputs[1], i, set_find(&set, &slices, &slices, i, true));
    shapes[0].dims[axis] = set.members;
    TARE_TRY(tare_kernel_output(kernel, 0, in->dtype, &shapes[0]));
    for (int64_t o = 0; in->elements && o < slices.outer; o++)
        for (int64_t m = 0; m < set.members; m++)
            TARE_TRY(tare_move_run(&kernel->outputs[0], (o * set.members + m) * slices.inner, in,
                                   (o * slices.count + set.positions[m]) * slices.inner, slices.inner));
    if (kernel->n_outputs < 3) return TARE_OK;
    counts = tare_operand_vector_shape(set.members);
    TARE_TRY(tare_kernel_output(kernel, 2, dtype, &counts));
    tare_move_zero(&kernel->outputs[2], 0, set.members);
    for (int64_t i = 0; i < slices.count; i++) {
        int64_t m = tare_tensor_get_i64(&kernel->outputs[1], i);
        write_integer(&kernel->outputs[2], m, tare_tensor_get_i64(&kernel->outputs[2], m) + 1);
    }
    return TARE_OK;
}

static tare_status infer_list_diff(struct tare_infer *infer) {
    TARE_TRY(tare_operand_rank(infer, 0, "x", 1));
    TARE_TRY(tare_operand_rank(infer, 1, "y", 1));
    infer->outputs[0] = infer->outputs[1] = tare_operand_vector_shape(-1);
    return TARE_OK;
}

/* Returns the elements of x that do not occur in y, in order and with duplicates. */
static tare_status run_list_diff(struct tare_kernel *kernel) {
    const struct tare_tensor *x = &kernel->inputs[0], *y = &kernel->inputs[1];
    struct slices from = { x, 1, x->elements, 1 }, without = { y, 1, y->elements, 1 };
    int64_t *kept = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)x->elements + 1), count = 0;
    struct tare_shape shape, *shapes;
    struct set set;
    if (!kept) return TARE_NO_MEMORY;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(set_make(&set, kernel->scratch, y->elements));
    for (int64_t i = 0; i < y->elements; i++)
        set_find(&set, &without, &without, i, true);
    for (int64_t i = 0; i < x->elements; i++)
        if (set_find(&set, &without, &from, i, false) < 0) kept[count++] = i;
    shape = tare_operand_vector_shape(count);
    TARE_TRY(tare_kernel_output(kernel, 0, x->dtype, &shape));
    TARE_TRY(tare_kernel_output(kernel, 1, tare_node_type(kernel->node, "out_idx", TARE_DT_INT32), &shape));
    for (int64_t i = 0; i < count; i++) {
        TARE_TRY(tare_move_run(&kernel->outputs[0], i, x, kept[i], 1));
        write_integer(&kernel->outputs[1], i, kept[i]);
    }
    return TARE_OK;
}

#define UNIQUE(op_name)                                                                                                \
    { .name = op_name, .infer = infer_unique, .run = run_unique, .flags = TARE_OP_DISCRETE }

const struct tare_op tare_ops_unique[] = {
    { .name = "ListDiff", .infer = infer_list_diff, .run = run_list_diff, .flags = TARE_OP_DISCRETE },
    UNIQUE("Unique"),
    UNIQUE("UniqueV2"),
    UNIQUE("UniqueWithCounts"),
    UNIQUE("UniqueWithCountsV2"),
    { 0 },
};
#undef UNIQUE

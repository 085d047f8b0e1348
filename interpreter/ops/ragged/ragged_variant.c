/* Ragged tensors as elements of variant tensors, so that map functions and loops can process rows of different
 * lengths. */
#include "base/alloc.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <string.h>

/* A ragged tensor: splits from the outermost level, then the values. */
struct ragged {
    struct tare_object object;
    size_t n_splits;
    struct tare_tensor values;
    struct tare_tensor splits[];
};

static void destroy(struct tare_object *object) {
    struct ragged *ragged = (struct ragged *)object;
    for (size_t i = 0; i < ragged->n_splits; i++)
        tare_tensor_reset(&ragged->splits[i]);
    tare_tensor_reset(&ragged->values);
    tare_free(ragged);
}

static const struct tare_object_type ragged_type = { "RaggedTensor", destroy };

static struct ragged *new_ragged(size_t n_splits) {
    struct ragged *ragged = tare_calloc(1, sizeof *ragged + n_splits * sizeof *ragged->splits);
    if (!ragged) return NULL;
    tare_object_init(&ragged->object, &ragged_type);
    ragged->n_splits = n_splits;
    return ragged;
}

/* ---- RaggedTensorToVariant ---- */

static tare_status infer_to_variant(struct tare_infer *infer) {
    const size_t rank = infer->n_inputs - 1;
    const struct tare_shape *outer = &infer->inputs[0];
    if (!tare_node_bool(infer->node, "batched_input", false)) {
        infer->outputs[0] = tare_shape_scalar();
        return TARE_OK;
    }
    if (outer->rank == 0) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a batched input must have rows (got a scalar)");
    infer->outputs[0] = tare_operand_vector_shape(-1);
    if (outer->rank > 0 && outer->dims[0] >= 0)
        infer->outputs[0].dims[0] = rank ? (outer->dims[0] ? outer->dims[0] - 1 : 0) : outer->dims[0];
    return TARE_OK;
}

/* Checks that the splits of each level end at the row count of the next, and the last at the values. */
static tare_status check_splits(const struct tare_kernel *kernel) {
    const size_t rank = kernel->n_inputs - 1;
    for (size_t i = 0; i < rank; i++) {
        const struct tare_tensor *splits = &kernel->inputs[i], *next = &kernel->inputs[i + 1];
        int64_t rows = i + 1 < rank ? next->elements - 1 : next->shape.rank ? next->shape.dims[0] : -1;
        if (splits->shape.rank != 1 || splits->elements < 1 || rows < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "splits %zu: a vector of at least one element is expected", i);
        TARE_TRY(tare_error_prefix(tare_text_check_splits(splits, rows), "splits %zu", i));
    }
    return TARE_OK;
}

/* Copies splits[first … last], rebased to start at 0. */
static tare_status cut_splits(struct tare_tensor *out, const struct tare_tensor *splits, int64_t first, int64_t last) {
    struct tare_shape shape = tare_operand_vector_shape(last - first + 1);
    TARE_TRY(tare_tensor_new(out, splits->dtype, &shape));
    for (int64_t i = first; i <= last; i++)
        tare_text_set_index(out, i - first, tare_index_at(splits, i) - tare_index_at(splits, first));
    return TARE_OK;
}

/* Extracts row `row` of the outermost dimension: its inner splits and values. */
static tare_status cut_row(struct ragged *out, const struct tare_kernel *kernel, int64_t row) {
    const size_t rank = kernel->n_inputs - 1;
    const struct tare_tensor *values = &kernel->inputs[rank];
    int64_t first = row, last = row + 1;
    struct tare_tensor rows;
    for (size_t i = 0; i < rank; i++) {
        if (i) TARE_TRY(cut_splits(&out->splits[i - 1], &kernel->inputs[i], first, last));
        first = tare_index_at(&kernel->inputs[i], first);
        last = tare_index_at(&kernel->inputs[i], last);
    }
    TARE_TRY(tare_tensor_share_rows(&rows, values, first, last - first));
    if (rank) {
        out->values = rows;
        return TARE_OK;
    }
    struct tare_shape element = { .rank =
                                      values->shape.rank - 1 }; /* a row of a dense tensor loses the row dimension */
    memcpy(element.dims, values->shape.dims + 1, (size_t)element.rank * sizeof *element.dims);
    const tare_status status = tare_tensor_share_as(&out->values, &rows, &element);
    tare_tensor_reset(&rows);
    return status;
}

static tare_status encode_whole(struct tare_kernel *kernel) {
    struct ragged *ragged = new_ragged(kernel->n_inputs - 1);
    if (!ragged) return TARE_NO_MEMORY;
    for (size_t i = 0; i < ragged->n_splits; i++)
        tare_tensor_share(&ragged->splits[i], &kernel->inputs[i]);
    tare_tensor_share(&ragged->values, &kernel->inputs[ragged->n_splits]);
    tare_tensor_set_object(&kernel->outputs[0], 0, &ragged->object);
    return TARE_OK;
}

static tare_status run_to_variant(struct tare_kernel *kernel) {
    const size_t rank = kernel->n_inputs - 1;
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(check_splits(kernel));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_VARIANT, &shapes[0]));
    if (!tare_node_bool(kernel->node, "batched_input", false)) return encode_whole(kernel);
    for (int64_t row = 0; row < kernel->outputs[0].elements; row++) {
        struct ragged *ragged = new_ragged(rank ? rank - 1 : 0);
        if (!ragged) return TARE_NO_MEMORY;
        tare_tensor_set_object(&kernel->outputs[0], row, &ragged->object);
        TARE_TRY(cut_row(ragged, kernel, row));
    }
    return TARE_OK;
}

/* ---- RaggedTensorFromVariant ---- */

static tare_status infer_from_variant(struct tare_infer *infer) {
    for (size_t i = 0; i + 1 < infer->n_outputs; i++)
        infer->outputs[i] = tare_operand_vector_shape(-1);
    return TARE_OK;
}

/* The variant's elements after checking: splits, dtypes, and one common shape of value rows. */
struct parts {
    const struct ragged **items;
    int64_t count;
    size_t n_splits;
    int rank; /* rank of the variant tensor */
};

static tare_status check_part(const struct tare_kernel *kernel, const struct parts *parts, int64_t k) {
    const struct ragged *part = parts->items[k];
    const struct tare_shape *shape = &part->values.shape, *first = &parts->items[0]->values.shape;
    const int values = tare_node_type(kernel->node, "Tvalues", TARE_DT_INVALID);
    const int splits = tare_node_type(kernel->node, "Tsplits", TARE_DT_INT64);
    if (part->n_splits != parts->n_splits)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "element %lld has ragged rank %zu (expected %zu)", (long long)k,
                         part->n_splits, parts->n_splits);
    if (part->values.dtype != values)
        return TARE_FAIL(TARE_TYPE, "Expected values Tensor dtype: %s, found: %s", tare_dtype_get(values)->spec_name,
                         tare_dtype_get(part->values.dtype)->spec_name);
    for (size_t i = 0; i < part->n_splits; i++)
        if (part->splits[i].dtype != splits)
            return TARE_FAIL(TARE_TYPE, "Expected row_splits Tensor dtype: %s, found: %s",
                             tare_dtype_get(splits)->spec_name, tare_dtype_get(part->splits[i].dtype)->spec_name);
    if (shape->rank < (parts->rank ? 1 : 0) || shape->rank != first->rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "element %lld has values of rank %d (expected %d, at least %d)",
                         (long long)k, shape->rank, first->rank, parts->rank ? 1 : 0);
    for (int d = parts->rank ? 1 : 0; d < shape->rank; d++)
        if (shape->dims[d] != first->dims[d])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the values of the elements have different shapes");
    return TARE_OK;
}

static tare_status read_parts(struct parts *parts, const struct tare_kernel *kernel) {
    const struct tare_tensor *encoded = &kernel->inputs[0];
    const int64_t given = tare_node_int(kernel->node, "input_ragged_rank", -1);
    const int64_t inner = given >= 0 ? given : (int64_t)kernel->n_outputs - 1 - encoded->shape.rank;
    parts->rank = encoded->shape.rank;
    parts->count = encoded->elements;
    if (inner < 0 || (int64_t)kernel->n_outputs - 1 != encoded->shape.rank + inner)
        return TARE_FAIL(
            TARE_INVALID_ARGUMENT,
            "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(): %zu vs. %lld + %d",
            kernel->n_outputs - 1, (long long)inner, encoded->shape.rank);
    parts->n_splits = (size_t)inner;
    parts->items = TARE_NEW_ARRAY(kernel->scratch, const struct ragged *, (size_t)parts->count + 1);
    if (!parts->items) return TARE_NO_MEMORY;
    for (int64_t k = 0; k < parts->count; k++) {
        const struct tare_object *object = TARE_CONST_DATA(struct tare_object *, encoded)[k];
        if (!object || object->type != &ragged_type)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "element %lld contains %s (expected a RaggedTensor)", (long long)k,
                             object ? object->type->name : "nothing");
        parts->items[k] = (const struct ragged *)object;
        TARE_TRY(check_part(kernel, parts, k));
    }
    return TARE_OK;
}

/* Writes the splits of the variant's own dimensions except the last: each row has the size of the next dimension. */
static tare_status write_dense_splits(struct tare_kernel *kernel, int dtype) {
    const struct tare_shape *shape = &kernel->inputs[0].shape;
    int64_t rows = 1;
    for (int d = 0; d + 1 < shape->rank; d++) {
        rows *= shape->dims[d];
        struct tare_shape vector = tare_operand_vector_shape(rows + 1);
        TARE_TRY(tare_kernel_output(kernel, (size_t)d, dtype, &vector));
        for (int64_t i = 0; i <= rows; i++)
            tare_text_set_index(&kernel->outputs[d], i, i * shape->dims[d + 1]);
    }
    return TARE_OK;
}

static int64_t rows_of(const struct ragged *part) {
    return part->n_splits ? part->splits[0].elements - 1 : part->values.shape.dims[0];
}

/* Writes the splits of the variant's last dimension: the number of rows of each element. */
static tare_status write_joint_splits(struct tare_kernel *kernel, int dtype, const struct parts *parts) {
    const size_t output = (size_t)parts->rank - 1;
    struct tare_shape vector = tare_operand_vector_shape(parts->count + 1);
    int64_t at = 0;
    TARE_TRY(tare_kernel_output(kernel, output, dtype, &vector));
    tare_text_set_index(&kernel->outputs[output], 0, 0);
    for (int64_t k = 0; k < parts->count; k++)
        tare_text_set_index(&kernel->outputs[output], k + 1, at += rows_of(parts->items[k]));
    return TARE_OK;
}

/* Concatenates level `level` of all elements. */
static tare_status join_splits(struct tare_kernel *kernel, int dtype, const struct parts *parts, size_t level) {
    const size_t output = (size_t)parts->rank + level;
    int64_t total = 1, at = 0, offset = 0;
    for (int64_t k = 0; k < parts->count; k++)
        total += parts->items[k]->splits[level].elements - 1;
    struct tare_shape vector = tare_operand_vector_shape(total);
    TARE_TRY(tare_kernel_output(kernel, output, dtype, &vector));
    tare_text_set_index(&kernel->outputs[output], at++, 0);
    for (int64_t k = 0; k < parts->count; k++) {
        const struct tare_tensor *splits = &parts->items[k]->splits[level];
        for (int64_t i = 1; i < splits->elements; i++)
            tare_text_set_index(&kernel->outputs[output], at++, offset + tare_index_at(splits, i));
        offset += tare_index_at(splits, splits->elements - 1);
    }
    return TARE_OK;
}

static tare_status join_values(struct tare_kernel *kernel, const struct parts *parts) {
    const size_t output = kernel->n_outputs - 1;
    struct tare_shape shape = tare_operand_vector_shape(0);
    int64_t at = 0;
    if (parts->count) shape = parts->items[0]->values.shape;
    shape.dims[0] = 0;
    for (int64_t k = 0; k < parts->count; k++)
        shape.dims[0] += parts->items[k]->values.shape.dims[0];
    TARE_TRY(tare_kernel_output(kernel, output, tare_node_type(kernel->node, "Tvalues", TARE_DT_INVALID), &shape));
    for (int64_t k = 0; k < parts->count; k++) {
        const struct tare_tensor *values = &parts->items[k]->values;
        TARE_TRY(tare_move_run(&kernel->outputs[output], at, values, 0, values->elements));
        at += values->elements;
    }
    return TARE_OK;
}

static tare_status run_from_variant(struct tare_kernel *kernel) {
    const int dtype = tare_node_type(kernel->node, "Tsplits", TARE_DT_INT64);
    struct parts parts = { 0 };
    TARE_TRY(read_parts(&parts, kernel));
    if (parts.rank == 0) {
        for (size_t i = 0; i < parts.n_splits; i++)
            tare_tensor_share(&kernel->outputs[i], &parts.items[0]->splits[i]);
        tare_tensor_share(&kernel->outputs[parts.n_splits], &parts.items[0]->values);
        return TARE_OK;
    }
    TARE_TRY(write_dense_splits(kernel, dtype));
    TARE_TRY(write_joint_splits(kernel, dtype, &parts));
    for (size_t level = 0; level < parts.n_splits; level++)
        TARE_TRY(join_splits(kernel, dtype, &parts, level));
    return join_values(kernel, &parts);
}

const struct tare_op tare_ops_ragged_variant[] = {
    { .name = "RaggedTensorFromVariant", .infer = infer_from_variant, .run = run_from_variant },
    { .name = "RaggedTensorToVariant", .infer = infer_to_variant, .run = run_to_variant, .flags = TARE_OP_NO_FOLD },
    { 0 },
};

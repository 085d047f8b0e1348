/* SerializeSparse, SerializeManySparse and their inverses: a sparse tensor as a row of three strings, the serialized
 * TensorProtos of its indices, values and dense shape. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/sparse/sparse_rows.h"
#include "interpreter/ops/string/text.h"
#include "proto/tensor_bytes.h"

#include "base/alloc.h"

#include <string.h>

/* ---- serialization ---- */

static tare_status put(struct tare_tensor *out, int64_t at, const struct tare_tensor *value) {
    uint8_t *data;
    size_t size;
    TARE_TRY(tare_tensor_to_bytes(&data, &size, value));
    const tare_status status = tare_tensor_set_string(out, at, data, size);
    tare_free(data);
    return status;
}

static tare_status check_form(const struct tare_node *node) {
    if (tare_node_type(node, "out_type", TARE_DT_STRING) == TARE_DT_STRING) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "out_type is variant (expected string)");
}

static tare_status infer_one(struct tare_infer *infer) {
    int64_t count, rank;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    infer->outputs[0] = tare_operand_vector_shape(3);
    return TARE_OK;
}

static tare_status run_one(struct tare_kernel *kernel) {
    const struct tare_shape shape = tare_operand_vector_shape(3);
    struct tare_sparse sparse;
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &shape));
    for (int i = 0; i < 3; i++)
        TARE_TRY(put(&kernel->outputs[0], i, &kernel->inputs[i]));
    return TARE_OK;
}

static tare_status infer_many(struct tare_infer *infer) {
    int64_t count, rank, dims[TARE_MAX_RANK];
    int known;
    TARE_TRY(tare_sparse_infer(infer, 0, 1, 2, &count, &rank));
    TARE_TRY(tare_operand_list(infer, 2, "sparse_shape", dims, &known));
    if (rank >= 0 && rank < 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Rank of input SparseTensor should be > 1, but saw rank: %lld",
                         (long long)rank);
    infer->outputs[0] = tare_shape_make(2, known > 0 && dims[0] >= 0 ? dims[0] : (int64_t)-1, (int64_t)3);
    return TARE_OK;
}

/* Serializes entries first … last - 1, which have the same row, as a sparse tensor of rank less by one. */
static tare_status put_row(struct tare_tensor *out, int64_t row, const struct tare_sparse *sparse, int64_t first,
                           int64_t last, const struct tare_tensor *rest) {
    const struct tare_shape matrix = tare_shape_make(2, last - first, (int64_t)sparse->rank - 1);
    const struct tare_shape vector = tare_operand_vector_shape(last - first);
    struct tare_tensor indices = { 0 }, values = { 0 };
    tare_status status = TARE_OK;
    TARE_CHECK(tare_tensor_new(&indices, TARE_DT_INT64, &matrix));
    TARE_CHECK(tare_tensor_new(&values, sparse->values->dtype, &vector));
    for (int64_t i = first; i < last; i++)
        for (int d = 1; d < sparse->rank; d++)
            TARE_DATA(int64_t, &indices)[(i - first) * (sparse->rank - 1) + d - 1] = tare_sparse_index(sparse, i, d);
    TARE_CHECK(tare_move_run(&values, 0, sparse->values, first, last - first));
    TARE_CHECK(put(out, 3 * row, &indices));
    TARE_CHECK(put(out, 3 * row + 1, &values));
    TARE_CHECK(put(out, 3 * row + 2, rest));
done:
    if (indices.dtype) tare_tensor_reset(&indices);
    if (values.dtype) tare_tensor_reset(&values);
    return status;
}

enum { MOST_ROWS = 1 << 24 }; /* limit on rows that dense_shape alone can request */

static tare_status run_many(struct tare_kernel *kernel) {
    struct tare_sparse sparse;
    struct tare_tensor rest = { 0 };
    tare_status status = TARE_OK;
    int64_t entry = 0;
    TARE_TRY(tare_sparse_make(&sparse, &kernel->inputs[0], &kernel->inputs[1], &kernel->inputs[2]));
    TARE_TRY(tare_sparse_check(&sparse, false));
    if (sparse.rank < 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Rank of input SparseTensor should be > 1, but saw rank: %d",
                         sparse.rank);
    if (sparse.dims[0] > MOST_ROWS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld rows (expected at most %d)", (long long)sparse.dims[0],
                         MOST_ROWS);
    const struct tare_shape shape = tare_shape_make(2, sparse.dims[0], (int64_t)3);
    const struct tare_shape dims = tare_operand_vector_shape(sparse.rank - 1);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &shape));
    TARE_TRY(tare_tensor_from(&rest, TARE_DT_INT64, &dims, sparse.dims + 1));
    for (int64_t row = 0; row < sparse.dims[0]; row++) {
        const int64_t first = entry;
        while (entry < sparse.count && tare_sparse_index(&sparse, entry, 0) == row)
            entry++;
        TARE_CHECK(put_row(&kernel->outputs[0], row, &sparse, first, entry, &rest));
    }
    if (entry < sparse.count)
        TARE_CHECK(TARE_FAIL(TARE_INVALID_ARGUMENT, "entry %lld is not in the order of its row", (long long)entry));
done:
    tare_tensor_reset(&rest);
    return status;
}

/* ---- deserialization ---- */

/* One sparse tensor; owns its parts. */
struct piece {
    struct tare_tensor parts[3];
};

static tare_status read_piece(struct piece *piece, const struct tare_tensor *strings, int64_t i, int dtype) {
    static const char *const names[] = { "indices", "values", "shape" };
    static const int ranks[] = { 2, 1, 1 };
    struct tare_tensor *parts = piece->parts;
    for (int k = 0; k < 3; k++) {
        const struct tare_str text = tare_text_at(strings, 3 * i + k);
        const int expected = k == 1 ? dtype : TARE_DT_INT64;
        TARE_TRY(tare_error_prefix(tare_tensor_from_bytes(&parts[k], text.data, text.size),
                                   "serialized_sparse[%lld, %d]", (long long)i, k));
        if (parts[k].dtype != expected)
            return TARE_FAIL(TARE_TYPE, "SparseTensor[%lld].%s is %s (expected %s)", (long long)i, names[k],
                             tare_dtype_name(parts[k].dtype), tare_dtype_name(expected));
        if (parts[k].shape.rank != ranks[k])
            return TARE_FAIL(TARE_SHAPE, "SparseTensor[%lld].%s has rank %d (expected %d)", (long long)i, names[k],
                             parts[k].shape.rank, ranks[k]);
    }
    if (parts[0].shape.dims[0] != parts[1].elements || parts[0].shape.dims[1] != parts[2].elements)
        return TARE_FAIL(TARE_SHAPE, "the parts of SparseTensor[%lld] do not match", (long long)i);
    return TARE_OK;
}

/* Computes the smallest shape that contains all pieces, and their total number of entries. */
static tare_status bound(int64_t *dims, int64_t *entries, const struct piece *pieces, int64_t count) {
    const int64_t rank = pieces[0].parts[2].elements;
    *entries = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct tare_tensor *shape = &pieces[i].parts[2];
        if (shape->elements != rank)
            return TARE_FAIL(TARE_SHAPE, "SparseTensor[%lld] has rank %lld, the ones before it %lld", (long long)i,
                             (long long)shape->elements, (long long)rank);
        for (int64_t d = 0; d < rank; d++) {
            const int64_t dim = TARE_CONST_DATA(int64_t, shape)[d];
            if (i == 0 || dim > dims[d]) dims[d] = dim;
        }
        *entries += pieces[i].parts[1].elements;
    }
    return TARE_OK;
}

static tare_status join(struct tare_kernel *kernel, const struct piece *pieces, int64_t count, int dtype) {
    const struct tare_shape *outer = &kernel->inputs[0].shape;
    const int lead = outer->rank - 1;
    int64_t dims[TARE_MAX_RANK], entries, at = 0;
    if (pieces[0].parts[2].elements + lead > TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "the result has more than %d dimensions", TARE_MAX_RANK);
    const int own = (int)pieces[0].parts[2].elements, rank = own + lead;
    TARE_TRY(bound(dims + lead, &entries, pieces, count));
    memcpy(dims, outer->dims, (size_t)lead * sizeof *dims);
    const struct tare_shape matrix = tare_shape_make(2, entries, (int64_t)rank);
    const struct tare_shape vector = tare_operand_vector_shape(entries), shape = tare_operand_vector_shape(rank);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &matrix));
    TARE_TRY(tare_kernel_output(kernel, 1, dtype, &vector));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &shape));
    if (rank) memcpy(kernel->outputs[2].data, dims, (size_t)rank * sizeof *dims);
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = pieces[i].parts[1].elements;
        TARE_TRY(tare_move_run(&kernel->outputs[1], at, &pieces[i].parts[1], 0, n));
        for (int64_t e = 0; e < n; e++, at++) {
            int64_t *place = TARE_DATA(int64_t, &kernel->outputs[0]) + at * rank, left = i;
            for (int d = lead - 1; d >= 0; d--) {
                place[d] = left % outer->dims[d];
                left /= outer->dims[d];
            }
            if (own)
                memcpy(place + lead, TARE_CONST_DATA(int64_t, &pieces[i].parts[0]) + e * own,
                       (size_t)own * sizeof *place);
        }
    }
    return TARE_OK;
}

static tare_status run_read(struct tare_kernel *kernel) {
    const struct tare_tensor *strings = &kernel->inputs[0];
    const int dtype = tare_node_type(kernel->node, "dtype", TARE_DT_INVALID);
    const int rank = strings->shape.rank;
    tare_status status = TARE_OK;
    if (rank < 1 || strings->shape.dims[rank - 1] != 3)
        return TARE_FAIL(TARE_SHAPE, "Serialized sparse should have 3 as the last dimension");
    const int64_t count = strings->elements / 3;
    if (count < 1) return TARE_FAIL(TARE_SHAPE, "Serialized sparse should have at least 1 serialized tensor");
    struct piece *pieces = TARE_NEW_ARRAY(kernel->scratch, struct piece, (size_t)count);
    if (!pieces) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < count; i++)
        TARE_CHECK(read_piece(&pieces[i], strings, i, dtype));
    TARE_CHECK(join(kernel, pieces, count, dtype));
done:
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < 3; k++)
            if (pieces[i].parts[k].dtype) tare_tensor_reset(&pieces[i].parts[k]);
    return status;
}

static tare_status infer_read(struct tare_infer *infer) {
    infer->outputs[0] = tare_operand_unknown_dims(2);
    infer->outputs[1] = infer->outputs[2] = tare_operand_vector_shape(-1);
    return TARE_OK;
}

static tare_status accept_string(const struct tare_node *node) {
    if (tare_node_type(node, "Tserialized", TARE_DT_STRING) == TARE_DT_STRING) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "Tserialized is variant (expected string)");
}

const struct tare_op tare_ops_sparse_serialize[] = {
    { .name = "SerializeSparse", .infer = infer_one, .accepts = check_form, .run = run_one },
    { .name = "SerializeManySparse", .infer = infer_many, .accepts = check_form, .run = run_many },
    { .name = "DeserializeSparse", .infer = infer_read, .accepts = accept_string, .run = run_read },
    { .name = "DeserializeManySparse", .infer = infer_read, .run = run_read },
    { 0 },
};

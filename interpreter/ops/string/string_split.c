/* StringSplit, StringSplitV2, ReduceJoin and UnsortedSegmentJoin: splitting and joining strings. */
#include "base/alloc.h"
#include "base/ascii.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <string.h>

/* Parts of the input strings, collected before the outputs are allocated. */
struct parts {
    struct part {
        struct tare_str text;
        int64_t row, column;
    } * items;
    size_t count, capacity;
    int64_t row, columns, widest; /* of the current row; of all rows */
};

static bool add_part(struct parts *parts, const char *data, size_t size) {
    if (!TARE_GROW(parts->items, parts->count, parts->capacity)) return false;
    parts->items[parts->count++] = (struct part){ { data, size }, parts->row, parts->columns++ };
    if (parts->columns > parts->widest) parts->widest = parts->columns;
    return true;
}

/* StringSplit: every byte of `delimiter` separates; an empty delimiter splits into single bytes. */
static bool split_at_any(struct parts *parts, struct tare_str text, struct tare_str delimiter, bool skip_empty) {
    size_t start = 0;
    if (text.size == 0) return true;
    for (size_t i = 0; i < text.size && delimiter.size == 0; i++)
        if (!add_part(parts, text.data + i, 1)) return false;
    if (delimiter.size == 0) return true;
    for (size_t i = 0; i <= text.size; i++) {
        if (i < text.size && !memchr(delimiter.data, text.data[i], delimiter.size)) continue;
        if ((i > start || !skip_empty) && !add_part(parts, text.data + start, i - start)) return false;
        start = i + 1;
    }
    return true;
}

/* Splits at runs of whitespace and ignores it at both ends; after `most` parts the remainder is the last part. */
static bool split_at_whitespace(struct parts *parts, struct tare_str text, int64_t most) {
    size_t at = 0;
    for (int64_t n = 0;; n++) {
        size_t start;
        while (at < text.size && tare_is_space(text.data[at]))
            at++;
        if (most > 0 && n == most) return add_part(parts, text.data + at, text.size - at);
        if (at == text.size) return true;
        start = at;
        while (at < text.size && !tare_is_space(text.data[at]))
            at++;
        if (!add_part(parts, text.data + start, at - start)) return false;
    }
}

static bool split_at_text(struct parts *parts, struct tare_str text, struct tare_str separator, int64_t most) {
    size_t start = 0;
    for (int64_t n = 0; most <= 0 || n < most; n++) {
        const char *found = text.size - start >= separator.size
                                ? memmem(text.data + start, text.size - start, separator.data, separator.size)
                                : NULL;
        size_t at;
        if (!found) break;
        at = (size_t)(found - text.data);
        if (!add_part(parts, text.data + start, at - start)) return false;
        start = at + separator.size;
    }
    return add_part(parts, text.data + start, text.size - start);
}

static tare_status infer_split(struct tare_infer *infer) {
    TARE_TRY(tare_operand_rank(infer, 0, "input", 1));
    TARE_TRY(tare_operand_rank(infer, 1, "delimiter", 0));
    infer->outputs[0] = tare_shape_make(2, -1, 2);
    infer->outputs[1] = tare_operand_vector_shape(-1);
    infer->outputs[2] = tare_operand_vector_shape(2);
    return TARE_OK;
}

static tare_status write_parts(struct tare_kernel *kernel, const struct parts *parts) {
    struct tare_shape matrix = tare_shape_make(2, 0, 2), vector = tare_operand_vector_shape((int64_t)parts->count);
    struct tare_shape two = tare_operand_vector_shape(2);
    matrix.dims[0] = (int64_t)parts->count;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &matrix));
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_STRING, &vector));
    TARE_TRY(tare_kernel_output(kernel, 2, TARE_DT_INT64, &two));
    for (size_t i = 0; i < parts->count; i++) {
        TARE_DATA(int64_t, &kernel->outputs[0])[2 * i] = parts->items[i].row;
        TARE_DATA(int64_t, &kernel->outputs[0])[2 * i + 1] = parts->items[i].column;
        TARE_TRY(tare_tensor_set_string(&kernel->outputs[1], (int64_t)i, parts->items[i].text.data,
                                        parts->items[i].text.size));
    }
    TARE_DATA(int64_t, &kernel->outputs[2])[0] = kernel->inputs[0].elements;
    TARE_DATA(int64_t, &kernel->outputs[2])[1] = parts->widest;
    return TARE_OK;
}

static tare_status run_split(struct tare_kernel *kernel) {
    bool second = strcmp(kernel->node->op, "StringSplitV2") == 0;
    bool skip_empty = tare_node_bool(kernel->node, "skip_empty", true);
    int64_t most = tare_node_int(kernel->node, "maxsplit", -1);
    struct tare_str delimiter;
    struct parts parts = { 0 };
    struct tare_shape *shapes;
    tare_status status;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    delimiter = tare_text_at(&kernel->inputs[1], 0);
    for (; parts.row < kernel->inputs[0].elements; parts.row++) {
        struct tare_str text = tare_text_at(&kernel->inputs[0], parts.row);
        bool done;
        parts.columns = 0;
        done = !second          ? split_at_any(&parts, text, delimiter, skip_empty)
               : most == 0      ? add_part(&parts, text.data, text.size)
               : delimiter.size ? split_at_text(&parts, text, delimiter, most)
                                : split_at_whitespace(&parts, text, most);
        if (!done) break;
    }
    status = parts.row < kernel->inputs[0].elements ? TARE_NO_MEMORY : write_parts(kernel, &parts);
    tare_free(parts.items);
    return status;
}

/* ---- ReduceJoin ---- */

static tare_status reduced_axes(bool reduced[TARE_MAX_RANK], int64_t axes[TARE_MAX_RANK], int *count, int rank,
                                const struct tare_tensor *indices) {
    if (indices->elements > rank)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%lld reduction indices for an input of rank %d",
                         (long long)indices->elements, rank);
    for (int d = 0; d < rank; d++)
        reduced[d] = false;
    *count = (int)indices->elements;
    for (int i = 0; i < *count; i++) {
        int64_t axis = tare_tensor_get_i64(indices, i);
        if (axis < -rank || axis >= rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid reduction dimension %lld for input with %d dimension(s)",
                             (long long)axis, rank);
        axes[i] = axis < 0 ? axis + rank : axis;
        if (reduced[axes[i]])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Duplicate reduction dimension %lld", (long long)axes[i]);
        reduced[axes[i]] = true;
    }
    return TARE_OK;
}

static tare_status infer_reduce_join(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0];
    bool reduced[TARE_MAX_RANK], keep = tare_node_bool(infer->node, "keep_dims", false);
    int64_t axes[TARE_MAX_RANK];
    struct tare_shape *out = &infer->outputs[0];
    int count;
    if (in->rank == TARE_UNKNOWN_RANK || !infer->input_values[1]) return TARE_OK;
    TARE_TRY(reduced_axes(reduced, axes, &count, in->rank, infer->input_values[1]));
    out->rank = 0;
    for (int d = 0; d < in->rank; d++)
        if (!reduced[d] || keep) out->dims[out->rank++] = reduced[d] ? 1 : in->dims[d];
    return TARE_OK;
}

/* The first reduction index varies fastest: [1, 0] joins a matrix row by row. */
static tare_status run_reduce_join(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    const char *separator = tare_node_string(kernel->node, "separator", "");
    bool reduced[TARE_MAX_RANK];
    int64_t axes[TARE_MAX_RANK], strides[TARE_MAX_RANK], joined = 1;
    int count;
    struct tare_strbuf buf = { 0 };
    tare_status status;
    TARE_TRY(tare_operand_output(kernel, 0));
    TARE_TRY(reduced_axes(reduced, axes, &count, in->shape.rank, &kernel->inputs[1]));
    tare_move_strides(strides, &in->shape);
    for (int i = 0; i < count; i++)
        joined *= in->shape.dims[axes[i]];
    status = TARE_OK;
    for (int64_t i = 0; status == TARE_OK && i < kernel->outputs[0].elements; i++) {
        int64_t base = 0, left = i;
        for (int d = in->shape.rank - 1; d >= 0; d--) {
            if (reduced[d]) continue;
            base += left % in->shape.dims[d] * strides[d];
            left /= in->shape.dims[d];
        }
        for (int64_t j = 0; j < joined; j++) {
            int64_t at = base;
            struct tare_str text;
            left = j;
            for (int k = 0; k < count; k++) {
                at += left % in->shape.dims[axes[k]] * strides[axes[k]];
                left /= in->shape.dims[axes[k]];
            }
            text = tare_text_at(in, at);
            if (j) tare_strbuf_puts(&buf, separator);
            tare_strbuf_append(&buf, text.data, text.size);
        }
        status = tare_text_store(&kernel->outputs[0], i, &buf);
    }
    tare_strbuf_free(&buf);
    return status;
}

/* ---- UnsortedSegmentJoin ---- */

static tare_status infer_segment_join(struct tare_infer *infer) {
    const struct tare_shape *in = &infer->inputs[0], *ids = &infer->inputs[1];
    struct tare_shape front = *in;
    int64_t segments = -1;
    TARE_TRY(tare_operand_rank(infer, 2, "num_segments", 0));
    if (tare_operand_scalar(infer, 2, &segments) && segments < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "num_segments must be non-negative (got %lld)", (long long)segments);
    if (in->rank == TARE_UNKNOWN_RANK || ids->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (ids->rank < front.rank) front.rank = ids->rank;
    if (!tare_shape_compatible(&front, ids))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment_ids.shape must be a prefix of data.shape");
    infer->outputs[0] = tare_operand_vector_shape(segments);
    return tare_operand_append(&infer->outputs[0], in, ids->rank, in->rank);
}

static tare_status run_segment_join(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0], *ids = &kernel->inputs[1];
    const char *separator = tare_node_string(kernel->node, "separator", "");
    struct tare_tensor *out = &kernel->outputs[0];
    int64_t segments, inner;
    struct tare_strbuf buf = { 0 };
    tare_status status = TARE_OK;
    int64_t *first, *next; /* linked list of rows per segment, in order */
    TARE_TRY(tare_operand_output(kernel, 0));
    segments = out->shape.dims[0];
    inner = tare_move_product(&in->shape, ids->shape.rank, in->shape.rank);
    first = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)segments + 1);
    next = TARE_NEW_ARRAY(kernel->scratch, int64_t, (size_t)ids->elements + 1);
    if (!first || !next) return TARE_NO_MEMORY;
    for (int64_t i = ids->elements - 1; i >= 0; i--) {
        int64_t id = tare_tensor_get_i64(ids, i);
        if (id < 0 || id >= segments)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "segment_ids[%lld] = %lld is not in [0, %lld)", (long long)i,
                             (long long)id, (long long)segments);
        next[i] = first[id];
        first[id] = i + 1;
    }
    for (int64_t i = 0; status == TARE_OK && i < out->elements; i++) {
        for (int64_t row = first[i / inner]; row; row = next[row - 1]) {
            struct tare_str text = tare_text_at(in, (row - 1) * inner + i % inner);
            if (buf.size) tare_strbuf_puts(&buf, separator); /* none behind empty strings alone */
            tare_strbuf_append(&buf, text.data, text.size);
        }
        status = tare_text_store(out, i, &buf);
    }
    tare_strbuf_free(&buf);
    return status;
}

const struct tare_op tare_ops_string_split[] = {
    { .name = "ReduceJoin", .infer = infer_reduce_join, .run = run_reduce_join },
    { .name = "StringSplit", .infer = infer_split, .run = run_split },
    { .name = "StringSplitV2", .infer = infer_split, .run = run_split },
    { .name = "UnsortedSegmentJoin", .infer = infer_segment_join, .run = run_segment_join },
    { 0 },
};

/* Implementation of lists of tensors (element_list.h). Items are shared tensor references, so copying, stacking a
 * single item or reading an item does not copy elements. */
#include "interpreter/ops/control/element_list.h"

#include "base/alloc.h"
#include "interpreter/ops/support/move.h"

#include <string.h>

enum { MOST_ITEMS = 1 << 28 }; /* far above any real model; bounds the memory that a corrupt count can request */

struct tare_list *tare_list_new(const struct tare_object_type *type, int dtype, const struct tare_shape *shape) {
    struct tare_list *list = tare_calloc(1, sizeof *list);
    if (!list) return NULL;
    tare_object_init(&list->object, type);
    list->dtype = dtype;
    list->shape = *shape;
    list->most = -1;
    return list;
}

void tare_list_empty(struct tare_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].dtype) tare_tensor_reset(&list->items[i]);
    tare_free(list->items);
    list->items = NULL;
    list->count = list->capacity = 0;
}

void tare_list_destroy(struct tare_object *object) {
    tare_list_empty((struct tare_list *)object);
    tare_free(object);
}

tare_status tare_list_resize(struct tare_list *list, int64_t count) {
    if (count < 0 || count > MOST_ITEMS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a list of %lld elements", (long long)count);
    if (list->most >= 0 && count > list->most)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the list would have %lld elements (expected at most %lld)",
                         (long long)count, (long long)list->most);
    for (size_t i = (size_t)count; i < list->count; i++)
        if (list->items[i].dtype) tare_tensor_reset(&list->items[i]);
    if ((size_t)count > list->capacity &&
        !tare_grow((void **)&list->items, &list->capacity, (size_t)count, sizeof *list->items))
        return TARE_NO_MEMORY;
    for (size_t i = list->count; i < (size_t)count; i++)
        list->items[i] = (struct tare_tensor){ 0 };
    list->count = (size_t)count;
    return TARE_OK;
}

tare_status tare_list_copy(struct tare_list **out, const struct tare_list *list) {
    struct tare_list *copy = tare_list_new(list->object.type, list->dtype, &list->shape);
    if (!copy) return TARE_NO_MEMORY;
    if (tare_list_resize(copy, (int64_t)list->count) != TARE_OK) {
        tare_object_unref(&copy->object);
        return TARE_NO_MEMORY;
    }
    copy->most = list->most;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].dtype) tare_tensor_share(&copy->items[i], &list->items[i]);
    *out = copy;
    return TARE_OK;
}

static tare_status check_value(const struct tare_list *list, const struct tare_tensor *value) {
    char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    if (value->dtype != list->dtype)
        return TARE_FAIL(TARE_TYPE, "an element is %s (expected %s)", tare_dtype_name(value->dtype),
                         tare_dtype_name(list->dtype));
    if (!tare_shape_compatible(&value->shape, &list->shape))
        return TARE_FAIL(TARE_SHAPE, "an element has shape %s (expected %s)", tare_shape_text(got, &value->shape),
                         tare_shape_text(expected, &list->shape));
    return TARE_OK;
}

tare_status tare_list_set(struct tare_list *list, size_t i, const struct tare_tensor *value) {
    TARE_TRY(check_value(list, value));
    if (list->items[i].dtype) tare_tensor_reset(&list->items[i]);
    tare_tensor_share(&list->items[i], value);
    return TARE_OK;
}

/* Merges all that is known of the element shape: the list's shape, `shape`, and the shapes of all items that are
 * set. */
static tare_status list_element_shape(struct tare_shape *out, const struct tare_list *list,
                                      const struct tare_shape *shape) {
    TARE_TRY(tare_shape_merge(out, &list->shape, shape));
    for (size_t i = 0; i < list->count && !tare_shape_is_known(out); i++)
        if (list->items[i].dtype) TARE_TRY(tare_shape_merge(out, out, &list->items[i].shape));
    return TARE_OK;
}

static tare_status make_zeros(struct tare_tensor *out, int dtype, const struct tare_shape *shape,
                              struct tare_buffer_pool *pool) {
    char text[TARE_SHAPE_TEXT_SIZE];
    if (!tare_shape_is_known(shape))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "cannot read an element that was not set: its shape is unknown (got %s)",
                         tare_shape_text(text, shape));
    TARE_TRY(tare_tensor_new_pooled(out, dtype, shape, pool));
    tare_move_zero(out, 0, out->elements);
    return TARE_OK;
}

tare_status tare_list_get(struct tare_tensor *out, const struct tare_list *list, size_t i,
                          const struct tare_shape *shape, struct tare_buffer_pool *pool) {
    struct tare_shape merged;
    if (!list->items[i].dtype) {
        TARE_TRY(list_element_shape(&merged, list, shape));
        return make_zeros(out, list->dtype, &merged, pool);
    }
    TARE_TRY(tare_shape_merge(&merged, &list->items[i].shape, shape));
    tare_tensor_share(out, &list->items[i]);
    return TARE_OK;
}

tare_status tare_list_stack(struct tare_kernel *kernel, size_t k, const struct tare_list *list, const int32_t *at,
                            size_t n, const struct tare_shape *shape) {
    struct tare_tensor *out = &kernel->outputs[k];
    struct tare_shape element, stacked = { .rank = 1, .dims = { (int64_t)n } };
    char text[TARE_SHAPE_TEXT_SIZE];
    int64_t size;
    TARE_TRY(list_element_shape(&element, list, shape));
    if (!tare_shape_is_known(&element))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Tried to stack elements of a list with non-fully-defined element_shape: %s",
                         tare_shape_text(text, &element));
    if (element.rank + 1 > TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "elements of rank %d", element.rank);
    for (int d = 0; d < element.rank; d++)
        stacked.dims[stacked.rank++] = element.dims[d];
    TARE_TRY(tare_kernel_output(kernel, k, list->dtype, &stacked));
    TARE_TRY(tare_shape_elements(&size, &element));
    for (size_t i = 0; i < n; i++) {
        const struct tare_tensor *item = &list->items[at ? (size_t)at[i] : i];
        if (!item->dtype) {
            tare_move_zero(out, (int64_t)i * size, size);
            continue;
        }
        if (!tare_shape_equal(&item->shape, &element)) {
            char expected[TARE_SHAPE_TEXT_SIZE];
            return TARE_FAIL(TARE_SHAPE, "element %zu has shape %s (expected %s)", i,
                             tare_shape_text(text, &item->shape), tare_shape_text(expected, &element));
        }
        TARE_TRY(tare_move_run(out, (int64_t)i * size, item, 0, size));
    }
    return TARE_OK;
}

/* Size of item i along axis 0 of the concatenation. */
static tare_status leading_dim(int64_t *out, const struct tare_list *list, size_t i,
                               const struct tare_tensor *leading) {
    const struct tare_tensor *item = &list->items[i];
    if (item->dtype && item->shape.rank < 1) return TARE_FAIL(TARE_SHAPE, "element %zu is a scalar", i);
    if (item->dtype) {
        *out = item->shape.dims[0];
        return TARE_OK;
    }
    if (!leading || (int64_t)i >= leading->elements || tare_tensor_get_i64(leading, (int64_t)i) < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "element %zu was not set", i);
    *out = tare_tensor_get_i64(leading, (int64_t)i);
    return TARE_OK;
}

/* The known part of an element's shape without axis 0. */
static tare_status rest_shape(struct tare_shape *out, const struct tare_list *list, const struct tare_shape *rest) {
    char text[TARE_SHAPE_TEXT_SIZE];
    *out = *rest;
    for (size_t i = 0; i < list->count; i++) {
        struct tare_shape tail;
        if (!list->items[i].dtype || list->items[i].shape.rank < 1) continue;
        tail = (struct tare_shape){ .rank = list->items[i].shape.rank - 1 };
        memcpy(tail.dims, list->items[i].shape.dims + 1, (size_t)tail.rank * sizeof *tail.dims);
        TARE_TRY(tare_shape_merge(out, out, &tail));
    }
    if (list->count == 0 && out->rank < 0) *out = tare_shape_scalar();
    if (tare_shape_is_known(out) && out->rank < TARE_MAX_RANK) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "the shape of the elements after axis 0 is unknown (got %s)",
                     tare_shape_text(text, out));
}

tare_status tare_list_concat(struct tare_kernel *kernel, size_t k, const struct tare_list *list,
                             const struct tare_shape *rest, const struct tare_tensor *leading_dims) {
    struct tare_shape tail, whole = { .rank = 1 }, count = tare_shape_make(1, 0);
    struct tare_tensor *out = &kernel->outputs[k], *lengths = &kernel->outputs[k + 1];
    int64_t row, at = 0;
    TARE_TRY(rest_shape(&tail, list, rest));
    TARE_TRY(tare_shape_elements(&row, &tail));
    count.dims[0] = (int64_t)list->count;
    TARE_TRY(tare_kernel_output(kernel, k + 1, TARE_DT_INT64, &count));
    for (size_t i = 0; i < list->count; i++) {
        int64_t *length = &TARE_DATA(int64_t, lengths)[i];
        TARE_TRY(leading_dim(length, list, i, leading_dims));
        if (!tare_add_i64(&whole.dims[0], whole.dims[0], *length))
            return TARE_FAIL(TARE_SHAPE, "the elements are too many");
    }
    for (int d = 0; d < tail.rank; d++)
        whole.dims[whole.rank++] = tail.dims[d];
    TARE_TRY(tare_kernel_output(kernel, k, list->dtype, &whole));
    for (size_t i = 0; i < list->count; i++) {
        int64_t n = TARE_DATA(int64_t, lengths)[i] * row;
        if (list->items[i].dtype)
            TARE_TRY(tare_move_run(out, at, &list->items[i], 0, n));
        else
            tare_move_zero(out, at, n);
        at += n;
    }
    return TARE_OK;
}

static tare_status share_piece(struct tare_tensor *out, const struct tare_tensor *tensor, int64_t first, int64_t count,
                               bool drop_axis) {
    struct tare_tensor rows;
    struct tare_shape shape = { .rank = tensor->shape.rank - 1 };
    tare_status status;
    TARE_TRY(tare_tensor_share_rows(&rows, tensor, first, count));
    if (!drop_axis) {
        *out = rows;
        return TARE_OK;
    }
    memcpy(shape.dims, tensor->shape.dims + 1, (size_t)shape.rank * sizeof *shape.dims);
    status = tare_tensor_share_as(out, &rows, &shape);
    tare_tensor_reset(&rows);
    return status;
}

tare_status tare_list_fill_rows(struct tare_list *list, const struct tare_tensor *tensor) {
    if (tensor->shape.rank < 1) return TARE_FAIL(TARE_SHAPE, "a scalar has no rows");
    TARE_TRY(tare_list_resize(list, tensor->shape.dims[0]));
    for (size_t i = 0; i < list->count; i++) {
        struct tare_tensor row;
        tare_status status;
        TARE_TRY(share_piece(&row, tensor, (int64_t)i, 1, true));
        status = tare_list_set(list, i, &row);
        tare_tensor_reset(&row);
        if (status != TARE_OK) return status;
    }
    return TARE_OK;
}

tare_status tare_list_fill_pieces(struct tare_list *list, const struct tare_tensor *tensor,
                                  const struct tare_tensor *lengths) {
    int64_t at = 0;
    if (tensor->shape.rank < 1) return TARE_FAIL(TARE_SHAPE, "a scalar has no rows");
    TARE_TRY(tare_list_resize(list, lengths->elements));
    for (size_t i = 0; i < list->count; i++) {
        int64_t length = tare_tensor_get_i64(lengths, (int64_t)i);
        struct tare_tensor piece;
        tare_status status;
        TARE_TRY(share_piece(&piece, tensor, at, length, false));
        status = tare_list_set(list, i, &piece);
        tare_tensor_reset(&piece);
        if (status != TARE_OK) return status;
        at += length;
    }
    if (at != tensor->shape.dims[0])
        return TARE_FAIL(TARE_SHAPE, "the lengths add up to %lld (expected %lld)", (long long)at,
                         (long long)tensor->shape.dims[0]);
    return TARE_OK;
}

tare_status tare_list_shape_from(struct tare_shape *out, const struct tare_tensor *tensor) {
    int64_t dims[TARE_MAX_RANK];
    *out = tare_shape_unknown();
    if (tensor->shape.rank == 0) {
        if (tare_tensor_get_i64(tensor, 0) == -1) return TARE_OK;
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "an element shape of one number (expected -1, got %lld)",
                         (long long)tare_tensor_get_i64(tensor, 0));
    }
    if (tensor->shape.rank != 1 || tensor->elements > TARE_MAX_RANK)
        return TARE_FAIL(TARE_SHAPE, "an element shape of %lld numbers", (long long)tensor->elements);
    for (int64_t d = 0; d < tensor->elements; d++)
        dims[d] = tare_tensor_get_i64(tensor, d);
    return tare_shape_from_dims(out, (int)tensor->elements, dims);
}

/* TensorLists: immutable values stored in a variant. An op that changes a list returns a new list, and reuses the
 * old one's storage if the node holds the only reference. */
#include "interpreter/inference/infer.h"
#include "interpreter/ops/control/element_list.h"
#include "interpreter/ops/families.h"

#include "interpreter/execution/variable.h"

#include <string.h>

static const struct tare_object_type list_type = { "TensorList", tare_list_destroy };

static tare_status list_of(struct tare_list **out, const struct tare_tensor *handle) {
    struct tare_object *object = NULL;
    TARE_TRY(tare_handle_object(&object, handle, &list_type));
    *out = (struct tare_list *)object;
    return TARE_OK;
}

/* Sets output i to a scalar variant that contains the list; takes ownership of the reference. */
static tare_status return_list(struct tare_kernel *kernel, size_t i, struct tare_list *list) {
    struct tare_shape scalar = tare_shape_scalar();
    tare_status status = tare_kernel_output(kernel, i, TARE_DT_VARIANT, &scalar);
    if (status == TARE_OK)
        tare_tensor_set_object(&kernel->outputs[i], 0, &list->object);
    else
        tare_object_unref(&list->object);
    return status;
}

/* Returns the list of input 0 for modification and sets output 0 to it: the same object if this node holds the only
 * reference, otherwise a copy. */
static tare_status change(struct tare_list **out, struct tare_kernel *kernel) {
    struct tare_list *list = NULL, *copy = NULL;
    TARE_TRY(list_of(&list, &kernel->inputs[0]));
    if (kernel->may_reuse_input0 && list->object.references == 1) {
        *out = list;
        return tare_kernel_forward(kernel, 0, 0);
    }
    TARE_TRY(tare_list_copy(&copy, list));
    *out = copy;
    return return_list(kernel, 0, copy);
}

static tare_status new_list(struct tare_list **out, const struct tare_kernel *kernel, const struct tare_tensor *shape) {
    struct tare_shape element = tare_shape_unknown();
    if (shape) TARE_TRY(tare_list_shape_from(&element, shape));
    *out = tare_list_new(&list_type, tare_node_type(kernel->node, "element_dtype", TARE_DT_INVALID), &element);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status scalar_at(int64_t *out, const struct tare_tensor *tensor, const char *what) {
    if (tensor->elements != 1)
        return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected 1)", what, (long long)tensor->elements);
    *out = tare_tensor_get_i64(tensor, 0);
    return TARE_OK;
}

static tare_status check_dtype(const struct tare_kernel *kernel, const struct tare_list *list) {
    int expected = tare_node_type(kernel->node, "element_dtype", list->dtype);
    if (list->dtype == expected) return TARE_OK;
    return TARE_FAIL(TARE_TYPE, "the list contains %s (expected %s)", tare_dtype_name(list->dtype),
                     tare_dtype_name(expected));
}

static tare_status index_at(size_t *out, const struct tare_tensor *tensor, const struct tare_list *list) {
    int64_t index = 0;
    TARE_TRY(scalar_at(&index, tensor, "index"));
    if (index < 0 || (size_t)index >= list->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Trying to access element %lld in a list with %zu elements.",
                         (long long)index, list->count);
    *out = (size_t)index;
    return TARE_OK;
}

/* ---- creating ---- */

static tare_status finish_new(struct tare_kernel *kernel, struct tare_list *list, tare_status status) {
    if (status == TARE_OK) return return_list(kernel, 0, list);
    tare_object_unref(&list->object);
    return status;
}

static tare_status run_empty(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    int64_t most = 0;
    TARE_TRY(scalar_at(&most, &kernel->inputs[1], "max_num_elements"));
    TARE_TRY(new_list(&list, kernel, &kernel->inputs[0]));
    list->most = most;
    return return_list(kernel, 0, list);
}

static tare_status run_reserve(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    int64_t count = 0;
    TARE_TRY(scalar_at(&count, &kernel->inputs[1], "num_elements"));
    TARE_TRY(new_list(&list, kernel, &kernel->inputs[0]));
    return finish_new(kernel, list, tare_list_resize(list, count));
}

static tare_status run_from_tensor(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    TARE_TRY(new_list(&list, kernel, &kernel->inputs[1]));
    return finish_new(kernel, list, tare_list_fill_rows(list, &kernel->inputs[0]));
}

static tare_status run_split(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    TARE_TRY(new_list(&list, kernel, NULL));
    return finish_new(kernel, list, tare_list_fill_pieces(list, &kernel->inputs[0], &kernel->inputs[2]));
}

/* Stores row k of the tensor as element indices[k]; the list grows as needed. */
static tare_status scatter(struct tare_list *list, const struct tare_tensor *tensor,
                           const struct tare_tensor *indices) {
    struct tare_list rows = { .dtype = list->dtype, .shape = list->shape, .most = -1 };
    tare_status status = tare_list_fill_rows(&rows, tensor);
    if (status == TARE_OK && (int64_t)rows.count != indices->elements)
        status = TARE_FAIL(TARE_SHAPE, "%zu rows for %lld indices", rows.count, (long long)indices->elements);
    for (size_t i = 0; i < rows.count && status == TARE_OK; i++) {
        int64_t index = tare_tensor_get_i64(indices, (int64_t)i);
        if (index < 0) status = TARE_FAIL(TARE_INVALID_ARGUMENT, "index %lld", (long long)index);
        if (status == TARE_OK && (size_t)index >= list->count) status = tare_list_resize(list, index + 1);
        if (status == TARE_OK) status = tare_list_set(list, (size_t)index, &rows.items[i]);
    }
    tare_list_empty(&rows);
    return status;
}

static tare_status run_scatter(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    int64_t count = -1;
    tare_status status = TARE_OK;
    if (kernel->n_inputs > 3) TARE_TRY(scalar_at(&count, &kernel->inputs[3], "num_elements"));
    TARE_TRY(new_list(&list, kernel, &kernel->inputs[2]));
    if (count >= 0) status = tare_list_resize(list, count);
    if (status == TARE_OK) status = scatter(list, &kernel->inputs[0], &kernel->inputs[1]);
    return finish_new(kernel, list, status);
}

/* ---- updating ---- */

static tare_status run_scatter_into(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    TARE_TRY(change(&list, kernel));
    TARE_TRY(check_dtype(kernel, list));
    return scatter(list, &kernel->inputs[1], &kernel->inputs[2]);
}

static tare_status run_set_item(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    int64_t index = 0;
    size_t at = 0;
    TARE_TRY(change(&list, kernel));
    TARE_TRY(check_dtype(kernel, list));
    TARE_TRY(scalar_at(&index, &kernel->inputs[1], "index"));
    if (tare_node_bool(kernel->node, "resize_if_index_out_of_bounds", false) && index >= (int64_t)list->count)
        TARE_TRY(tare_list_resize(list, index + 1));
    TARE_TRY(index_at(&at, &kernel->inputs[1], list));
    return tare_list_set(list, at, &kernel->inputs[2]);
}

static tare_status run_push_back(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    TARE_TRY(change(&list, kernel));
    TARE_TRY(check_dtype(kernel, list));
    TARE_TRY(tare_list_resize(list, (int64_t)list->count + 1));
    return tare_list_set(list, list->count - 1, &kernel->inputs[1]);
}

static tare_status run_pop_back(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    struct tare_shape shape;
    TARE_TRY(change(&list, kernel));
    TARE_TRY(check_dtype(kernel, list));
    TARE_TRY(tare_list_shape_from(&shape, &kernel->inputs[1]));
    if (!list->count) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Trying to pop from an empty list.");
    TARE_TRY(tare_list_get(&kernel->outputs[1], list, list->count - 1, &shape, kernel->pool));
    return tare_list_resize(list, (int64_t)list->count - 1);
}

static tare_status run_resize(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    int64_t count = 0;
    TARE_TRY(scalar_at(&count, &kernel->inputs[1], "size"));
    TARE_TRY(change(&list, kernel));
    return tare_list_resize(list, count);
}

static tare_status run_concat_lists(struct tare_kernel *kernel) {
    struct tare_list *list = NULL, *other = NULL;
    size_t first;
    TARE_TRY(list_of(&other, &kernel->inputs[1]));
    TARE_TRY(change(&list, kernel));
    first = list->count;
    TARE_TRY(tare_list_resize(list, (int64_t)(first + other->count)));
    for (size_t i = 0; i < other->count; i++)
        if (other->items[i].dtype) TARE_TRY(tare_list_set(list, first + i, &other->items[i]));
    return TARE_OK;
}

/* ---- reading ---- */

static tare_status run_length(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(list_of(&list, &kernel->inputs[0]));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &scalar));
    TARE_DATA(int32_t, &kernel->outputs[0])[0] = (int32_t)list->count;
    return TARE_OK;
}

static tare_status run_element_shape(struct tare_kernel *kernel) {
    int dtype = kernel->node->output_dtypes[0];
    struct tare_list *list = NULL;
    struct tare_shape shape;
    TARE_TRY(list_of(&list, &kernel->inputs[0]));
    shape = list->shape.rank < 0 ? tare_shape_scalar() : tare_shape_make(1, list->shape.rank);
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &shape));
    for (int64_t d = 0; d < kernel->outputs[0].elements; d++) {
        int64_t dim = list->shape.rank < 0 ? -1 : list->shape.dims[d];
        if (dtype == TARE_DT_INT64)
            TARE_DATA(int64_t, &kernel->outputs[0])[d] = dim;
        else
            TARE_DATA(int32_t, &kernel->outputs[0])[d] = (int32_t)dim;
    }
    return TARE_OK;
}

static tare_status run_get_item(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    struct tare_shape shape;
    size_t at = 0;
    TARE_TRY(list_of(&list, &kernel->inputs[0]));
    TARE_TRY(check_dtype(kernel, list));
    TARE_TRY(index_at(&at, &kernel->inputs[1], list));
    TARE_TRY(tare_list_shape_from(&shape, &kernel->inputs[2]));
    return tare_list_get(&kernel->outputs[0], list, at, &shape, kernel->pool);
}

static tare_status run_stack(struct tare_kernel *kernel) {
    int64_t expected = tare_node_int(kernel->node, "num_elements", -1);
    struct tare_list *list = NULL;
    struct tare_shape shape;
    TARE_TRY(list_of(&list, &kernel->inputs[0]));
    TARE_TRY(check_dtype(kernel, list));
    TARE_TRY(tare_list_shape_from(&shape, &kernel->inputs[1]));
    if (expected >= 0 && (size_t)expected != list->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Operation expected a list with %lld elements but got a list with %zu elements.",
                         (long long)expected, list->count);
    return tare_list_stack(kernel, 0, list, NULL, list->count, &shape);
}

static tare_status run_gather(struct tare_kernel *kernel) {
    const struct tare_tensor *indices = &kernel->inputs[1];
    struct tare_list *list = NULL;
    struct tare_shape shape;
    TARE_TRY(list_of(&list, &kernel->inputs[0]));
    TARE_TRY(check_dtype(kernel, list));
    TARE_TRY(tare_list_shape_from(&shape, &kernel->inputs[2]));
    for (int64_t i = 0; i < indices->elements; i++) {
        int32_t index = TARE_CONST_DATA(int32_t, indices)[i];
        if (index < 0 || (size_t)index >= list->count)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Trying to gather element %d in a list with %zu elements.", index,
                             list->count);
    }
    return tare_list_stack(kernel, 0, list, indices->data, (size_t)indices->elements, &shape);
}

static tare_status concat(struct tare_kernel *kernel, const struct tare_shape *element,
                          const struct tare_tensor *leading) {
    struct tare_shape rest = tare_shape_unknown();
    struct tare_list *list = NULL;
    TARE_TRY(list_of(&list, &kernel->inputs[0]));
    TARE_TRY(check_dtype(kernel, list));
    if (element->rank > 0) {
        rest.rank = element->rank - 1;
        memcpy(rest.dims, element->dims + 1, (size_t)rest.rank * sizeof *rest.dims);
    }
    return tare_list_concat(kernel, 0, list, &rest, leading);
}

static tare_status run_concat(struct tare_kernel *kernel) {
    struct tare_shape shape = tare_shape_unknown();
    tare_node_shape(kernel->node, "element_shape", &shape);
    return concat(kernel, &shape, NULL);
}

static tare_status run_concat_v2(struct tare_kernel *kernel) {
    struct tare_shape shape;
    TARE_TRY(tare_list_shape_from(&shape, &kernel->inputs[1]));
    return concat(kernel, &shape, &kernel->inputs[2]);
}

/* ---- shapes ---- */

static tare_status infer_pop_back(struct tare_infer *infer) {
    infer->outputs[0] = tare_shape_scalar();
    return tare_infer_shape_input(&infer->outputs[1], infer, 1);
}

static tare_status infer_get_item(struct tare_infer *infer) {
    return tare_infer_shape_input(&infer->outputs[0], infer, 2);
}

static tare_status infer_element_shape(struct tare_infer *infer) {
    (void)infer; /* a vector, or the scalar -1 */
    return TARE_OK;
}

static void prepend_dim(struct tare_shape *out, int64_t first, const struct tare_shape *element) {
    if (element->rank < 0 || element->rank == TARE_MAX_RANK) return;
    *out = (struct tare_shape){ .rank = element->rank + 1, .dims = { first } };
    memcpy(out->dims + 1, element->dims, (size_t)element->rank * sizeof *element->dims);
}

static tare_status infer_stack(struct tare_infer *infer) {
    struct tare_shape element;
    TARE_TRY(tare_infer_shape_input(&element, infer, 1));
    prepend_dim(&infer->outputs[0], tare_node_int(infer->node, "num_elements", -1), &element);
    return TARE_OK;
}

static tare_status infer_gather(struct tare_infer *infer) {
    struct tare_shape element;
    TARE_TRY(tare_infer_shape_input(&element, infer, 2));
    prepend_dim(&infer->outputs[0], infer->inputs[1].rank == 1 ? infer->inputs[1].dims[0] : -1, &element);
    return TARE_OK;
}

static tare_status infer_concat(struct tare_infer *infer) {
    infer->outputs[1] = tare_shape_make(1, TARE_UNKNOWN_DIM);
    return TARE_OK;
}

#define LIST_OP(op, shapes, kernel, extra)                                                                             \
    { .name = op, .infer = shapes, .run = kernel, .flags = extra }

const struct tare_op tare_ops_tensor_list[] = {
    LIST_OP("EmptyTensorList", tare_infer_scalar, run_empty, 0),
    LIST_OP("TensorListReserve", tare_infer_scalar, run_reserve, 0),
    LIST_OP("TensorListFromTensor", tare_infer_scalar, run_from_tensor, 0),
    LIST_OP("TensorListSplit", tare_infer_scalar, run_split, 0),
    LIST_OP("TensorListScatter", tare_infer_scalar, run_scatter, 0),
    LIST_OP("TensorListScatterV2", tare_infer_scalar, run_scatter, 0),
    LIST_OP("TensorListScatterIntoExistingList", tare_infer_scalar, run_scatter_into, TARE_OP_IN_PLACE),
    LIST_OP("TensorListSetItem", tare_infer_scalar, run_set_item, TARE_OP_IN_PLACE),
    LIST_OP("TensorListPushBack", tare_infer_scalar, run_push_back, TARE_OP_IN_PLACE),
    LIST_OP("TensorListPopBack", infer_pop_back, run_pop_back, TARE_OP_IN_PLACE),
    LIST_OP("TensorListResize", tare_infer_scalar, run_resize, TARE_OP_IN_PLACE),
    LIST_OP("TensorListConcatLists", tare_infer_scalar, run_concat_lists, TARE_OP_IN_PLACE),
    LIST_OP("TensorListLength", tare_infer_scalar, run_length, 0),
    LIST_OP("TensorListElementShape", infer_element_shape, run_element_shape, 0),
    LIST_OP("TensorListGetItem", infer_get_item, run_get_item, 0),
    LIST_OP("TensorListStack", infer_stack, run_stack, 0),
    LIST_OP("TensorListGather", infer_gather, run_gather, 0),
    LIST_OP("TensorListConcat", infer_concat, run_concat, 0),
    LIST_OP("TensorListConcatV2", infer_concat, run_concat_v2, 0),
    { 0 },
};

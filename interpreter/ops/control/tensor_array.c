/* TensorArrays: an object that a loop writes and reads by index. The flow value only orders the nodes. The handle is
 * a resource (V3), a reference (V1), or a string that contains the number of the object in the run (V2). */
#include "interpreter/ops/control/element_list.h"
#include "interpreter/ops/families.h"

#include "interpreter/execution/variable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tare_object_type array_type = { "TensorArray", tare_list_destroy };

static tare_status infer_nothing(struct tare_infer *infer) {
    (void)infer;
    return TARE_OK;
}

/* Prefix of a string handle, followed by the object number. */
static const char handle_stem[] = "_tensor_arrays/";

static tare_status array_of_text(struct tare_object **out, const struct tare_kernel *kernel) {
    const struct tare_tensor *handle = &kernel->inputs[0];
    const struct tare_str *text = handle->elements == 1 ? handle->data : NULL;
    const size_t stem = sizeof handle_stem - 1;
    char digits[24] = "";
    char *end = digits;
    struct tare_object *object = NULL;
    if (text && text->size > stem && text->size - stem < sizeof digits && memcmp(text->data, handle_stem, stem) == 0) {
        memcpy(digits, text->data + stem, text->size - stem);
        object = tare_session_find_run_object(kernel->session, strtoll(digits, &end, 10));
    }
    if (!object || *end || object->type != &array_type)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the handle does not refer to a TensorArray of this run");
    *out = object;
    return TARE_OK;
}

static tare_status array_of(struct tare_list **out, const struct tare_kernel *kernel) {
    struct tare_object *object = NULL;
    struct tare_list *list = NULL;
    if (kernel->inputs[0].dtype == TARE_DT_STRING)
        TARE_TRY(array_of_text(&object, kernel));
    else
        TARE_TRY(tare_handle_object(&object, &kernel->inputs[0], &array_type));
    list = (struct tare_list *)object;
    if (list->closed) return TARE_FAIL(TARE_INVALID_ARGUMENT, "TensorArray has already been closed.");
    *out = list;
    return TARE_OK;
}

static tare_status return_flow(struct tare_kernel *kernel, size_t i) {
    struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(tare_kernel_output(kernel, i, TARE_DT_FLOAT, &scalar));
    TARE_DATA(float, &kernel->outputs[i])[0] = 0;
    return TARE_OK;
}

static tare_status scalar_at(int64_t *out, const struct tare_tensor *tensor, const char *what) {
    if (tensor->elements != 1)
        return TARE_FAIL(TARE_SHAPE, "%s has %lld elements (expected 1)", what, (long long)tensor->elements);
    *out = tare_tensor_get_i64(tensor, 0);
    return TARE_OK;
}

/* The run owns the array; the handle is the text of its number. */
static tare_status return_text(struct tare_kernel *kernel, struct tare_list *list) {
    struct tare_shape scalar = tare_shape_scalar();
    char text[sizeof handle_stem + 24];
    size_t number;
    TARE_TRY(tare_session_add_run_object(&number, kernel->session, &list->object));
    snprintf(text, sizeof text, "%s%zu", handle_stem, number);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &scalar));
    return tare_tensor_set_string(&kernel->outputs[0], 0, text, strlen(text));
}

static tare_status run_array(struct tare_kernel *kernel) {
    struct tare_shape element = tare_shape_unknown();
    struct tare_list *list = NULL;
    int64_t size = 0;
    tare_status status;
    TARE_TRY(scalar_at(&size, &kernel->inputs[0], "size"));
    tare_node_shape(kernel->node, "element_shape", &element);
    list = tare_list_new(&array_type, tare_node_type(kernel->node, "dtype", TARE_DT_INVALID), &element);
    if (!list) return TARE_NO_MEMORY;
    list->dynamic = tare_node_bool(kernel->node, "dynamic_size", false);
    list->clear_after_read = tare_node_bool(kernel->node, "clear_after_read", true);
    status = tare_list_resize(list, size);
    if (status != TARE_OK) {
        tare_object_unref(&list->object);
        return status;
    }
    if (tare_dtype_base(kernel->node->output_dtypes[0]) == TARE_DT_STRING &&
        !tare_dtype_is_ref(kernel->node->output_dtypes[0]))
        return return_text(kernel, list);
    TARE_TRY(tare_handle_new(&kernel->outputs[0], &list->object));
    return kernel->n_outputs > 1 ? return_flow(kernel, 1) : TARE_OK;
}

/* Each index may be written once: a second write would be visible to nodes that have already read the first. */
static tare_status write_item(struct tare_list *list, int64_t index, const struct tare_tensor *value) {
    if (index < 0 || (index >= (int64_t)list->count && !list->dynamic))
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Tried to write to index %lld but array is not resizeable and size is: %zu", (long long)index,
                         list->count);
    if ((size_t)index >= list->count) TARE_TRY(tare_list_resize(list, index + 1));
    if (list->items[index].dtype)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Could not write to TensorArray index %lld because it has already been written to.",
                         (long long)index);
    return tare_list_set(list, (size_t)index, value);
}

static tare_status run_write(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    int64_t index = 0;
    TARE_TRY(array_of(&list, kernel));
    TARE_TRY(scalar_at(&index, &kernel->inputs[1], "index"));
    TARE_TRY(write_item(list, index, &kernel->inputs[2]));
    return return_flow(kernel, 0);
}

static tare_status run_read(struct tare_kernel *kernel) {
    struct tare_shape any = tare_shape_unknown();
    struct tare_list *list = NULL;
    int64_t index = 0;
    TARE_TRY(array_of(&list, kernel));
    TARE_TRY(scalar_at(&index, &kernel->inputs[1], "index"));
    if (index < 0 || index >= (int64_t)list->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Tried to read from index %lld but array size is: %zu",
                         (long long)index, list->count);
    TARE_TRY(tare_list_get(&kernel->outputs[0], list, (size_t)index, &any, kernel->pool));
    if (list->clear_after_read && list->items[index].dtype) tare_tensor_reset(&list->items[index]);
    return TARE_OK;
}

static tare_status run_gather(struct tare_kernel *kernel) {
    const struct tare_tensor *indices = &kernel->inputs[1];
    struct tare_shape element = tare_shape_unknown();
    struct tare_list *list = NULL;
    TARE_TRY(array_of(&list, kernel));
    tare_node_shape(kernel->node, "element_shape", &element);
    for (int64_t i = 0; i < indices->elements; i++) {
        int32_t index = TARE_CONST_DATA(int32_t, indices)[i];
        if (index < 0 || (size_t)index >= list->count)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Tried to read from index %d but array size is: %zu", index,
                             list->count);
    }
    return tare_list_stack(kernel, 0, list, indices->data, (size_t)indices->elements, &element);
}

static tare_status run_concat(struct tare_kernel *kernel) {
    struct tare_shape rest = tare_shape_unknown();
    struct tare_list *list = NULL;
    TARE_TRY(array_of(&list, kernel));
    tare_node_shape(kernel->node, "element_shape_except0", &rest);
    return tare_list_concat(kernel, 0, list, &rest, NULL);
}

/* Writes pieces[k] to index at[k], or to k without `at`. */
static tare_status write_pieces(struct tare_list *list, const struct tare_list *pieces, const struct tare_tensor *at) {
    if (at && at->elements != (int64_t)pieces->count)
        return TARE_FAIL(TARE_SHAPE, "Expected len(indices) == values.shape[0], but saw: %lld vs. %zu",
                         (long long)at->elements, pieces->count);
    for (size_t k = 0; k < pieces->count; k++)
        TARE_TRY(write_item(list, at ? tare_tensor_get_i64(at, (int64_t)k) : (int64_t)k, &pieces->items[k]));
    return TARE_OK;
}

static tare_status run_scatter(struct tare_kernel *kernel) {
    struct tare_list *list = NULL, pieces = { .shape = tare_shape_unknown(), .most = -1 };
    tare_status status;
    TARE_TRY(array_of(&list, kernel));
    pieces.dtype = list->dtype;
    status = tare_list_fill_rows(&pieces, &kernel->inputs[2]);
    if (status == TARE_OK) status = write_pieces(list, &pieces, &kernel->inputs[1]);
    tare_list_empty(&pieces);
    return status == TARE_OK ? return_flow(kernel, 0) : status;
}

/* TensorArrayUnpack: writes row k to index k and resizes the array to the number of rows. */
static tare_status run_unpack(struct tare_kernel *kernel) {
    struct tare_list *list = NULL, pieces = { .shape = tare_shape_unknown(), .most = -1 };
    tare_status status;
    TARE_TRY(array_of(&list, kernel));
    pieces.dtype = list->dtype;
    status = tare_list_fill_rows(&pieces, &kernel->inputs[1]);
    if (status == TARE_OK) status = write_pieces(list, &pieces, NULL);
    tare_list_empty(&pieces);
    return status == TARE_OK ? return_flow(kernel, 0) : status;
}

static tare_status run_pack(struct tare_kernel *kernel) {
    struct tare_shape element = tare_shape_unknown();
    struct tare_list *list = NULL;
    TARE_TRY(array_of(&list, kernel));
    tare_node_shape(kernel->node, "element_shape", &element);
    return tare_list_stack(kernel, 0, list, NULL, list->count, &element);
}

static tare_status run_split(struct tare_kernel *kernel) {
    struct tare_list *list = NULL, pieces = { .shape = tare_shape_unknown(), .most = -1 };
    tare_status status;
    TARE_TRY(array_of(&list, kernel));
    pieces.dtype = list->dtype;
    status = tare_list_fill_pieces(&pieces, &kernel->inputs[1], &kernel->inputs[2]);
    if (status == TARE_OK) status = write_pieces(list, &pieces, NULL);
    tare_list_empty(&pieces);
    return status == TARE_OK ? return_flow(kernel, 0) : status;
}

static tare_status run_size(struct tare_kernel *kernel) {
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_list *list = NULL;
    TARE_TRY(array_of(&list, kernel));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &scalar));
    TARE_DATA(int32_t, &kernel->outputs[0])[0] = (int32_t)list->count;
    return TARE_OK;
}

static tare_status run_close(struct tare_kernel *kernel) {
    struct tare_list *list = NULL;
    TARE_TRY(array_of(&list, kernel));
    list->closed = true;
    return tare_list_resize(list, 0);
}

/* ---- shapes ---- */

static tare_status infer_gather(struct tare_infer *infer) {
    struct tare_shape element = tare_shape_unknown(), *out = &infer->outputs[0];
    tare_node_shape(infer->node, "element_shape", &element);
    if (element.rank < 0 || element.rank == TARE_MAX_RANK) return TARE_OK;
    *out = (struct tare_shape){ .rank = element.rank + 1 };
    out->dims[0] = infer->inputs[1].rank == 1 ? infer->inputs[1].dims[0] : TARE_UNKNOWN_DIM;
    memcpy(out->dims + 1, element.dims, (size_t)element.rank * sizeof *element.dims);
    return TARE_OK;
}

static tare_status infer_concat(struct tare_infer *infer) {
    infer->outputs[1] = tare_shape_make(1, TARE_UNKNOWN_DIM);
    return TARE_OK;
}

#define ARRAY_FORM(op, shapes, kernel, extra)                                                                          \
    { .name = op, .infer = shapes, .run = kernel, .flags = extra }
/* The op in its three versions. */
#define ARRAY_OP(op, shapes, kernel)                                                                                   \
    ARRAY_FORM(op "V3", shapes, kernel, TARE_OP_STATEFUL), ARRAY_FORM(op "V2", shapes, kernel, TARE_OP_NO_FOLD),       \
        ARRAY_FORM(op, shapes, kernel, TARE_OP_NO_FOLD)
#define NEW_ARRAY(op)                                                                                                  \
    { .name = op, .infer = infer_nothing, .run = run_array, .flags = TARE_OP_STATEFUL }

const struct tare_op tare_ops_tensor_array[] = {
    NEW_ARRAY("TensorArrayV3"),
    NEW_ARRAY("TensorArrayV2"),
    NEW_ARRAY("TensorArray"),
    ARRAY_OP("TensorArrayWrite", tare_infer_scalar, run_write),
    ARRAY_OP("TensorArrayRead", infer_nothing, run_read),
    ARRAY_OP("TensorArrayGather", infer_gather, run_gather),
    ARRAY_OP("TensorArrayConcat", infer_concat, run_concat),
    ARRAY_OP("TensorArrayScatter", tare_infer_scalar, run_scatter),
    ARRAY_OP("TensorArraySplit", tare_infer_scalar, run_split),
    ARRAY_OP("TensorArraySize", tare_infer_scalar, run_size),
    ARRAY_OP("TensorArrayClose", infer_nothing, run_close),
    ARRAY_FORM("TensorArrayPack", infer_nothing, run_pack, TARE_OP_NO_FOLD),
    ARRAY_FORM("TensorArrayUnpack", tare_infer_scalar, run_unpack, TARE_OP_NO_FOLD),
    { 0 },
};

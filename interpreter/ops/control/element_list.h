/* A list of tensors of one dtype in which elements may be unset: the storage of TensorLists and TensorArrays. */
#ifndef TARE_INTERPRETER_OPS_CONTROL_ELEMENT_LIST_H
#define TARE_INTERPRETER_OPS_CONTROL_ELEMENT_LIST_H

#include "interpreter/kernel.h"

struct tare_list {
    struct tare_object object;
    int dtype;
    struct tare_shape shape;   /* known part of the element shape */
    struct tare_tensor *items; /* dtype INVALID: unset */
    size_t count, capacity;
    int64_t most; /* maximum number of elements; negative: unlimited */
    /* flags of a TensorArray */
    bool dynamic, clear_after_read, closed;
};

struct tare_list *tare_list_new(const struct tare_object_type *type, int dtype, const struct tare_shape *shape);
/* The destroy function of the object type. */
void tare_list_destroy(struct tare_object *object);
/* Releases the items and their array, for a list that is not an object. */
void tare_list_empty(struct tare_list *list);
/* Grows (with unset items) or shrinks the list. TARE_INVALID_ARGUMENT for a negative or excessive count. */
tare_status tare_list_resize(struct tare_list *list, int64_t count);
/* Creates a copy that shares the items. */
tare_status tare_list_copy(struct tare_list **out, const struct tare_list *list);
/* Replaces item i (in range) with a shared reference to `value`, whose dtype and shape must match the list. */
tare_status tare_list_set(struct tare_list *list, size_t i, const struct tare_tensor *value);
/* Returns item i, or zeros of `shape` (which must be fully known then) if it is unset. */
tare_status tare_list_get(struct tare_tensor *out, const struct tare_list *list, size_t i,
                          const struct tare_shape *shape, struct tare_buffer_pool *pool);
/* Output k: stacks the items at[0 … n-1] (NULL: the first n) along a new axis 0. */
tare_status tare_list_stack(struct tare_kernel *kernel, size_t k, const struct tare_list *list, const int32_t *at,
                            size_t n, const struct tare_shape *shape);
/* Output k: all items concatenated along axis 0; output k + 1: their lengths. `rest` is the element shape without
 * axis 0; unset items use leading_dims (NULL: all items must be set). */
tare_status tare_list_concat(struct tare_kernel *kernel, size_t k, const struct tare_list *list,
                             const struct tare_shape *rest, const struct tare_tensor *leading_dims);
/* Item i of the result is row i of `tensor`. */
tare_status tare_list_fill_rows(struct tare_list *list, const struct tare_tensor *tensor);
/* Splits the rows of `tensor` into items of lengths[0 … n-1] rows. */
tare_status tare_list_fill_pieces(struct tare_list *list, const struct tare_tensor *tensor,
                                  const struct tare_tensor *lengths);
/* Reads a shape from a tensor: the scalar -1 is an unknown shape, a vector contains the dimensions. */
tare_status tare_list_shape_from(struct tare_shape *out, const struct tare_tensor *tensor);

#endif

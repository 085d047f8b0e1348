/* A list of tensors of one dtype, some of them not set: the inside of TensorLists, TensorArrays and Stacks. */
#ifndef TARE_INTERPRETER_OPS_CONTROL_ELEMENT_LIST_H
#define TARE_INTERPRETER_OPS_CONTROL_ELEMENT_LIST_H

#include "interpreter/kernel.h"

struct tare_list {
    struct tare_object object;
    int dtype;
    struct tare_shape shape;   /* what is known of an element's */
    struct tare_tensor *items; /* dtype INVALID: not set */
    size_t count, capacity;
    int64_t most; /* elements that it may have; negative: any number */
    /* of a TensorArray */
    bool dynamic, clear_after_read, closed;
};

struct tare_list *tare_list_new(const struct tare_object_type *type, int dtype, const struct tare_shape *shape);
/* The type's destroy. */
void tare_list_destroy(struct tare_object *object);
/* Ends the items and their array; for a list that is no object. */
void tare_list_empty(struct tare_list *list);
/* More (not set) or fewer items. TARE_INVALID_ARGUMENT for a negative or absurd count. */
tare_status tare_list_resize(struct tare_list *list, int64_t count);
/* A copy that shares the items. */
tare_status tare_list_copy(struct tare_list **out, const struct tare_list *list);
/* Replaces item i (in range) by a share of `value`, whose dtype and shape must fit. */
tare_status tare_list_set(struct tare_list *list, size_t i, const struct tare_tensor *value);
/* What is known of an element: the list's shape, `shape`, and every item that is set. */
tare_status tare_list_element_shape(struct tare_shape *out, const struct tare_list *list,
                                    const struct tare_shape *shape);
/* Item i; zeros of `shape` (which must be known then) when it is not set. */
tare_status tare_list_get(struct tare_tensor *out, const struct tare_list *list, size_t i,
                          const struct tare_shape *shape, struct tare_buffer_pool *pool);
/* Output k: the items at[0 … n-1] (NULL: the first n) on a new axis 0. */
tare_status tare_list_stack(struct tare_kernel *kernel, size_t k, const struct tare_list *list, const int32_t *at,
                            size_t n, const struct tare_shape *shape);
/* Output k: all items one behind the other on axis 0; output k + 1: their lengths. `rest` is an element's shape without
 * axis 0; items not set take leading_dims (NULL: must all be set). */
tare_status tare_list_concat(struct tare_kernel *kernel, size_t k, const struct tare_list *list,
                             const struct tare_shape *rest, const struct tare_tensor *leading_dims);
/* Item i of the result is row i of `tensor`. */
tare_status tare_list_fill_rows(struct tare_list *list, const struct tare_tensor *tensor);
/* Rows of `tensor` in pieces of lengths[0 … n-1]. */
tare_status tare_list_fill_pieces(struct tare_list *list, const struct tare_tensor *tensor,
                                  const struct tare_tensor *lengths);
/* A shape from a tensor: -1 as a scalar is unknown, a vector its dims. */
tare_status tare_list_shape_from(struct tare_shape *out, const struct tare_tensor *tensor);

#endif

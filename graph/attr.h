/* Attribute values of nodes and functions (AttrValue in attr_value.proto), without protobuf. */
#ifndef TARE_GRAPH_ATTR_H
#define TARE_GRAPH_ATTR_H

#include "base/arena.h"
#include "base/tensor/tensor.h"

enum tare_attr_kind {
    TARE_ATTR_NONE, /* an AttrValue without a value */
    TARE_ATTR_STRING,
    TARE_ATTR_INT,
    TARE_ATTR_FLOAT,
    TARE_ATTR_BOOL,
    TARE_ATTR_TYPE,
    TARE_ATTR_SHAPE,
    TARE_ATTR_TENSOR,
    TARE_ATTR_FUNC,
    TARE_ATTR_PLACEHOLDER,
};

struct tare_graph;

struct tare_attr_list {
    struct tare_attr *attrs;
    size_t count;
};

/* A function name with attributes of its own (NameAttrList). Most have none, and the size of a union tare_attr_item is
 * that of this: the memory of graphs with many small nodes depends on it. */
struct tare_func {
    const char *name;
    struct tare_graph *graph;         /* the function, if `name` is its own name; see tare_model_function_of */
    const struct tare_attr_list *own; /* arena memory; NULL: none */
};

union tare_attr_item {
    struct tare_str s; /* STRING, PLACEHOLDER; NUL-terminated after `size` bytes */
    int64_t i;
    float f;
    bool b;
    int type;                       /* a dtype number, may be a reference dtype */
    const struct tare_shape *shape; /* in the arena */
    struct tare_tensor *tensor;
    struct tare_func func;
};

struct tare_attr {
    const char *name;
    enum tare_attr_kind kind; /* of the value, or of the list's items (NONE for an empty list of unknown kind) */
    bool is_list;
    size_t count;                /* items; 1 when not a list */
    union tare_attr_item *items; /* arena memory; never NULL when count > 0 */
    const void *origin; /* the message it was read from, which the exporter writes unchanged; NULL when created or
                           changed by tare */
};

#endif

/* An operand while it is followed from its stack to a layer: the shape of the value after each op, and the origin of
 * each axis. A step is false if the op is not one that can be followed; then `status` is that of memory. */
#ifndef TARE_QUANT_SELECTION_TRACE_H
#define TARE_QUANT_SELECTION_TRACE_H

#include "quant/selection/scaling.h"

struct tare_trace {
    struct tare_arena *arena;
    const struct tare_model_shapes *shapes;
    struct tare_quant_selection *selection;
    struct tare_shape stack, shape; /* of the value; -1: an axis of unknown size */
    int from[TARE_MAX_RANK];
    int depth;                        /* scales of scales */
    const struct tare_node *obstacle; /* the op that cannot be followed */
    int output;                       /* of the op that is followed */
    tare_status status;
};

/* Axis `axis` of the value. False: there would be too many axes, or `axis` is none. */
void tare_trace_remove_axis(struct tare_trace *t, int axis);
bool tare_trace_insert_axis(struct tare_trace *t, int axis, int64_t size, int from);
/* One entry of an axis is chosen, which stays as an axis of one element. */
bool tare_trace_choose(struct tare_trace *t, int axis, struct tare_edge edge, int element,
                       enum tare_quant_index_rule rule);
/* Appends an op that computes the weight from the entry. */
bool tare_trace_add_scaling(struct tare_trace *t, const struct tare_node *node, size_t operand);

/* A constant input of at most `most` elements; NULL: it is something else. */
const struct tare_tensor *tare_trace_constant(const struct tare_node *node, size_t input, int64_t most);
/* The number of an axis, from 0. False: it is none of `rank` axes. */
bool tare_trace_read_axis(int *out, const struct tare_tensor *value, int64_t rank);

/* Steps: Slice, XlaDynamicSlice, StridedSlice, Split, SplitV. */
bool tare_trace_slice(struct tare_trace *t, const struct tare_node *node);
bool tare_trace_xla_slice(struct tare_trace *t, const struct tare_node *node);
bool tare_trace_strided_slice(struct tare_trace *t, const struct tare_node *node);
bool tare_trace_split(struct tare_trace *t, const struct tare_node *node);
bool tare_trace_split_sizes(struct tare_trace *t, const struct tare_node *node);
/* Steps that add a factor: a product with one number for each index; SelectV2 of the entry or zeros, or NaN. */
bool tare_trace_multiply(struct tare_trace *t, const struct tare_node *node, size_t operand);
bool tare_trace_select(struct tare_trace *t, const struct tare_node *node);
/* The input of SelectV2 that is no fill. */
size_t tare_trace_selected(const struct tare_node *node);

#endif

/* Weights that a model computes from entries of stacks: codes in float8 or in integers, converted and multiplied by the
 * scales of the same entry. The layer's weight is then the stack of these products. */
#ifndef TARE_QUANT_SELECTION_SCALING_H
#define TARE_QUANT_SELECTION_SCALING_H

#include "quant/selection/selection.h"

/* An op between the choice and the product, which computes element by element. */
struct tare_quant_scaling {
    const struct tare_node *node;
    size_t operand;                           /* its input that comes from the stack */
    const struct tare_quant_selection *scale; /* the other one; NULL: there is none */
    int axes[TARE_MAX_RANK];                  /* by axis of the stack: that of the scale's stack; below 0: none */
    struct tare_shape shape;                  /* of a Reshape or a cut: the stack gets it */
    bool cuts;                                /* takes a part of an axis of the stack, from `begin` on */
    int axis;
    int64_t begin;
};

/* Whether a node converts codes or to codes, or combines two inputs element by element. */
bool tare_quant_has_codes(const struct tare_node *node);
bool tare_quant_scales(const struct tare_node *node);
tare_status tare_quant_add_scaling(struct tare_quant_selection *selection, struct tare_arena *arena,
                                   const struct tare_node *node, size_t operand) TARE_WARN_UNUSED;
/* Sets the scale of the scaling that was added last. False: its elements are not those of entries of this stack. */
bool tare_quant_set_scale(struct tare_quant_selection *selection, const struct tare_quant_selection *scale);
/* Follows a reshape of an entry of the shape `shape`, whose axes have the origins `from`, to `to`. Changes the shape of
 * the stack, the axes of the indices and `from`. False: axes that the stack does not have next to each other are
 * joined.
 */
bool tare_quant_regroup(struct tare_quant_selection *selection, struct tare_shape *stack,
                        const struct tare_shape *shape, int *from, const struct tare_shape *to);
/* Sets *out (zeroed) to the stack of the weights. It stays zeroed if a stack is not a constant. */
tare_status tare_quant_scaled_stack(struct tare_tensor *out,
                                    const struct tare_quant_selection *selection) TARE_WARN_UNUSED;

#endif

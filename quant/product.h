/* What a layer computes, in the form that the XLA op set has for it: a convolution with a window, or a product of
 * arrays with batch, contracted and free axes. Independent of dtypes and scales. */
#ifndef TARE_QUANT_PRODUCT_H
#define TARE_QUANT_PRODUCT_H

#include "quant/product_form.h"

/* Describes `op`, whose activation and weight are inputs `left` and `right`; the shapes are theirs and that of its
 * output. `constant`: the right one is a weight, which may be rearranged.
 * TARE_UNSUPPORTED with the reason when the XLA op set has no form for it. */
tare_status tare_quant_describe(struct tare_quant_product *out, const struct tare_node *op, enum tare_quant_kind kind,
                                size_t left, size_t right, const struct tare_shape *left_shape,
                                const struct tare_shape *right_shape, const struct tare_shape *result_shape,
                                bool constant);

/* The weight with its axes in the order of `product->arranged`; shares the buffer when nothing moves. */
tare_status tare_quant_arrange(struct tare_tensor *out, const struct tare_quant_product *product,
                               const struct tare_tensor *weight);

/* The way back: an arranged weight with the axes of `shape`, the weight's own. */
tare_status tare_quant_restore(struct tare_tensor *out, const struct tare_quant_product *product,
                               const struct tare_tensor *arranged, const struct tare_shape *shape);

/* True when both arrange weights of the same shape in the same way. */
bool tare_quant_same_arrangement(const struct tare_quant_product *a, const struct tare_quant_product *b);

/* True when a convolution pads, or has zeros between the elements of its input. */
bool tare_quant_pads(const struct tare_quant_product *product);
int64_t tare_quant_channels(const struct tare_quant_product *product); /* batches * columns */

#endif

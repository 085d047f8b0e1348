/* Activations that are quantized at run time: the ranges of their rows, and the integers of the values.
 *
 * A row is what one result of a layer is computed from: the elements of a product that are summed for one element of
 * every output channel, and of a convolution one image. Each row has a scale and a zero point of its own, so that its
 * results do not depend on the other rows of a batch. */
#ifndef TARE_QUANT_DYNAMIC_RANGE_H
#define TARE_QUANT_DYNAMIC_RANGE_H

#include "graph/emit.h"
#include "quant/product_form.h"

/* The axes of the activation that a row spans; returns their number. */
int tare_quant_row_axes(int32_t axes[TARE_MAX_RANK], const struct tare_quant_product *product);
/* The smaller of 0 and the minimum, or the larger of 0 and the maximum, over the axes, which keep one element.
 * `reduce`: Min or Max, `limit`: Minimum or Maximum. */
struct tare_edge tare_emit_extreme(struct tare_emit *emit, const char *reduce, const char *limit, const char *name,
                                   struct tare_edge x, const int32_t *axes, int n_axes);
/* One value of each row of the activation (with one element in the axes of a row), shaped to broadcast with the raw
 * result of the product. */
struct tare_edge tare_emit_of_rows(struct tare_emit *emit, const char *name, const struct tare_quant_product *product,
                                   struct tare_edge value);

/* The scale (float32) and the zero point (int32) of the ranges over the axes. The zero point is rounded to nearest
 * (dynamic-zero-point), or truncated as TensorFlow does. */
enum tare_zero_point_rule { TARE_ZERO_POINT_ROUNDED, TARE_ZERO_POINT_TRUNCATED };
void tare_emit_dynamic_parameters(struct tare_emit *emit, struct tare_edge x, const int32_t *axes, int n_axes,
                                  enum tare_zero_point_rule rule, struct tare_edge *scale,
                                  struct tare_edge *zero_point);
/* floor(x / scale + zero point + 0.5) cut to int8. */
struct tare_edge tare_emit_dynamic_codes(struct tare_emit *emit, struct tare_edge x, struct tare_edge scale,
                                         struct tare_edge zero_point);

#endif

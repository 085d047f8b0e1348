/* Which layers support error-compensated rounding, and the Hessians of their inputs that it requests from calibration.
 */
#ifndef TARE_QUANT_HESSIAN_H
#define TARE_QUANT_HESSIAN_H

#include "calib/hessian.h"
#include "quant/layer.h"

struct tare_calibration;

/* Adds a Hessian for every layer of the prepared model that has one, in the order of the layers, as long as they take
 * at most `limit` bytes in total; *left_out: number that did not fit. The calibration, of the same samples, provides
 * the largest magnitudes of the activations. */
tare_status tare_quant_want_hessians(struct tare_hessians *set, size_t *left_out, const struct tare_graph_model *model,
                                     const struct tare_calibration *calibration, size_t limit);

/* The channel of a scaled activation (layer->input_scale) that a row of a group multiplies. */
int64_t tare_quant_hessian_channel(const struct tare_hessian *hessian, const struct tare_quant_layer *layer,
                                   int64_t group, int64_t row);
/* The Hessian of a layer's input, for one matrix of its weight: of the iteration, or else of all; NULL: there is none.
 */
const struct tare_hessian *tare_quant_hessian(const struct tare_quant_work *work, const struct tare_quant_layer *layer,
                                              int64_t matrix);
/* Matrices of the weight that have a Hessian each: the iterations of a loop, or 1. */
int64_t tare_quant_hessian_count(const struct tare_quant_layer *layer);

#endif

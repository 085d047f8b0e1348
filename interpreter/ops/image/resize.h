/* Bilinear resizing for ops that do more than that. */
#ifndef TARE_INTERPRETER_OPS_IMAGE_RESIZE_H
#define TARE_INTERPRETER_OPS_IMAGE_RESIZE_H

#include "graph/op.h"

/* `to` of shape `out` from `from` of shape `in`, both [batch, height, width, channels] with at least one pixel and
 * equal batches and channels; samples lie as ResizeBilinear's without half-pixel centres. */
tare_status tare_resize_bilinear(float *to, const struct tare_shape *out, const float *from,
                                 const struct tare_shape *in, bool align_corners, struct tare_arena *scratch);

#endif

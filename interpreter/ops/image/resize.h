/* Bilinear resizing, shared with ops that fuse it with other work. */
#ifndef TARE_INTERPRETER_OPS_IMAGE_RESIZE_H
#define TARE_INTERPRETER_OPS_IMAGE_RESIZE_H

#include "graph/op.h"

/* Resizes `from` of shape `in` to `to` of shape `out`, both [batch, height, width, channels] with at least one pixel
 * and equal batch and channels. Samples as ResizeBilinear does without half-pixel centers. */
tare_status tare_resize_bilinear(float *to, const struct tare_shape *out, const float *from,
                                 const struct tare_shape *in, bool align_corners, struct tare_arena *scratch);

#endif

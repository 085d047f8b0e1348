/* The geometry of XlaConv: read from the node's attributes, shapes and window parameters, and kept while they do not
 * change, because small networks take as long to find it as to compute some of their layers. */
#ifndef TARE_INTERPRETER_OPS_XLA_XLA_CONV_GEOMETRY_H
#define TARE_INTERPRETER_OPS_XLA_XLA_CONV_GEOMETRY_H

#include "interpreter/kernel.h"
#include "interpreter/ops/support/exact_split.h"
#include "interpreter/ops/xla/general_conv.h"

/* Window strides, padding, lhs dilation, rhs dilation and feature group count: the inputs after lhs and rhs. */
enum { TARE_XLA_WINDOW_PARAMETERS = 5, TARE_XLA_PADDING = 1 };

/* What a geometry was computed from besides the attributes: the shapes, and the window parameters if they are
 * constants, of which `parameters` are shares, so that no other tensor can have their addresses. */
struct tare_xla_conv_source {
    bool made; /* the geometry may be used again */
    struct tare_shape lhs, rhs;
    struct tare_tensor parameters[TARE_XLA_WINDOW_PARAMETERS];
};

struct tare_xla_conv_geometry {
    int dims_rank; /* of the arrays that `dims` was read for; 0: not read yet */
    struct tare_conv_dims dims;
    struct tare_xla_conv_source of_general, of_stage;
    struct tare_general_conv general, stage; /* of an execution; of one image of a stage of a tiled run */
    struct tare_exact_choice choice;         /* for `general` */
};

void tare_xla_conv_geometry_reset(struct tare_xla_conv_geometry *geometry);

/* The dimension numbers of an execution, which are read once. */
tare_status tare_xla_conv_geometry_dims(const struct tare_conv_dims **out, struct tare_xla_conv_geometry *geometry,
                                        const struct tare_kernel *kernel);
/* The geometry of an execution, computed again only if the shapes or the window parameters have changed, or are no
 * constants. It is valid until the next call. */
tare_status tare_xla_conv_geometry_find(const struct tare_general_conv **out, struct tare_xla_conv_geometry *geometry,
                                        const struct tare_kernel *kernel);
/* The same with the padding of the preceding PadV2 or XlaPad, which the consumer passes; NULL: the convolution cannot
 * include it, because batch or channels are padded or it pads or dilates as well. */
const struct tare_general_conv *tare_xla_conv_geometry_padded(struct tare_xla_conv_geometry *geometry,
                                                              const struct tare_kernel *kernel);
/* The geometry of a stage of a tiled run whose input has `shape`; NULL: it cannot be tiled, or is not valid. */
const struct tare_general_conv *tare_xla_conv_geometry_of_stage(struct tare_xla_conv_geometry *geometry,
                                                                struct tare_kernel *kernel,
                                                                const struct tare_shape *shape);

/* The shape of an operand [groups * n, channels] whose batch groups have become groups of channels. */
tare_status tare_xla_conv_regroup_shape(struct tare_shape *shape, const struct tare_conv_dims *dims, int64_t groups);
/* Shape inference of both ops. */
tare_status tare_xla_conv_infer(struct tare_infer *infer);

#endif

/* The geometry of XlaConv: read from the node's attributes, shapes and window parameters, and kept while they do not
 * change, because small networks take as long to find it as to compute some of their layers. */
#ifndef TARE_INTERPRETER_OPS_XLA_XLA_CONV_GEOMETRY_H
#define TARE_INTERPRETER_OPS_XLA_XLA_CONV_GEOMETRY_H

#include "interpreter/kernel.h"
#include "interpreter/ops/xla/general_conv.h"

/* Window strides, padding, lhs dilation, rhs dilation and feature group count: the inputs after lhs and rhs. */
enum { TARE_XLA_WINDOW_PARAMETERS = 5, TARE_XLA_MOST_PARAMETER_BYTES = 128 };

/* What the geometry of a convolution depends on besides the attributes: the shapes, and the sizes and bytes of the
 * window parameters. */
struct tare_xla_conv_key {
    struct tare_shape lhs, rhs;
    size_t size;
    unsigned char parameters[TARE_XLA_MOST_PARAMETER_BYTES];
};

/* The geometry of a stage of a tiled run, and what it was computed from: the shapes, and window parameters that are
 * constants, of which `parameters` are shares, so that no other tensor can have their addresses. */
struct tare_xla_conv_stage {
    bool made;
    struct tare_shape lhs, rhs;
    struct tare_tensor parameters[TARE_XLA_WINDOW_PARAMETERS];
    struct tare_general_conv general; /* of one image */
};

struct tare_xla_conv_geometry {
    int dims_rank; /* of the arrays that `dims` was read for; 0: not read yet */
    struct tare_conv_dims dims;
    struct tare_xla_conv_key key; /* of `general`; size 0: not set */
    struct tare_general_conv general;
    struct tare_xla_conv_stage stage;
};

void tare_xla_conv_geometry_reset(struct tare_xla_conv_geometry *geometry);

/* The dimension numbers of an execution, which are read once. */
tare_status tare_xla_conv_geometry_dims(const struct tare_conv_dims **out, struct tare_xla_conv_geometry *geometry,
                                        const struct tare_kernel *kernel);
/* The geometry of an execution with these window parameters, computed again only if the shapes or the parameters have
 * changed. It is valid until the next call. */
tare_status tare_xla_conv_geometry_find(const struct tare_general_conv **out, struct tare_xla_conv_geometry *geometry,
                                        const struct tare_kernel *kernel,
                                        const struct tare_tensor *const windows[TARE_XLA_WINDOW_PARAMETERS],
                                        int8_t pad_value);
/* The geometry of a stage of a tiled run whose input has `shape`; NULL: it cannot be tiled, or is not valid. */
const struct tare_general_conv *tare_xla_conv_geometry_of_stage(struct tare_xla_conv_geometry *geometry,
                                                                struct tare_kernel *kernel,
                                                                const struct tare_shape *shape);

/* The shape of an operand [groups * n, channels] whose batch groups have become groups of channels. */
tare_status tare_xla_conv_regroup_shape(struct tare_shape *shape, const struct tare_conv_dims *dims, int64_t groups);
/* Shape inference of both ops. */
tare_status tare_xla_conv_infer(struct tare_infer *infer);

#endif

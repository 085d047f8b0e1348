/* Dimension numbers that XLA and uniform-quantized ops carry as serialized messages in a string attribute: all fields
 * are int64, single or repeated, so a reader and a writer of two wire types are enough. */
#ifndef TARE_INTERPRETER_OPS_SUPPORT_DIMS_WIRE_H
#define TARE_INTERPRETER_OPS_SUPPORT_DIMS_WIRE_H

#include "graph/graph.h"

/* Values of one field, in the order of the message. */
struct tare_dims_field {
    int number;
    size_t count;
    int64_t values[TARE_MAX_RANK];
};

/* Collects the requested fields of the message in attribute `name`; others are skipped. A field that is absent has
 * count 0. TARE_CORRUPT for a message that ends early or more than TARE_MAX_RANK values. */
tare_status tare_dims_read(struct tare_dims_field *fields, size_t count, const struct tare_node *node,
                           const char *name);
/* The value of a single field: 0 if it is absent, as in protobuf. */
int64_t tare_dims_single(const struct tare_dims_field *field);

/* Positions of the dimensions of a convolution's arrays. Spatial lists have `spatial` entries. */
struct tare_conv_dims {
    int spatial;
    int input_batch, input_feature, input_spatial[TARE_MAX_RANK];
    int kernel_input, kernel_output, kernel_spatial[TARE_MAX_RANK];
    int output_batch, output_feature, output_spatial[TARE_MAX_RANK];
};

/* Two messages with the same content under different field numbers. */
enum tare_conv_message {
    TARE_CONV_XLA,     /* xla.ConvolutionDimensionNumbers */
    TARE_CONV_UNIFORM, /* UniformQuantizedConvolutionDimensionNumbersAttr; empty: batch 0, feature 1, then spatial,
                          and the kernel's output 0, input 1 */
};

/* Reads attribute `name` for arrays of rank `rank` (2 to 5) and checks that each array's numbers are a permutation. */
tare_status tare_conv_dims_read(struct tare_conv_dims *dims, const struct tare_node *node, const char *name, int rank,
                                enum tare_conv_message message);

/* A message being written, field by field. Numbers and fields are below 128 and 16; proto3 omits zeros and empty
 * lists. */
struct tare_dims_wire {
    unsigned char bytes[96];
    size_t size;
};
void tare_dims_put(struct tare_dims_wire *wire, int field, int value);
void tare_dims_put_list(struct tare_dims_wire *wire, int field, const int *values, int count);
void tare_conv_dims_write(struct tare_dims_wire *wire, const struct tare_conv_dims *dims,
                          enum tare_conv_message message);

#endif

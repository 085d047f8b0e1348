/* Descriptions of convolutions, for quant/product.c. */
#ifndef TARE_QUANT_PRODUCT_CONV_H
#define TARE_QUANT_PRODUCT_CONV_H

#include "quant/product_form.h"

/* Fill in a zeroed description with its kind set. TARE_UNSUPPORTED with the reason when the product has no form. */
tare_status tare_quant_describe_conv(struct tare_quant_product *p, const struct tare_node *conv,
                                     const struct tare_shape *input, const struct tare_shape *filter);
/* `result` is the shape of the op's output, whose sizes the op takes as an input. */
tare_status tare_quant_describe_transposed_conv(struct tare_quant_product *p, const struct tare_node *conv,
                                                const struct tare_shape *input, const struct tare_shape *filter,
                                                const struct tare_shape *result);
tare_status tare_quant_describe_xla_conv(struct tare_quant_product *p, const struct tare_node *conv,
                                         const struct tare_shape *input, const struct tare_shape *filter);

#endif

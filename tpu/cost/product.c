/* Reads the sizes of products from their shapes. */
#include "tpu/cost/product.h"
#include "base/status.h"
#include "interpreter/ops/support/dims_wire.h"

#include <math.h>
#include <string.h>

double tare_tpu_elements(const struct tare_shape *shape) {
    double count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= (double)shape->dims[i];
    return count;
}

/* Sizes of a convolution's kernel and input channels. Kernels are HWIO, those of transposed convolutions HWOI, but
 * where the op says otherwise. */
static struct tare_tpu_product conv_of(const struct tare_infer *infer, double macs) {
    const struct tare_shape *kernel = &infer->inputs[1], *out = &infer->outputs[0];
    const bool is_depthwise = strstr(infer->node->op, "Depthwise") != NULL;
    const bool is_transposed = strstr(infer->node->op, "BackpropInput") != NULL;
    const int last = kernel->rank - 1;
    double input = (double)kernel->dims[is_transposed ? last : last - 1];
    double columns = (double)kernel->dims[is_transposed ? last - 1 : last];
    double channels = input;
    struct tare_conv_dims dims;
    if (strncmp(infer->node->op, "XlaConv", strlen("XlaConv")) == 0) {
        if (tare_conv_dims_read(&dims, infer->node, "dimension_numbers", kernel->rank, TARE_CONV_XLA) == TARE_OK) {
            input = (double)kernel->dims[dims.kernel_input];
            columns = (double)kernel->dims[dims.kernel_output];
            channels = (double)infer->inputs[0].dims[dims.input_feature];
        } else {
            tare_error_clear();
        }
    }
    if (is_depthwise && !is_transposed) columns *= input;
    const double results = fmax(tare_tpu_elements(out), 1), batch = fmax((double)out->dims[0], 1);
    if (!is_depthwise && results == batch * columns && macs / results == input) /* of one position */
        return (struct tare_tpu_product){
            .kind = TARE_TPU_DENSE, .rows = batch, .places = 1, .taps = 1, .depth = input, .columns = columns
        };
    return (struct tare_tpu_product){ .kind = is_depthwise || (input == 1 && channels > 1) ? TARE_TPU_DEPTHWISE
                                                                                           : TARE_TPU_CONV,
                                      .rows = batch,
                                      .places = results / fmax(columns, 1) / batch,
                                      .taps = is_depthwise ? macs / results : macs / results / fmax(input, 1),
                                      .depth = is_depthwise ? 1 : input,
                                      .columns = columns };
}

struct tare_tpu_product tare_tpu_product_of(const struct tare_infer *infer, double macs) {
    const struct tare_shape *out = &infer->outputs[0];
    if (!(macs > 0) || out->rank < 1) return (struct tare_tpu_product){ .kind = TARE_TPU_NO_PRODUCT };
    if (strstr(infer->node->op, "Conv") && infer->n_inputs > 1 && infer->inputs[1].rank >= 3 && out->rank >= 3)
        return conv_of(infer, macs);
    const bool is_batch = strncmp(infer->node->op, "BatchMatMul", strlen("BatchMatMul")) == 0 && out->rank > 2 &&
                          infer->inputs[1].rank > 2;
    const double results = fmax(tare_tpu_elements(out), 1), columns = fmax((double)out->dims[out->rank - 1], 1);
    const double rows = is_batch ? fmax((double)out->dims[out->rank - 2], 1) : results / columns;
    return (struct tare_tpu_product){ .kind = TARE_TPU_DENSE,
                                      .rows = rows,
                                      .places = results / columns / rows,
                                      .taps = 1,
                                      .depth = macs / results,
                                      .columns = columns };
}

double tare_tpu_product_tiles(const struct tare_tpu_product *p, double size) {
    const double depth = p->kind == TARE_TPU_CONV ? p->taps * p->depth : p->depth;
    return ceil(depth / size) * ceil(p->columns / size);
}

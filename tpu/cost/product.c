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

struct kernel {
    double input, output; /* channels; inputs of one group */
    double channels;      /* inputs of all groups */
    double line;          /* taps along the last dimension */
};

/* Kernels are HWIO, those of transposed convolutions HWOI, but where the op says otherwise. */
static struct kernel kernel_of(const struct tare_infer *infer) {
    const struct tare_shape *kernel = &infer->inputs[1];
    const bool is_transposed = strstr(infer->node->op, "BackpropInput") != NULL;
    const int last = kernel->rank - 1;
    struct kernel found = { .input = (double)kernel->dims[is_transposed ? last : last - 1],
                            .output = (double)kernel->dims[is_transposed ? last - 1 : last],
                            .line = (double)kernel->dims[last - 2] };
    struct tare_conv_dims dims;
    found.channels = found.input;
    if (strcmp(infer->node->op, "Conv2D") == 0 && infer->inputs[0].rank == 4) {
        const double first = (double)infer->inputs[0].dims[1], channels = (double)infer->inputs[0].dims[3];
        found.channels = fmod(channels, found.input) == 0 ? channels : first;
    }
    if (strncmp(infer->node->op, "XlaConv", strlen("XlaConv")) != 0) return found;
    if (tare_conv_dims_read(&dims, infer->node, "dimension_numbers", kernel->rank, TARE_CONV_XLA) != TARE_OK) {
        tare_error_clear();
        return found;
    }
    found.input = (double)kernel->dims[dims.kernel_input];
    found.output = (double)kernel->dims[dims.kernel_output];
    found.line = (double)kernel->dims[dims.kernel_spatial[kernel->rank - 3]];
    found.channels = (double)infer->inputs[0].dims[dims.input_feature];
    return found;
}

/* All taps of a kernel are multiplied, those of a transposed convolution with zeros in between. */
static struct tare_tpu_product conv_of(const struct tare_infer *infer, double macs) {
    const struct tare_shape *out = &infer->outputs[0];
    const bool is_depthwise = strstr(infer->node->op, "Depthwise") != NULL;
    const struct kernel kernel = kernel_of(infer);
    const bool is_transposed = strstr(infer->node->op, "BackpropInput") != NULL;
    const double columns = is_depthwise && !is_transposed ? kernel.input * kernel.output : kernel.output;
    const double results = fmax(tare_tpu_elements(out), 1), batch = fmax((double)out->dims[0], 1);
    const double taps = tare_tpu_elements(&infer->inputs[1]) / fmax(kernel.input * kernel.output, 1);
    if (!is_depthwise && results == batch * columns && macs / results == kernel.input) /* of one position */
        return (struct tare_tpu_product){
            .kind = TARE_TPU_DENSE, .rows = batch, .places = 1, .taps = 1, .depth = kernel.input, .columns = columns
        };
    return (struct tare_tpu_product){ .kind = is_depthwise || (kernel.input == 1 && kernel.channels > 1)
                                                  ? TARE_TPU_DEPTHWISE
                                                  : TARE_TPU_CONV,
                                      .rows = batch,
                                      .places = results / fmax(columns, 1) / batch,
                                      .taps = taps,
                                      .depth = is_depthwise ? 1 : kernel.input,
                                      .columns = columns,
                                      .line = kernel.line,
                                      .groups = is_depthwise ? 1 : fmax(kernel.channels / fmax(kernel.input, 1), 1) };
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
    if (p->kind != TARE_TPU_CONV) return ceil(p->depth / size) * ceil(p->columns / size);
    return p->groups * p->taps / p->line * ceil(p->line * p->depth / size) * ceil(p->columns / p->groups / size);
}

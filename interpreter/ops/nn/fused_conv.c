/* FusedResizeAndPadConv2D and FusedPadConv2D: convolutions that TensorFlow 1's graph transforms fuse with a
 * preceding resize and mirrored padding. The intermediate image is materialized, then the kernel of Conv2D runs on
 * it. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/image/resize.h"

#include "base/alloc.h"

#include <string.h>

static const struct tare_op *conv_row(void) {
    const struct tare_op *row = tare_ops_conv;
    while (strcmp(row->name, "Conv2D") != 0)
        row++;
    return row;
}

/* Presents the kernel as one of Conv2D on the same node, which has Conv2D's strides and padding. */
static struct tare_kernel as_conv(const struct tare_kernel *kernel) {
    struct tare_kernel conv = *kernel;
    conv.op = conv_row();
    conv.epilogue = NULL;
    return conv;
}

static tare_status prepare_fused(struct tare_kernel *kernel) {
    struct tare_kernel conv = as_conv(kernel);
    TARE_TRY(conv.op->prepare(&conv));
    kernel->state = conv.state;
    return TARE_OK;
}

static void release_fused(void *state) {
    conv_row()->release(state);
}

/* ---- mirrored padding ---- */

/* `edge`: 1 when mirroring excludes the edge pixel (REFLECT), 0 when it includes it (SYMMETRIC). */
struct border {
    int64_t before[2], after[2], edge;
};

static tare_status border_of(struct border *border, const struct tare_node *node, const struct tare_tensor *paddings,
                             const int64_t size[2]) {
    if (paddings->shape.rank != 2 || paddings->shape.dims[0] != 4 || paddings->shape.dims[1] != 2)
        return TARE_FAIL(TARE_SHAPE, "paddings has %lld elements (expected shape [4,2])",
                         (long long)paddings->elements);
    border->edge = strcmp(tare_node_string(node, "mode", "REFLECT"), "REFLECT") == 0;
    for (int d = 0; d < 4; d++) {
        const int64_t before = tare_tensor_get_i64(paddings, 2 * d), after = tare_tensor_get_i64(paddings, 2 * d + 1);
        const bool spatial = d == 1 || d == 2;
        const int64_t most = spatial ? size[d - 1] - border->edge : 0;
        if (before < 0 || after < 0 || before > most || after > most)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "paddings of %lld and %lld along dimension %d (expected 0 to %lld)",
                             (long long)before, (long long)after, d, (long long)(most < 0 ? 0 : most));
        if (!spatial) continue;
        border->before[d - 1] = before;
        border->after[d - 1] = after;
    }
    return TARE_OK;
}

/* Source index of position `at` in a padded line of `size` pixels. */
static int64_t mirrored(int64_t at, int64_t before, int64_t size, int64_t edge) {
    at -= before;
    if (at < 0) at = -at - 1 + edge;
    return at < size ? at : 2 * size - 1 - at - edge;
}

/* to [batch, …] = `from` with padding; pixels have `bytes` bytes. */
static void put_border(char *to, const char *from, int64_t batch, const int64_t size[2], const struct border *border,
                       size_t bytes) {
    const int64_t height = size[0] + border->before[0] + border->after[0];
    const int64_t width = size[1] + border->before[1] + border->after[1];
    for (int64_t row = 0; row < batch * height; row++) {
        const int64_t y = mirrored(row % height, border->before[0], size[0], border->edge);
        const char *line = from + (size_t)((row / height * size[0] + y) * size[1]) * bytes;
        for (int64_t x = 0; x < width; x++, to += bytes)
            memcpy(to, line + (size_t)mirrored(x, border->before[1], size[1], border->edge) * bytes, bytes);
    }
}

/* ---- op rows ---- */

/* A row's aux. */
struct fused {
    bool resizes; /* operand 1 is the size; paddings and filter follow */
};
static const struct fused only_pads = { false }, resizes = { true };

static tare_status target_size(int64_t size[2], const struct tare_tensor *operand) {
    if (operand->shape.rank != 1 || operand->elements != 2)
        return TARE_FAIL(TARE_SHAPE, "size has %lld elements (expected 2)", (long long)operand->elements);
    for (int i = 0; i < 2; i++) {
        size[i] = tare_tensor_get_i64(operand, i);
        if (size[i] < 1 || size[i] > INT32_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "size contains %lld (expected a positive number)",
                             (long long)size[i]);
    }
    return TARE_OK;
}

static tare_status infer_fused(struct tare_infer *infer) {
    TARE_TRY(tare_operand_rank(infer, 0, "input", 4));
    TARE_TRY(tare_operand_rank(infer, infer->n_inputs - 1, "filter", 4));
    infer->outputs[0] = tare_operand_unknown_dims(4);
    if (infer->inputs[0].rank == 4) infer->outputs[0].dims[0] = infer->inputs[0].dims[0];
    if (infer->inputs[infer->n_inputs - 1].rank == 4)
        infer->outputs[0].dims[3] = infer->inputs[infer->n_inputs - 1].dims[3];
    return TARE_OK;
}

/* A tensor of the input's dtype, converted from floats. */
static tare_status resized(struct tare_tensor *out, struct tare_kernel *kernel, const int64_t size[2]) {
    const struct tare_tensor *input = &kernel->inputs[0];
    const struct tare_shape *in = &input->shape;
    const struct tare_shape shape = tare_shape_make(4, in->dims[0], size[0], size[1], in->dims[3]), *whole = &shape;
    const bool align = tare_node_bool(kernel->node, "resize_align_corners", false);
    struct tare_tensor floats = { 0 };
    tare_status status = TARE_OK;
    const float *from = tare_floats_in(kernel, input);
    if (!from) return TARE_NO_MEMORY;
    TARE_TRY(tare_tensor_new_pooled(&floats, TARE_DT_FLOAT, whole, kernel->pool));
    if (floats.elements) TARE_CHECK(tare_resize_bilinear(floats.data, &shape, from, in, align, kernel->scratch));
    TARE_CHECK(tare_tensor_new_pooled(out, input->dtype, whole, kernel->pool));
    for (int64_t i = 0; i < out->elements; i++)
        tare_tensor_set_f64(out, i, (double)TARE_CONST_DATA(float, &floats)[i]);
done:
    tare_tensor_reset(&floats);
    return status;
}

static tare_status bordered(struct tare_tensor *out, struct tare_kernel *kernel, const struct tare_tensor *image,
                            const struct tare_tensor *paddings) {
    struct tare_shape shape = image->shape;
    struct border border;
    TARE_TRY(border_of(&border, kernel->node, paddings, image->shape.dims + 1));
    for (int i = 0; i < 2; i++)
        shape.dims[1 + i] += border.before[i] + border.after[i];
    TARE_TRY(tare_tensor_new_pooled(out, image->dtype, &shape, kernel->pool));
    if (out->elements)
        put_border(out->data, image->data, shape.dims[0], image->shape.dims + 1, &border,
                   (size_t)shape.dims[3] * tare_dtype_size(image->dtype));
    return TARE_OK;
}

static tare_status run_fused(struct tare_kernel *kernel) {
    const struct fused *fused = kernel->op->aux;
    const struct tare_tensor *paddings = &kernel->inputs[kernel->n_inputs - 2];
    struct tare_kernel conv = as_conv(kernel);
    struct tare_tensor image = { 0 }, operands[2] = { 0 };
    int64_t size[2];
    tare_status status = TARE_OK;
    if (kernel->inputs[0].shape.rank != 4)
        return TARE_FAIL(TARE_SHAPE, "input has rank %d (expected 4)", kernel->inputs[0].shape.rank);
    if (fused->resizes) {
        TARE_TRY(target_size(size, &kernel->inputs[1]));
        for (int i = 1; i < 3; i++)
            if (kernel->inputs[0].shape.dims[i] < 1) return TARE_FAIL(TARE_SHAPE, "input has no pixels");
        TARE_TRY(resized(&image, kernel, size));
    }
    TARE_CHECK(bordered(&operands[0], kernel, fused->resizes ? &image : &kernel->inputs[0], paddings));
    operands[1] = kernel->inputs[kernel->n_inputs - 1];
    conv.inputs = operands;
    conv.n_inputs = 2;
    TARE_CHECK(conv.op->run(&conv));
done:
    if (image.dtype) tare_tensor_reset(&image);
    if (operands[0].dtype) tare_tensor_reset(&operands[0]);
    return status;
}

const struct tare_op tare_ops_fused_conv[] = {
    { .name = "FusedPadConv2D",
      .infer = infer_fused,
      .run = run_fused,
      .prepare = prepare_fused,
      .release = release_fused,
      .aux = &only_pads },
    { .name = "FusedResizeAndPadConv2D",
      .infer = infer_fused,
      .run = run_fused,
      .prepare = prepare_fused,
      .release = release_fused,
      .aux = &resizes },
    { 0 },
};

/* Dilation2D (greyscale dilation) and ExtractVolumePatches. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/support/window.h"

#include <math.h>
#include <string.h>

/* Reads the spatial entries of a list of rank + 2 integers whose first and last entries must be 1. */
static tare_status spatial_list(int64_t out[3], const struct tare_node *node, const char *name, int spatial) {
    const struct tare_attr *list = tare_node_list(node, name);
    if (!list || list->count != (size_t)spatial + 2)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must have %d entries", name, spatial + 2);
    if (list->items[0].i != 1 || list->items[spatial + 1].i != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s over batch or channels", name);
    for (int i = 0; i < spatial; i++) {
        out[3 - spatial + i] = list->items[i + 1].i;
        if (list->items[i + 1].i < 1 || list->items[i + 1].i > INT32_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be positive (got %lld)", name,
                             (long long)list->items[i + 1].i);
    }
    return TARE_OK;
}

/* ---- dilation: out = max of input + filter over the window ---- */

static tare_status parse_dilation(struct tare_window *window, const struct tare_node *node) {
    memset(window, 0, sizeof *window);
    window->spatial = 2;
    window->padding = strcmp(tare_node_string(node, "padding", "VALID"), "SAME") == 0 ? TARE_PAD_SAME : TARE_PAD_VALID;
    for (int i = 0; i < 3; i++)
        window->size[i] = window->stride[i] = window->dilation[i] = 1;
    window->stride_of_batch = window->stride_of_channels = window->size_of_batch = window->size_of_channels = 1;
    TARE_TRY(spatial_list(window->stride, node, "strides", 2));
    return spatial_list(window->dilation, node, "rates", 2);
}

static tare_status infer_dilation(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0], *filter = &infer->inputs[1];
    struct tare_shape *out = &infer->outputs[0];
    struct tare_window window;
    int64_t pad;
    TARE_TRY(parse_dilation(&window, infer->node));
    TARE_TRY(tare_operand_rank(infer, 0, "input", 4));
    TARE_TRY(tare_operand_rank(infer, 1, "filter", 3));
    *out = tare_operand_unknown_dims(4);
    if (input->rank == 4) *out = *input;
    if (filter->rank == 3) {
        if (out->dims[3] >= 0 && filter->dims[2] >= 0 && out->dims[3] != filter->dims[2])
            return TARE_FAIL(TARE_SHAPE, "input and filter must have the same depth: %lld vs %lld",
                             (long long)out->dims[3], (long long)filter->dims[2]);
        if (out->dims[3] < 0) out->dims[3] = filter->dims[2];
    }
    for (int i = 0; i < 2; i++) {
        const int64_t in = out->dims[1 + i], size = filter->rank == 3 ? filter->dims[i] : -1;
        out->dims[1 + i] = -1;
        if (in < 0 || size < 0) continue;
        if (size < 1) return TARE_FAIL(TARE_SHAPE, "the filter is empty");
        TARE_TRY(tare_window_output(&out->dims[1 + i], &pad, &window, 1 + i, in, size));
    }
    return TARE_OK;
}

struct dilation {
    const struct tare_tensor *input, *filter;
    struct tare_window window;
    int64_t in[2], size[2], pad[2], channels;
    bool real;
};

/* The dilated value of one channel at (y, x), as the widest integer or as a double. */
static void dilate(struct tare_tensor *out, int64_t to, const struct dilation *d, int64_t image, const int64_t at[2],
                   int64_t c) {
    double best = -INFINITY;
    int64_t whole = INT64_MIN;
    bool any = false;
    for (int64_t i = 0; i < d->size[0] * d->size[1]; i++) {
        const int64_t cell[2] = { i / d->size[1], i % d->size[1] };
        int64_t place = image;
        bool inside = true;
        for (int k = 0; k < 2; k++) {
            const int64_t p = at[k] * d->window.stride[1 + k] - d->pad[k] + cell[k] * d->window.dilation[1 + k];
            inside = inside && p >= 0 && p < d->in[k];
            place = place * d->in[k] + p;
        }
        if (!inside) continue;
        const int64_t from = place * d->channels + c, weight = i * d->channels + c;
        if (d->real) {
            const double x = tare_tensor_get_f64(d->input, from) + tare_tensor_get_f64(d->filter, weight);
            if (x > best) best = x;
        } else {
            const int64_t x = tare_tensor_get_i64(d->input, from) + tare_tensor_get_i64(d->filter, weight);
            if (x > whole) whole = x;
        }
        any = true;
    }
    if (d->real || !any)
        tare_tensor_set_f64(out, to, any ? best : -INFINITY);
    else
        tare_tensor_set_i64(out, to, whole);
}

static tare_status run_dilation(struct tare_kernel *kernel) {
    struct dilation d = { .input = &kernel->inputs[0], .filter = &kernel->inputs[1] };
    struct tare_tensor *out = &kernel->outputs[0];
    TARE_TRY(parse_dilation(&d.window, kernel->node));
    TARE_TRY(tare_operand_output(kernel, 0));
    d.real = tare_dtype_is_floating(d.input->dtype);
    d.channels = d.input->shape.dims[3];
    for (int i = 0; i < 2; i++) {
        int64_t unused;
        d.in[i] = d.input->shape.dims[1 + i];
        d.size[i] = d.filter->shape.dims[i];
        TARE_TRY(tare_window_output(&unused, &d.pad[i], &d.window, 1 + i, d.in[i], d.size[i]));
    }
    for (int64_t i = 0; i < out->elements; i++) {
        const int64_t pixel = i / d.channels, columns = out->shape.dims[2], rows = out->shape.dims[1];
        const int64_t at[2] = { pixel / columns % rows, pixel % columns };
        dilate(out, i, &d, pixel / columns / rows, at, i % d.channels);
    }
    return TARE_OK;
}

/* ---- patches of volumes: [batch, planes, rows, columns, depth * rows * columns * channels of the window] ---- */

static tare_status parse_patches(struct tare_window *window, const struct tare_node *node) {
    memset(window, 0, sizeof *window);
    window->spatial = 3;
    window->padding = strcmp(tare_node_string(node, "padding", "VALID"), "SAME") == 0 ? TARE_PAD_SAME : TARE_PAD_VALID;
    for (int i = 0; i < 3; i++)
        window->dilation[i] = 1;
    window->stride_of_batch = window->stride_of_channels = window->size_of_batch = window->size_of_channels = 1;
    TARE_TRY(spatial_list(window->size, node, "ksizes", 3));
    return spatial_list(window->stride, node, "strides", 3);
}

static tare_status infer_patches(struct tare_infer *infer) {
    const struct tare_shape *input = &infer->inputs[0];
    struct tare_shape *out = &infer->outputs[0];
    struct tare_window window;
    int64_t pad, size = 1;
    TARE_TRY(parse_patches(&window, infer->node));
    TARE_TRY(tare_operand_rank(infer, 0, "input", 5));
    *out = tare_operand_unknown_dims(5);
    if (input->rank != 5) return TARE_OK;
    out->dims[0] = input->dims[0];
    for (int i = 0; i < 3; i++) {
        if (input->dims[1 + i] >= 0)
            TARE_TRY(tare_window_output(&out->dims[1 + i], &pad, &window, i, input->dims[1 + i], window.size[i]));
        if (__builtin_mul_overflow(size, window.size[i], &size))
            return TARE_FAIL(TARE_SHAPE, "the patches are too large");
    }
    if (input->dims[4] >= 0 && __builtin_mul_overflow(size, input->dims[4], &out->dims[4]))
        return TARE_FAIL(TARE_SHAPE, "the patches are too large");
    return TARE_OK;
}

static tare_status run_patches(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct tare_tensor *out = &kernel->outputs[0];
    const size_t element = tare_dtype_size(input->dtype);
    struct tare_window window;
    int64_t pad[3], unused;
    TARE_TRY(parse_patches(&window, kernel->node));
    TARE_TRY(tare_operand_output(kernel, 0));
    const int64_t *in = input->shape.dims + 1, *to = out->shape.dims + 1, channels = input->shape.dims[4];
    for (int i = 0; i < 3; i++)
        TARE_TRY(tare_window_output(&unused, &pad[i], &window, i, in[i], window.size[i]));
    const int64_t cells = window.size[0] * window.size[1] * window.size[2];
    if (channels == 0) return TARE_OK;
    for (int64_t i = 0; i < out->elements / channels; i++) {
        const int64_t cell = i % cells, place = i / cells;
        const int64_t at[3] = { place / to[2] / to[1] % to[0], place / to[2] % to[1], place % to[2] };
        const int64_t offset[3] = { cell / window.size[2] / window.size[1], cell / window.size[2] % window.size[1],
                                    cell % window.size[2] };
        int64_t from = place / to[2] / to[1] / to[0];
        bool inside = true;
        for (int k = 0; k < 3; k++) {
            const int64_t p = at[k] * window.stride[k] - pad[k] + offset[k];
            inside = inside && p >= 0 && p < in[k];
            from = from * in[k] + p;
        }
        char *target = (char *)out->data + (size_t)(i * channels) * element;
        if (inside)
            memcpy(target, (const char *)input->data + (size_t)(from * channels) * element, (size_t)channels * element);
        else
            memset(target, 0, (size_t)channels * element);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_morphology[] = {
    { .name = "Dilation2D", .infer = infer_dilation, .run = run_dilation },
    { .name = "ExtractVolumePatches", .infer = infer_patches, .run = run_patches },
    { 0 },
};

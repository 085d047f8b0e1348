/* Convolutions as products: TensorFlow's ops, which have channels last, and XLA's with any order of dimensions. */
#include "quant/product_conv.h"
#include "interpreter/ops/support/window.h"

#include <string.h>

/* Activation and result [batch, channels, spatial…]. */
static void set_channels_first(struct tare_conv_dims *dims, int spatial) {
    dims->input_feature = dims->output_feature = 1;
    for (int i = 0; i < spatial; i++)
        dims->input_spatial[i] = dims->output_spatial[i] = i + 2;
}

/* Activation and result [batch, spatial…, channels]; the kernel is arranged as [spatial…, input, output]. */
static void set_channels_last(struct tare_conv_dims *dims, int spatial) {
    *dims = (struct tare_conv_dims){ .spatial = spatial,
                                     .input_feature = spatial + 1,
                                     .kernel_input = spatial,
                                     .kernel_output = spatial + 1,
                                     .output_feature = spatial + 1 };
    for (int i = 0; i < spatial; i++) {
        dims->kernel_spatial[i] = i;
        dims->input_spatial[i] = dims->output_spatial[i] = i + 1;
    }
}

/* The arranged filter as a matrix, and the shape of one value per output channel. */
static void set_matrices(struct tare_quant_product *p) {
    p->batches = p->rows = 1;
    p->columns = p->arranged.dims[p->spatial + 1];
    for (int i = 0; i <= p->spatial; i++)
        p->rows *= p->arranged.dims[i];
    p->channel_shape = tare_shape_make(1, 0);
    p->channel_shape.rank = p->spatial + 2 - p->dims.output_feature;
    for (int i = 0; i < p->channel_shape.rank; i++)
        p->channel_shape.dims[i] = i ? 1 : p->columns;
}

static bool has_one_place(const struct tare_quant_product *p, const struct tare_shape *input) {
    bool one = p->groups == 1 && input->rank == p->spatial + 2 && p->dims.input_feature == p->spatial + 1 &&
               p->dims.output_feature == p->spatial + 1;
    for (int i = 0; i < p->spatial && one; i++)
        one = input->dims[p->dims.input_spatial[i]] == 1 && p->arranged.dims[i] == 1 && p->window[i].low == 0 &&
              p->window[i].high == 0;
    return one;
}

/* ---- Conv2D, DepthwiseConv2dNative, Conv3D ---- */

static int64_t list_item(const struct tare_node *node, const char *name, size_t i, int64_t fallback) {
    const struct tare_attr *attr = tare_node_list(node, name);
    return attr && attr->kind == TARE_ATTR_INT && i < attr->count ? attr->items[i].i : fallback;
}

/* same-padding: total = max((ceil(in / stride) - 1) * stride + (k - 1) * dilation + 1 - in, 0); an odd element is added
 * at the high end.
 */
static void same_padding(struct tare_quant_product *p, struct tare_spatial *out, int64_t size) {
    int64_t outputs, total;
    if (size < 0 && out->stride > 1) {
        p->pads_late = true;
        return;
    }
    outputs = (size + out->stride - 1) / out->stride;
    total = size < 0 ? out->reach - 1 /* whatever the size */ : (outputs - 1) * out->stride + out->reach - size;
    if (total < 0) total = 0;
    out->low = total / 2;
    out->high = total - out->low;
}

static tare_status read_window(struct tare_quant_product *p, const struct tare_node *conv,
                               const struct tare_shape *input, const struct tare_shape *filter) {
    const char *padding = tare_node_string(conv, "padding", "VALID");
    for (int i = 0; i < p->spatial; i++) {
        const size_t axis = (size_t)p->dims.input_spatial[i];
        struct tare_spatial *s = &p->window[i];
        *s = (struct tare_spatial){ .stride = list_item(conv, "strides", axis, 1),
                                    .dilation = list_item(conv, "dilations", axis, 1),
                                    .base = 1 };
        if (s->stride < 1 || s->dilation < 1 || s->stride > INT32_MAX || s->dilation > INT32_MAX)
            return TARE_FAIL(TARE_UNSUPPORTED, "strides and dilations must be positive");
        s->reach = (filter->dims[i] - 1) * s->dilation + 1;
        if (strcmp(padding, "SAME") == 0) {
            same_padding(p, s, input->dims[axis]);
        } else if (strcmp(padding, "EXPLICIT") == 0) {
            s->low = list_item(conv, "explicit_paddings", 2 * axis, 0);
            s->high = list_item(conv, "explicit_paddings", 2 * axis + 1, 0);
        }
    }
    return TARE_OK;
}

tare_status tare_quant_describe_conv(struct tare_quant_product *p, const struct tare_node *conv,
                                     const struct tare_shape *input, const struct tare_shape *filter) {
    int64_t channels;
    p->spatial = p->kind == TARE_KIND_CONV3D ? 3 : 2;
    set_channels_last(&p->dims, p->spatial);
    if (filter->rank != p->spatial + 2) return TARE_FAIL(TARE_UNSUPPORTED, "the filter's rank is %d", filter->rank);
    if (strncmp(tare_node_string(conv, "data_format", "NHWC"), "NC", 2) == 0) set_channels_first(&p->dims, p->spatial);
    channels = input->rank == filter->rank ? input->dims[p->dims.input_feature] : -1;
    if (channels < 1 || filter->dims[p->spatial] < 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "the input's channel dimension is not static");
    p->arranged = *filter;
    p->n_order = filter->rank;
    for (int i = 0; i < filter->rank; i++)
        p->order[i] = i;
    p->groups = channels / filter->dims[p->spatial];
    if (p->kind == TARE_KIND_DEPTHWISE) {
        p->groups = filter->dims[2];
        p->arranged.dims[3] = filter->dims[2] * filter->dims[3];
        p->arranged.dims[2] = 1;
    } else if (p->groups * filter->dims[p->spatial] != channels || filter->dims[p->spatial + 1] % p->groups) {
        return TARE_FAIL(TARE_UNSUPPORTED, "%lld input channels do not fit a filter for %lld", (long long)channels,
                         (long long)filter->dims[p->spatial]);
    }
    set_matrices(p);
    TARE_TRY(read_window(p, conv, input, filter));
    p->one_place = has_one_place(p, input);
    return TARE_OK;
}

/* ---- Conv2DBackpropInput ---- */

static tare_status read_transposed_window(struct tare_quant_product *p, const struct tare_node *conv,
                                          const struct tare_shape *input, const struct tare_shape *filter,
                                          const struct tare_shape *result) {
    struct tare_window window;
    TARE_TRY(tare_window_parse(&window, conv, p->spatial));
    for (int i = 0; i < p->spatial; i++) {
        const int axis = 3 - p->spatial + i;
        struct tare_spatial *s = &p->window[i];
        int64_t pad[2];
        if (input->dims[i + 1] < 1 || result->dims[i + 1] < 1)
            return TARE_FAIL(TARE_UNSUPPORTED, "a transposed convolution needs images of known sizes");
        TARE_TRY(tare_window_transposed_padding(pad, &window, axis, result->dims[i + 1], filter->dims[i],
                                                input->dims[i + 1]));
        *s = (struct tare_spatial){ .stride = 1,
                                    .dilation = window.dilation[axis],
                                    .base = window.stride[axis],
                                    .low = pad[0],
                                    .high = pad[1],
                                    .reach = (filter->dims[i] - 1) * window.dilation[axis] + 1 };
        if (s->low > INT32_MAX || s->high > INT32_MAX || s->low < INT32_MIN || s->high < INT32_MIN ||
            s->dilation > INT32_MAX || s->base > INT32_MAX)
            return TARE_FAIL(TARE_UNSUPPORTED, "its window is too large");
    }
    return TARE_OK;
}

/* The geometry of tpu/transposed_conv.c: the input's elements, `strides` apart, convolved with the reversed filter,
 * whose last axes are those of the output and the input. */
tare_status tare_quant_describe_transposed_conv(struct tare_quant_product *p, const struct tare_node *conv,
                                                const struct tare_shape *input, const struct tare_shape *filter,
                                                const struct tare_shape *result) {
    static const int order[] = { 0, 1, 3, 2 };
    p->spatial = 2;
    p->groups = 1;
    set_channels_last(&p->dims, p->spatial);
    if (filter->rank != 4) return TARE_FAIL(TARE_UNSUPPORTED, "the filter's rank is %d", filter->rank);
    if (input->rank != 4 || result->rank != 4 || result->dims[3] < 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "a transposed convolution needs images of known sizes");
    if (result->dims[3] != filter->dims[2])
        return TARE_FAIL(TARE_UNSUPPORTED, "transposed convolutions in groups are not quantized");
    p->n_order = p->arranged.rank = 4;
    for (int i = 0; i < 4; i++) {
        p->order[i] = order[i];
        p->arranged.dims[i] = filter->dims[order[i]];
        if (i < p->spatial && filter->dims[i] > 1) p->reversed |= 1u << i;
    }
    set_matrices(p);
    return read_transposed_window(p, conv, input, filter, result);
}

/* ---- XlaConvV2, XlaConv ---- */

enum { STRIDES = 2, PADDING, BASE_DILATIONS, DILATIONS, GROUPS, CONV_INPUTS };

/* The constant at an input with `count` elements; NULL if there is none. */
static const struct tare_tensor *numbers(const struct tare_node *conv, size_t input, int64_t count) {
    const struct tare_tensor *value = tare_edge_constant(conv->inputs[input]);
    return value && value->elements == count ? value : NULL;
}

static tare_status read_xla_window(struct tare_quant_product *p, const struct tare_node *conv) {
    const struct tare_tensor *strides = numbers(conv, STRIDES, p->spatial),
                             *padding = numbers(conv, PADDING, 2 * p->spatial),
                             *bases = numbers(conv, BASE_DILATIONS, p->spatial),
                             *dilations = numbers(conv, DILATIONS, p->spatial), *groups = numbers(conv, GROUPS, 1);
    if (!strides || !padding || !bases || !dilations || !groups)
        return TARE_FAIL(TARE_UNSUPPORTED, "its window is not constant");
    p->groups = tare_tensor_get_i64(groups, 0);
    for (int i = 0; i < p->spatial; i++) {
        struct tare_spatial *s = &p->window[i];
        *s = (struct tare_spatial){ .stride = tare_tensor_get_i64(strides, i),
                                    .dilation = tare_tensor_get_i64(dilations, i),
                                    .base = tare_tensor_get_i64(bases, i),
                                    .low = tare_tensor_get_i64(padding, 2 * i),
                                    .high = tare_tensor_get_i64(padding, 2 * i + 1) };
        if (s->stride < 1 || s->dilation < 1 || s->base < 1 || s->stride > INT32_MAX || s->dilation > INT32_MAX ||
            s->base > INT32_MAX)
            return TARE_FAIL(TARE_UNSUPPORTED, "strides and dilations must be positive");
        s->reach = (p->arranged.dims[i] - 1) * s->dilation + 1;
    }
    return TARE_OK;
}

tare_status tare_quant_describe_xla_conv(struct tare_quant_product *p, const struct tare_node *conv,
                                         const struct tare_shape *input, const struct tare_shape *filter) {
    struct tare_conv_dims dims;
    if (conv->n_inputs != CONV_INPUTS || filter->rank < 3 || filter->rank > TARE_MOST_WINDOW + 2)
        return TARE_FAIL(TARE_UNSUPPORTED, "the filter's rank is %d", filter->rank);
    if (tare_node_int(conv, "batch_group_count", 1) != 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "batch_group_count is not 1 and the input's shape is not known");
    TARE_TRY(tare_conv_dims_read(&dims, conv, "dimension_numbers", filter->rank, TARE_CONV_XLA));
    p->spatial = dims.spatial;
    p->n_order = p->arranged.rank = filter->rank;
    for (int i = 0; i < p->n_order; i++) {
        p->order[i] = i < p->spatial    ? dims.kernel_spatial[i]
                      : i == p->spatial ? dims.kernel_input
                                        : dims.kernel_output;
        p->arranged.dims[i] = filter->dims[p->order[i]];
    }
    set_channels_last(&p->dims, p->spatial);
    p->dims.input_batch = dims.input_batch;
    p->dims.input_feature = dims.input_feature;
    p->dims.output_batch = dims.output_batch;
    p->dims.output_feature = dims.output_feature;
    memcpy(p->dims.input_spatial, dims.input_spatial, sizeof dims.input_spatial);
    memcpy(p->dims.output_spatial, dims.output_spatial, sizeof dims.output_spatial);
    set_matrices(p);
    TARE_TRY(read_xla_window(p, conv));
    p->one_place = has_one_place(p, input);
    return p->groups >= 1 && p->columns % p->groups == 0
               ? TARE_OK
               : TARE_FAIL(TARE_UNSUPPORTED, "%lld output channels do not divide into %lld groups",
                           (long long)p->columns, (long long)p->groups);
}

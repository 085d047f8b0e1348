#include "interpreter/ops/support/window.h"

#include "base/alloc.h"
#include "interpreter/kernels/transpose.h"

#include <string.h>

/* Copies a vector in the order of the data format apart into batch, channels and three spatial values. */
static tare_status take_vector(const struct tare_window *window, const int64_t *values, size_t count, const char *what,
                               int64_t spatial[3], int64_t *batch, int64_t *channels) {
    const size_t expected = (size_t)window->spatial + 2;
    if (count != expected)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s has %zu entries (expected %zu)", what, count, expected);
    const int first = window->channels_first ? 2 : 1;
    *batch = values[0];
    *channels = values[window->channels_first ? 1 : expected - 1];
    for (int i = 0; i < window->spatial; i++)
        spatial[3 - window->spatial + i] = values[first + i];
    for (int i = 3 - window->spatial; i < 3; i++) {
        if (spatial[i] < 1 || spatial[i] > INT32_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be positive (got %lld)", what, (long long)spatial[i]);
    }
    if (*batch < 1 || *channels < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s must be positive along batch and channels", what);
    return TARE_OK;
}

tare_status tare_window_set_size(struct tare_window *window, const int64_t *values, size_t count) {
    return take_vector(window, values, count, "ksize", window->size, &window->size_of_batch, &window->size_of_channels);
}

tare_status tare_window_set_stride(struct tare_window *window, const int64_t *values, size_t count) {
    return take_vector(window, values, count, "strides", window->stride, &window->stride_of_batch,
                       &window->stride_of_channels);
}

enum { MOST_ENTRIES = 10 };

/* The integers of a list attribute; *count 0 when it is absent or empty. */
static tare_status list_of(int64_t values[MOST_ENTRIES], size_t *count, const struct tare_node *node,
                           const char *name) {
    const struct tare_attr *attr = tare_node_list(node, name);
    *count = attr ? attr->count : 0;
    if (*count == 0) return TARE_OK;
    if (attr->kind != TARE_ATTR_INT || *count > MOST_ENTRIES)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "attribute %s is not a list of up to %d integers", name, MOST_ENTRIES);
    for (size_t i = 0; i < *count; i++)
        values[i] = attr->items[i].i;
    return TARE_OK;
}

static tare_status parse_explicit(struct tare_window *window, const struct tare_node *node) {
    int64_t values[MOST_ENTRIES];
    size_t count;
    TARE_TRY(list_of(values, &count, node, "explicit_paddings"));
    const size_t expected = 2 * ((size_t)window->spatial + 2);
    if (count != expected)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "explicit_paddings has %zu entries (expected %zu)", count, expected);
    const size_t first = window->channels_first ? 2 : 1;
    const size_t channels = window->channels_first ? 1 : (size_t)window->spatial + 1;
    if (values[0] || values[1] || values[2 * channels] || values[2 * channels + 1])
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "explicit_paddings pads batch or channels");
    for (size_t i = 0; i < (size_t)window->spatial; i++) {
        for (size_t side = 0; side < 2; side++) {
            const int64_t pad = values[2 * (first + i) + side];
            if (pad < 0 || pad > INT32_MAX)
                return TARE_FAIL(TARE_INVALID_ARGUMENT, "explicit_paddings holds %lld", (long long)pad);
            window->explicit_pad[3 - (size_t)window->spatial + i][side] = pad;
        }
    }
    return TARE_OK;
}

tare_status tare_window_parse(struct tare_window *window, const struct tare_node *node, int spatial) {
    *window = (struct tare_window){
        .spatial = spatial,
        .size = { 1, 1, 1 },
        .stride = { 1, 1, 1 },
        .dilation = { 1, 1, 1 },
        .size_of_batch = 1,
        .size_of_channels = 1,
        .stride_of_batch = 1,
        .stride_of_channels = 1,
    };
    const char *format = tare_node_string(node, "data_format", spatial == 2 ? "NHWC" : "NDHWC");
    if (strcmp(format, spatial == 2 ? "NCHW" : "NCDHW") == 0)
        window->channels_first = true;
    else if (strcmp(format, spatial == 2 ? "NHWC" : "NDHWC") != 0)
        return TARE_FAIL(TARE_UNSUPPORTED, "data format %s", format);
    const char *padding = tare_node_string(node, "padding", "VALID");
    if (strcmp(padding, "EXPLICIT") == 0) {
        window->padding = TARE_PAD_EXPLICIT;
        TARE_TRY(parse_explicit(window, node));
    } else if (strcmp(padding, "SAME") == 0) {
        window->padding = TARE_PAD_SAME;
    } else if (strcmp(padding, "VALID") != 0) {
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "padding '%s' (expected SAME, VALID or EXPLICIT)", padding);
    }
    int64_t values[MOST_ENTRIES], of_batch, of_channels;
    size_t count;
    TARE_TRY(list_of(values, &count, node, "ksize"));
    if (count > 0) TARE_TRY(tare_window_set_size(window, values, count));
    TARE_TRY(list_of(values, &count, node, "strides"));
    if (count > 0) TARE_TRY(tare_window_set_stride(window, values, count));
    TARE_TRY(list_of(values, &count, node, "dilations"));
    if (count > 0) {
        TARE_TRY(take_vector(window, values, count, "dilations", window->dilation, &of_batch, &of_channels));
        if (of_batch != 1 || of_channels != 1) return TARE_FAIL(TARE_UNSUPPORTED, "dilation along batch or channels");
    }
    return TARE_OK;
}

tare_status tare_window_output(int64_t *out, int64_t *pad, const struct tare_window *window, int axis, int64_t in,
                               int64_t size) {
    const int64_t stride = window->stride[axis];
    int64_t reach;
    if (size < 1 || !tare_mul_i64(&reach, size - 1, window->dilation[axis]) || reach > INT64_MAX / 4 ||
        in > INT64_MAX / 4)
        return TARE_FAIL(TARE_SHAPE, "window of %lld elements", (long long)size);
    reach += 1;
    *pad = 0;
    if (window->padding == TARE_PAD_SAME) {
        *out = (in + stride - 1) / stride;
        const int64_t total = (*out - 1) * stride + reach - in;
        *pad = total > 0 ? total / 2 : 0;
        return TARE_OK;
    }
    int64_t padded = in;
    if (window->padding == TARE_PAD_EXPLICIT) {
        *pad = window->explicit_pad[axis][0];
        padded += window->explicit_pad[axis][0] + window->explicit_pad[axis][1];
    }
    const int64_t room = padded - reach + stride;
    if (room < 0)
        return TARE_FAIL(TARE_SHAPE, "a window of %lld does not fit into %lld elements", (long long)reach,
                         (long long)padded);
    *out = room / stride;
    return TARE_OK;
}

tare_status tare_window_transposed_padding(int64_t pad[2], const struct tare_window *window, int axis, int64_t in,
                                           int64_t size, int64_t out) {
    int64_t expected, low;
    TARE_TRY(tare_window_output(&expected, &low, window, axis, in, size));
    if (expected != out)
        return TARE_FAIL(TARE_SHAPE, "a window over %lld elements has %lld results, got %lld", (long long)in,
                         (long long)expected, (long long)out);
    pad[0] = (size - 1) * window->dilation[axis] - low;
    pad[1] = in - 1 + low - (out - 1) * window->stride[axis];
    return TARE_OK;
}

tare_status tare_layout_of(struct tare_layout *layout, const struct tare_shape *shape, const struct tare_window *window,
                           const char *what) {
    const int rank = window->spatial + 2;
    if (shape->rank != rank) return TARE_FAIL(TARE_SHAPE, "%s has rank %d (expected %d)", what, shape->rank, rank);
    layout->batch = shape->dims[0];
    layout->channels = shape->dims[window->channels_first ? 1 : rank - 1];
    layout->spatial[0] = 1;
    for (int i = 0; i < window->spatial; i++)
        layout->spatial[3 - window->spatial + i] = shape->dims[(window->channels_first ? 2 : 1) + i];
    return TARE_OK;
}

struct tare_shape tare_layout_shape(const struct tare_layout *layout, const struct tare_window *window) {
    struct tare_shape shape = { .rank = window->spatial + 2 };
    shape.dims[0] = layout->batch;
    shape.dims[window->channels_first ? 1 : shape.rank - 1] = layout->channels;
    for (int i = 0; i < window->spatial; i++)
        shape.dims[(window->channels_first ? 2 : 1) + i] = layout->spatial[3 - window->spatial + i];
    return shape;
}

/* [batch, rows, columns] to [batch, columns, rows] */
static void transpose(void *to, const void *from, int64_t batch, int64_t rows, int64_t columns, size_t element_size) {
    const size_t size = (size_t)(rows * columns) * element_size;
    for (size_t i = 0; i < (size_t)batch; i++)
        tare_transpose((char *)to + i * size, (const char *)from + i * size, element_size, rows, columns);
}

/* Moves the channels to the end ([batch, channels, pixels] to [batch, pixels, channels]), and back. */
static void layout_to_last(void *to, const void *from, int64_t batch, int64_t channels, int64_t pixels,
                           size_t element_size) {
    transpose(to, from, batch, channels, pixels, element_size);
}
void tare_layout_to_first(void *to, const void *from, int64_t batch, int64_t channels, int64_t pixels,
                          size_t element_size) {
    transpose(to, from, batch, pixels, channels, element_size);
}

const void *tare_window_input(struct tare_kernel *kernel, const struct tare_window *window,
                              const struct tare_layout *layout, const void *data, size_t element_size) {
    if (!window->channels_first) return data;
    const int64_t pixels = layout->spatial[0] * layout->spatial[1] * layout->spatial[2];
    void *copy = tare_arena_alloc(kernel->scratch, (size_t)(layout->batch * layout->channels * pixels) * element_size);
    if (copy) layout_to_last(copy, data, layout->batch, layout->channels, pixels, element_size);
    return copy;
}

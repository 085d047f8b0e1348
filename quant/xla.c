/* XlaConvV2 and XlaDotV2 nodes. Dimension numbers are small protobuf messages (xla/xla_data.proto); they are written here
 * by hand, as no message type may come this far up. */
#include "quant/xla.h"
#include "graph/model.h"

#include <string.h>

/* ---- dimension numbers ---- */

struct wire {
    unsigned char bytes[64];
    size_t size;
};

/* A proto3 int64 field: zero is not written. Values are below 128. */
static void put_int(struct wire *wire, int field, int64_t value) {
    if (!value) return;
    wire->bytes[wire->size++] = (unsigned char)(field << 3);
    wire->bytes[wire->size++] = (unsigned char)value;
}

static void put_packed(struct wire *wire, int field, const int64_t *values, size_t count) {
    if (!count) return;
    wire->bytes[wire->size++] = (unsigned char)(field << 3 | 2);
    wire->bytes[wire->size++] = (unsigned char)count;
    for (size_t i = 0; i < count; i++) wire->bytes[wire->size++] = (unsigned char)values[i];
}

/* ConvolutionDimensionNumbers: input and output [b,0,1,f], kernel [0,1,i,o]. */
static void conv_dimension_numbers(struct wire *wire) {
    enum { KERNEL_IN = 3, KERNEL_OUT = 4, KERNEL_SPATIAL = 6, IN_FEATURE = 8, OUT_FEATURE = 10, IN_SPATIAL = 11,
           OUT_SPATIAL = 12 };
    put_int(wire, KERNEL_IN, 2);
    put_int(wire, KERNEL_OUT, 3);
    put_packed(wire, KERNEL_SPATIAL, (const int64_t[]){ 0, 1 }, 2);
    put_int(wire, IN_FEATURE, 3);
    put_int(wire, OUT_FEATURE, 3);
    put_packed(wire, IN_SPATIAL, (const int64_t[]){ 1, 2 }, 2);
    put_packed(wire, OUT_SPATIAL, (const int64_t[]){ 1, 2 }, 2);
}

static void dot_dimension_numbers(struct wire *wire, int64_t lhs_axis) {
    enum { LHS_CONTRACTING = 1, RHS_CONTRACTING = 2 };
    put_packed(wire, LHS_CONTRACTING, &lhs_axis, 1);
    put_packed(wire, RHS_CONTRACTING, (const int64_t[]){ 0 }, 1);
}

/* ---- windows ---- */

static int64_t list_item(const struct tare_node *node, const char *name, size_t i, int64_t fallback) {
    const struct tare_attr *attr = tare_node_list(node, name);
    return attr && attr->kind == TARE_ATTR_INT && i < attr->count ? attr->items[i].i : fallback;
}

/* same-padding: total = max((ceil(in / stride) - 1) * stride + (k - 1) * dilation + 1 - in, 0); the odd one goes high. */
static tare_status same_padding(struct tare_spatial *out, int64_t size, int64_t kernel) {
    int64_t reach = (kernel - 1) * out->dilation + 1, outputs, total;
    if (size < 0 && out->stride == 1) { /* the total does not depend on the size */
        total = reach - 1;
    } else if (size < 0) {
        return TARE_FAIL(TARE_UNSUPPORTED, "SAME padding with stride %lld needs a known image size",
                         (long long)out->stride);
    } else {
        outputs = (size + out->stride - 1) / out->stride;
        total = (outputs - 1) * out->stride + reach - size;
        if (total < 0) total = 0;
    }
    out->low = total / 2;
    out->high = total - out->low;
    return TARE_OK;
}

tare_status tare_quant_window(struct tare_spatial out[2], const struct tare_node *conv, const struct tare_shape *input,
                              const struct tare_shape *filter) {
    const char *padding = tare_node_string(conv, "padding", "VALID");
    for (size_t i = 0; i < 2; i++) {
        struct tare_spatial *s = &out[i];
        *s = (struct tare_spatial){ list_item(conv, "strides", i + 1, 1), list_item(conv, "dilations", i + 1, 1), 0, 0 };
        if (s->stride < 1 || s->dilation < 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "strides and dilations must be positive");
        if (strcmp(padding, "SAME") == 0) {
            TARE_TRY(same_padding(s, input->rank == 4 ? input->dims[i + 1] : -1, filter->dims[i]));
        } else if (strcmp(padding, "EXPLICIT") == 0) {
            s->low = list_item(conv, "explicit_paddings", 2 * (i + 1), 0);
            s->high = list_item(conv, "explicit_paddings", 2 * (i + 1) + 1, 0);
        }
    }
    return TARE_OK;
}

/* ---- nodes ---- */

static tare_status set_common(struct tare_node *node, struct tare_edge lhs, struct tare_edge rhs,
                              const struct wire *dimension_numbers, int accumulator) {
    TARE_TRY(tare_node_set_type(node, "LhsT", tare_edge_dtype(lhs)));
    TARE_TRY(tare_node_set_type(node, "RhsT", tare_edge_dtype(rhs)));
    TARE_TRY(tare_node_set_string(node, "dimension_numbers", dimension_numbers->bytes, dimension_numbers->size));
    TARE_TRY(tare_node_set_string(node, "precision_config", "", 0));
    TARE_TRY(tare_node_set_type(node, "preferred_element_type", accumulator));
    return tare_node_resolve(node);
}

static struct tare_edge emit_node(struct tare_emit *emit, const char *op, const char *name,
                                  const struct tare_edge *inputs, size_t n_inputs, const struct wire *numbers,
                                  int accumulator) {
    struct tare_edge none = { NULL, 0 };
    const char *full = tare_arena_printf(&emit->graph->model->arena, "%s/%s", emit->prefix, name);
    struct tare_node *node = full && emit->status == TARE_OK ? tare_graph_add(emit->graph, op, full) : NULL;
    tare_status status = node ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < n_inputs && status == TARE_OK; i++) status = tare_node_add_input(node, inputs[i]);
    if (status == TARE_OK && strcmp(op, "XlaConvV2") == 0) {
        status = tare_node_set_type(node, "Tindices", TARE_DT_INT32);
        if (status == TARE_OK) status = tare_node_set_int(node, "batch_group_count", 1);
    }
    if (status == TARE_OK) status = set_common(node, inputs[0], inputs[1], numbers, accumulator);
    if (status == TARE_OK) return (struct tare_edge){ node, 0 };
    if (emit->status == TARE_OK) emit->status = status;
    return none;
}

struct tare_edge tare_emit_xla_conv(struct tare_emit *emit, struct tare_edge lhs, struct tare_edge rhs,
                                    const struct tare_spatial window[2], int64_t groups, int accumulator) {
    const int64_t pair[] = { 2 }, square[] = { 2, 2 };
    const int32_t strides[] = { (int32_t)window[0].stride, (int32_t)window[1].stride };
    const int32_t dilations[] = { (int32_t)window[0].dilation, (int32_t)window[1].dilation };
    const int32_t padding[] = { (int32_t)window[0].low, (int32_t)window[0].high, (int32_t)window[1].low,
                                (int32_t)window[1].high };
    const int32_t ones[] = { 1, 1 };
    const struct tare_edge inputs[] = {
        lhs,
        rhs,
        tare_emit_ints(emit, "window_strides", 1, pair, strides),
        tare_emit_ints(emit, "padding", 2, square, padding),
        tare_emit_ints(emit, "lhs_dilation", 1, pair, ones),
        tare_emit_ints(emit, "rhs_dilation", 1, pair, dilations),
        tare_emit_i32(emit, "feature_group_count", (int32_t)groups),
    };
    struct wire numbers = { .size = 0 };
    conv_dimension_numbers(&numbers);
    return emit_node(emit, "XlaConvV2", "XlaConvV2", inputs, 7, &numbers, accumulator);
}

struct tare_edge tare_emit_xla_dot(struct tare_emit *emit, struct tare_edge lhs, struct tare_edge rhs, int lhs_axis,
                                   int accumulator) {
    const struct tare_edge inputs[] = { lhs, rhs };
    struct wire numbers = { .size = 0 };
    dot_dimension_numbers(&numbers, lhs_axis);
    return emit_node(emit, "XlaDotV2", "XlaDotV2", inputs, 2, &numbers, accumulator);
}

struct tare_edge tare_emit_pad(struct tare_emit *emit, struct tare_edge x, struct tare_spatial window[2],
                               struct tare_edge value) {
    const int64_t dims[] = { 4, 2 };
    const int32_t paddings[] = { 0, 0, (int32_t)window[0].low, (int32_t)window[0].high,
                                 (int32_t)window[1].low, (int32_t)window[1].high, 0, 0 };
    struct tare_edge pads = tare_emit_ints(emit, "pad/paddings", 2, dims, paddings);
    const char *full = tare_arena_printf(&emit->graph->model->arena, "%s/pad", emit->prefix);
    struct tare_node *node = full && emit->status == TARE_OK ? tare_graph_add(emit->graph, "PadV2", full) : NULL;
    tare_status status = node ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) status = tare_node_add_input(node, x);
    if (status == TARE_OK) status = tare_node_add_input(node, pads);
    if (status == TARE_OK) status = tare_node_add_input(node, value);
    if (status == TARE_OK) status = tare_node_set_type(node, "T", tare_edge_dtype(x));
    if (status == TARE_OK) status = tare_node_set_type(node, "Tpaddings", TARE_DT_INT32);
    if (status == TARE_OK) status = tare_node_resolve(node);
    if (status != TARE_OK && emit->status == TARE_OK) emit->status = status;
    for (int i = 0; i < 2; i++) window[i].low = window[i].high = 0;
    return (struct tare_edge){ node, 0 };
}

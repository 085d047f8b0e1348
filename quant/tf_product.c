/* Products on integers as TensorFlow's own ops. MatMul, Conv2D and the like keep their op and attributes. Einsum and
 * XlaDotV2 become an Einsum whose output has the raw order of axes (batch, left, right), so that one scale per channel
 * broadcasts; the result is transposed afterwards. XlaConvV2, and Conv2DBackpropInput with strides of 1, become a
 * Conv2D or Conv3D without padding between transpositions, images of one dimension get a second one.
 *
 * Depthwise, grouped and 3-D convolutions accumulate in float32, as TensorFlow has no integer kernels for them. */
#include "quant/tf_product.h"

#include "graph/model.h"
#include "quant/xla.h"

#include <string.h>

static bool is_einsum(const struct tare_quant_layer *layer) {
    return layer->kind == TARE_KIND_EINSUM || layer->kind == TARE_KIND_XLA_DOT ||
           (tare_quant_multiplies_arrays(layer->kind) && layer->left == 1); /* a weight that is the first operand */
}

bool tare_tf_takes_arranged(const struct tare_quant_layer *layer) {
    return layer->kind == TARE_KIND_XLA_CONV || layer->kind == TARE_KIND_TRANSPOSED_CONV;
}

const char *tare_tf_refuses(const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    if (layer->weight && p->moves && !is_einsum(layer) && layer->setting.granularity != TARE_PER_TENSOR)
        return "in the op set TF a transposed result has one scale in all (granularity per_tensor)";
    if (layer->kind == TARE_KIND_BATCH_MATMUL && layer->left == 1 &&
        (p->squeezed_left || p->spreads_left || p->spreads_right ||
         p->n_batch + p->n_contracted + p->n_free_right != layer->weight->shape.rank))
        return "in the op set TF a weight that is the first operand has no batch axes that are broadcast";
    if (!tare_tf_takes_arranged(layer)) return NULL;
    for (int i = 0; i < p->spatial; i++)
        if (p->window[i].base > 1 || p->window[i].low < 0 || p->window[i].high < 0)
            return "the op set TF has no convolution that inserts zeros between elements or cuts off elements";
    return p->groups > 1 && p->spatial == 3 ? "the op set TF has no 3-D convolution in groups" : NULL;
}

static bool sums_in_float(const struct tare_quant_layer *layer) {
    return layer->kind == TARE_KIND_DEPTHWISE || layer->product.spatial == 3 ||
           (layer->product.spatial && layer->product.groups > 1);
}

/* ---- nodes ---- */

static struct tare_node *open_node(struct tare_emit *emit, const char *op, const struct tare_edge *inputs,
                                   size_t count) {
    const char *name =
        emit->status == TARE_OK ? tare_arena_printf(&emit->graph->model->arena, "%s/product", emit->prefix) : NULL;
    struct tare_node *node = name ? tare_graph_add(emit->graph, op, name) : NULL;
    if (!node && emit->status == TARE_OK) emit->status = TARE_NO_MEMORY;
    for (size_t i = 0; i < count && emit->status == TARE_OK; i++)
        emit->status = tare_node_add_input(node, inputs[i]);
    return node;
}

static struct tare_edge emit_transposed(struct tare_emit *emit, const char *name, struct tare_edge x, int rank,
                                        const int32_t *order) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, emit->status == TARE_OK ? tare_edge_dtype(x) : 0 },
                                            { "Tperm", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    bool moved = false;
    for (int i = 0; i < rank; i++)
        moved |= order[i] != i;
    if (!moved) return x;
    const struct tare_edge inputs[] = { x, tare_emit_vector(emit, name, rank, order) };
    return tare_emit_node(emit, "Transpose", name, inputs, 2, attrs);
}

/* ---- products of arrays ---- */

/* Letters of the operands' axes: batch and contracted axes have the same in both. */
static void set_letters(char left[TARE_MAX_RANK], char right[TARE_MAX_RANK], const struct tare_quant_product *p) {
    const int n_left = p->n_batch + p->n_contracted + p->n_free_left;
    const int n_right = p->n_batch + p->n_contracted + p->n_free_right;
    char next = 'a';
    memset(left, 0, TARE_MAX_RANK);
    memset(right, 0, TARE_MAX_RANK);
    for (int i = 0; i < p->n_batch; i++)
        left[p->left_batch[i]] = right[p->right_batch[i]] = next++;
    for (int i = 0; i < p->n_contracted; i++)
        left[p->left_contracted[i]] = right[p->right_contracted[i]] = next++;
    for (int i = 0; i < n_left; i++)
        if (!left[i]) left[i] = next++;
    for (int i = 0; i < n_right; i++)
        if (!right[i]) right[i] = next++;
}

static char *append(char *at, const char *letters, int count) {
    for (int i = 0; i < count; i++)
        *at++ = letters[i];
    return at;
}

/* The axes of `own` that the other operand does not have. */
static char *append_free(char *at, const char *own, int count, const char *other, int n_other) {
    for (int i = 0; i < count; i++)
        if (!memchr(other, own[i], (size_t)n_other)) *at++ = own[i];
    return at;
}

static size_t write_equation(char *out, const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    const int n_left = p->n_batch + p->n_contracted + p->n_free_left;
    const int n_right = p->n_batch + p->n_contracted + p->n_free_right;
    char left[TARE_MAX_RANK], right[TARE_MAX_RANK], *at = out;
    set_letters(left, right, p);
    at = layer->left == 0 ? append(at, left, n_left) : append(at, right, n_right);
    *at++ = ',';
    at = layer->left == 0 ? append(at, right, n_right) : append(at, left, n_left);
    at = append(at, "->", 2);
    for (int i = 0; i < p->n_batch; i++)
        *at++ = left[p->left_batch[i]];
    at = append_free(at, left, n_left, right, n_right);
    at = append_free(at, right, n_right, left, n_left);
    return (size_t)(at - out);
}

static struct tare_edge emit_einsum(struct tare_emit *emit, const struct tare_quant_layer *layer,
                                    const struct tare_edge inputs[2]) {
    char equation[4 * TARE_MAX_RANK + 8];
    struct tare_node *node = open_node(emit, "Einsum", inputs, 2);
    const size_t size = write_equation(equation, layer);
    if (emit->status == TARE_OK) emit->status = tare_node_set_string(node, "equation", equation, size);
    if (emit->status == TARE_OK) emit->status = tare_node_set_int(node, "N", 2);
    if (emit->status == TARE_OK) emit->status = tare_node_set_type(node, "T", TARE_DT_INT32);
    return tare_emit_resolved(emit, node);
}

struct tare_edge tare_tf_result(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge raw) {
    return is_einsum(layer) ? tare_emit_result(emit, &layer->product, raw) : raw;
}

/* ---- convolutions of any order of dimensions ---- */

/* Transposition orders: to [batch, spatial…, channels] of the input, and from it to the output. */
static void set_orders(int32_t *to_last, int32_t *from_last, const struct tare_conv_dims *dims) {
    const int n = dims->spatial + 2;
    to_last[0] = dims->input_batch;
    to_last[n - 1] = dims->input_feature;
    from_last[dims->output_batch] = 0;
    from_last[dims->output_feature] = n - 1;
    for (int i = 0; i < dims->spatial; i++) {
        to_last[i + 1] = dims->input_spatial[i];
        from_last[dims->output_spatial[i]] = i + 1;
    }
}

/* Adds an axis of one element. */
static struct tare_edge emit_expanded(struct tare_emit *emit, const char *name, struct tare_edge x, int32_t axis) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, emit->status == TARE_OK ? tare_edge_dtype(x) : 0 },
                                            { "Tdim", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { 0 } };
    const struct tare_edge inputs[] = { x, tare_emit_i32(emit, name, axis) };
    return tare_emit_node(emit, "ExpandDims", name, inputs, 2, attrs);
}

static struct tare_edge emit_squeezed(struct tare_emit *emit, struct tare_edge x) {
    const int64_t axis = 1;
    struct tare_node *node = open_node(emit, "Squeeze", &x, 1);
    if (emit->status == TARE_OK) emit->status = tare_node_set_type(node, "T", tare_edge_dtype(x));
    if (emit->status == TARE_OK) emit->status = tare_node_set_int_list(node, "squeeze_dims", &axis, 1);
    return tare_emit_resolved(emit, node);
}

/* Conv2D or Conv3D without padding; a window of one dimension is the second of two. */
static struct tare_edge emit_window(struct tare_emit *emit, const struct tare_quant_product *p,
                                    const struct tare_edge inputs[2]) {
    const int n = p->spatial == 3 ? 3 : 2;
    int64_t strides[] = { 1, 1, 1, 1, 1 }, dilations[] = { 1, 1, 1, 1, 1 };
    for (int i = 0; i < p->spatial; i++) {
        strides[1 + n - p->spatial + i] = p->window[i].stride;
        dilations[1 + n - p->spatial + i] = p->window[i].dilation;
    }
    struct tare_node *node = open_node(emit, n == 3 ? "Conv3D" : "Conv2D", inputs, 2);
    if (emit->status == TARE_OK) emit->status = tare_node_set_type(node, "T", tare_edge_dtype(inputs[0]));
    if (emit->status == TARE_OK) emit->status = tare_node_set_string(node, "padding", "VALID", 5);
    if (emit->status == TARE_OK) emit->status = tare_node_set_int_list(node, "strides", strides, (size_t)n + 2);
    if (emit->status == TARE_OK) emit->status = tare_node_set_int_list(node, "dilations", dilations, (size_t)n + 2);
    return tare_emit_resolved(emit, node);
}

static struct tare_edge emit_any_conv(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge x,
                                      struct tare_edge w) {
    struct tare_quant_product p = layer->product;
    int32_t to_last[TARE_MAX_RANK], from_last[TARE_MAX_RANK];
    set_orders(to_last, from_last, &p.dims);
    if (tare_quant_pads(&p))
        x = tare_emit_pad(emit, x, &p,
                          tare_emit_number(emit, "pad/zero", emit->status == TARE_OK ? tare_edge_dtype(x) : 0, 0));
    x = emit_transposed(emit, "input/moved", x, p.spatial + 2, to_last);
    if (p.spatial == 1) x = emit_expanded(emit, "input/image", x, 1);
    if (p.spatial == 1) w = emit_expanded(emit, "filter/image", w, 0);
    x = emit_window(emit, &p, (const struct tare_edge[]){ x, w });
    if (p.spatial == 1) x = emit_squeezed(emit, x);
    return emit_transposed(emit, "sums/moved", x, p.spatial + 2, from_last);
}

/* ---- any layer ---- */

/* The op with its attributes, of other numbers. */
static struct tare_edge emit_same_op(struct tare_emit *emit, const struct tare_quant_layer *layer,
                                     const struct tare_edge inputs[2]) {
    const bool mixed = strcmp(layer->op->op, "BatchMatMulV3") == 0; /* its attributes T are others */
    struct tare_node *node = open_node(emit, mixed ? "BatchMatMulV2" : layer->op->op, inputs, 2);
    if (emit->status == TARE_OK) emit->status = tare_node_copy_attrs(node, layer->op);
    if (emit->status == TARE_OK) emit->status = tare_node_set_type(node, "T", tare_edge_dtype(inputs[0]));
    if (emit->status != TARE_OK) return inputs[0];
    tare_node_remove_attr(node, "_output_shapes");
    tare_node_remove_attr(node, "Ta");
    tare_node_remove_attr(node, "Tb");
    tare_node_remove_attr(node, "Tout");
    return tare_emit_resolved(emit, node);
}

struct tare_edge tare_tf_product(struct tare_emit *emit, const struct tare_quant_layer *layer, struct tare_edge x,
                                 struct tare_edge w) {
    struct tare_edge inputs[2];
    if (sums_in_float(layer)) {
        x = tare_emit_cast(emit, "input/float", x, TARE_DT_FLOAT);
        w = tare_emit_cast(emit, "filter/float", w, TARE_DT_FLOAT);
    }
    if (emit->status != TARE_OK) return x;
    inputs[layer->left > layer->right] = x;
    inputs[layer->left < layer->right] = w;
    x = tare_tf_takes_arranged(layer) ? emit_any_conv(emit, layer, x, w)
        : is_einsum(layer)            ? emit_einsum(emit, layer, inputs)
                                      : emit_same_op(emit, layer, inputs);
    return sums_in_float(layer) ? tare_emit_cast(emit, "sums", x, TARE_DT_INT32) : x;
}

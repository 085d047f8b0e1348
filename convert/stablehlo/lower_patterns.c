/* Compositions that TensorFlow has one op for: pooling, softmax, mean, ReLU6. The importer tries these rules before the
 * rule of the op, so that quantization, fusion and the bfloat16 rules see the op they know. A rule matches the ops that
 * define the operands, and their types; the results must be equal for all inputs, except that MaxPool passes over NaN,
 * as TensorFlow's kernels do. */
#include "convert/stablehlo/lower.h"

#include <math.h>
#include <string.h>

/* The dtypes that all of these ops take: no eight-bit floats. */
static bool is_float(int dtype) {
    return dtype == TARE_DT_FLOAT || dtype == TARE_DT_DOUBLE || dtype == TARE_DT_HALF || dtype == TARE_DT_BFLOAT16;
}

/* The op that defines a value if it is this one; NULL otherwise. */
static const struct tare_shlo_op *defined_by(const struct tare_shlo_value *value, const char *name) {
    return value->op && tare_shlo_op_is(value->op, name) ? value->op : NULL;
}

static size_t ints(int64_t *out, size_t capacity, const struct tare_shlo_op *op, const char *name) {
    const struct tare_shlo_attr *attr = tare_shlo_op_attr(op, name);
    size_t count;
    if (!attr || attr->kind != TARE_SHLO_ATTR_TENSOR || !tare_shlo_tensor_count(&count, attr) || count > capacity)
        return 0;
    for (size_t i = 0; i < count; i++)
        out[i] = tare_shlo_tensor_integer(attr, i);
    return count;
}

/* A body of one op on its two arguments. */
static bool body_is(const struct tare_shlo_block *body, const char *name) {
    const struct tare_shlo_op *op = &body->ops[0];
    if (body->n_ops != 2 || body->n_args != 2 || !tare_shlo_op_is(op, name)) return false;
    if (body->ops[1].n_operands != 1 || body->ops[1].operands[0] != &op->results[0]) return false;
    return (op->operands[0] == &body->args[0] && op->operands[1] == &body->args[1]) ||
           (op->operands[1] == &body->args[0] && op->operands[0] == &body->args[1]);
}

/* A reduction of one operand by that op from that initial value. */
static bool reduces(const struct tare_shlo_op *op, const char *name, double initial) {
    return op->n_operands == 2 && body_is(&op->regions[0], name) && tare_lower_is_number(op->operands[1], initial);
}

/* ---- broadcasts ---- */

/* True if the value is `of` with axes of one element added at the end or broadcast: axis i stays axis i. */
static bool spreads_last_axis(const struct tare_shlo_value *value, const struct tare_shlo_value *of) {
    const size_t rank = value->type->rank;
    while (value != of) {
        const struct tare_shlo_op *op = value->op;
        int64_t dims[TARE_MAX_RANK];
        if (!op || !op->n_operands || op->operands[0]->type->kind != TARE_SHLO_TENSOR) return false;
        const struct tare_shlo_type *from = op->operands[0]->type;
        if (tare_shlo_op_is(op, "broadcast_in_dim") || tare_shlo_op_is(op, "dynamic_broadcast_in_dim")) {
            if (ints(dims, TARE_MAX_RANK, op, "broadcast_dimensions") != from->rank) return false;
            for (size_t i = 0; i < from->rank; i++)
                if (dims[i] != (int64_t)i) return false;
        } else if (tare_shlo_op_is(op, "reshape") || tare_shlo_op_is(op, "dynamic_reshape")) {
            if (value->type->rank != from->rank + 1 || value->type->dims[from->rank] != 1) return false;
            for (size_t i = 0; i < from->rank; i++)
                if (from->dims[i] != value->type->dims[i]) return false;
        } else {
            return false;
        }
        if (from->rank + 1 < rank || from->rank > rank) return false;
        for (size_t i = 0; i + 1 < rank; i++) /* only the last axis grows */
            if (i < from->rank && from->dims[i] == 1 && value->type->dims[i] != 1) return false;
        value = op->operands[0];
    }
    return true;
}

/* True if the value is constant along its last axis because it was broadcast along it. */
static bool is_spread_along_last(const struct tare_shlo_value *value) {
    const size_t last = value->type->rank - 1;
    const struct tare_shlo_op *op = value->op;
    int64_t dims[TARE_MAX_RANK];
    size_t count;
    if (!op || (!tare_shlo_op_is(op, "broadcast_in_dim") && !tare_shlo_op_is(op, "dynamic_broadcast_in_dim")))
        return false;
    count = ints(dims, TARE_MAX_RANK, op, "broadcast_dimensions");
    if (count != op->operands[0]->type->rank) return false;
    for (size_t i = 0; i < count; i++)
        if (dims[i] == (int64_t)last && op->operands[0]->type->dims[i] != 1) return false;
    return true;
}

/* The sum of the value over its last axis, broadcast to its shape (or before that): the reduction. */
static const struct tare_shlo_op *sum_over_last(const struct tare_shlo_value *spread,
                                                const struct tare_shlo_value *of) {
    const struct tare_shlo_value *value = spread;
    int64_t dims[TARE_MAX_RANK];
    while (value->op && value->op->n_operands && !tare_shlo_op_is(value->op, "reduce"))
        value = value->op->operands[0];
    if (!value->op || value->op->n_operands != 2 || value->op->operands[0] != of) return NULL;
    if (!reduces(value->op, "add", 0)) return NULL;
    if (ints(dims, TARE_MAX_RANK, value->op, "dimensions") != 1 || dims[0] != (int64_t)of->type->rank - 1) return NULL;
    return spreads_last_axis(spread, value) ? value->op : NULL;
}

/* ---- softmax ---- */

/* exp(x - m) / sum of exp(x - m): any m that does not depend on the last axis cancels. */
static bool match_softmax(struct tare_lowering *l) {
    const struct tare_shlo_op *exponential = defined_by(l->op->operands[0], "exponential"), *shifted;
    if (!exponential || !is_float(tare_lower_in_dtype(l, 0)) || !tare_lower_in_type(l, 0)->rank) return false;
    shifted = defined_by(exponential->operands[0], "subtract");
    if (!shifted || !is_spread_along_last(shifted->operands[1])) return false;
    if (!sum_over_last(l->op->operands[1], l->op->operands[0])) return false;
    tare_lower_set(l, tare_lower_unary(l, "Softmax", tare_lower_value(l, shifted->operands[0])));
    return true;
}

/* (x - m) - log(sum of exp(x - m)) */
static bool match_log_softmax(struct tare_lowering *l) {
    const struct tare_shlo_op *shifted = defined_by(l->op->operands[0], "subtract");
    const struct tare_shlo_value *value = l->op->operands[1];
    const struct tare_shlo_op *exponential;
    if (!shifted || !is_float(tare_lower_in_dtype(l, 0)) || !tare_lower_in_type(l, 0)->rank) return false;
    if (!is_spread_along_last(shifted->operands[1])) return false;
    while (value->op && value->op->n_operands && !tare_shlo_op_is(value->op, "log"))
        value = value->op->operands[0];
    if (!value->op || !value->op->n_operands || !spreads_last_axis(l->op->operands[1], value)) return false;
    const struct tare_shlo_value *sum = value->op->operands[0];
    const struct tare_shlo_value *at = sum;
    while (at->op && at->op->n_operands && !tare_shlo_op_is(at->op, "reduce"))
        at = at->op->operands[0];
    if (!at->op || at->op->n_operands != 2) return false;
    exponential = defined_by(at->op->operands[0], "exponential");
    if (!exponential || exponential->operands[0] != l->op->operands[0]) return false;
    if (!sum_over_last(sum, at->op->operands[0])) return false;
    tare_lower_set(l, tare_lower_unary(l, "LogSoftmax", tare_lower_value(l, shifted->operands[0])));
    return true;
}

/* ---- pooling ---- */

struct window {
    int64_t size[4], stride[4]; /* in the order batch, height, width, channels */
    bool channels_first;        /* the operand is in the order batch, channels, height, width */
    bool same;                  /* SAME padding; otherwise none */
};

static void move_channels_last(int64_t values[4]) {
    const int64_t channels = values[1];
    values[1] = values[2];
    values[2] = values[3];
    values[3] = channels;
}

/* A window over the two middle axes of four, or over the last two, without dilation, whose padding TensorFlow has a
 * name for. */
static bool read_pool(struct window *w, const struct tare_shlo_op *op) {
    const struct tare_shlo_type *in = op->operands[0]->type;
    int64_t base[4], dilation[4], padding[8];
    bool none = true, same = true;
    if (op->n_operands != 2 || in->rank != 4) return false;
    if (ints(w->size, 4, op, "window_dimensions") != 4 || ints(w->stride, 4, op, "window_strides") != 4 ||
        ints(base, 4, op, "base_dilations") != 4 || ints(dilation, 4, op, "window_dilations") != 4 ||
        ints(padding, 8, op, "padding") != 8)
        return false;
    w->channels_first = w->size[3] != 1 || w->stride[3] != 1;
    const int channels = w->channels_first ? 1 : 3;
    for (int i = 0; i < 4; i++) {
        const int64_t size = in->dims[i];
        if (base[i] != 1 || dilation[i] != 1 || w->size[i] < 1 || w->stride[i] < 1) return false;
        if ((i == 0 || i == channels) && (w->size[i] != 1 || w->stride[i] != 1)) return false;
        none = none && !padding[2 * i] && !padding[2 * i + 1];
        /* same-padding: of a size that is not known only where the stride is 1 */
        int64_t total = size < 0 ? (w->stride[i] == 1 ? w->size[i] - 1 : -1)
                                 : ((size + w->stride[i] - 1) / w->stride[i] - 1) * w->stride[i] + w->size[i] - size;
        if (size >= 0 && total < 0) total = 0;
        same = same && padding[2 * i] == total / 2 && padding[2 * i + 1] == total - total / 2;
    }
    w->same = !none;
    if (w->channels_first) move_channels_last(w->size);
    if (w->channels_first) move_channels_last(w->stride);
    return none || same;
}

static bool same_window(const struct window *a, const struct window *b) {
    return memcmp(a->size, b->size, sizeof a->size) == 0 && memcmp(a->stride, b->stride, sizeof a->stride) == 0 &&
           a->same == b->same && a->channels_first == b->channels_first;
}

static void emit_pool(struct tare_lowering *l, const char *op, const struct tare_shlo_value *value,
                      const struct window *w) {
    static const int64_t to_last[] = { 0, 2, 3, 1 }, to_first[] = { 0, 3, 1, 2 };
    struct tare_edge x = tare_lower_value(l, value);
    if (w->channels_first) x = tare_lower_binary(l, "Transpose", x, tare_lower_longs(l, to_last, 4));
    struct tare_node *node = tare_lower_begin(l, op, &x, 1);
    tare_lower_attr_ints(l, node, "ksize", w->size, 4);
    tare_lower_attr_ints(l, node, "strides", w->stride, 4);
    tare_lower_attr_bytes(l, node, "padding", w->same ? "SAME" : "VALID", w->same ? 4 : 5);
    x = tare_lower_end(l, node);
    if (w->channels_first) x = tare_lower_binary(l, "Transpose", x, tare_lower_longs(l, to_first, 4));
    tare_lower_set(l, x);
}

static bool match_max_pool(struct tare_lowering *l) {
    struct window w;
    if (!is_float(tare_lower_in_dtype(l, 0)) || !reduces(l->op, "maximum", -(double)INFINITY) || !read_pool(&w, l->op))
        return false;
    emit_pool(l, "MaxPool", l->op->operands[0], &w);
    return true;
}

/* The sums of ones in the same windows: how many elements each window has. */
static bool counts_windows(const struct tare_shlo_value *value, const struct window *w) {
    struct window other;
    while (value->op && value->op->n_operands &&
           (tare_shlo_op_is(value->op, "broadcast_in_dim") || tare_shlo_op_is(value->op, "dynamic_broadcast_in_dim")) &&
           value->op->operands[0]->type->rank == 4)
        value = value->op->operands[0];
    const struct tare_shlo_op *op = defined_by(value, "reduce_window");
    return op && reduces(op, "add", 0) && tare_lower_is_number(op->operands[0], 1) && read_pool(&other, op) &&
           same_window(w, &other);
}

/* Sums of windows divided by the number of elements. */
static bool match_avg_pool(struct tare_lowering *l) {
    const struct tare_shlo_op *sums = defined_by(l->op->operands[0], "reduce_window");
    struct window w;
    if (!sums || !is_float(tare_lower_in_dtype(l, 0)) || !reduces(sums, "add", 0) || !read_pool(&w, sums)) return false;
    const bool all = !w.same && tare_lower_is_number(l->op->operands[1], (double)(w.size[1] * w.size[2]));
    if (!all && !counts_windows(l->op->operands[1], &w)) return false;
    emit_pool(l, "AvgPool", sums->operands[0], &w);
    return true;
}

/* ---- batch normalization ---- */

/* The vector [channels] that the value is along its last axis, broadcast and reshaped; NULL if it is none. */
static const struct tare_shlo_value *vector_of(const struct tare_shlo_value *value, int64_t channels) {
    int64_t dims[TARE_MAX_RANK];
    for (;;) {
        const struct tare_shlo_type *to = value->type;
        if (to->kind != TARE_SHLO_TENSOR || !to->rank || to->dims[to->rank - 1] != channels) return NULL;
        if (to->rank == 1) return value;
        if (!value->op || !value->op->n_operands || value->op->operands[0]->type->kind != TARE_SHLO_TENSOR) return NULL;
        const struct tare_shlo_type *from = value->op->operands[0]->type;
        const bool broadcasts =
            tare_shlo_op_is(value->op, "broadcast_in_dim") || tare_shlo_op_is(value->op, "dynamic_broadcast_in_dim");
        if (!broadcasts && !tare_shlo_op_is(value->op, "reshape")) return NULL;
        if (!from->rank || (broadcasts && (ints(dims, TARE_MAX_RANK, value->op, "broadcast_dimensions") != from->rank ||
                                           dims[from->rank - 1] != (int64_t)to->rank - 1)))
            return NULL;
        for (size_t i = 0; i + 1 < from->rank; i++)
            if (from->dims[i] != 1) return NULL;
        value = value->op->operands[0];
    }
}

/* Removes broadcasts down to [1, …, 1, channels]. */
static const struct tare_shlo_value *before_broadcast(const struct tare_shlo_value *value) {
    while (value->op &&
           (tare_shlo_op_is(value->op, "broadcast_in_dim") || tare_shlo_op_is(value->op, "dynamic_broadcast_in_dim")))
        value = value->op->operands[0];
    return value;
}

/* A batch normalization: (x - mean) * (rsqrt(variance + epsilon) * scale) + offset. */
struct norm {
    const struct tare_shlo_value *x, *mean, *variance, *scale, *offset; /* scale NULL: 1 */
    double epsilon;
};

static bool read_deviation(struct norm *n, const struct tare_shlo_op *root, int64_t channels) {
    const struct tare_shlo_op *sum = root ? defined_by(root->operands[0], "add") : NULL;
    for (size_t i = 0; sum && i < 2; i++) {
        n->variance = vector_of(sum->operands[i], channels);
        if (n->variance && tare_lower_number_of(&n->epsilon, sum->operands[1 - i])) return true;
    }
    return false;
}

static bool read_factor(struct norm *n, const struct tare_shlo_value *value, int64_t channels) {
    const struct tare_shlo_op *product = defined_by(before_broadcast(value), "multiply");
    if (value->type->dims[value->type->rank - 1] != channels) return false;
    if (!product) return read_deviation(n, defined_by(before_broadcast(value), "rsqrt"), channels);
    for (size_t i = 0; i < 2; i++) {
        n->scale = vector_of(product->operands[1 - i], channels);
        if (n->scale && read_deviation(n, defined_by(before_broadcast(product->operands[i]), "rsqrt"), channels))
            return true;
    }
    return false;
}

static bool read_norm(struct norm *n, const struct tare_shlo_op *op, size_t offset, int64_t channels) {
    const struct tare_shlo_op *product = defined_by(op->operands[1 - offset], "multiply");
    n->offset = vector_of(op->operands[offset], channels);
    for (size_t i = 0; product && n->offset && i < 2; i++) {
        const struct tare_shlo_op *centred = defined_by(product->operands[i], "subtract");
        if (!centred) continue;
        n->scale = NULL;
        n->x = centred->operands[0];
        n->mean = vector_of(centred->operands[1], channels);
        if (n->mean && n->x->type->rank == 4 && read_factor(n, product->operands[1 - i], channels)) return true;
    }
    return false;
}

static struct tare_edge ones(struct tare_lowering *l, int64_t count) {
    const struct tare_edge one = tare_lower_scalar(l, TARE_DT_FLOAT, 1);
    return tare_lower_binary(l, "Fill", tare_lower_longs(l, &count, 1), one);
}

static bool match_batch_norm(struct tare_lowering *l) {
    const struct tare_shlo_type *type = tare_lower_out_type(l, 0);
    struct norm n = { 0 };
    if (type->rank != 4 || type->dims[3] < 1 || tare_lower_out_dtype(l, 0) != TARE_DT_FLOAT) return false;
    if (!read_norm(&n, l->op, 1, type->dims[3]) && !read_norm(&n, l->op, 0, type->dims[3])) return false;
    const struct tare_edge inputs[] = { tare_lower_value(l, n.x),
                                        n.scale ? tare_lower_value(l, n.scale) : ones(l, type->dims[3]),
                                        tare_lower_value(l, n.offset), tare_lower_value(l, n.mean),
                                        tare_lower_value(l, n.variance) };
    struct tare_node *node = tare_lower_begin(l, "FusedBatchNormV3", inputs, 5);
    if (node && l->status == TARE_OK) l->status = tare_node_set_float(node, "epsilon", (float)n.epsilon);
    tare_lower_attr_bool(l, node, "is_training", false);
    tare_lower_set(l, tare_lower_end(l, node));
    return true;
}

/* A value for each channel added to a product or convolution. */
static bool match_bias(struct tare_lowering *l) {
    const struct tare_shlo_type *type = tare_lower_out_type(l, 0);
    if (type->rank < 2 || type->dims[type->rank - 1] < 1 || !is_float(tare_lower_out_dtype(l, 0))) return false;
    for (size_t i = 0; i < 2; i++) {
        const struct tare_shlo_value *x = l->op->operands[i];
        const struct tare_shlo_value *bias = vector_of(l->op->operands[1 - i], type->dims[type->rank - 1]);
        if (!bias || (!defined_by(x, "convolution") && !defined_by(x, "dot_general"))) continue;
        const struct tare_edge added = tare_lower_value(l, bias);
        tare_lower_set(l, tare_lower_binary(l, "BiasAdd", tare_lower_value(l, x), added));
        return true;
    }
    return false;
}

/* ---- others ---- */

/* min(max(x, 0), 6) */
static bool match_relu6(struct tare_lowering *l) {
    for (size_t i = 0; i < 2; i++) {
        const struct tare_edge x = tare_lower_in(l, i);
        if (l->status != TARE_OK || !tare_node_is(x.node, "Relu")) continue;
        if (!tare_lower_is_constant(l, 1 - i, 6)) continue;
        tare_lower_set(l, tare_lower_unary(l, "Relu6", x.node->inputs[0]));
        return true;
    }
    return false;
}

/* The reduction whose result the value is, as it is or with the reduced axes kept as axes of one element. */
static const struct tare_shlo_op *reduction_of(const struct tare_shlo_value *value, bool *keeps) {
    const struct tare_shlo_op *op = value->op, *sum;
    int64_t dims[TARE_MAX_RANK], reduced[TARE_MAX_RANK];
    *keeps = false;
    if (!op || !op->n_operands || tare_shlo_op_is(op, "reduce")) return op && op->n_operands ? op : NULL;
    const bool broadcasts = tare_shlo_op_is(op, "broadcast_in_dim") || tare_shlo_op_is(op, "dynamic_broadcast_in_dim");
    if (!broadcasts && !tare_shlo_op_is(op, "reshape") && !tare_shlo_op_is(op, "dynamic_reshape")) return NULL;
    sum = defined_by(op->operands[0], "reduce");
    if (!sum || !sum->n_operands || sum->operands[0]->type->rank != value->type->rank) return NULL;
    const size_t n = ints(reduced, TARE_MAX_RANK, sum, "dimensions");
    const size_t kept = broadcasts ? ints(dims, TARE_MAX_RANK, op, "broadcast_dimensions") : 0;
    size_t next = 0;
    for (size_t axis = 0; axis < value->type->rank; axis++) {
        bool is_reduced = false;
        for (size_t i = 0; i < n; i++)
            is_reduced = is_reduced || reduced[i] == (int64_t)axis;
        if (value->type->dims[axis] != (is_reduced ? 1 : sum->operands[0]->type->dims[axis])) return NULL;
        if (broadcasts && !is_reduced && (next >= kept || dims[next++] != (int64_t)axis)) return NULL;
    }
    *keeps = true;
    return sum;
}

/* The sum over static axes divided by the number of elements. */
static bool match_mean(struct tare_lowering *l) {
    bool keeps;
    const struct tare_shlo_op *sum = reduction_of(l->op->operands[0], &keeps);
    int64_t dims[TARE_MAX_RANK], count = 1;
    if (!sum || !tare_shlo_op_is(sum, "reduce") || !is_float(tare_lower_in_dtype(l, 0)) || !reduces(sum, "add", 0))
        return false;
    const struct tare_shlo_type *in = sum->operands[0]->type;
    const size_t n = ints(dims, TARE_MAX_RANK, sum, "dimensions");
    for (size_t i = 0; i < n; i++) {
        if (dims[i] < 0 || (size_t)dims[i] >= in->rank || in->dims[dims[i]] < 1 || in->dims[dims[i]] > 1 << 24)
            return false;
        count *= in->dims[dims[i]];
        if (count > 1 << 24) return false;
    }
    if (!n || !tare_lower_is_number(l->op->operands[1], (double)count)) return false;
    const struct tare_edge inputs[] = { tare_lower_value(l, sum->operands[0]), tare_lower_longs(l, dims, n) };
    struct tare_node *node = tare_lower_begin(l, "Mean", inputs, 2);
    tare_lower_attr_bool(l, node, "keep_dims", keeps);
    tare_lower_set(l, tare_lower_end(l, node));
    return true;
}

static const struct {
    const char *name; /* of the op that the composition ends with */
    bool (*match)(struct tare_lowering *l);
} patterns[] = {
    { "divide", match_softmax },       { "divide", match_avg_pool },        { "divide", match_mean },
    { "divide", tare_lower_erf },      { "add", match_batch_norm },         { "add", match_bias },
    { "subtract", match_log_softmax }, { "reduce_window", match_max_pool }, { "minimum", match_relu6 },
    { "gather", tare_lower_table },
};

bool tare_lower_pattern(struct tare_lowering *l) {
    const struct tare_shlo_type *type = l->op->n_results ? l->op->results[0].type : NULL;
    if (!type || type->kind != TARE_SHLO_TENSOR || type->element->quantized) return false;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (tare_shlo_op_is(l->op, patterns[i].name) && patterns[i].match(l)) return true;
    return false;
}

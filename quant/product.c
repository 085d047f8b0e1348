/* Describes what a layer computes. MatMul, BatchMatMulV2 and Einsum are all represented by labels: one letter per
 * axis. */
#include "quant/product.h"
#include "quant/product_conv.h"
#include "interpreter/kernels/permute.h"
#include "graph/model.h"

#include <string.h>

/* ---- products of arrays, by labels ---- */

enum { DROPPED = '1' }; /* an axis of size 1 that only broadcasts */

struct labels {
    int count;
    char at[TARE_MAX_RANK];
};

static int find_label(const struct labels *labels, char label) {
    for (int i = 0; i < labels->count; i++)
        if (labels->at[i] == label) return i;
    return -1;
}

static tare_status sort_left(struct tare_quant_product *p, char *result, const struct labels *left,
                             const struct labels *right, const struct labels *out) {
    char free_left[TARE_MAX_RANK];
    for (int i = 0; i < left->count; i++) {
        const int other = find_label(right, left->at[i]);
        const bool kept = find_label(out, left->at[i]) >= 0;
        if (find_label(left, left->at[i]) != i) return TARE_FAIL(TARE_UNSUPPORTED, "duplicate label in an operand");
        if (other >= 0 && kept) {
            result[p->n_batch] = left->at[i];
            p->left_batch[p->n_batch] = i;
            p->right_batch[p->n_batch++] = other;
        } else if (other >= 0) {
            p->left_contracted[p->n_contracted] = i;
            p->right_contracted[p->n_contracted++] = other;
        } else if (kept) {
            free_left[p->n_free_left++] = left->at[i];
        } else {
            return TARE_FAIL(TARE_UNSUPPORTED, "an axis of one operand alone is summed");
        }
    }
    memcpy(result + p->n_batch, free_left, (size_t)p->n_free_left);
    return TARE_OK;
}

static tare_status sort_right(struct tare_quant_product *p, char *result, const struct labels *left,
                              const struct labels *right, const struct labels *out) {
    int at = p->n_batch + p->n_free_left;
    for (int i = 0; i < p->n_batch; i++)
        p->order[p->n_order++] = p->right_batch[i];
    for (int i = 0; i < p->n_contracted; i++)
        p->order[p->n_order++] = p->right_contracted[i];
    for (int i = 0; i < right->count; i++) {
        if (right->at[i] == DROPPED) continue;
        if (find_label(right, right->at[i]) != i) return TARE_FAIL(TARE_UNSUPPORTED, "duplicate label in an operand");
        if (find_label(left, right->at[i]) >= 0) continue;
        if (find_label(out, right->at[i]) < 0)
            return TARE_FAIL(TARE_UNSUPPORTED, "an axis of one operand alone is summed");
        p->order[p->n_order++] = i;
        p->n_free_right++;
        result[at++] = right->at[i];
    }
    return TARE_OK;
}

static tare_status order_result(struct tare_quant_product *p, const char *result, const struct labels *out) {
    const int rank = p->n_batch + p->n_free_left + p->n_free_right;
    if (rank != out->count) return TARE_FAIL(TARE_UNSUPPORTED, "an output axis is in no operand");
    for (int i = 0; i < rank; i++) {
        const char *at = memchr(result, out->at[i], (size_t)rank);
        if (!at || find_label(out, out->at[i]) != i)
            return TARE_FAIL(TARE_UNSUPPORTED, "an output axis is in no operand");
        p->result_order[i] = (int)(at - result);
        p->moves |= p->result_order[i] != i;
    }
    return TARE_OK;
}

static int64_t product_of(const struct tare_shape *shape, int first, int count) {
    int64_t product = 1;
    for (int i = first; i < first + count; i++)
        product *= shape->dims[i];
    return product;
}

/* Shape of one value per channel: batch axes and free axes of the right operand, 1 for free axes of the left. */
static void shape_channels(struct tare_quant_product *p) {
    struct tare_shape *shape = &p->channel_shape;
    const int first_free = p->n_batch + p->n_contracted;
    shape->rank = 0;
    for (int i = 0; i < p->n_batch; i++)
        shape->dims[shape->rank++] = p->arranged.dims[i];
    for (int i = 0; i < p->n_free_left && p->n_batch; i++)
        shape->dims[shape->rank++] = 1;
    for (int i = 0; i < p->n_free_right; i++)
        shape->dims[shape->rank++] = p->arranged.dims[first_free + i];
}

static tare_status from_labels(struct tare_quant_product *p, const struct labels *left, const struct labels *right,
                               const struct labels *out, const struct tare_shape *right_shape) {
    char result[2 * TARE_MAX_RANK];
    TARE_TRY(sort_left(p, result, left, right, out));
    TARE_TRY(sort_right(p, result, left, right, out));
    TARE_TRY(order_result(p, result, out));
    if (!p->n_contracted) return TARE_FAIL(TARE_UNSUPPORTED, "nothing is summed");
    p->arranged.rank = p->n_order;
    for (int i = 0; i < p->n_order; i++)
        p->arranged.dims[i] = right_shape->dims[p->order[i]];
    p->batches = product_of(&p->arranged, 0, p->n_batch);
    p->rows = product_of(&p->arranged, p->n_batch, p->n_contracted);
    p->columns = product_of(&p->arranged, p->n_batch + p->n_contracted, p->n_free_right);
    shape_channels(p);
    return TARE_OK;
}

static void set_labels(struct labels *labels, const char *text) {
    labels->count = (int)strlen(text);
    memcpy(labels->at, text, (size_t)labels->count);
}

static tare_status describe_matmul(struct tare_quant_product *p, const struct tare_node *op, size_t left_input,
                                   const struct tare_shape *right_shape) {
    struct labels operands[2], out;
    if (right_shape->rank < 0) return TARE_FAIL(TARE_UNSUPPORTED, "the rank of an operand is not known");
    if (right_shape->rank != 2)
        return TARE_FAIL(TARE_UNSUPPORTED, "the weight's rank is %d (expected 2)", right_shape->rank);
    set_labels(&operands[0], tare_node_bool(op, "transpose_a", false) ? "km" : "mk");
    set_labels(&operands[1], tare_node_bool(op, "transpose_b", false) ? "nk" : "kn");
    set_labels(&out, "mn");
    return from_labels(p, &operands[left_input], &operands[1 - left_input], &out, right_shape);
}

/* Removes the dropped axes from an operand's labels, and from its shape if there is one. */
static unsigned squeeze(struct labels *labels, struct tare_shape *shape) {
    unsigned squeezed = 0;
    int kept = 0;
    for (int i = 0; i < labels->count; i++) {
        if (labels->at[i] == DROPPED) {
            squeezed |= 1u << i;
            continue;
        }
        labels->at[kept] = labels->at[i];
        if (shape) shape->dims[kept] = shape->dims[i];
        kept++;
    }
    labels->count = kept;
    if (shape) shape->rank = kept;
    return squeezed;
}

/* A batch axis that both operands have, of sizes l and r (below 0: not known). An axis of size 1 is always
 * removed from a weight; two unknown sizes are assumed to be equal. */
static tare_status pair_batch(struct tare_quant_product *p, struct labels *left, int at_left, int64_t l,
                              struct labels *right, int at_right, int64_t r, bool constant) {
    if (r == 1 && (constant || l != 1)) {
        right->at[at_right] = DROPPED;
    } else if (l == 1 && r != 1) {
        left->at[at_left] = DROPPED;
    } else if (l < 0 && r > 0) {
        p->spread_left[at_left] = r;
        p->spreads_left = true;
    } else if (r < 0 && l > 0) {
        p->spread_right[at_right] = l;
        p->spreads_right = true;
    } else if (l != r) {
        return TARE_FAIL(TARE_UNSUPPORTED, "batch axes do not go together (%lld with %lld)", (long long)l,
                         (long long)r);
    }
    return TARE_OK;
}

/* Batch axes are paired from the right; an axis that only one operand has is free. */
static tare_status describe_batch_matmul(struct tare_quant_product *p, const struct tare_node *op, size_t left_input,
                                         const struct tare_shape *l, const struct tare_shape *r, bool constant) {
    const struct tare_shape *const shapes[2] = { left_input == 0 ? l : r, left_input == 0 ? r : l };
    struct labels operands[2], out, *const left = &operands[left_input], *const right = &operands[1 - left_input];
    struct tare_shape right_shape = *r;
    const bool adj_x = tare_node_bool(op, "adj_x", false), adj_y = tare_node_bool(op, "adj_y", false);
    const int rank = l->rank > r->rank ? l->rank : r->rank;
    if (l->rank < 2 || r->rank < 2) return TARE_FAIL(TARE_UNSUPPORTED, "the rank of an operand is not known");
    left->count = l->rank;
    right->count = r->rank;
    out.count = rank;
    for (int i = 0; i < rank - 2; i++) {
        const int at_left = i + l->rank - rank, at_right = i + r->rank - rank;
        out.at[i] = (char)('a' + i);
        if (at_left >= 0) left->at[at_left] = out.at[i];
        if (at_right >= 0) right->at[at_right] = out.at[i];
        if (at_left >= 0 && at_right >= 0)
            TARE_TRY(pair_batch(p, left, at_left, l->dims[at_left], right, at_right, r->dims[at_right], constant));
    }
    out.at[rank - 2] = operands[0].at[shapes[0]->rank - 2 + adj_x] = 'y';
    operands[0].at[shapes[0]->rank - 1 - adj_x] = operands[1].at[shapes[1]->rank - 2 + adj_y] = 'x';
    out.at[rank - 1] = operands[1].at[shapes[1]->rank - 1 - adj_y] = 'z';
    p->squeezed_left = squeeze(left, NULL);
    if (!constant) p->squeezed_right = squeeze(right, &right_shape);
    return from_labels(p, left, right, &out, &right_shape);
}

/* An ellipsis represents `hidden` axes: the n-th from the right is label n + 1. */
static tare_status read_labels(struct labels *labels, const char *text, size_t size, int hidden) {
    labels->count = 0;
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        const bool ellipsis = c == '.' && size - i >= 3 && text[i + 1] == '.' && text[i + 2] == '.';
        if (c == ' ') continue;
        if ((!ellipsis && !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) ||
            labels->count + (ellipsis ? hidden : 1) > TARE_MAX_RANK)
            return TARE_FAIL(TARE_UNSUPPORTED, "the equation has other signs or too many labels");
        for (int n = hidden; n > 0 && ellipsis; n--)
            labels->at[labels->count++] = (char)n;
        if (!ellipsis) labels->at[labels->count++] = c;
        if (ellipsis) i += 2;
    }
    return TARE_OK;
}

/* An operand and the number of axes that its ellipsis represents. */
static tare_status read_operand(struct labels *labels, int *hidden, const char *text, size_t size, int rank) {
    TARE_TRY(read_labels(labels, text, size, 0));
    *hidden = 0;
    for (size_t i = 0; i + 2 < size; i++)
        if (memcmp(text + i, "...", 3) == 0) *hidden = rank - labels->count;
    if (*hidden < 0)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         rank < 0 ? "the rank of an operand is not known" : "the equation does not fit");
    return read_labels(labels, text, size, *hidden);
}

static tare_status describe_einsum(struct tare_quant_product *p, const struct tare_node *op, size_t left_input,
                                   const struct tare_shape *left_shape, const struct tare_shape *right_shape) {
    const char *equation = tare_node_string(op, "equation", ""), *comma = strchr(equation, ',');
    const char *arrow = strstr(equation, "->");
    const struct tare_shape *shapes[2] = { left_shape, right_shape };
    struct labels operands[2], out;
    int hidden[2];
    if (!comma || !arrow || comma > arrow)
        return TARE_FAIL(TARE_UNSUPPORTED, "the equation is not for two operands with ->");
    TARE_TRY(read_operand(&operands[0], &hidden[0], equation, (size_t)(comma - equation), shapes[left_input]->rank));
    TARE_TRY(
        read_operand(&operands[1], &hidden[1], comma + 1, (size_t)(arrow - comma - 1), shapes[1 - left_input]->rank));
    if (hidden[0] && hidden[1]) return TARE_FAIL(TARE_UNSUPPORTED, "both operands have axes behind an ellipsis");
    TARE_TRY(read_labels(&out, arrow + 2, strlen(arrow + 2), hidden[0] + hidden[1]));
    if (operands[1 - left_input].count != right_shape->rank)
        return TARE_FAIL(TARE_UNSUPPORTED, "the equation does not fit the weight");
    return from_labels(p, &operands[left_input], &operands[1 - left_input], &out, right_shape);
}

/* ---- DotDimensionNumbers ---- */

enum { LHS_CONTRACTING, RHS_CONTRACTING, LHS_BATCH, RHS_BATCH, DOT_FIELDS };

/* Gives the axes of both operands that `lists` pairs the same labels. */
static tare_status label_pairs(struct labels operands[2], char *next, const struct tare_dims_field *lhs,
                               const struct tare_dims_field *rhs) {
    if (lhs->count != rhs->count) return TARE_FAIL(TARE_UNSUPPORTED, "the dimension numbers do not fit the operands");
    for (size_t i = 0; i < lhs->count; i++) {
        const int64_t l = lhs->values[i], r = rhs->values[i];
        if (l < 0 || l >= operands[0].count || r < 0 || r >= operands[1].count || operands[0].at[l] ||
            operands[1].at[r])
            return TARE_FAIL(TARE_UNSUPPORTED, "the dimension numbers do not fit the operands");
        operands[0].at[l] = operands[1].at[r] = (*next)++;
    }
    return TARE_OK;
}

/* The result has the batch axes, then the free ones of the first operand, then those of the second. */
static tare_status describe_xla_dot(struct tare_quant_product *p, const struct tare_node *op, size_t left_input,
                                    const struct tare_shape *left_shape, const struct tare_shape *right_shape) {
    struct tare_dims_field fields[DOT_FIELDS] = { { .number = 1 }, { .number = 2 }, { .number = 3 }, { .number = 4 } };
    const struct tare_shape *shapes[2] = { left_shape, right_shape };
    struct labels operands[2] = { { .count = shapes[left_input]->rank }, { .count = shapes[1 - left_input]->rank } };
    struct labels out = { .count = 0 };
    char next = 'a';
    if (left_shape->rank < 0 || right_shape->rank < 0)
        return TARE_FAIL(TARE_UNSUPPORTED, "the rank of an operand is not known");
    TARE_TRY(tare_dims_read(fields, DOT_FIELDS, op, "dimension_numbers"));
    TARE_TRY(label_pairs(operands, &next, &fields[LHS_BATCH], &fields[RHS_BATCH]));
    for (char label = 'a'; label < next; label++)
        out.at[out.count++] = label;
    TARE_TRY(label_pairs(operands, &next, &fields[LHS_CONTRACTING], &fields[RHS_CONTRACTING]));
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < operands[side].count; i++) {
            if (operands[side].at[i]) continue;
            if (out.count == TARE_MAX_RANK) return TARE_FAIL(TARE_UNSUPPORTED, "the result has too many axes");
            operands[side].at[i] = out.at[out.count++] = next++;
        }
    return from_labels(p, &operands[left_input], &operands[1 - left_input], &out, right_shape);
}

/* ---- tables ---- */

enum { SHORTEST_RUN = 4 }; /* with a scale of 4 bytes, three values take 7 of their 12 bytes */

/* Entries along the last axis are columns, those along another one rows of their own for each index before it. */
static tare_status describe_gather(struct tare_quant_product *p, const struct tare_node *op,
                                   const struct tare_shape *table) {
    const struct tare_tensor *axis = op->n_inputs > 2 ? tare_edge_constant(op->inputs[2]) : NULL;
    int64_t at = axis && axis->elements == 1 ? tare_tensor_get_i64(axis, 0) : strcmp(op->op, "Gather") == 0 ? 0 : -100;
    if (at < 0) at += table->rank;
    if (at < 0 || at >= table->rank) return TARE_FAIL(TARE_UNSUPPORTED, "the axis is not constant");
    if (tare_node_int(op, "batch_dims", 0) != 0) return TARE_FAIL(TARE_UNSUPPORTED, "batch_dims is not 0");
    p->arranged = *table;
    p->n_order = table->rank;
    for (int i = 0; i < table->rank; i++)
        p->order[i] = i;
    const bool last = at > 0 && at == table->rank - 1;
    p->batches = last ? 1 : product_of(table, 0, (int)at + 1);
    p->rows = last ? product_of(table, 0, (int)at) : product_of(table, (int)at + 1, table->rank - (int)at - 1);
    p->columns = last ? table->dims[at] : 1;
    p->channel_shape = *table;
    for (int i = last ? 0 : (int)at + 1; i < table->rank - last; i++)
        p->channel_shape.dims[i] = 1;
    if (!last && p->rows < SHORTEST_RUN)
        return TARE_FAIL(TARE_UNSUPPORTED, "its entries are runs of %lld values, too short for a scale each",
                         (long long)p->rows);
    return TARE_OK;
}

/* ---- all ---- */

tare_status tare_quant_describe(struct tare_quant_product *out, const struct tare_node *op, enum tare_quant_kind kind,
                                size_t left, size_t right, const struct tare_shape *left_shape,
                                const struct tare_shape *right_shape, const struct tare_shape *result_shape,
                                bool constant) {
    memset(out, 0, sizeof *out);
    out->kind = kind;
    (void)right;
    switch (kind) {
    case TARE_KIND_CONV2D:
    case TARE_KIND_DEPTHWISE:
    case TARE_KIND_CONV3D:
        return tare_quant_describe_conv(out, op, left_shape, right_shape);
    case TARE_KIND_TRANSPOSED_CONV:
        return tare_quant_describe_transposed_conv(out, op, left_shape, right_shape, result_shape);
    case TARE_KIND_XLA_CONV:
        return tare_quant_describe_xla_conv(out, op, left_shape, right_shape);
    case TARE_KIND_XLA_DOT:
        return describe_xla_dot(out, op, left, left_shape, right_shape);
    case TARE_KIND_MATMUL:
        return describe_matmul(out, op, left, right_shape);
    case TARE_KIND_BATCH_MATMUL:
        return describe_batch_matmul(out, op, left, left_shape, right_shape, constant);
    case TARE_KIND_EINSUM:
        return describe_einsum(out, op, left, left_shape, right_shape);
    case TARE_KIND_GATHER:
        return describe_gather(out, op, right_shape);
    default:
        return TARE_FAIL(TARE_INTERNAL, "no such kind of layer");
    }
}

/* Whether the weight's axis that is axis `i` of the arranged one is reversed. */
static bool is_reversed(const struct tare_quant_product *product, int i) {
    return product->reversed >> product->order[i] & 1;
}

static const void *element_at(const struct tare_tensor *tensor, int64_t at) {
    return (const char *)tensor->data + (size_t)at * tare_dtype_size(tensor->dtype);
}

tare_status tare_quant_arrange(struct tare_tensor *out, const struct tare_quant_product *product,
                               const struct tare_tensor *weight) {
    struct tare_tensor whole;
    int64_t steps[TARE_MAX_RANK], natural[TARE_MAX_RANK], step = 1, first = 0;
    bool moved = product->reversed != 0;
    tare_status status;
    memset(out, 0, sizeof *out);
    for (int i = weight->shape.rank - 1; i >= 0; i--) {
        natural[i] = step;
        step *= weight->shape.dims[i];
    }
    for (int i = 0, last = -1; i < product->n_order; i++) {
        steps[i] = natural[product->order[i]];
        if (is_reversed(product, i)) {
            first += (product->arranged.dims[i] - 1) * steps[i];
            steps[i] = -steps[i];
        }
        moved |= product->order[i] < last;
        last = product->order[i];
    }
    if (!moved && !weight->splat) return tare_tensor_share_as(out, weight, &product->arranged);
    TARE_TRY(tare_tensor_copy(&whole, weight));
    if (!moved) {
        status = tare_tensor_share_as(out, &whole, &product->arranged);
    } else {
        status = tare_tensor_new(out, weight->dtype, &product->arranged);
        if (status == TARE_OK)
            tare_permute_steps(out->data, element_at(&whole, first), tare_dtype_size(weight->dtype),
                               product->arranged.rank, product->arranged.dims, steps);
    }
    tare_tensor_reset(&whole);
    return status;
}

tare_status tare_quant_restore(struct tare_tensor *out, const struct tare_quant_product *product,
                               const struct tare_tensor *arranged, const struct tare_shape *shape) {
    int64_t steps[TARE_MAX_RANK] = { 0 }, step = 1; /* an axis that was dropped has one element and no step */
    int64_t first = 0;
    bool moved = product->reversed != 0;
    memset(out, 0, sizeof *out);
    for (int i = product->n_order - 1; i >= 0; i--) {
        steps[product->order[i]] = is_reversed(product, i) ? -step : step;
        if (is_reversed(product, i)) first += (arranged->shape.dims[i] - 1) * step;
        step *= arranged->shape.dims[i];
    }
    for (int i = 1; i < product->n_order; i++)
        moved |= product->order[i] < product->order[i - 1];
    if (!moved) return tare_tensor_share_as(out, arranged, shape);
    TARE_TRY(tare_tensor_new(out, arranged->dtype, shape));
    tare_permute_steps(out->data, element_at(arranged, first), tare_dtype_size(arranged->dtype), shape->rank,
                       shape->dims, steps);
    return TARE_OK;
}

bool tare_quant_same_arrangement(const struct tare_quant_product *a, const struct tare_quant_product *b) {
    return tare_shape_equal(&a->arranged, &b->arranged) && a->reversed == b->reversed &&
           memcmp(a->order, b->order, sizeof a->order) == 0;
}

bool tare_quant_pads(const struct tare_quant_product *product) {
    for (int i = 0; i < product->spatial; i++)
        if (product->window[i].low || product->window[i].high || product->window[i].base > 1) return true;
    return product->pads_late;
}

int64_t tare_quant_channels(const struct tare_quant_product *product) {
    return product->batches * product->columns;
}

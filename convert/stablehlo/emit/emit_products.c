/* Matrix products. */
#include "convert/stablehlo/emit/emit.h"

#include "interpreter/ops/support/dims_wire.h"

#include <string.h>

#define B (&emit->build)

/* Which axes of the operands belong together. The result has the batch axes, then the other axes of lhs, then those of
 * rhs. */
struct dot {
    int64_t lhs_batch[TARE_MAX_RANK], rhs_batch[TARE_MAX_RANK], lhs_contracted[TARE_MAX_RANK],
        rhs_contracted[TARE_MAX_RANK];
    size_t n_batch, n_contracted;
};

static bool contains(const int64_t *axes, size_t count, int64_t axis) {
    for (size_t i = 0; i < count; i++)
        if (axes[i] == axis) return true;
    return false;
}

static tare_build_value product(struct tare_emit *emit, const struct dot *dot, tare_build_value lhs,
                                tare_build_value rhs, int dtype) {
    struct tare_shape shape = { 0 };
    if (!lhs || !rhs) return NULL;
    tare_build_match_kinds(B, &lhs, &rhs);
    const struct tare_shape left = tare_build_shape(lhs), right = tare_build_shape(rhs);
    for (size_t i = 0; i < dot->n_batch; i++)
        shape.dims[shape.rank++] = left.dims[dot->lhs_batch[i]];
    for (int i = 0; i < left.rank; i++)
        if (!contains(dot->lhs_batch, dot->n_batch, i) && !contains(dot->lhs_contracted, dot->n_contracted, i))
            shape.dims[shape.rank++] = left.dims[i];
    for (int i = 0; i < right.rank && shape.rank < TARE_MAX_RANK; i++)
        if (!contains(dot->rhs_batch, dot->n_batch, i) && !contains(dot->rhs_contracted, dot->n_contracted, i))
            shape.dims[shape.rank++] = right.dims[i];
    const struct tare_build_named attrs[] = {
        { "lhs_batching_dimensions", tare_build_ints(B, dot->lhs_batch, dot->n_batch, 0) },
        { "lhs_contracting_dimensions", tare_build_ints(B, dot->lhs_contracted, dot->n_contracted, 0) },
        { "rhs_batching_dimensions", tare_build_ints(B, dot->rhs_batch, dot->n_batch, 0) },
        { "rhs_contracting_dimensions", tare_build_ints(B, dot->rhs_contracted, dot->n_contracted, 0) },
    };
    const struct tare_shlo_type *type = tare_build_type(B, dtype, &shape);
    return tare_build_value_of(B, &(struct tare_build_request){ .name = "dot_general",
                                                                .operands = (tare_build_value[]){ lhs, rhs },
                                                                .n_operands = 2,
                                                                .attrs = attrs,
                                                                .n_attrs = 4,
                                                                .results = &type,
                                                                .n_results = 1 });
}

static tare_status emit_mat_mul(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct dot dot = { .lhs_contracted = { !tare_node_bool(node, "transpose_a", false) },
                             .rhs_contracted = { tare_node_bool(node, "transpose_b", false) },
                             .n_contracted = 1 };
    (void)arg;
    const tare_build_value rhs = tare_emit_in(emit, node, 1), lhs = tare_emit_in(emit, node, 0);
    return tare_emit_set(emit, node, 0, product(emit, &dot, lhs, rhs, tare_emit_out_dtype(node, 0)));
}

/* The batch axes are broadcast before the product. */
static tare_status emit_batch_mat_mul(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const struct tare_shape out = tare_emit_out_shape(emit, node, 0);
    const int rank = out.rank;
    tare_build_value sides[2];
    struct dot dot = { .n_contracted = 1, .n_batch = (size_t)(rank - 2) };
    (void)arg;
    for (size_t i = 0; i < 2; i++) {
        const struct tare_shape own = tare_emit_in_shape(emit, node, i);
        struct tare_shape shape = out;
        for (int k = 0; k < 2; k++)
            shape.dims[rank - 2 + k] = own.dims[own.rank - 2 + k];
        sides[i] = tare_build_broadcast(B, tare_emit_in(emit, node, i), &shape);
    }
    for (int i = 0; i + 2 < rank; i++)
        dot.lhs_batch[i] = dot.rhs_batch[i] = i;
    dot.lhs_contracted[0] = rank - 2 + !tare_node_bool(node, "adj_x", false);
    dot.rhs_contracted[0] = rank - 2 + tare_node_bool(node, "adj_y", false);
    return tare_emit_set(emit, node, 0, product(emit, &dot, sides[0], sides[1], tare_emit_out_dtype(node, 0)));
}

/* XlaDotV2 has the dimension numbers of the op. */
static tare_status emit_xla_dot(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    struct tare_dims_field fields[4] = { { .number = 1 }, { .number = 2 }, { .number = 3 }, { .number = 4 } };
    struct dot dot = { 0 };
    int64_t *const lists[] = { dot.lhs_contracted, dot.rhs_contracted, dot.lhs_batch, dot.rhs_batch };
    (void)arg;
    TARE_TRY(tare_dims_read(fields, 4, node, "dimension_numbers"));
    for (int i = 0; i < 4; i++)
        memcpy(lists[i], fields[i].values, fields[i].count * sizeof *lists[i]);
    dot.n_contracted = fields[0].count;
    dot.n_batch = fields[2].count;
    const tare_build_value rhs = tare_emit_in(emit, node, 1), lhs = tare_emit_in(emit, node, 0);
    return tare_emit_set(emit, node, 0, product(emit, &dot, lhs, rhs, tare_emit_out_dtype(node, 0)));
}

/* ---- Einsum ---- */

/* A label for each axis: a letter, or for the axes of an ellipsis 1, 2 … from the right. */
struct labels {
    unsigned char at[TARE_MAX_RANK];
    int count;
};

static tare_status parse_labels(struct labels *out, const char **text, int rank) {
    int letters = 0;
    const char *at = *text;
    for (const char *c = at; *c && *c != ',' && *c != '-'; c++)
        letters += *c != '.' && *c != ' ';
    out->count = 0;
    for (; *at && *at != ',' && *at != '-'; at++) {
        if (*at == ' ') continue;
        if (*at != '.') {
            if (out->count == TARE_MAX_RANK) return TARE_FAIL(TARE_UNSUPPORTED, "more than %d axes", TARE_MAX_RANK);
            out->at[out->count++] = (unsigned char)*at;
            continue;
        }
        for (int i = rank - letters; i > 0 && out->count < TARE_MAX_RANK; i--)
            out->at[out->count++] = (unsigned char)i;
        at += 2;
    }
    *text = *at == ',' ? at + 1 : *at == '-' ? at + 2 : at;
    for (int i = 0; i < out->count; i++)
        if (memchr(out->at + i + 1, out->at[i], (size_t)(out->count - i - 1)))
            return TARE_FAIL(TARE_UNSUPPORTED, "a duplicate label in an operand");
    return out->count == rank ? TARE_OK : TARE_FAIL(TARE_UNSUPPORTED, "%d labels for %d axes", out->count, rank);
}

static int position(const struct labels *labels, unsigned char label) {
    const unsigned char *at = memchr(labels->at, label, (size_t)labels->count);
    return at ? (int)(at - labels->at) : -1;
}

/* Sums over the axes whose labels neither the other operand nor the result has. */
static tare_build_value without_unused(struct tare_emit *emit, tare_build_value x, struct labels *own,
                                       const struct labels *other, const struct labels *out) {
    int64_t axes[TARE_MAX_RANK];
    struct labels left = { 0 };
    size_t count = 0;
    for (int i = 0; i < own->count; i++) {
        if (position(out, own->at[i]) < 0 && (!other || position(other, own->at[i]) < 0))
            axes[count++] = i;
        else
            left.at[left.count++] = own->at[i];
    }
    *own = left;
    return count && x ? tare_build_reduce(B, "add", x, tare_build_scalar(B, tare_build_dtype(x), 0), axes, count) : x;
}

/* From axes with labels `have` to the order of `want`, which has the same labels. */
static tare_build_value ordered(struct tare_emit *emit, tare_build_value x, const struct labels *have,
                                const struct labels *want) {
    int permutation[TARE_MAX_RANK];
    for (int i = 0; i < want->count; i++)
        permutation[i] = position(have, want->at[i]);
    return tare_build_transpose(B, x, permutation);
}

static tare_status emit_einsum(struct tare_emit *emit, const struct tare_node *node, const void *arg) {
    const char *text = tare_node_string(node, "equation", "");
    struct labels sides[2] = { 0 }, out, result = { 0 };
    tare_build_value values[2] = { NULL, NULL };
    struct dot dot = { 0 };
    (void)arg;
    if (node->n_inputs > 2) return TARE_FAIL(TARE_UNSUPPORTED, "%zu operands", node->n_inputs);
    for (size_t i = 0; i < node->n_inputs; i++)
        TARE_TRY(parse_labels(&sides[i], &text, tare_emit_in_shape(emit, node, i).rank));
    TARE_TRY(parse_labels(&out, &text, tare_emit_out_shape(emit, node, 0).rank));
    for (size_t i = 0; i < node->n_inputs; i++)
        values[i] =
            without_unused(emit, tare_emit_in(emit, node, i), &sides[i], node->n_inputs == 2 ? &sides[!i] : NULL, &out);
    if (node->n_inputs == 1) return tare_emit_set(emit, node, 0, ordered(emit, values[0], &sides[0], &out));
    for (int i = 0; i < sides[0].count; i++) {
        const unsigned char label = sides[0].at[i];
        const int there = position(&sides[1], label);
        if (there < 0) continue;
        if (values[0] && values[1] && values[0]->type->dims[i] != values[1]->type->dims[there])
            return TARE_FAIL(TARE_UNSUPPORTED, "an axis that is broadcast");
        if (position(&out, label) >= 0) {
            dot.lhs_batch[dot.n_batch] = i;
            dot.rhs_batch[dot.n_batch++] = there;
            result.at[result.count++] = label;
        } else {
            dot.lhs_contracted[dot.n_contracted] = i;
            dot.rhs_contracted[dot.n_contracted++] = there;
        }
    }
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < sides[side].count && result.count < TARE_MAX_RANK; i++)
            if (position(&sides[!side], sides[side].at[i]) < 0) result.at[result.count++] = sides[side].at[i];
    return tare_emit_set(
        emit, node, 0,
        ordered(emit, product(emit, &dot, values[0], values[1], tare_emit_out_dtype(node, 0)), &result, &out));
}

const struct tare_emit_row tare_emit_products[] = {
    { "MatMul", emit_mat_mul, NULL },
    { "BatchMatMul", emit_batch_mat_mul, NULL },
    { "BatchMatMulV2", emit_batch_mat_mul, NULL },
    { "BatchMatMulV3", emit_batch_mat_mul, NULL },
    { "Einsum", emit_einsum, NULL },
    { "XlaDot", emit_xla_dot, NULL },
    { "XlaDotV2", emit_xla_dot, NULL },
    { 0 },
};

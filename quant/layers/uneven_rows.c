#include "quant/layers/uneven_rows.h"
#include "base/arena.h"
#include "graph/op.h"

#include <math.h>

/* Whether the activation is one-hot, as an op or by comparing with numbers: each row of the result is one row of the
 * weight. */
static bool is_one_hot(struct tare_edge edge) {
    static const char *const copies[] = { "Identity",    "Reshape",   "ExpandDims", "Squeeze",
                                          "BroadcastTo", "Transpose", "Cast",       NULL };
    enum { DEEPEST = 8 };
    for (int depth = 0; depth < DEEPEST && edge.index == 0; depth++) {
        const struct tare_node *node = edge.node;
        if (tare_node_is(node, "OneHot") || tare_node_is(node, "Equal")) return true;
        if (tare_edge_constant(edge) || !tare_op_is_one_of(node->op, copies)) return false;
        edge = node->inputs[0];
    }
    return false;
}

/* The last contracted axis of the weight: its positions are the inputs of a matrix. */
static int inner_axis(const struct tare_quant_product *p) {
    int inner = p->n_batch;
    for (int i = p->n_batch; i < p->n_batch + p->n_contracted; i++)
        if (p->order[i] > p->order[inner]) inner = i;
    return inner;
}

static void find_largest(float *largest, const float *values, int64_t rows, int64_t columns) {
    for (int64_t c = 0; c < columns; c++)
        largest[c] = 0;
    for (int64_t k = 0; k < rows; k++)
        for (int64_t c = 0; c < columns; c++)
            largest[c] = fmaxf(largest[c], fabsf(values[k * columns + c]));
}

struct sums {
    double power, noise;
};

/* Adds squares of a row's values and of their rounding errors. */
static void add_row(struct sums *sums, const float *row, const float *largest, int64_t columns) {
    const float MOST = 127;
    for (int64_t c = 0; c < columns; c++) {
        const float scale = largest[c] / MOST;
        const float error = scale > 0 ? row[c] - roundf(row[c] / scale) * scale : 0;
        sums->power += (double)row[c] * (double)row[c];
        sums->noise += (double)error * (double)error;
    }
}

/* `behind` rows follow each other at one position of the axis of `count` positions. */
static tare_status add_matrices(struct sums *sums, struct tare_arena *arena, const struct tare_quant_layer *layer,
                                int64_t count, int64_t behind) {
    const struct tare_quant_product *p = &layer->product;
    const float *values = TARE_CONST_DATA(float, &layer->real);
    float *largest = TARE_NEW_ARRAY(arena, float, (size_t)p->columns);
    if (!largest) return TARE_NO_MEMORY;
    for (int64_t b = 0; b < p->batches; b++, values += p->rows * p->columns) {
        find_largest(largest, values, p->rows, p->columns);
        for (int64_t k = 0; k < p->rows; k++)
            add_row(&sums[k / behind % count], values + k * p->columns, largest, p->columns);
    }
    return TARE_OK;
}

static tare_status examine_axis(struct tare_quant_uneven *out, struct tare_arena *arena,
                                const struct tare_quant_layer *layer, int axis) {
    const double NO_WEIGHTS = 1e-8; /* of the largest power */
    const struct tare_quant_product *p = &layer->product;
    const int64_t count = p->arranged.dims[axis];
    int64_t behind = 1;
    double most = 0, worst = INFINITY;
    struct sums *sums = TARE_NEW_ARRAY(arena, struct sums, (size_t)count);
    if (!sums) return TARE_NO_MEMORY;
    for (int i = axis + 1; i < p->n_batch + p->n_contracted; i++)
        behind *= p->arranged.dims[i];
    const tare_status status = add_matrices(sums, arena, layer, count, behind);
    for (int64_t i = 0; i < count && status == TARE_OK; i++)
        most = fmax(most, sums[i].power);
    for (int64_t i = 0; i < count && status == TARE_OK; i++)
        if (sums[i].power > most * NO_WEIGHTS && sums[i].noise > 0)
            worst = fmin(worst, 10 * log10(sums[i].power / sums[i].noise));
    if (worst < out->sqnr)
        *out = (struct tare_quant_uneven){ worst, count, axis == p->n_batch && behind > 1 ? behind : 0 };
    return status;
}

tare_status tare_quant_find_uneven(struct tare_quant_uneven *out, struct tare_arena *arena,
                                   struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    const int inner = inner_axis(p);
    const bool made = layer->real.dtype != TARE_DT_INVALID;
    tare_status status = TARE_OK;
    *out = (struct tare_quant_uneven){ .sqnr = INFINITY };
    if (p->spatial || layer->selection || layer->kind == TARE_KIND_GATHER || !p->n_contracted || p->rows < 2)
        return TARE_OK;
    const bool one_hot = is_one_hot(layer->input);
    if (p->n_contracted < 2 && !one_hot) return TARE_OK;
    TARE_TRY(tare_quant_make_real(layer));
    for (int i = p->n_batch; i < p->n_batch + p->n_contracted && status == TARE_OK; i++)
        if ((i != inner || one_hot) && p->arranged.dims[i] > 1) status = examine_axis(out, arena, layer, i);
    if (!made) tare_tensor_reset(&layer->real);
    return status;
}

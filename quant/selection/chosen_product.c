/* The product of a layer whose weight is chosen from a stack. */
#include "quant/selection/selection.h"
#include "base/status.h"

#include <string.h>

static bool is_index(const struct tare_quant_selection *s, int operand_axis) {
    return s->from[operand_axis] <= TARE_FROM_INDEX;
}

/* Whether operand axis `axis` is among the axes that the product takes; otherwise it has one element. */
static int place_of(const struct tare_quant_product *p, int axis) {
    for (int i = 0; i < p->n_order; i++)
        if (p->order[i] == axis) return i;
    return -1;
}

/* The operand's axis that is axis `k` of the index; -1: the model removes it, because it has one element. */
static int axis_of_index(const struct tare_quant_selection *s, int k) {
    for (int axis = 0; axis < s->operand.rank; axis++)
        if (s->from[axis] == TARE_FROM_INDEX - k) return axis;
    return -1;
}

/* Positions in the chosen weight by operand axis: the axes of the index, then those of an entry as they are arranged.
 */
static tare_status place_axes(int *positions, const struct tare_quant_product *p, struct tare_quant_selection *s) {
    int next = 0;
    for (int k = 0; k < s->index_rank; k++) {
        const int axis = axis_of_index(s, k), place = axis < 0 ? -1 : place_of(p, axis);
        if (place < 0) s->squeezed_index |= 1u << k;
        if (place >= p->n_batch && place < p->n_batch + p->n_contracted)
            return TARE_FAIL(TARE_UNSUPPORTED, "the product is a sum over the chosen entries");
        if (place >= 0) positions[axis] = next++;
    }
    for (int i = 0; i < p->n_order; i++)
        if (!is_index(s, p->order[i])) positions[p->order[i]] = next++;
    return TARE_OK;
}

/* The raw result has the free axes of the weight in the order of their positions. */
static void order_result(struct tare_quant_product *p, const int *positions) {
    const int first = p->n_batch + p->n_contracted, base = p->n_batch + p->n_free_left;
    const int rank = base + p->n_free_right;
    int places[TARE_MAX_RANK], sorted[TARE_MAX_RANK];
    for (int i = 0; i < p->n_free_right; i++)
        sorted[i] = p->order[first + i]; /* in the order of the operand's axes, as in the raw result */
    for (int i = 0; i < p->n_free_right; i++) {
        places[i] = 0;
        for (int j = 0; j < p->n_free_right; j++)
            places[i] += positions[sorted[j]] < positions[sorted[i]];
    }
    p->moves = false;
    for (int i = 0; i < rank; i++) {
        if (p->result_order[i] >= base) p->result_order[i] = base + places[p->result_order[i] - base];
        p->moves |= p->result_order[i] != i;
    }
}

/* One value per channel of the chosen weight must have the axes of the raw result in their order: those of the batch,
 * one element for each free axis of the activation, the free ones of the weight. */
static tare_status shape_channels(struct tare_quant_product *p, struct tare_quant_selection *s) {
    const int first_free = p->n_batch + p->n_contracted;
    int free_index = 0, batch_entry = 0;
    for (int i = 0; i < p->n_order; i++) {
        free_index += i >= first_free && is_index(s, p->order[i]);
        batch_entry += i < p->n_batch && !is_index(s, p->order[i]);
    }
    for (int i = 1; i < p->n_batch; i++)
        if (p->right_batch[i] < p->right_batch[i - 1])
            return TARE_FAIL(TARE_UNSUPPORTED, "the batch axes of its operands have different orders");
    if (free_index && (batch_entry || (p->n_batch && p->right_batch[p->n_batch - 1] >= p->n_batch)))
        return TARE_FAIL(TARE_UNSUPPORTED, "the axes of its index are in the result in another order");
    p->channel_shape.rank = 0;
    for (int i = 0; i < p->n_batch; i++)
        if (!is_index(s, p->order[i])) p->channel_shape.dims[p->channel_shape.rank++] = s->operand.dims[p->order[i]];
    if (free_index && p->n_batch) {
        s->spread_at = p->n_batch;
        s->n_spread = p->n_free_left;
    }
    for (int i = 0; i < p->n_free_left && p->n_batch && !free_index; i++)
        p->channel_shape.dims[p->channel_shape.rank++] = 1;
    for (int i = first_free; i < p->n_order; i++)
        if (!is_index(s, p->order[i])) p->channel_shape.dims[p->channel_shape.rank++] = s->operand.dims[p->order[i]];
    return TARE_OK;
}

/* Sizes of an entry as a stack of matrices: an entry is a matrix, not a vector as in a table. */
static tare_status count_elements(struct tare_quant_product *p, const struct tare_quant_selection *s) {
    p->batches = p->rows = p->columns = 1;
    for (int i = 0; i < p->n_order; i++) {
        if (is_index(s, p->order[i])) continue;
        int64_t *const count = i < p->n_batch ? &p->batches : i < p->n_batch + p->n_contracted ? &p->rows : &p->columns;
        *count *= s->operand.dims[p->order[i]];
    }
    return p->columns > 1 ? TARE_OK : TARE_FAIL(TARE_UNSUPPORTED, "the entries of its stack are vectors");
}

static tare_status select_array(struct tare_quant_product *p, struct tare_quant_selection *s) {
    int positions[TARE_MAX_RANK] = { 0 };
    if (p->spreads_right || p->squeezed_right)
        return TARE_FAIL(TARE_UNSUPPORTED, "the size of its index is not that of the activation");
    TARE_TRY(count_elements(p, s));
    TARE_TRY(place_axes(positions, p, s));
    s->entry.rank = 0;
    for (int i = 0; i < p->n_order; i++)
        if (!is_index(s, p->order[i])) s->entry.dims[s->entry.rank++] = s->operand.dims[p->order[i]];
    order_result(p, positions);
    for (int i = 0; i < p->n_batch; i++)
        p->right_batch[i] = positions[p->right_batch[i]];
    for (int i = 0; i < p->n_contracted; i++)
        p->right_contracted[i] = positions[p->right_contracted[i]];
    return shape_channels(p, s);
}

static tare_status select_filter(const struct tare_quant_product *p, struct tare_quant_selection *s) {
    for (int k = 0; k < s->index_rank; k++) {
        if (axis_of_index(s, k) >= 0)
            return TARE_FAIL(TARE_UNSUPPORTED, "rows of a convolution have filters of their own");
        s->squeezed_index |= 1u << k;
    }
    s->entry = p->arranged;
    return TARE_OK;
}

/* The axes that choose, then those of an entry that the stack has. */
static void arrange_stack(struct tare_quant_product *p, struct tare_quant_selection *s,
                          const struct tare_shape *stack) {
    int order[TARE_MAX_RANK], n = 0;
    unsigned reversed = 0;
    for (int i = 0; i < s->n_indices; i++)
        order[n++] = s->indices[i].axis;
    for (int i = 0; i < p->n_order; i++) {
        const int axis = s->from[p->order[i]];
        if (axis < 0) continue;
        if (p->reversed >> p->order[i] & 1) reversed |= 1u << axis;
        order[n++] = axis;
    }
    s->reshapes = n - s->n_indices != s->entry.rank;
    p->reversed = reversed;
    p->n_order = p->arranged.rank = n;
    for (int i = 0; i < n; i++) {
        p->order[i] = order[i];
        p->arranged.dims[i] = stack->dims[order[i]];
        s->reshapes |= i >= s->n_indices && !s->reshapes && p->arranged.dims[i] != s->entry.dims[i - s->n_indices];
    }
}

tare_status tare_quant_select_product(struct tare_quant_product *p, struct tare_quant_selection *s,
                                      const struct tare_shape *stack) {
    if (p->spatial)
        TARE_TRY(select_filter(p, s));
    else
        TARE_TRY(select_array(p, s));
    arrange_stack(p, s, stack);
    p->batches *= s->count;
    return TARE_OK;
}

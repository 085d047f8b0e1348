#include "interpreter/ops/xla/dot_dims.h"

#include "interpreter/ops/support/dims_wire.h"

/* Marks the axes of a list; TARE_INVALID_ARGUMENT for an axis that does not exist or is already marked. */
static tare_status mark(unsigned *marked, const struct tare_dims_field *field, int rank, const char *what) {
    for (size_t i = 0; i < field->count; i++) {
        const int64_t axis = field->values[i];
        if (axis < 0 || axis >= rank || (*marked >> axis & 1))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "dimension numbers: %s contains dimension %lld more than once or out of range", what,
                             (long long)axis);
        *marked |= 1u << axis;
    }
    return TARE_OK;
}

static void append(int *order, int *count, const struct tare_dims_field *field) {
    for (size_t i = 0; i < field->count; i++)
        order[(*count)++] = (int)field->values[i];
}

static tare_status check_pairs(const struct tare_dims_field *left, const struct tare_dims_field *right,
                               const struct tare_shape *lhs, const struct tare_shape *rhs, const char *what) {
    if (left->count != right->count)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dimension numbers: %zu and %zu %s dimensions", left->count,
                         right->count, what);
    for (size_t i = 0; i < left->count; i++) {
        const int64_t a = lhs->dims[left->values[i]], b = rhs->dims[right->values[i]];
        if (a >= 0 && b >= 0 && a != b)
            return TARE_FAIL(TARE_SHAPE, "%s dimensions differ (%lld and %lld)", what, (long long)a, (long long)b);
    }
    return TARE_OK;
}

static int64_t product_of(const struct tare_shape *shape, const int *order, int first, int last) {
    int64_t product = 1;
    for (int i = first; i < last; i++)
        product *= shape->dims[order[i]];
    return product;
}

tare_status tare_dot_set(struct tare_dot *dot, const struct tare_node *node, const struct tare_shape *lhs,
                         const struct tare_shape *rhs) {
    struct tare_dims_field fields[4] = { { .number = 1 }, { .number = 2 }, { .number = 3 }, { .number = 4 } };
    const struct tare_dims_field *contract_l = &fields[0], *contract_r = &fields[1], *batch_l = &fields[2],
                                 *batch_r = &fields[3];
    unsigned seen_l = 0, seen_r = 0;
    int l = 0, r = 0;
    TARE_TRY(tare_dims_read(fields, 4, node, "dimension_numbers"));
    TARE_TRY(mark(&seen_l, batch_l, lhs->rank, "lhs"));
    TARE_TRY(mark(&seen_l, contract_l, lhs->rank, "lhs"));
    TARE_TRY(mark(&seen_r, batch_r, rhs->rank, "rhs"));
    TARE_TRY(mark(&seen_r, contract_r, rhs->rank, "rhs"));
    TARE_TRY(check_pairs(batch_l, batch_r, lhs, rhs, "batch"));
    TARE_TRY(check_pairs(contract_l, contract_r, lhs, rhs, "contracting"));
    append(dot->lhs_order, &l, batch_l);
    append(dot->rhs_order, &r, batch_r);
    append(dot->rhs_order, &r, contract_r);
    for (int i = 0; i < lhs->rank; i++)
        if (!(seen_l >> i & 1)) dot->lhs_order[l++] = i;
    for (int i = 0; i < rhs->rank; i++)
        if (!(seen_r >> i & 1)) dot->rhs_order[r++] = i;
    const int free_l = l, batches = (int)batch_l->count;
    append(dot->lhs_order, &l, contract_l);
    const int free_r = batches + (int)contract_r->count;
    if (free_l + r - free_r > TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "output of rank %d", free_l + r - free_r);
    dot->output.rank = 0;
    for (int i = 0; i < free_l; i++)
        dot->output.dims[dot->output.rank++] = lhs->dims[dot->lhs_order[i]];
    for (int i = free_r; i < r; i++)
        dot->output.dims[dot->output.rank++] = rhs->dims[dot->rhs_order[i]];
    dot->batch = product_of(lhs, dot->lhs_order, 0, batches);
    dot->m = product_of(lhs, dot->lhs_order, batches, free_l);
    dot->k = product_of(lhs, dot->lhs_order, free_l, l);
    dot->n = product_of(rhs, dot->rhs_order, free_r, r);
    return TARE_OK;
}

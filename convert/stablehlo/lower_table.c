/* Gathers that look up entries of a table, such as embeddings and experts: GatherV2, which quantization knows. */
#include "convert/stablehlo/lower.h"

/* Numbers of a list that may be missing. */
static size_t list(int64_t *out, struct tare_lowering *l, const char *name) {
    return tare_shlo_op_attr(l->op, name) ? tare_lower_ints(l, out, TARE_MAX_RANK, name) : 0;
}

/* A gather that takes entries of one axis whole, one for each index. */
struct table {
    int64_t axis;
    int64_t component; /* of an index vector: the number of the entry; XLA clamps those of whole axes to 0 */
    bool keeps;        /* the result has the axis, with one element, behind those of the indices */
};

/* The only axis that is not taken whole, or the one of an index vector of one number. */
static bool find_axis(struct table *table, const struct tare_shlo_type *of, const int64_t *sizes, const int64_t *map,
                      size_t n_map) {
    int64_t parts = 0;
    if (n_map == 1) table->axis = map[0];
    for (size_t i = 0; i < of->rank && n_map > 1; i++)
        if (sizes[i] != of->dims[i]) table->axis = (int64_t)i, parts++;
    if (parts > 1 || (n_map > 1 && !parts) || table->axis < 0 || (size_t)table->axis >= of->rank) return false;
    table->component = -1;
    for (size_t i = 0; i < n_map; i++)
        if (map[i] == table->axis) table->component = (int64_t)i;
    return table->component >= 0;
}

static bool find_table(struct table *table, struct tare_lowering *l) {
    const struct tare_shlo_op *op = l->op;
    const struct tare_shlo_type *of = op->operands[0]->type, *at = op->operands[1]->type;
    int64_t collapsed[TARE_MAX_RANK], sizes[TARE_MAX_RANK], offsets[TARE_MAX_RANK], batch[TARE_MAX_RANK],
        map[TARE_MAX_RANK];
    const struct tare_shlo_attr *vector = tare_shlo_op_attr(op, "index_vector_dim");
    if (of->rank > TARE_MAX_RANK || !at->rank) return false;
    if (!vector || vector->kind != TARE_SHLO_ATTR_INTEGER || vector->bits != at->rank - 1) return false;
    if (list(batch, l, "operand_batching_dims")) return false;
    const size_t n_map = list(map, l, "start_index_map");
    if (!n_map || at->dims[at->rank - 1] != (int64_t)n_map) return false;
    if (list(sizes, l, "slice_sizes") != of->rank || !find_axis(table, of, sizes, map, n_map)) return false;
    const size_t n_collapsed = list(collapsed, l, "collapsed_slice_dims");
    if (n_collapsed > 1 || (n_collapsed && collapsed[0] != table->axis)) return false;
    table->keeps = !n_collapsed;
    if (list(offsets, l, "offset_dims") != of->rank - n_collapsed) return false;
    for (size_t i = 0, k = 0; i < of->rank; i++) {
        const bool is_axis = (int64_t)i == table->axis;
        if (sizes[i] != (is_axis ? 1 : of->dims[i]) || of->dims[i] < 1) return false;
        if (is_axis && n_collapsed) continue;
        if (offsets[k++] != (int64_t)((int64_t)i < table->axis ? i : i + at->rank - 1 - n_collapsed)) return false;
    }
    return true;
}

/* The numbers of the entries, as XLA clamps those that are out of range. */
static struct tare_edge lower_entries(struct tare_lowering *l, const struct table *table) {
    const struct tare_shlo_type *type = tare_lower_in_type(l, 1);
    const int64_t last = (int64_t)type->rank - 1;
    const int dtype = tare_lower_in_dtype(l, 1);
    struct tare_edge at = tare_lower_in(l, 1);
    if (type->dims[last] == 1) {
        struct tare_node *flat = tare_lower_begin(l, "Squeeze", &at, 1);
        tare_lower_attr_ints(l, flat, "squeeze_dims", &last, 1);
        at = tare_lower_end(l, flat);
    } else {
        const struct tare_edge component = tare_lower_scalar(l, TARE_DT_INT32, (double)table->component);
        const struct tare_edge inputs[] = { at, component, tare_lower_scalar(l, TARE_DT_INT32, (double)last) };
        at = tare_lower_end(l, tare_lower_begin(l, "GatherV2", inputs, 3));
    }
    at = tare_lower_binary(l, "Maximum", at, tare_lower_scalar(l, dtype, 0));
    return tare_lower_binary(l, "Minimum", at,
                             tare_lower_scalar(l, dtype, (double)(tare_lower_in_type(l, 0)->dims[table->axis] - 1)));
}

/* Entries of a table, such as embeddings. */
bool tare_lower_table(struct tare_lowering *l) {
    const int dtype = tare_lower_in_dtype(l, 1);
    struct table table = { .axis = -1 };
    if (l->op->n_operands != 2 || (dtype != TARE_DT_INT32 && dtype != TARE_DT_INT64) || !find_table(&table, l))
        return false;
    const int64_t behind = table.axis + (int64_t)tare_lower_in_type(l, 1)->rank - 1;
    const struct tare_edge at = lower_entries(l, &table);
    const struct tare_edge inputs[] = { tare_lower_in(l, 0), at,
                                        tare_lower_scalar(l, TARE_DT_INT32, (double)table.axis) };
    struct tare_edge entries = tare_lower_end(l, tare_lower_begin(l, "GatherV2", inputs, 3));
    if (table.keeps) {
        const struct tare_edge wide[] = { entries, tare_lower_scalar(l, TARE_DT_INT32, (double)behind) };
        entries = tare_lower_end(l, tare_lower_begin(l, "ExpandDims", wide, 2));
    }
    tare_lower_set(l, entries);
    return true;
}

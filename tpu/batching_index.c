/* Ops that read or write at positions, on the rows of a batch. A position among the rows that is not counted by row is
 * that of another request as soon as there are several; rows that write where an index says meet those with the same
 * index. */
#include "graph/flags.h"
#include "interpreter/ops/support/dims_wire.h"
#include "tpu/batching_rows.h"

#include <string.h>

enum { NONE = TARE_NO_AXIS, DEEPEST = 16 };

static const char reads[] = "looks up rows by an index", writes[] = "writes rows by an index";

/* Whether positions are counted by row, as ids + range(rows) · width: those of one row are not those of another. */
static bool counts_rows(const struct tare_row_frame *f, struct tare_edge edge, int depth) {
    const struct tare_node *node = edge.node;
    if (depth == DEEPEST || tare_node_is_arg(node) || !tare_dtype_is_integer(tare_edge_dtype(edge))) return false;
    if (tare_node_is(node, "Range")) {
        const struct tare_shape *shape = tare_row_shape(f, edge);
        return shape->rank == 1 && shape->dims[0] % TARE_ROWS == 0;
    }
    if (!tare_node_has_flag(node, TARE_OP_ELEMENTWISE | TARE_OP_MOVE)) return false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (counts_rows(f, node->inputs[i], depth + 1)) return true;
    return false;
}

/* Whether component `k` of vectors of positions, along their last axis, is counted by row. */
static bool counts_component(const struct tare_row_frame *f, struct tare_edge vectors, int k) {
    const struct tare_node *node = vectors.node;
    const int last = tare_row_shape(f, vectors)->rank - 1;
    bool along[TARE_MAX_RANK];
    while (tare_node_is(node, "Identity") || tare_node_is(node, "Cast")) {
        vectors = node->inputs[0];
        node = vectors.node;
    }
    if (last < 0 || tare_node_is_arg(node)) return false;
    if (tare_node_is(node, "Where"))
        return tare_row_axis(f, node->inputs[0]) == k; /* what is true in a row is of this row */
    if (tare_node_is(node, "Pack")) {
        const int axis = (int)tare_node_int(node, "axis", 0);
        if ((axis == -1 || axis == last) && (size_t)k < node->n_inputs) return counts_rows(f, node->inputs[k], 0);
    }
    if (tare_node_is(node, "ConcatV2") && tare_row_axes(node, node->n_inputs - 1, last + 1, along) && along[last])
        for (size_t i = 0; i + 1 < node->n_inputs; i++) {
            const struct tare_shape *part = tare_row_shape(f, node->inputs[i]);
            if (part->rank != last + 1 || part->dims[last] < 0) break;
            if (k < part->dims[last]) return counts_component(f, node->inputs[i], k);
            k -= (int)part->dims[last];
        }
    return counts_rows(f, vectors, 0);
}

/* Rows that reach the output along two axes are pairs of rows. */
static int join(const struct tare_row_frame *f, const struct tare_node *node, int a, int b) {
    if (a == NONE || b == NONE || a == b) return a == NONE ? b : a;
    tare_row_mixes(f, node, "combines rows with each other");
    return NONE;
}

static int mix(const struct tare_row_frame *f, const struct tare_node *node, const char *what) {
    tare_row_mixes(f, node, what);
    return NONE;
}

/* ---- look-ups ---- */

static int after_gather(const struct tare_row_frame *f, const struct tare_node *node) {
    const int table = tare_row_axis(f, node->inputs[0]), rank = tare_row_shape(f, node->inputs[0])->rank;
    const int ids = tare_row_axis(f, node->inputs[1]), own = tare_row_shape(f, node->inputs[1])->rank;
    int batch = (int)tare_node_int(node, "batch_dims", 0), axis = 0;
    bool is_axis[TARE_MAX_RANK] = { true };
    if (rank < 0 || own < 0 || (node->n_inputs > 2 && !tare_row_axes(node, 2, rank, is_axis))) return NONE;
    batch += batch < 0 ? own : 0;
    while (axis < rank && !is_axis[axis])
        axis++;
    if (table != NONE && table == axis && !counts_rows(f, node->inputs[1], 0)) return mix(f, node, reads);
    return join(f, node,
                table == NONE || table == axis ? NONE
                : table < axis                 ? table
                                               : table - 1 + own - batch,
                ids == NONE   ? NONE
                : ids < batch ? ids
                              : axis + ids - batch);
}

static int after_gather_nd(const struct tare_row_frame *f, const struct tare_node *node) {
    const struct tare_shape *shape = tare_row_shape(f, node->inputs[1]);
    const int table = tare_row_axis(f, node->inputs[0]), ids = tare_row_axis(f, node->inputs[1]);
    if (shape->rank < 1 || shape->dims[shape->rank - 1] < 0) return NONE;
    const int depth = (int)shape->dims[shape->rank - 1];
    if (table != NONE && table < depth && !counts_component(f, node->inputs[1], table)) return mix(f, node, reads);
    return join(f, node, table < depth ? NONE : shape->rank - 1 + table - depth, ids < shape->rank - 1 ? ids : NONE);
}

/* The table is a variable, which has no rows. */
static int after_resource_gather(const struct tare_row_frame *f, const struct tare_node *node) {
    const int ids = tare_row_axis(f, node->inputs[1]), rank = tare_row_shape(f, node->inputs[1])->rank;
    return tare_node_is(node, "ResourceGatherNd") && ids == rank - 1 ? NONE : ids;
}

/* A part of each axis, from positions that are one for the batch. */
static int after_dynamic_slice(const struct tare_row_frame *f, const struct tare_node *node) {
    const struct tare_shape *from = tare_row_shape(f, node->inputs[0]), *to = &f->shapes[node->position][0];
    const int axis = tare_row_axis(f, node->inputs[0]);
    if (axis == NONE || to->dims[axis] < 0) return NONE;
    return to->dims[axis] == from->dims[axis] ? axis : mix(f, node, reads);
}

/* ---- writes ---- */

static int after_dynamic_update(const struct tare_row_frame *f, const struct tare_node *node) {
    const struct tare_shape *whole = tare_row_shape(f, node->inputs[0]), *part = tare_row_shape(f, node->inputs[1]);
    const int into = tare_row_axis(f, node->inputs[0]), axis = into != NONE ? into : tare_row_axis(f, node->inputs[1]);
    if (axis == NONE || part->rank != whole->rank || part->dims[axis] < 0 || whole->dims[axis] < 0) return NONE;
    if (part->dims[axis] == whole->dims[axis]) return axis;
    return into == NONE ? NONE : mix(f, node, writes);
}

static int after_tensor_scatter(const struct tare_row_frame *f, const struct tare_node *node) {
    const struct tare_shape *shape = tare_row_shape(f, node->inputs[1]);
    const int into = tare_row_axis(f, node->inputs[0]), ids = tare_row_axis(f, node->inputs[1]);
    if (shape->rank < 1 || shape->dims[shape->rank - 1] < 0) return NONE;
    if (into != NONE && into < shape->dims[shape->rank - 1])
        return counts_component(f, node->inputs[1], into) ? into : mix(f, node, writes);
    if (ids != NONE && !counts_rows(f, node->inputs[1], 0)) return mix(f, node, writes);
    return into;
}

static const struct {
    const char *op, *what; /* op: the beginning of its name */
    size_t input;          /* of the indices */
} by_index[] = {
    { "Segment", "reduces rows by an index", 1 },
    { "UnsortedSegment", "reduces rows by an index", 1 },
    { "SparseSegment", "reduces rows by an index", 2 },
    { "ScatterNdNonAliasingAdd", writes, 1 },
    { "ScatterNd", writes, 0 },
};

/* Rows that go where an index of the row says meet those of other requests with this index. */
static bool joins_by_index(const struct tare_row_frame *f, const struct tare_node *node) {
    for (size_t i = 0; i < sizeof by_index / sizeof *by_index; i++) {
        const size_t input = by_index[i].input;
        if (strncmp(node->op, by_index[i].op, strlen(by_index[i].op)) != 0 || input >= node->n_inputs) continue;
        if (tare_row_axis(f, node->inputs[input]) == NONE || counts_rows(f, node->inputs[input], 0)) return false;
        tare_row_mixes(f, node, by_index[i].what);
        return true;
    }
    return false;
}

/* ---- XLA's forms ---- */

/* Fields of xla.GatherDimensionNumbers and xla.ScatterDimensionNumbers. WINDOW: the axes of slices in the result or the
 * updates. DROPPED: axes of the operand that slices lack. */
enum { WINDOW, DROPPED, INDEX_MAP, VECTOR_DIM, BATCHING, INDEX_BATCHING, N_FIELDS };

struct positions {
    struct tare_dims_field fields[N_FIELDS];
    int ids, table;  /* the axes of the rows */
    int vector;      /* the axis of the indices that has the components */
    int component;   /* which of these is the row of the operand; NONE: none */
    int window;      /* axis of slices that is the axis of rows of the operand; NONE: slices lack it */
    bool is_batched; /* each row has positions of its own in its own row */
};

static int find(const struct tare_dims_field *field, int value) {
    for (size_t i = 0; i < field->count; i++)
        if (field->values[i] == value) return (int)i;
    return NONE;
}

static bool read_positions(struct positions *p, const struct tare_row_frame *f, const struct tare_node *node) {
    const struct tare_dims_field *fields = p->fields;
    int kept = 0;
    memset(p, 0, sizeof *p);
    for (int i = 0; i < N_FIELDS; i++)
        p->fields[i].number = i + 1;
    if (tare_error_dismiss(tare_dims_read(p->fields, N_FIELDS, node, "dimension_numbers")) != TARE_OK) return false;
    if (!fields[WINDOW].count && !fields[INDEX_MAP].count && !fields[BATCHING].count) return false;
    p->table = tare_row_axis(f, node->inputs[0]);
    p->ids = tare_row_axis(f, node->inputs[1]);
    p->vector = (int)tare_dims_single(&fields[VECTOR_DIM]);
    if (p->ids == p->vector) p->ids = NONE;
    p->component = p->window = NONE;
    if (p->table == NONE) return true;
    const int pair = find(&fields[BATCHING], p->table);
    p->component = find(&fields[INDEX_MAP], p->table);
    p->is_batched = pair != NONE && (p->ids == NONE || p->ids == fields[INDEX_BATCHING].values[pair]);
    for (int d = 0; d < p->table; d++)
        kept += find(&fields[DROPPED], d) == NONE && find(&fields[BATCHING], d) == NONE;
    if (find(&fields[DROPPED], p->table) == NONE && pair == NONE && (size_t)kept < fields[WINDOW].count)
        p->window = (int)fields[WINDOW].values[kept];
    return true;
}

static bool is_counted(const struct positions *p, const struct tare_row_frame *f, struct tare_edge indices) {
    const bool is_last = p->vector == tare_row_shape(f, indices)->rank - 1;
    return p->component != NONE && is_last ? counts_component(f, indices, p->component) : counts_rows(f, indices, 0);
}

/* The axis of the result, or of the updates, for one of the indices: those that are not of the slice, in order. */
static int outer_axis(const struct positions *p, int axis, int rank) {
    int at = axis - (axis > p->vector);
    for (int d = 0; axis != NONE && d < rank; d++)
        if (find(&p->fields[WINDOW], d) == NONE && at-- == 0) return d;
    return NONE;
}

static int after_xla_gather(const struct tare_row_frame *f, const struct tare_node *node) {
    const struct tare_shape *from = tare_row_shape(f, node->inputs[0]), *to = &f->shapes[node->position][0];
    struct positions p;
    if (!read_positions(&p, f, node)) return NONE;
    const int ids = outer_axis(&p, p.ids, to->rank), window = p.window < to->rank ? p.window : NONE;
    if (p.table == NONE || p.is_batched) return ids;
    if (window != NONE && to->dims[window] == from->dims[p.table]) return join(f, node, window, ids);
    if (window != NONE && to->dims[window] < 0) return NONE;
    return is_counted(&p, f, node->inputs[1]) ? ids : mix(f, node, reads);
}

static int after_xla_scatter(const struct tare_row_frame *f, const struct tare_node *node) {
    const struct tare_shape *into = tare_row_shape(f, node->inputs[0]), *updates = tare_row_shape(f, node->inputs[2]);
    struct positions p;
    if (!read_positions(&p, f, node)) return NONE;
    if (p.table == NONE && p.ids == NONE) return NONE;
    const bool is_whole =
        p.window != NONE && p.window < updates->rank && updates->dims[p.window] == into->dims[p.table];
    if (p.is_batched || (is_whole && p.ids == NONE) || is_counted(&p, f, node->inputs[1])) return p.table;
    return mix(f, node, writes);
}

static const struct {
    const char *op;
    size_t n_inputs;
    int (*after)(const struct tare_row_frame *f, const struct tare_node *node);
} ops[] = {
    { "Gather", 2, after_gather },
    { "GatherNd", 2, after_gather_nd },
    { "GatherV2", 3, after_gather },
    { "ResourceGather", 2, after_resource_gather },
    { "ResourceGatherNd", 2, after_resource_gather },
    { "TensorScatterAdd", 3, after_tensor_scatter },
    { "TensorScatterMax", 3, after_tensor_scatter },
    { "TensorScatterMin", 3, after_tensor_scatter },
    { "TensorScatterSub", 3, after_tensor_scatter },
    { "TensorScatterUpdate", 3, after_tensor_scatter },
    { "XlaDynamicSlice", 3, after_dynamic_slice },
    { "XlaDynamicUpdateSlice", 3, after_dynamic_update },
    { "XlaGather", 3, after_xla_gather },
    { "XlaScatter", 3, after_xla_scatter },
};

bool tare_row_after_index(int *axis, const struct tare_row_frame *f, const struct tare_node *node) {
    *axis = NONE;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(node->op, ops[i].op) == 0 && node->n_inputs >= ops[i].n_inputs) {
            *axis = ops[i].after(f, node);
            return true;
        }
    return joins_by_index(f, node);
}

/* Shardy: constraints on shardings, which have no effect on one device, and manual computations, whose body each device
 * of a mesh runs on its part of the operands.
 *
 * A manual computation is unrolled: the nodes of the body are added once for each device. The body is cut at its
 * collective ops: what is between them is lowered for one device after the other, with the edges of that device, and a
 * collective op connects the edges of all devices. Collective ops inside loops, branches and functions of the body are
 * refused by their own rules. */
#include "convert/stablehlo/lower.h"

#include "base/alloc.h"

#include <string.h>

enum { MOST_DEVICES = 64, MOST_AXES = 8, MOST_VALUES = 1 << 24 };

struct mesh {
    const char *names[MOST_AXES];
    int64_t sizes[MOST_AXES];
    size_t n_axes;
    int64_t devices;
};

/* The axes of the mesh that divide one dimension, major to minor; the rank of a tensor of them is its sharding. */
struct split {
    size_t axes[MOST_AXES], n_axes;
    int64_t parts;
};
struct sharding {
    struct split dims[TARE_MAX_RANK];
    size_t rank;
};

/* A manual computation that is being lowered: edges of the values first … first + count - 1, by device. */
struct devices {
    struct mesh mesh;
    struct tare_edge *edges;
    size_t first, count;
};

/* ---- meshes and shardings ---- */

static const struct tare_shlo_attr *mesh_attr(const struct tare_lowering *l, const struct tare_shlo_attr *mesh) {
    const struct tare_shlo_block *top = &tare_lower_module(l)->root->regions[0];
    if (mesh->kind == TARE_SHLO_ATTR_MESH) return mesh;
    for (size_t i = 0; i < top->n_ops && mesh->kind == TARE_SHLO_ATTR_SYMBOL; i++) {
        const struct tare_shlo_attr *name =
            tare_shlo_op_is(&top->ops[i], "mesh") ? tare_shlo_op_attr(&top->ops[i], "sym_name") : NULL;
        if (!name || name->kind != TARE_SHLO_ATTR_STRING || strcmp(name->text.data, mesh->text.data) != 0) continue;
        mesh = tare_shlo_op_attr(&top->ops[i], "mesh");
        return mesh->kind == TARE_SHLO_ATTR_MESH ? mesh : NULL;
    }
    return NULL;
}

static void read_mesh(struct mesh *mesh, struct tare_lowering *l, const struct tare_shlo_attr *attr) {
    const struct tare_shlo_attr *found = mesh_attr(l, attr);
    const struct tare_shlo_attr *axes = found && found->n_items ? found->items[0] : NULL;
    *mesh = (struct mesh){ .devices = 1 };
    if (!axes || axes->kind != TARE_SHLO_ATTR_ARRAY || axes->n_items > MOST_AXES || found->n_numbers ||
        found->n_items > 1) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "a mesh that is not found, or with an order of devices");
        return;
    }
    for (size_t i = 0; i < axes->n_items; i++) {
        const struct tare_shlo_attr *axis = axes->items[i];
        if (axis->kind != TARE_SHLO_ATTR_MESH_AXIS || axis->n_numbers != 1 || axis->numbers[0] < 1 ||
            axis->items[0]->kind != TARE_SHLO_ATTR_STRING || axis->numbers[0] > MOST_DEVICES / mesh->devices) {
            tare_lower_fail(l, TARE_UNSUPPORTED, "a mesh of more than %d devices", MOST_DEVICES);
            return;
        }
        mesh->names[mesh->n_axes] = axis->items[0]->text.data;
        mesh->sizes[mesh->n_axes++] = axis->numbers[0];
        mesh->devices *= axis->numbers[0];
    }
}

static size_t find_axis(const struct mesh *mesh, const struct tare_shlo_attr *name) {
    size_t i = 0;
    while (i < mesh->n_axes && (name->kind != TARE_SHLO_ATTR_STRING || strcmp(mesh->names[i], name->text.data) != 0))
        i++;
    return i;
}

/* All devices of the mesh must be told apart by manual axes: the other axes have one device. */
static void check_axes(struct tare_lowering *l, const struct mesh *mesh) {
    const struct tare_shlo_attr *manual = tare_shlo_op_attr(l->op, "manual_axes");
    int64_t devices = 1;
    for (size_t i = 0; i < manual->n_items && manual->kind == TARE_SHLO_ATTR_ARRAY; i++) {
        const size_t axis = find_axis(mesh, manual->items[i]);
        if (axis < mesh->n_axes) devices *= mesh->sizes[axis];
    }
    if (devices != mesh->devices)
        tare_lower_fail(l, TARE_UNSUPPORTED, "a manual computation over some axes of its mesh");
}

/* `used`: the axes of other dimensions, as bits; an axis divides one dimension at most. */
static void read_split(struct split *split, unsigned *used, struct tare_lowering *l, const struct mesh *mesh,
                       const struct tare_shlo_attr *axes) {
    *split = (struct split){ .parts = 1 };
    for (size_t i = 0; i < axes->n_items && axes->kind == TARE_SHLO_ATTR_ARRAY; i++) {
        const struct tare_shlo_attr *axis = axes->items[i];
        const bool whole = axis->kind == TARE_SHLO_ATTR_AXIS_REF && axis->n_items == 1;
        const size_t at = whole ? find_axis(mesh, axis->items[0]) : mesh->n_axes;
        if (at == mesh->n_axes || (*used >> at & 1)) {
            tare_lower_fail(l, TARE_UNSUPPORTED, "a sharding over a part of an axis");
            return;
        }
        *used |= 1U << at;
        split->axes[split->n_axes++] = at;
        split->parts *= mesh->sizes[at];
    }
}

/* Sharding `index` of a list, which must be of the mesh; `whole` and `part` are the types of the tensor and its parts.
 */
static void read_sharding(struct sharding *out, struct tare_lowering *l, const struct mesh *mesh,
                          const struct tare_shlo_attr *list, size_t index, const struct tare_shlo_type *whole,
                          const struct tare_shlo_type *part) {
    const struct tare_shlo_attr *sharding = list->items[index];
    bool fits = whole->kind == TARE_SHLO_TENSOR && part->kind == TARE_SHLO_TENSOR && whole->rank == part->rank &&
                sharding->kind == TARE_SHLO_ATTR_SHARDING && sharding->n_items == whole->rank + 1 &&
                whole->rank <= TARE_MAX_RANK;
    unsigned used = 0;
    out->rank = fits ? whole->rank : 0;
    for (size_t d = 0; d < out->rank && l->status == TARE_OK; d++) {
        read_split(&out->dims[d], &used, l, mesh, sharding->items[d + 1]);
        fits = fits && part->dims[d] >= 0 && part->dims[d] <= INT64_MAX / out->dims[d].parts &&
               whole->dims[d] == part->dims[d] * out->dims[d].parts;
    }
    if (!fits) tare_lower_fail(l, TARE_UNSUPPORTED, "shardings that do not divide the operands or results");
}

/* The number of a device along an axis. */
static int64_t coordinate(const struct mesh *mesh, int64_t device, size_t axis) {
    for (size_t i = mesh->n_axes - 1; i > axis; i--)
        device /= mesh->sizes[i];
    return device % mesh->sizes[axis];
}

/* ---- parts of operands and results ---- */

static struct tare_edge part_of(struct tare_lowering *l, const struct mesh *mesh, const struct sharding *s,
                                struct tare_edge x, const struct tare_shlo_type *part, int64_t device) {
    int64_t begin[TARE_MAX_RANK];
    bool divided = false;
    for (size_t d = 0; d < s->rank; d++) {
        int64_t index = 0;
        for (size_t i = 0; i < s->dims[d].n_axes; i++)
            index = index * mesh->sizes[s->dims[d].axes[i]] + coordinate(mesh, device, s->dims[d].axes[i]);
        begin[d] = index * part->dims[d];
        divided = divided || s->dims[d].parts > 1;
    }
    if (!divided) return x;
    const struct tare_edge inputs[] = { x, tare_lower_longs(l, begin, s->rank),
                                        tare_lower_longs(l, part->dims, s->rank) };
    return tare_lower_end(l, tare_lower_begin(l, "Slice", inputs, 3));
}

static struct tare_edge concat(struct tare_lowering *l, const struct tare_edge *parts, size_t count, int64_t axis) {
    struct tare_edge inputs[MOST_DEVICES + 1];
    if (count == 1) return parts[0];
    memcpy(inputs, parts, count * sizeof *parts);
    inputs[count] = tare_lower_scalar(l, TARE_DT_INT32, (double)axis);
    return tare_lower_end(l, tare_lower_begin(l, "ConcatV2", inputs, count + 1));
}

/* Dimensions from `dim` on of the parts of the devices with these numbers along the axes of earlier dimensions. Devices
 * along axes that divide no dimension have equal parts. */
static struct tare_edge join(struct tare_lowering *l, const struct mesh *mesh, const struct sharding *s, size_t dim,
                             int64_t *coordinates, const struct tare_edge *parts) {
    struct tare_edge pieces[MOST_DEVICES];
    int64_t device = 0;
    if (dim == s->rank) {
        for (size_t i = 0; i < mesh->n_axes; i++)
            device = device * mesh->sizes[i] + coordinates[i];
        return parts[device];
    }
    const struct split *split = &s->dims[dim];
    for (int64_t k = 0; k < split->parts; k++) {
        int64_t left = k;
        for (size_t i = split->n_axes; i-- > 0;) {
            coordinates[split->axes[i]] = left % mesh->sizes[split->axes[i]];
            left /= mesh->sizes[split->axes[i]];
        }
        pieces[k] = join(l, mesh, s, dim + 1, coordinates, parts);
    }
    return concat(l, pieces, (size_t)split->parts, (int64_t)dim);
}

/* ---- the edges of a device ---- */

static struct tare_edge *edges_of(const struct devices *v, int64_t device) {
    return v->edges + (size_t)device * v->count;
}

/* Constants are emitted where they are used; values of the function around are the same for all devices. */
static struct tare_edge value_on(struct tare_lowering *l, const struct devices *v, const struct tare_shlo_value *value,
                                 int64_t device) {
    const bool is_constant = value->op && tare_shlo_op_is(value->op, "constant");
    if (is_constant || value->number < v->first || value->number >= v->first + v->count)
        return tare_lower_value(l, value);
    return edges_of(v, device)[value->number - v->first];
}

static void on_device(struct tare_lowering *l, struct devices *v, int64_t device, const struct tare_shlo_block *body,
                      size_t first, size_t end) {
    struct tare_edge *all = tare_lower_edges(l) + v->first;
    memcpy(all, edges_of(v, device), v->count * sizeof *all);
    tare_lower_ops(l, body, first, end);
    memcpy(edges_of(v, device), all, v->count * sizeof *all);
}

/* ---- collective ops ---- */

/* The devices of the group of a device, in order, and its place among them. */
struct group {
    int64_t members[MOST_DEVICES];
    size_t count, place;
};

static void find_group(struct group *g, struct tare_lowering *l, const struct devices *v, int64_t device) {
    const struct tare_shlo_attr *groups = tare_shlo_op_attr(l->op, "replica_groups");
    const bool fits = groups && groups->kind == TARE_SHLO_ATTR_TENSOR && groups->type->rank == 2 &&
                      groups->type->dims[1] <= MOST_DEVICES;
    for (int64_t row = 0; fits && row < groups->type->dims[0]; row++) {
        bool found = false;
        g->count = 0;
        for (int64_t i = 0; i < groups->type->dims[1]; i++) {
            const int64_t member = tare_shlo_tensor_integer(groups, (size_t)(row * groups->type->dims[1] + i));
            if (member < 0 || member >= v->mesh.devices) continue; /* -1 fills short groups */
            if (member == device) g->place = g->count;
            found = found || member == device;
            g->members[g->count++] = member;
        }
        if (found) return;
    }
    g->count = g->place = 0;
    tare_lower_fail(l, TARE_UNSUPPORTED, "a collective op without a group for each device");
}

static struct tare_edge piece(struct tare_lowering *l, struct tare_edge x, const struct tare_shlo_type *type,
                              int64_t axis, int64_t parts, size_t index) {
    int64_t begin[TARE_MAX_RANK] = { 0 }, size[TARE_MAX_RANK];
    if (type->rank > TARE_MAX_RANK || axis < 0 || (size_t)axis >= type->rank || parts < 1 || type->dims[axis] % parts) {
        tare_lower_fail(l, TARE_CORRUPT, "a dimension is out of range");
        return x;
    }
    for (size_t d = 0; d < type->rank; d++)
        size[d] = type->dims[d] < 0 ? -1 : type->dims[d];
    size[axis] = type->dims[axis] / parts;
    begin[axis] = (int64_t)index * size[axis];
    const struct tare_edge inputs[] = { x, tare_lower_longs(l, begin, type->rank),
                                        tare_lower_longs(l, size, type->rank) };
    return tare_lower_end(l, tare_lower_begin(l, "Slice", inputs, 3));
}

/* The combination of operand k of all members, element by element. */
static struct tare_edge reduced(struct tare_lowering *l, const struct devices *v, const struct group *g, size_t k) {
    const struct tare_shlo_block *body = &l->op->regions[0];
    for (size_t i = 0; i < body->n_ops; i++)
        if (!tare_lower_is_elementwise(&body->ops[i]))
            tare_lower_fail(l, TARE_UNSUPPORTED, "op %s in the function of a map", body->ops[i].name);
    struct tare_edge sum = value_on(l, v, l->op->operands[k], g->members[0]);
    struct tare_graph *function = g->count > 1 ? tare_lower_region(l, body, NULL, false) : NULL;
    for (size_t i = 1; i < g->count && l->status == TARE_OK; i++) {
        const struct tare_edge inputs[] = { sum, value_on(l, v, l->op->operands[k], g->members[i]) };
        sum = (struct tare_edge){ tare_lower_call(l, function, inputs, 2), 0 };
    }
    return sum;
}

/* A device to which none sends receives zeros. */
static struct tare_edge received(struct tare_lowering *l, const struct devices *v, int64_t device) {
    const struct tare_shlo_attr *pairs = tare_shlo_op_attr(l->op, "source_target_pairs");
    const bool fits = pairs->kind == TARE_SHLO_ATTR_TENSOR && pairs->type->rank == 2 && pairs->type->dims[1] == 2;
    for (int64_t i = 0; fits && i < pairs->type->dims[0]; i++) {
        const int64_t source = tare_shlo_tensor_integer(pairs, (size_t)(2 * i));
        if (tare_shlo_tensor_integer(pairs, (size_t)(2 * i + 1)) == device && source >= 0 && source < v->mesh.devices)
            return value_on(l, v, l->op->operands[0], source);
    }
    return tare_lower_unary(l, "ZerosLike", value_on(l, v, l->op->operands[0], device));
}

static struct tare_edge gathered(struct tare_lowering *l, const struct devices *v, const struct group *g, size_t k,
                                 int64_t axis) {
    struct tare_edge parts[MOST_DEVICES];
    for (size_t i = 0; i < g->count; i++)
        parts[i] = value_on(l, v, l->op->operands[k], g->members[i]);
    return concat(l, parts, g->count, axis);
}

static struct tare_edge exchanged(struct tare_lowering *l, const struct devices *v, const struct group *g, size_t k) {
    const int64_t axis = tare_lower_int(l, "split_dimension"), parts = tare_lower_int(l, "split_count");
    struct tare_edge pieces[MOST_DEVICES];
    if (parts != (int64_t)g->count) tare_lower_fail(l, TARE_CORRUPT, "attribute 'split_count' is out of range");
    for (size_t i = 0; i < g->count && l->status == TARE_OK; i++)
        pieces[i] = piece(l, value_on(l, v, l->op->operands[k], g->members[i]), tare_lower_in_type(l, k), axis, parts,
                          g->place);
    if (l->status != TARE_OK) return (struct tare_edge){ 0 };
    return concat(l, pieces, g->count, tare_lower_int(l, "concat_dimension"));
}

/* Result k on a device. */
static struct tare_edge collective_result(struct tare_lowering *l, const struct devices *v, size_t k, int64_t device) {
    struct group g = { .count = 0 };
    if (tare_shlo_op_is(l->op, "partition_id")) return tare_lower_scalar(l, tare_lower_out_dtype(l, 0), (double)device);
    if (tare_shlo_op_is(l->op, "collective_permute")) return received(l, v, device);
    find_group(&g, l, v, device);
    if (l->status != TARE_OK) return (struct tare_edge){ 0 };
    if (tare_shlo_op_is(l->op, "all_gather")) return gathered(l, v, &g, k, tare_lower_int(l, "all_gather_dim"));
    if (tare_shlo_op_is(l->op, "all_to_all")) return exchanged(l, v, &g, k);
    if (tare_shlo_op_is(l->op, "collective_broadcast")) return value_on(l, v, l->op->operands[k], g.members[0]);
    const struct tare_edge sum = reduced(l, v, &g, k);
    if (!tare_shlo_op_is(l->op, "reduce_scatter")) return sum;
    return piece(l, sum, tare_lower_in_type(l, k), tare_lower_int(l, "scatter_dimension"), (int64_t)g.count, g.place);
}

/* Ops that communicate between the partitions of a replica, of which there is one, and the number of a partition. */
static bool is_collective(const struct tare_shlo_op *op) {
    static const char *const names[] = { "all_gather",         "all_reduce",     "all_to_all", "collective_broadcast",
                                         "collective_permute", "reduce_scatter", NULL };
    const struct tare_shlo_attr *channel = tare_shlo_op_attr(op, "channel_id");
    const struct tare_shlo_attr *root = tare_shlo_op_attr(op, "has_dynamic_root");
    if (tare_shlo_op_is(op, "partition_id")) return true;
    return tare_lower_is_one_of(op, names) && channel && channel->kind == TARE_SHLO_ATTR_INTEGER && channel->bits &&
           op->n_operands == op->n_results && !(root && root->bits);
}

static void lower_collective(struct tare_lowering *l, struct devices *v, const struct tare_shlo_op *op) {
    struct tare_lowering inner = *l;
    inner.op = op;
    for (size_t k = 0; k < op->n_results; k++)
        for (int64_t device = 0; device < v->mesh.devices && inner.status == TARE_OK; device++)
            edges_of(v, device)[op->results[k].number - v->first] = collective_result(&inner, v, k, device);
    l->status = inner.status;
}

/* ---- manual computations ---- */

static void note_number(size_t *first, size_t *end, size_t number) {
    if (number < *first) *first = number;
    if (number >= *end) *end = number + 1;
}

/* The numbers of the values that a block and the regions in it define. */
static void find_numbers(size_t *first, size_t *end, const struct tare_shlo_block *block) {
    for (size_t i = 0; i < block->n_args; i++)
        note_number(first, end, block->args[i].number);
    for (size_t i = 0; i < block->n_ops; i++) {
        for (size_t k = 0; k < block->ops[i].n_results; k++)
            note_number(first, end, block->ops[i].results[k].number);
        for (size_t k = 0; k < block->ops[i].n_regions; k++)
            find_numbers(first, end, &block->ops[i].regions[k]);
    }
}

static void pass_operands(struct tare_lowering *l, struct devices *v, const struct tare_shlo_block *body) {
    const struct tare_shlo_attr *in = tare_shlo_op_attr(l->op, "in_shardings");
    struct sharding s;
    for (size_t i = 0; i < body->n_args && l->status == TARE_OK; i++) {
        const struct tare_shlo_type *part = body->args[i].type;
        read_sharding(&s, l, &v->mesh, in, i, tare_lower_in_type(l, i), part);
        const struct tare_edge x = tare_lower_in(l, i);
        for (int64_t device = 0; device < v->mesh.devices && l->status == TARE_OK; device++)
            edges_of(v, device)[body->args[i].number - v->first] = part_of(l, &v->mesh, &s, x, part, device);
    }
}

static void run_body(struct tare_lowering *l, struct devices *v, const struct tare_shlo_block *body) {
    for (size_t first = 0, end; first + 1 < body->n_ops && l->status == TARE_OK; first = end) {
        end = first;
        while (end + 1 < body->n_ops && !is_collective(&body->ops[end]))
            end++;
        for (int64_t device = 0; device < v->mesh.devices && end > first; device++)
            on_device(l, v, device, body, first, end);
        if (end + 1 < body->n_ops && l->status == TARE_OK) lower_collective(l, v, &body->ops[end++]);
    }
}

static void join_results(struct tare_lowering *l, const struct devices *v, const struct tare_shlo_op *end) {
    const struct tare_shlo_attr *out = tare_shlo_op_attr(l->op, "out_shardings");
    struct tare_edge parts[MOST_DEVICES];
    int64_t coordinates[MOST_AXES] = { 0 };
    struct sharding s;
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++) {
        read_sharding(&s, l, &v->mesh, out, i, tare_lower_out_type(l, i), end->operands[i]->type);
        for (int64_t device = 0; device < v->mesh.devices && l->status == TARE_OK; device++)
            parts[device] = value_on(l, v, end->operands[i], device);
        memset(coordinates, 0, sizeof coordinates);
        if (l->status == TARE_OK) l->outputs[i] = join(l, &v->mesh, &s, 0, coordinates, parts);
    }
}

static bool is_list_of(const struct tare_shlo_attr *attr, size_t count) {
    return attr && attr->kind == TARE_SHLO_ATTR_ARRAY && attr->n_items == count;
}

/* The terminator of a body that takes the operands and returns the results; NULL if it does not. */
static const struct tare_shlo_op *end_of(const struct tare_shlo_op *op) {
    const struct tare_shlo_block *body = &op->regions[0];
    const struct tare_shlo_op *end = body->n_ops ? &body->ops[body->n_ops - 1] : NULL;
    const bool fits =
        end && tare_shlo_op_is(end, "return") && body->n_args == op->n_operands && end->n_operands == op->n_results;
    return fits ? end : NULL;
}

static void lower_manual(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_attr *in = tare_shlo_op_attr(l->op, "in_shardings"),
                                *out = tare_shlo_op_attr(l->op, "out_shardings");
    const struct tare_shlo_block *body = &l->op->regions[0];
    const struct tare_shlo_op *end = end_of(l->op);
    struct devices v = { .first = SIZE_MAX };
    size_t after = 0;
    (void)arg;
    if (!end || !is_list_of(in, l->op->n_operands) || !is_list_of(out, l->op->n_results) ||
        !(in->n_items + out->n_items)) {
        tare_lower_fail(l, TARE_CORRUPT, "the body of a manual computation has other arguments or results");
        return;
    }
    const struct tare_shlo_attr *sharding = in->n_items ? in->items[0] : out->items[0];
    if (sharding->kind == TARE_SHLO_ATTR_SHARDING)
        read_mesh(&v.mesh, l, sharding->items[0]);
    else
        tare_lower_fail(l, TARE_UNSUPPORTED, "shardings that do not divide the operands or results");
    if (l->status == TARE_OK) check_axes(l, &v.mesh);
    if (*tare_lower_devices(l) > 1) tare_lower_fail(l, TARE_UNSUPPORTED, "a manual computation in another one");
    find_numbers(&v.first, &after, body);
    v.count = after > v.first ? after - v.first : 0;
    if (l->status == TARE_OK && v.count > (size_t)(MOST_VALUES / v.mesh.devices))
        tare_lower_fail(l, TARE_UNSUPPORTED, "%zu results", v.count);
    if (l->status != TARE_OK) return;
    v.edges = tare_calloc(v.count * (size_t)v.mesh.devices + 1, sizeof *v.edges);
    if (!v.edges) l->status = TARE_NO_MEMORY;
    *tare_lower_devices(l) = v.mesh.devices;
    if (v.edges) pass_operands(l, &v, body);
    if (v.edges) run_body(l, &v, body);
    if (v.edges) join_results(l, &v, end);
    *tare_lower_devices(l) = 1;
    tare_free(v.edges);
}

/* ---- other ops ---- */

static void lower_nothing(struct tare_lowering *l, const void *arg) {
    (void)l;
    (void)arg;
}

static void lower_same(struct tare_lowering *l, const void *arg) {
    (void)arg;
    if (l->op->n_operands != l->op->n_results) tare_lower_fail(l, TARE_CORRUPT, "fewer operands than results");
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++)
        l->outputs[i] = tare_lower_in(l, i);
}

/* A named region that is otherwise a part of the function around it. */
static void lower_named(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_block *body = &l->op->regions[0];
    const struct tare_shlo_op *end = end_of(l->op);
    (void)arg;
    if (!end) {
        tare_lower_fail(l, TARE_CORRUPT, "the called function has other arguments or results");
        return;
    }
    for (size_t i = 0; i < body->n_args && l->status == TARE_OK; i++)
        tare_lower_edges(l)[body->args[i].number] = tare_lower_in(l, i);
    tare_lower_ops(l, body, 0, body->n_ops - 1);
    for (size_t i = 0; i < end->n_operands && l->status == TARE_OK; i++)
        l->outputs[i] = tare_lower_value(l, end->operands[i]);
}

const struct tare_lowering_row tare_lower_sharding[] = {
    { "data_flow_edge", lower_same, NULL },
    { "manual_computation", lower_manual, NULL },
    { "mesh", lower_nothing, NULL },
    { "named_computation", lower_named, NULL },
    { "propagation_barrier", lower_same, NULL },
    { "reshard", lower_same, NULL },
    { "sharding_constraint", lower_same, NULL },
    { "sharding_group", lower_nothing, NULL },
    { "unrealized_conversion_cast", lower_same, NULL },
    { 0 },
};

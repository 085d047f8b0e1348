/* Shardy's attributes and ops, which JAX writes next to VHLO for sharded computations (shardy/dialect/sdy/ir:
 * bytecode.td, ops.td). Attributes that only propagation uses stay opaque. */
#include "convert/stablehlo/reader.h"

#include <string.h>

enum {
    SDY_MANUAL_AXES = 0,
    SDY_MESH_AXIS = 1,
    SDY_MESH = 2,
    SDY_SUB_AXIS = 3,
    SDY_AXIS_REF = 4,
    SDY_DIMENSION = 5,
    SDY_SHARDING = 6,
    SDY_SHARDINGS = 7,
};

/* ---- ops ---- */

/* No attributes: they are not used, and may be optional. */
static const struct {
    const char *name;
    struct tare_vhlo_op def;
} ops[] = {
    { "builtin.unrealized_conversion_cast", { "unrealized_conversion_cast_v1", "", 0, 0, true, -1, 0, 0, 0 } },
    { "sdy.data_flow_edge", { "data_flow_edge_v1", "", 0, 1, false, 1, 0, 0, 0 } },
    { "sdy.manual_computation",
      { "manual_computation_v1", "in_shardings manual_axes out_shardings", 3, 0, true, -1, 1, 0, 0 } },
    { "sdy.mesh", { "mesh_v1", "mesh sym_name", 2, 0, false, 0, 0, 0, 0 } },
    { "sdy.named_computation", { "named_computation_v1", "", 0, 0, true, -1, 1, 0, 0 } },
    { "sdy.propagation_barrier", { "propagation_barrier_v1", "", 0, 1, false, 1, 0, 0, 0 } },
    { "sdy.reshard", { "reshard_v1", "", 0, 1, false, 1, 0, 0, 0 } },
    { "sdy.return", { "return_v1", "", 0, 0, true, 0, 0, 0, 0 } },
    { "sdy.sharding_constraint", { "sharding_constraint_v1", "", 0, 1, false, 1, 0, 0, 0 } },
    { "sdy.sharding_group", { "sharding_group_v1", "", 0, 1, false, 0, 0, 0, 0 } },
};

const struct tare_vhlo_op *tare_shlo_find_foreign_op(const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(name, ops[i].name) == 0) return &ops[i].def;
    return NULL;
}

/* ---- attributes ---- */

/* Space for `count` items, of which `first` are the caller's; the others are read. */
static tare_status read_list(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader, struct tare_mlir_input *in,
                             size_t first) {
    size_t count;
    TARE_TRY(tare_mlir_count(&count, in, 1));
    const struct tare_shlo_attr **items =
        TARE_NEW_ARRAY(reader->arena, const struct tare_shlo_attr *, first + count + 1);
    if (!items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < first; i++)
        items[i] = attr->items[i];
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare_shlo_next_attr(&items[first + i], reader, in));
    attr->items = items;
    attr->n_items = first + count;
    return TARE_OK;
}

static tare_status read_array(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                              struct tare_mlir_input *in) {
    attr->kind = TARE_SHLO_ATTR_ARRAY;
    return read_list(attr, reader, in, 0);
}

/* The first item: an attribute of its own for what Shardy stores inside. */
static tare_status add_part(struct tare_shlo_attr **part, struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                            size_t room) {
    attr->items = TARE_NEW_ARRAY(reader->arena, const struct tare_shlo_attr *, room + 1);
    *part = TARE_NEW(reader->arena, struct tare_shlo_attr);
    if (!attr->items || !*part) return TARE_NO_MEMORY;
    attr->items[0] = *part;
    attr->n_items = 1;
    return TARE_OK;
}

static tare_status read_name(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader, struct tare_mlir_input *in) {
    struct tare_shlo_attr *name;
    TARE_TRY(add_part(&name, attr, reader, 2));
    name->kind = TARE_SHLO_ATTR_STRING;
    return tare_shlo_next_text(&name->text, reader, in);
}

static tare_status read_mesh(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader, struct tare_mlir_input *in) {
    struct tare_shlo_attr *axes;
    attr->kind = TARE_SHLO_ATTR_MESH;
    TARE_TRY(add_part(&axes, attr, reader, 1));
    TARE_TRY(read_array(axes, reader, in));
    return tare_shlo_next_numbers(&attr->numbers, &attr->n_numbers, reader, in);
}

static tare_status read_axis_ref(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                 struct tare_mlir_input *in) {
    uint64_t index;
    bool present;
    attr->kind = TARE_SHLO_ATTR_AXIS_REF;
    TARE_TRY(read_name(attr, reader, in));
    TARE_TRY(tare_mlir_flagged(&index, &present, in));
    if (!present) return TARE_OK;
    if (index >= reader->n_attrs) return tare_mlir_corrupt(in, "an attribute index out of range");
    attr->n_items = 2;
    return tare_shlo_read_attr(&attr->items[1], reader, (size_t)index);
}

/* Axes, whether the dimension is closed, and a priority: propagation uses the last two. */
static tare_status read_dimension(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                  struct tare_mlir_input *in) {
    uint64_t priority;
    uint8_t closed;
    bool present;
    TARE_TRY(read_array(attr, reader, in));
    TARE_TRY(tare_mlir_byte(&closed, in));
    return tare_mlir_flagged(&priority, &present, in);
}

static tare_status read_sharding(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                 struct tare_mlir_input *in) {
    struct tare_shlo_attr *mesh, replicated = { 0 };
    attr->kind = TARE_SHLO_ATTR_SHARDING;
    TARE_TRY(add_part(&mesh, attr, reader, 1));
    TARE_TRY(tare_shlo_next_attr(&attr->items[0], reader, in));
    TARE_TRY(read_list(attr, reader, in, 1));
    return read_array(&replicated, reader, in);
}

tare_status tare_shlo_read_shardy(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                  struct tare_mlir_input *in) {
    const size_t start = in->at;
    uint64_t code;
    TARE_TRY(tare_mlir_varint(&code, in));
    switch (code) {
    case SDY_MANUAL_AXES:
    case SDY_SHARDINGS:
        return read_array(attr, reader, in);
    case SDY_MESH_AXIS:
        attr->kind = TARE_SHLO_ATTR_MESH_AXIS;
        TARE_TRY(read_name(attr, reader, in));
        return tare_shlo_read_fixed(attr, reader, in, 1);
    case SDY_MESH:
        return read_mesh(attr, reader, in);
    case SDY_SUB_AXIS:
        attr->kind = TARE_SHLO_ATTR_SUB_AXIS;
        return tare_shlo_read_fixed(attr, reader, in, 2);
    case SDY_AXIS_REF:
        return read_axis_ref(attr, reader, in);
    case SDY_DIMENSION:
        return read_dimension(attr, reader, in);
    case SDY_SHARDING:
        return read_sharding(attr, reader, in);
    default:
        attr->kind = TARE_SHLO_ATTR_OPAQUE;
        attr->text = (struct tare_shlo_text){ "sdy", 3 };
        attr->data = in->data + start;
        attr->size = in->end - start;
        in->at = in->end;
        return TARE_OK;
    }
}

/* Appends ops to blocks, and makes types and attributes. */
#include "convert/stablehlo/emit/build.h"

#include "base/alloc.h"
#include "base/tensor/float8.h"

#include <stdio.h>
#include <string.h>

enum { LEAST_FOUR_BITS = 64 }; /* elements of a constant that may be 4-bit integers */

static struct tare_arena *arena_of(struct tare_build *build) {
    return &build->module->arena;
}

tare_build_value tare_build_fail(struct tare_build *build, tare_status status) {
    if (build->status == TARE_OK) build->status = status;
    return NULL;
}

/* ---- types ---- */

static const struct {
    int dtype;
    enum tare_shlo_type_kind kind;
} kinds[] = {
    { TARE_DT_BOOL, TARE_SHLO_BOOL },          { TARE_DT_BFLOAT16, TARE_SHLO_BF16 },
    { TARE_DT_HALF, TARE_SHLO_F16 },           { TARE_DT_FLOAT, TARE_SHLO_F32 },
    { TARE_DT_DOUBLE, TARE_SHLO_F64 },         { TARE_DT_FLOAT8_E4M3FN, TARE_SHLO_F8E4M3FN },
    { TARE_DT_FLOAT8_E5M2, TARE_SHLO_F8E5M2 }, { TARE_DT_INT4, TARE_SHLO_SI4 },
    { TARE_DT_INT8, TARE_SHLO_SI8 },           { TARE_DT_INT16, TARE_SHLO_SI16 },
    { TARE_DT_INT32, TARE_SHLO_SI32 },         { TARE_DT_INT64, TARE_SHLO_SI64 },
    { TARE_DT_UINT4, TARE_SHLO_UI4 },          { TARE_DT_UINT8, TARE_SHLO_UI8 },
    { TARE_DT_UINT16, TARE_SHLO_UI16 },        { TARE_DT_UINT32, TARE_SHLO_UI32 },
    { TARE_DT_UINT64, TARE_SHLO_UI64 },        { TARE_DT_QINT8, TARE_SHLO_SI8 },
    { TARE_DT_QUINT8, TARE_SHLO_UI8 },         { TARE_DT_QINT32, TARE_SHLO_SI32 },
};

static struct tare_shlo_type *new_type(struct tare_build *build, enum tare_shlo_type_kind kind) {
    struct tare_shlo_type *type = TARE_NEW(arena_of(build), struct tare_shlo_type);
    if (!type) {
        tare_build_fail(build, TARE_NO_MEMORY);
        return NULL;
    }
    type->kind = kind;
    return type;
}

/* The element type of a dtype; fails for one that StableHLO does not have (strings, resources, variants). */
static const struct tare_shlo_type *element_type(struct tare_build *build, int dtype) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].dtype == dtype) return new_type(build, kinds[i].kind);
    if (dtype == TARE_DT_COMPLEX64 || dtype == TARE_DT_COMPLEX128) {
        struct tare_shlo_type *type = new_type(build, TARE_SHLO_COMPLEX);
        if (type) type->element = new_type(build, dtype == TARE_DT_COMPLEX64 ? TARE_SHLO_F32 : TARE_SHLO_F64);
        return type && type->element ? type : NULL;
    }
    tare_build_fail(build, TARE_FAIL(TARE_UNSUPPORTED, "StableHLO has no tensors of %s", tare_dtype_name(dtype)));
    return NULL;
}

const struct tare_shlo_type *tare_build_type(struct tare_build *build, int dtype, const struct tare_shape *shape) {
    struct tare_shlo_type *type = new_type(build, TARE_SHLO_TENSOR);
    int64_t *dims = TARE_NEW_ARRAY(arena_of(build), int64_t, (size_t)(shape->rank < 0 ? 0 : shape->rank) + 1);
    if (!type || !dims) {
        tare_build_fail(build, TARE_NO_MEMORY);
        return NULL;
    }
    if (!tare_shape_is_known(shape)) {
        tare_build_fail(build, TARE_FAIL(TARE_UNSUPPORTED, "the shape is not known before the model runs"));
        return NULL;
    }
    for (int i = 0; i < shape->rank; i++)
        dims[i] = shape->dims[i];
    type->dims = dims;
    type->rank = (size_t)shape->rank;
    type->element = element_type(build, dtype);
    return type->element ? type : NULL;
}

int tare_build_dtype(tare_build_value value) {
    return tare_shlo_dtype(value->type);
}

struct tare_shape tare_build_shape(tare_build_value value) {
    struct tare_shape shape = { .rank = (int)value->type->rank };
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = value->type->dims[i];
    return shape;
}

/* ---- attributes ---- */

static struct tare_shlo_attr *new_attr(struct tare_build *build, enum tare_shlo_attr_kind kind) {
    struct tare_shlo_attr *attr = TARE_NEW(arena_of(build), struct tare_shlo_attr);
    if (!attr) {
        tare_build_fail(build, TARE_NO_MEMORY);
        return NULL;
    }
    attr->kind = kind;
    return attr;
}

static tare_build_attr integer(struct tare_build *build, int dtype, int64_t value) {
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_INTEGER);
    if (!attr) return NULL;
    attr->type = element_type(build, dtype);
    attr->bits = (uint64_t)value;
    return attr->type ? attr : NULL;
}

tare_build_attr tare_build_int(struct tare_build *build, int64_t value) {
    return integer(build, TARE_DT_INT64, value);
}

tare_build_attr tare_build_int32(struct tare_build *build, int32_t value) {
    return integer(build, TARE_DT_INT32, (uint32_t)value);
}

tare_build_attr tare_build_bool(struct tare_build *build, bool value) {
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_BOOL);
    if (attr) attr->bits = value;
    return attr;
}

tare_build_attr tare_build_text(struct tare_build *build, const char *text) {
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_STRING);
    const char *copy = tare_arena_strdup(arena_of(build), text);
    if (!attr || !copy) {
        tare_build_fail(build, TARE_NO_MEMORY);
        return NULL;
    }
    attr->text = (struct tare_shlo_text){ copy, strlen(copy) };
    return attr;
}

tare_build_attr tare_build_enum(struct tare_build *build, enum tare_vhlo_attr_code code, const char *name) {
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_ENUM);
    if (!attr) return NULL;
    attr->code = (int)code;
    while (!tare_vhlo_enums[code][attr->bits] || strcmp(tare_vhlo_enums[code][attr->bits], name) != 0)
        attr->bits++;
    attr->text = (struct tare_shlo_text){ name, strlen(name) };
    return attr;
}

/* A constant attribute with its own elements. */
static tare_build_attr elements(struct tare_build *build, int dtype, const struct tare_shape *shape, const void *data,
                                size_t size) {
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_TENSOR);
    uint8_t *copy = tare_arena_alloc(arena_of(build), size + 1);
    if (!attr || !copy) {
        tare_build_fail(build, TARE_NO_MEMORY);
        return NULL;
    }
    if (size) memcpy(copy, data, size);
    attr->type = tare_build_type(build, dtype, shape);
    attr->data = copy;
    attr->size = size;
    return attr->type ? attr : NULL;
}

tare_build_attr tare_build_ints(struct tare_build *build, const int64_t *values, size_t count, size_t columns) {
    struct tare_shape shape = { .rank = columns ? 2 : 1, .dims = { (int64_t)count } };
    if (columns) shape = (struct tare_shape){ .rank = 2, .dims = { (int64_t)(count / columns), (int64_t)columns } };
    return elements(build, TARE_DT_INT64, &shape, values, count * sizeof *values);
}

/* Packed: a splat of one byte for more than one, which is 0 or 255. */
tare_build_attr tare_build_bools(struct tare_build *build, bool value, size_t count) {
    const struct tare_shape shape = { .rank = 1, .dims = { (int64_t)count } };
    const uint8_t byte = !value ? 0 : count > 1 ? 0xff : 1;
    return elements(build, TARE_DT_BOOL, &shape, &byte, count > 0);
}

tare_build_attr tare_build_array(struct tare_build *build, const tare_build_attr *items, size_t count) {
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_ARRAY);
    const struct tare_shlo_attr **copy = TARE_NEW_ARRAY(arena_of(build), const struct tare_shlo_attr *, count + 1);
    if (!attr || !copy) {
        tare_build_fail(build, TARE_NO_MEMORY);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (!items[i]) return NULL;
        copy[i] = items[i];
    }
    attr->items = copy;
    attr->n_items = count;
    return attr;
}

tare_build_attr tare_build_dictionary(struct tare_build *build, const char *key, const char *text) {
    const tare_build_attr items[] = { text ? tare_build_text(build, key) : NULL,
                                      text ? tare_build_text(build, text) : NULL };
    struct tare_shlo_attr *attr = (struct tare_shlo_attr *)(uintptr_t)tare_build_array(build, items, text ? 2 : 0);
    if (attr) attr->kind = TARE_SHLO_ATTR_DICTIONARY;
    return attr;
}

/* ---- ops ---- */

/* The definition of an op in this version. */
static const struct tare_vhlo_op *definition(struct tare_build *build, const char *name) {
    const size_t size = strlen(name);
    for (size_t i = 0; i < tare_vhlo_n_ops; i++) {
        const struct tare_vhlo_op *op = &tare_vhlo_ops[i];
        if (strncmp(op->name, name, size) != 0 || strncmp(op->name + size, "_v", 2) != 0) continue;
        if (op->since <= build->version && (!op->until || build->version <= op->until)) return op;
    }
    tare_build_fail(build, TARE_FAIL(TARE_UNSUPPORTED, "op %s: not in VHLO %d.%d.%d", name, build->version / 1000000,
                                     build->version / 1000 % 1000, build->version % 1000));
    return NULL;
}

static tare_build_attr default_accuracy(struct tare_build *build) {
    static const int64_t numbers[3];
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_ACCURACY);
    const tare_build_attr mode = tare_build_enum(build, TARE_VHLO_ACCURACY_MODE, "DEFAULT");
    const struct tare_shlo_attr **items = TARE_NEW_ARRAY(arena_of(build), const struct tare_shlo_attr *, 1);
    if (!attr || !mode || !items) return NULL;
    items[0] = mode;
    attr->items = items;
    attr->n_items = 1;
    attr->numbers = numbers;
    attr->n_numbers = 3;
    return attr;
}

static tare_build_attr no_type(struct tare_build *build) {
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_TYPE);
    if (attr) attr->type = new_type(build, TARE_SHLO_NONE);
    return attr;
}

/* The value of an attribute that the request leaves out. */
static tare_build_attr default_of(struct tare_build *build, const char *name, size_t size) {
    static const char *const no_types[] = { "accumulation_type",           "lhs_precision_type",
                                            "rhs_precision_type",          "lhs_component_count",
                                            "rhs_component_count",         "num_primitive_operations",
                                            "allow_imprecise_accumulation" };
    if (size == strlen("result_accuracy") && memcmp(name, "result_accuracy", size) == 0) return default_accuracy(build);
    if (size == strlen("precision_config") && memcmp(name, "precision_config", size) == 0) {
        const tare_build_attr precision = tare_build_enum(build, TARE_VHLO_PRECISION, "DEFAULT");
        return tare_build_array(build, (tare_build_attr[]){ precision, precision }, 2);
    }
    for (size_t i = 0; i < sizeof no_types / sizeof *no_types; i++)
        if (size == strlen(no_types[i]) && memcmp(name, no_types[i], size) == 0) return no_type(build);
    tare_build_fail(build, TARE_FAIL(TARE_INTERNAL, "attribute '%.*s' is missing", (int)size, name));
    return NULL;
}

static bool set_attrs(struct tare_build *build, struct tare_shlo_op *op, const struct tare_build_request *request) {
    size_t used = 0;
    op->attrs = TARE_NEW_ARRAY(arena_of(build), const struct tare_shlo_attr *, (size_t)op->def->n_attrs + 1);
    if (!op->attrs) return !tare_build_fail(build, TARE_NO_MEMORY) && false;
    const char *name = op->def->attrs;
    for (size_t i = 0; i < op->def->n_attrs; i++) {
        const size_t size = strcspn(name, " ");
        for (size_t k = 0; k < request->n_attrs; k++)
            if (strlen(request->attrs[k].name) == size && memcmp(request->attrs[k].name, name, size) == 0) {
                op->attrs[i] = request->attrs[k].value;
                if (!op->attrs[i]) return false;
                used++;
            }
        if (!op->attrs[i]) op->attrs[i] = default_of(build, name, size);
        if (!op->attrs[i]) return false;
        name += size + 1;
    }
    if (used != request->n_attrs)
        tare_build_fail(build, TARE_FAIL(TARE_INTERNAL, "op %s: an attribute that it does not have", op->name));
    return used == request->n_attrs;
}

static bool set_values(struct tare_build *build, struct tare_shlo_op *op, const struct tare_build_request *request) {
    op->operands = TARE_NEW_ARRAY(arena_of(build), struct tare_shlo_value *, request->n_operands + 1);
    op->results = TARE_NEW_ARRAY(arena_of(build), struct tare_shlo_value, request->n_results + 1);
    op->regions = TARE_NEW_ARRAY(arena_of(build), struct tare_shlo_block, request->n_regions + 1);
    if (!op->operands || !op->results || !op->regions) return !tare_build_fail(build, TARE_NO_MEMORY) && false;
    op->n_operands = request->n_operands;
    op->n_results = request->n_results;
    op->n_regions = request->n_regions;
    for (size_t i = 0; i < op->n_operands; i++) {
        op->operands[i] = request->operands[i];
        if (!op->operands[i]) return false;
    }
    for (size_t i = 0; i < op->n_results; i++) {
        if (!request->results[i]) return false;
        op->results[i] = (struct tare_shlo_value){ .type = request->results[i], .number = build->module->n_values++ };
    }
    if (op->n_regions) memcpy(op->regions, request->regions, op->n_regions * sizeof *op->regions);
    return true;
}

struct tare_shlo_op *tare_build_op(struct tare_build *build, const struct tare_build_request *request) {
    struct tare_build_block *block = build->block;
    struct tare_shlo_op op = { .extra = request->extra, .location = build->location };
    if (build->status != TARE_OK) return NULL;
    op.def = definition(build, request->name);
    if (!op.def) return NULL;
    op.name = tare_arena_printf(arena_of(build), "vhlo.%s", op.def->name);
    if (!op.name || (block->n_ops == block->capacity &&
                     !tare_grow((void **)&block->ops, &block->capacity, block->n_ops + 1, sizeof *block->ops))) {
        tare_build_fail(build, TARE_NO_MEMORY);
        return NULL;
    }
    if (!set_values(build, &op, request) || !set_attrs(build, &op, request)) {
        if (build->status == TARE_OK)
            tare_build_fail(build, TARE_FAIL(TARE_INTERNAL, "op %s: an operand is missing", op.name));
        return NULL;
    }
    build->module->n_ops++;
    block->ops[block->n_ops] = op;
    return &block->ops[block->n_ops++];
}

tare_build_value tare_build_value_of(struct tare_build *build, const struct tare_build_request *request) {
    const struct tare_shlo_op *op = tare_build_op(build, request);
    return op ? op->results : NULL;
}

static tare_build_value one_result(struct tare_build *build, const char *name, const tare_build_value *operands,
                                   size_t count, const struct tare_shlo_type *type,
                                   const struct tare_build_named *attrs, size_t n_attrs) {
    return tare_build_value_of(build, &(struct tare_build_request){ .name = name,
                                                                    .operands = operands,
                                                                    .n_operands = count,
                                                                    .attrs = attrs,
                                                                    .n_attrs = n_attrs,
                                                                    .results = &type,
                                                                    .n_results = 1 });
}

tare_build_value tare_build_unary(struct tare_build *build, const char *name, tare_build_value operand) {
    return operand ? one_result(build, name, &operand, 1, operand->type, NULL, 0) : NULL;
}

tare_build_value tare_build_binary(struct tare_build *build, const char *name, tare_build_value a, tare_build_value b) {
    return a ? one_result(build, name, (tare_build_value[]){ a, b }, 2, a->type, NULL, 0) : NULL;
}

tare_build_value tare_build_compare(struct tare_build *build, const char *direction, tare_build_value a,
                                    tare_build_value b) {
    if (!a || !b) return NULL;
    const struct tare_shape shape = tare_build_shape(a);
    const enum tare_shlo_type_kind kind = a->type->element->kind;
    const char *type = tare_shlo_type_is_float(kind) || kind == TARE_SHLO_COMPLEX ? "FLOAT"
                       : tare_shlo_kind_is_unsigned(kind)                         ? "UNSIGNED"
                                                                                  : "SIGNED";
    const struct tare_build_named attrs[] = {
        { "compare_type", tare_build_enum(build, TARE_VHLO_COMPARE_TYPE, type) },
        { "comparison_direction", tare_build_enum(build, TARE_VHLO_DIRECTION, direction) },
    };
    return one_result(build, "compare", (tare_build_value[]){ a, b }, 2, tare_build_type(build, TARE_DT_BOOL, &shape),
                      attrs, 2);
}

tare_build_value tare_build_select(struct tare_build *build, tare_build_value predicate, tare_build_value a,
                                   tare_build_value b) {
    return a ? one_result(build, "select", (tare_build_value[]){ predicate, a, b }, 3, a->type, NULL, 0) : NULL;
}

/* Ops move while the block grows: what float8_of needs of one is kept. */
static tare_build_value note_codes(struct tare_build *build, tare_build_value value, tare_build_value codes) {
    struct tare_shlo_op *op = TARE_NEW(arena_of(build), struct tare_shlo_op);
    struct tare_shlo_value **operands = TARE_NEW(arena_of(build), struct tare_shlo_value *);
    if (!op || !operands) return tare_build_fail(build, TARE_NO_MEMORY);
    *operands = codes;
    *op = (struct tare_shlo_op){ .operands = operands, .n_operands = 1 };
    value->op = op;
    return value;
}

/* The eight-bit floats that `value` is converted from; NULL: it is not. Other values of a built module have no op. */
static tare_build_value float8_of(tare_build_value value) {
    return value->op ? value->op->operands[0] : NULL;
}

tare_build_value tare_build_convert(struct tare_build *build, tare_build_value operand, int dtype) {
    if (!operand || tare_build_dtype(operand) == dtype) return operand;
    const struct tare_shape shape = tare_build_shape(operand);
    const bool widens = tare_float8_format(tare_build_dtype(operand)) && dtype == TARE_DT_FLOAT;
    tare_build_value value = one_result(build, "convert", &operand, 1, tare_build_type(build, dtype, &shape), NULL, 0);
    return widens && value ? note_codes(build, value, operand) : value;
}

void tare_build_match_kinds(struct tare_build *build, tare_build_value *lhs, tare_build_value *rhs) {
    if (!*lhs || !*rhs) return;
    const tare_build_value codes[] = { float8_of(*lhs), float8_of(*rhs) };
    if (codes[0] && codes[1]) {
        *lhs = codes[0];
        *rhs = codes[1];
        return;
    }
    const bool floats[] = { tare_shlo_type_is_float((*lhs)->type->element->kind),
                            tare_shlo_type_is_float((*rhs)->type->element->kind) };
    if (floats[0] && !floats[1]) *rhs = tare_build_convert(build, *rhs, tare_build_dtype(*lhs));
    if (floats[1] && !floats[0]) *lhs = tare_build_convert(build, *lhs, tare_build_dtype(*rhs));
}

tare_build_value tare_build_reshape(struct tare_build *build, tare_build_value operand,
                                    const struct tare_shape *shape) {
    if (!operand) return NULL;
    const struct tare_shape own = tare_build_shape(operand);
    if (tare_shape_equal(&own, shape)) return operand;
    return one_result(build, "reshape", &operand, 1, tare_build_type(build, tare_build_dtype(operand), shape), NULL, 0);
}

tare_build_value tare_build_transpose(struct tare_build *build, tare_build_value operand, const int *permutation) {
    if (!operand) return NULL;
    const struct tare_shape from = tare_build_shape(operand);
    struct tare_shape to = from;
    int64_t axes[TARE_MAX_RANK];
    bool moves = false;
    for (int i = 0; i < from.rank; i++) {
        axes[i] = permutation[i];
        to.dims[i] = from.dims[permutation[i]];
        moves |= permutation[i] != i;
    }
    if (!moves) return operand;
    const struct tare_build_named attr = { "permutation", tare_build_ints(build, axes, (size_t)from.rank, 0) };
    return one_result(build, "transpose", &operand, 1, tare_build_type(build, tare_build_dtype(operand), &to), &attr,
                      1);
}

tare_build_value tare_build_spread(struct tare_build *build, tare_build_value operand, const struct tare_shape *shape,
                                   const int *dims) {
    int64_t axes[TARE_MAX_RANK];
    if (!operand) return NULL;
    for (size_t i = 0; i < operand->type->rank; i++)
        axes[i] = dims[i];
    const struct tare_build_named attr = { "broadcast_dimensions",
                                           tare_build_ints(build, axes, operand->type->rank, 0) };
    return one_result(build, "broadcast_in_dim", &operand, 1, tare_build_type(build, tare_build_dtype(operand), shape),
                      &attr, 1);
}

tare_build_value tare_build_broadcast(struct tare_build *build, tare_build_value operand,
                                      const struct tare_shape *shape) {
    int dims[TARE_MAX_RANK];
    if (!operand) return NULL;
    const struct tare_shape own = tare_build_shape(operand);
    if (tare_shape_equal(&own, shape)) return operand;
    for (int i = 0; i < own.rank; i++)
        dims[i] = shape->rank - own.rank + i;
    return tare_build_spread(build, operand, shape, dims);
}

tare_build_value tare_build_slice(struct tare_build *build, tare_build_value operand, const int64_t *first,
                                  const int64_t *limit, const int64_t *stride) {
    if (!operand) return NULL;
    struct tare_shape shape = tare_build_shape(operand);
    const size_t rank = (size_t)shape.rank;
    bool all = true;
    for (size_t i = 0; i < rank; i++) {
        all &= first[i] == 0 && limit[i] == shape.dims[i] && stride[i] == 1;
        shape.dims[i] = limit[i] > first[i] ? (limit[i] - first[i] + stride[i] - 1) / stride[i] : 0;
    }
    if (all) return operand;
    const struct tare_build_named attrs[] = { { "limit_indices", tare_build_ints(build, limit, rank, 0) },
                                              { "start_indices", tare_build_ints(build, first, rank, 0) },
                                              { "strides", tare_build_ints(build, stride, rank, 0) } };
    return one_result(build, "slice", &operand, 1, tare_build_type(build, tare_build_dtype(operand), &shape), attrs, 3);
}

tare_build_value tare_build_pad(struct tare_build *build, tare_build_value operand, tare_build_value value,
                                const int64_t *low, const int64_t *high, const int64_t *interior) {
    static const int64_t none[TARE_MAX_RANK];
    if (!operand) return NULL;
    struct tare_shape shape = tare_build_shape(operand);
    const size_t rank = (size_t)shape.rank;
    bool changes = false;
    if (!interior) interior = none;
    for (size_t i = 0; i < rank; i++) {
        changes |= low[i] || high[i] || interior[i];
        shape.dims[i] += low[i] + high[i] + (shape.dims[i] > 1 ? (shape.dims[i] - 1) * interior[i] : 0);
    }
    if (!changes) return operand;
    const struct tare_build_named attrs[] = { { "edge_padding_high", tare_build_ints(build, high, rank, 0) },
                                              { "edge_padding_low", tare_build_ints(build, low, rank, 0) },
                                              { "interior_padding", tare_build_ints(build, interior, rank, 0) } };
    return one_result(build, "pad", (tare_build_value[]){ operand, value }, 2,
                      tare_build_type(build, tare_build_dtype(operand), &shape), attrs, 3);
}

tare_build_value tare_build_concatenate(struct tare_build *build, const tare_build_value *operands, size_t count,
                                        int axis) {
    if (!count || !operands[0]) return NULL;
    struct tare_shape shape = tare_build_shape(operands[0]);
    for (size_t i = 1; i < count; i++) {
        if (!operands[i]) return NULL;
        shape.dims[axis] += operands[i]->type->dims[axis];
    }
    if (count == 1) return operands[0];
    const struct tare_build_named attr = { "dimension", tare_build_int(build, axis) };
    return one_result(build, "concatenate", operands, count,
                      tare_build_type(build, tare_build_dtype(operands[0]), &shape), &attr, 1);
}

tare_build_value tare_build_reduce(struct tare_build *build, const char *name, tare_build_value operand,
                                   tare_build_value initial, const int64_t *axes, size_t n_axes) {
    struct tare_shlo_block body = { 0 };
    struct tare_build_block block;
    if (!operand || !initial) return NULL;
    const struct tare_shape from = tare_build_shape(operand);
    struct tare_shape to = { 0 };
    for (int i = 0; i < from.rank; i++) {
        bool reduced = false;
        for (size_t k = 0; k < n_axes; k++)
            reduced |= axes[k] == i;
        if (!reduced) to.dims[to.rank++] = from.dims[i];
    }
    const struct tare_shlo_type *const types[] = { initial->type, initial->type };
    const tare_build_value args = tare_build_arguments(build, &body, types, 2);
    tare_build_begin(build, &block);
    const tare_build_value result = args ? tare_build_binary(build, name, &args[0], &args[1]) : NULL;
    tare_build_end(build, &body, &result, 1);
    const struct tare_shlo_type *type = tare_build_type(build, tare_build_dtype(operand), &to);
    const struct tare_build_named attr = { "dimensions", tare_build_ints(build, axes, n_axes, 0) };
    return tare_build_value_of(build,
                               &(struct tare_build_request){ .name = "reduce",
                                                             .operands = (tare_build_value[]){ operand, initial },
                                                             .n_operands = 2,
                                                             .attrs = &attr,
                                                             .n_attrs = 1,
                                                             .results = &type,
                                                             .n_results = 1,
                                                             .regions = &body,
                                                             .n_regions = 1 });
}

tare_build_value tare_build_iota(struct tare_build *build, int dtype, const struct tare_shape *shape, int axis) {
    const struct tare_build_named attr = { "iota_dimension", tare_build_int(build, axis) };
    return one_result(build, "iota", NULL, 0, tare_build_type(build, dtype, shape), &attr, 1);
}

/* ---- constants ---- */

static tare_build_value constant(struct tare_build *build, tare_build_attr value) {
    const struct tare_build_named attr = { "value", value };
    return value ? one_result(build, "constant", NULL, 0, value->type, &attr, 1) : NULL;
}

/* Bools are packed, eight to a byte, lowest bit first. */
static bool pack_bools(struct tare_build *build, struct tare_shlo_attr *attr, const struct tare_tensor *tensor) {
    const size_t size = ((size_t)tensor->elements + 7) / 8;
    uint8_t *bits = tare_arena_calloc(arena_of(build), size + 1, 1);
    if (!bits) return !tare_build_fail(build, TARE_NO_MEMORY) && false;
    for (int64_t i = 0; i < tensor->elements; i++)
        if (TARE_CONST_DATA(uint8_t, tensor)[tensor->splat ? 0 : i]) bits[i / 8] |= (uint8_t)(1 << i % 8);
    attr->data = bits;
    attr->size = size;
    return true;
}

/* Weights of 4 bits: TensorFlow's ops have them as int8, the TPU's matrix unit as s4, where that is what the module
 * says.
 */
bool tare_build_fits_four_bits(const struct tare_tensor *tensor) {
    const int8_t *values = TARE_CONST_DATA(int8_t, tensor);
    if (tensor->dtype != TARE_DT_INT8 || tensor->splat || tensor->elements < LEAST_FOUR_BITS) return false;
    for (int64_t i = 0; i < tensor->elements; i++)
        if (values[i] < -8 || values[i] > 7) return false;
    return true;
}

tare_build_value tare_build_unpack(struct tare_build *build, tare_build_value packed, const struct tare_shape *shape) {
    struct tare_shape pairs = tare_build_shape(packed);
    pairs.dims[pairs.rank++] = 2;
    const struct tare_shlo_type *type = tare_build_type(build, TARE_DT_INT4, &pairs);
    const tare_build_value halves = tare_build_value_of(
        build, &(struct tare_build_request){
                   .name = "bitcast_convert", .operands = &packed, .n_operands = 1, .results = &type, .n_results = 1 });
    return tare_build_convert(build, tare_build_reshape(build, halves, shape), TARE_DT_INT8);
}

/* One element a byte, whose upper bits are 0. */
static tare_build_value four_bits(struct tare_build *build, const struct tare_tensor *tensor) {
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_TENSOR);
    uint8_t *codes = tare_arena_alloc(arena_of(build), (size_t)tensor->elements);
    if (!attr || !codes) return tare_build_fail(build, TARE_NO_MEMORY);
    for (int64_t i = 0; i < tensor->elements; i++)
        codes[i] = TARE_CONST_DATA(uint8_t, tensor)[i] & 15;
    attr->type = tare_build_type(build, TARE_DT_INT4, &tensor->shape);
    attr->data = codes;
    attr->size = (size_t)tensor->elements;
    return attr->type ? tare_build_convert(build, constant(build, attr), TARE_DT_INT8) : NULL;
}

tare_build_value tare_build_constant(struct tare_build *build, const struct tare_tensor *tensor) {
    if (tare_build_fits_four_bits(tensor)) return four_bits(build, tensor);
    struct tare_shlo_attr *attr = new_attr(build, TARE_SHLO_ATTR_TENSOR);
    if (!attr) return NULL;
    attr->type = tare_build_type(build, tensor->dtype, &tensor->shape);
    if (!attr->type) return NULL;
    if (tensor->dtype == TARE_DT_BOOL) return pack_bools(build, attr, tensor) ? constant(build, attr) : NULL;
    attr->data = tensor->data;
    attr->size = tensor->splat && tensor->elements ? tare_dtype_size(tensor->dtype) : tare_tensor_bytes(tensor);
    return constant(build, attr);
}

tare_build_value tare_build_splat(struct tare_build *build, int dtype, const struct tare_shape *shape, double number) {
    struct tare_tensor one = { 0 };
    const struct tare_shape scalar = tare_shape_scalar();
    int64_t count;
    if (tare_shape_elements(&count, shape) != TARE_OK || tare_tensor_new(&one, dtype, &scalar) != TARE_OK) {
        tare_build_fail(build, TARE_NO_MEMORY);
        return NULL;
    }
    tare_tensor_set_f64(&one, 0, number);
    const uint8_t all = 0xff;
    const bool packed = dtype == TARE_DT_BOOL && count > 1 && number != 0;
    const tare_build_attr attr =
        elements(build, dtype, shape, packed ? &all : one.data, count ? packed ? 1 : tare_dtype_size(dtype) : 0);
    tare_tensor_reset(&one);
    return constant(build, attr);
}

tare_build_value tare_build_number(struct tare_build *build, tare_build_value like, double number) {
    if (!like) return NULL;
    const struct tare_shape shape = tare_build_shape(like);
    return tare_build_splat(build, tare_build_dtype(like), &shape, number);
}

tare_build_value tare_build_scalar(struct tare_build *build, int dtype, double number) {
    const struct tare_shape scalar = tare_shape_scalar();
    return tare_build_splat(build, dtype, &scalar, number);
}

/* ---- regions ---- */

void tare_build_begin(struct tare_build *build, struct tare_build_block *block) {
    *block = (struct tare_build_block){ .parent = build->block };
    build->block = block;
}

void tare_build_end(struct tare_build *build, struct tare_shlo_block *out, const tare_build_value *values,
                    size_t count) {
    struct tare_build_block *block = build->block;
    tare_build_op(build, &(struct tare_build_request){ .name = "return", .operands = values, .n_operands = count });
    out->n_ops = block->n_ops;
    out->ops = TARE_NEW_ARRAY(arena_of(build), struct tare_shlo_op, block->n_ops + 1);
    if (out->ops && block->n_ops)
        memcpy(out->ops, block->ops, block->n_ops * sizeof *block->ops);
    else if (!out->ops)
        tare_build_fail(build, TARE_NO_MEMORY);
    tare_free(block->ops);
    build->block = block->parent;
}

tare_build_value tare_build_arguments(struct tare_build *build, struct tare_shlo_block *block,
                                      const struct tare_shlo_type *const *types, size_t count) {
    block->args = TARE_NEW_ARRAY(arena_of(build), struct tare_shlo_value, count + 1);
    if (!block->args) return tare_build_fail(build, TARE_NO_MEMORY);
    block->n_args = count;
    for (size_t i = 0; i < count; i++) {
        if (!types[i]) return NULL;
        block->args[i] = (struct tare_shlo_value){ .type = types[i], .number = build->module->n_values++ };
    }
    return block->args;
}

tare_status tare_build_open(struct tare_build *build, int version) {
    *build = (struct tare_build){ .version = version };
    build->module = tare_calloc(1, sizeof *build->module);
    if (!build->module) return TARE_NO_MEMORY;
    build->module->bytecode_version = TARE_MLIR_NEWEST_BYTECODE;
    build->module->version = version;
    build->module->producer = "";
    return TARE_OK;
}

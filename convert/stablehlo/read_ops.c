/* Decoding section 4: ops, blocks and the numbering of values.
 *
 * A scope of value numbers begins with each isolated op and starts at 0. A region reserves its numbers at the end of
 * the scope when it begins, and numbers its block arguments and results in order; a region that is not isolated
 * continues after all numbers of its parent, and its numbers are released when it ends. An operand must be defined
 * before its use. */
#include "convert/stablehlo/codes.h"
#include "convert/stablehlo/reader.h"

#include "base/alloc.h"

#include <string.h>

enum { LEAST_OP_BYTES = 3, MOST_REGIONS = 4096 };

struct scope {
    struct tare_shlo_value **values; /* by number; NULL: not defined yet */
    size_t count, capacity;
    size_t next, end; /* numbers of the innermost region that are not given out */
};

struct ops_reader {
    struct tare_shlo_reader *base;
    struct scope *scope;
};

static tare_status read_block(struct tare_shlo_block *block, struct ops_reader *r, struct tare_mlir_input *in);

static tare_status define(struct ops_reader *r, struct tare_shlo_value *value, const struct tare_mlir_input *in) {
    struct scope *scope = r->scope;
    value->number = r->base->module->n_values++;
    if (!scope) return tare_mlir_corrupt(in, "a value outside of a region");
    if (scope->next >= scope->end) return tare_mlir_corrupt(in, "a region defines more values than it declares");
    scope->values[scope->next++] = value;
    return TARE_OK;
}

/* Orders of use lists restore pointer order in MLIR; they mean nothing here. */
static tare_status skip_use_orders(struct tare_mlir_input *in, size_t n_values) {
    size_t count = 1, n;
    uint64_t ignored;
    bool flag;
    if (n_values > 1) TARE_TRY(tare_mlir_count(&count, in, 2));
    for (size_t i = 0; i < count; i++) {
        if (n_values > 1) TARE_TRY(tare_mlir_varint(&ignored, in));
        TARE_TRY(tare_mlir_flagged(&ignored, &flag, in));
        if (ignored > tare_mlir_left(in)) return tare_mlir_corrupt(in, "a count exceeds the section");
        n = (size_t)ignored;
        for (size_t j = 0; j < n; j++)
            TARE_TRY(tare_mlir_varint(&ignored, in));
    }
    return TARE_OK;
}

/* ---- attributes ---- */

/* The position of a name in the definition's list; -1: none. */
static int attr_position(const struct tare_vhlo_op *def, const char *name) {
    const size_t size = strlen(name);
    int position = 0;
    for (const char *at = def->attrs; *at; position++) {
        const size_t length = strcspn(at, " ");
        if (length == size && memcmp(at, name, size) == 0) return position;
        at += length + (at[length] == ' ');
    }
    return -1;
}

const struct tare_shlo_attr *tare_shlo_op_attr(const struct tare_shlo_op *op, const char *name) {
    const int position = tare_shlo_def(op) ? attr_position(tare_shlo_def(op), name) : -1;
    return position < 0 ? NULL : op->attrs[position];
}

bool tare_shlo_op_is(const struct tare_shlo_op *op, const char *name) {
    const struct tare_vhlo_op *def = tare_shlo_def(op);
    const size_t size = strlen(name);
    return def && strncmp(def->name, name, size) == 0 && strncmp(def->name + size, "_v", 2) == 0;
}

static tare_status make_attrs(struct tare_shlo_op *op, struct ops_reader *r) {
    op->attrs = TARE_NEW_ARRAY(r->base->arena, const struct tare_shlo_attr *, (size_t)tare_shlo_def(op)->n_attrs + 1);
    return op->attrs ? TARE_OK : TARE_NO_MEMORY;
}

/* From bytecode version 5 on: one index an attribute, in the order of names. */
static tare_status read_properties(struct tare_shlo_op *op, struct ops_reader *r, struct tare_mlir_input *in) {
    size_t index;
    TARE_TRY(tare_mlir_index(&index, in, r->base->n_properties, "properties"));
    const struct tare_vhlo_op *def = tare_shlo_def(op);
    if (!op->def && (!def || !def->n_attrs)) return TARE_OK; /* the layout is not known, or not used */
    struct tare_mlir_input properties = r->base->properties[index];
    for (size_t i = 0; i < def->n_attrs; i++)
        TARE_TRY(tare_shlo_next_attr(&op->attrs[i], r->base, &properties));
    return tare_mlir_at_end(&properties, "properties");
}

/* Before version 5 the dictionary holds the op's attributes among the discardable ones. */
static tare_status split_dictionary(struct tare_shlo_op *op, struct ops_reader *r) {
    const struct tare_shlo_attr *all = op->extra;
    struct tare_shlo_attr *extra = TARE_NEW(r->base->arena, struct tare_shlo_attr);
    if (!extra) return TARE_NO_MEMORY;
    extra->kind = TARE_SHLO_ATTR_DICTIONARY;
    extra->items = TARE_NEW_ARRAY(r->base->arena, const struct tare_shlo_attr *, all->n_items);
    if (all->n_items && !extra->items) return TARE_NO_MEMORY;
    for (size_t i = 0; i + 1 < all->n_items; i += 2) {
        const int position = attr_position(op->def, all->items[i]->text.data);
        if (position >= 0) {
            op->attrs[position] = all->items[i + 1];
        } else {
            extra->items[extra->n_items++] = all->items[i];
            extra->items[extra->n_items++] = all->items[i + 1];
        }
    }
    op->extra = extra->n_items ? extra : NULL;
    return TARE_OK;
}

static tare_status check_attrs(const struct tare_shlo_op *op) {
    const char *at = tare_shlo_def(op)->attrs;
    for (size_t i = 0; i < tare_shlo_def(op)->n_attrs; i++) {
        const int length = (int)strcspn(at, " ");
        if (!op->attrs[i]) return TARE_FAIL(TARE_CORRUPT, "attribute '%.*s' is missing", length, at);
        at += length + 1;
    }
    return TARE_OK;
}

/* ---- ops ---- */

static tare_status read_operands(struct tare_shlo_op *op, struct ops_reader *r, struct tare_mlir_input *in) {
    TARE_TRY(tare_mlir_count(&op->n_operands, in, 1));
    op->operands = TARE_NEW_ARRAY(r->base->arena, struct tare_shlo_value *, op->n_operands);
    if (op->n_operands && !op->operands) return TARE_NO_MEMORY;
    for (size_t i = 0; i < op->n_operands; i++) {
        size_t index;
        TARE_TRY(tare_mlir_index(&index, in, r->scope ? r->scope->count : 0, "value"));
        op->operands[i] = r->scope->values[index];
        if (!op->operands[i]) return tare_mlir_corrupt(in, "a value is used before it is defined");
    }
    return TARE_OK;
}

static tare_status read_results(struct tare_shlo_op *op, struct ops_reader *r, struct tare_mlir_input *in) {
    struct tare_shlo_type_list types;
    TARE_TRY(tare_shlo_next_types(&types, r->base, in));
    op->n_results = types.count;
    op->results = TARE_NEW_ARRAY(r->base->arena, struct tare_shlo_value, op->n_results);
    if (op->n_results && !op->results) return TARE_NO_MEMORY;
    for (size_t i = 0; i < op->n_results; i++)
        op->results[i] = (struct tare_shlo_value){ .type = types.items[i], .op = op };
    return TARE_OK;
}

static tare_status check_counts(const struct tare_shlo_op *op) {
    const struct tare_vhlo_op *def = tare_shlo_def(op);
    if (op->n_operands < def->min_operands || (!def->variadic_operands && op->n_operands > def->min_operands))
        return TARE_FAIL(TARE_CORRUPT, "expected %d operands, got %zu", def->min_operands, op->n_operands);
    if (def->results >= 0 && op->n_results != (size_t)def->results)
        return TARE_FAIL(TARE_CORRUPT, "expected %d results, got %zu", def->results, op->n_results);
    if (def->regions >= 0 && op->n_regions != (size_t)def->regions)
        return TARE_FAIL(TARE_CORRUPT, "expected %d regions, got %zu", def->regions, op->n_regions);
    return TARE_OK;
}

/* One region: its values are numbered in the innermost scope. */
static tare_status read_region(struct tare_shlo_block *block, struct ops_reader *r, struct tare_mlir_input *in) {
    struct scope *scope = r->scope;
    const size_t first = scope->count, next = scope->next, end = scope->end;
    uint64_t blocks;
    size_t n_values;
    TARE_TRY(tare_mlir_varint(&blocks, in));
    if (!blocks) return TARE_OK;
    if (blocks > 1) return TARE_FAIL(TARE_UNSUPPORTED, "a region of several blocks at byte %zu", in->at);
    TARE_TRY(tare_mlir_count(&n_values, in, 1));
    if (first + n_values > scope->capacity &&
        !tare_grow((void **)&scope->values, &scope->capacity, first + n_values, sizeof *scope->values))
        return TARE_NO_MEMORY;
    if (n_values) memset(scope->values + first, 0, n_values * sizeof *scope->values);
    scope->count = first + n_values;
    scope->next = first;
    scope->end = scope->count;
    TARE_TRY(read_block(block, r, in));
    if (scope->next != scope->end) return tare_mlir_corrupt(in, "a region defines fewer values than it declares");
    scope->count = first;
    scope->next = next;
    scope->end = end;
    return TARE_OK;
}

static tare_status read_each_region(struct tare_shlo_op *op, struct ops_reader *r, struct tare_mlir_input *in) {
    for (size_t i = 0; i < op->n_regions; i++)
        TARE_TRY(read_region(&op->regions[i], r, in));
    return TARE_OK;
}

static tare_status read_regions_of(struct tare_shlo_op *op, struct ops_reader *r, struct tare_mlir_input *in,
                                   bool isolated) {
    struct scope own = { 0 };
    struct ops_reader inner = { r->base, &own };
    if (!isolated) {
        if (!r->scope) return tare_mlir_corrupt(in, "a region outside of an isolated op");
        return read_each_region(op, r, in);
    }
    const tare_status status = read_each_region(op, &inner, in);
    tare_free(own.values);
    return status;
}

/* From version 2 on the regions of an isolated op are in a section of their own. */
static tare_status read_regions(struct tare_shlo_op *op, struct ops_reader *r, struct tare_mlir_input *in) {
    struct tare_mlir_input section;
    uint64_t count;
    bool isolated;
    int id;
    TARE_TRY(tare_mlir_flagged(&count, &isolated, in));
    if (!isolated && !op->def) return tare_mlir_corrupt(in, "a module that uses values around it");
    if (count > MOST_REGIONS || count > tare_mlir_left(in)) return tare_mlir_corrupt(in, "too many regions");
    op->n_regions = (size_t)count;
    op->regions = TARE_NEW_ARRAY(r->base->arena, struct tare_shlo_block, op->n_regions);
    if (op->n_regions && !op->regions) return TARE_NO_MEMORY;
    if (!isolated || r->base->module->bytecode_version < 2) return read_regions_of(op, r, in, isolated);
    TARE_TRY(tare_mlir_section(&id, &section, in));
    if (id != TARE_MLIR_SECTION_IR) return tare_mlir_corrupt(in, "a section of regions is expected");
    TARE_TRY(read_regions_of(op, r, &section, true));
    return tare_mlir_at_end(&section, "regions");
}

/* The fields before the regions, in the order in which they are stored. */
static tare_status read_fields(struct tare_shlo_op *op, struct ops_reader *r, struct tare_mlir_input *in,
                               unsigned mask) {
    if (mask & TARE_MLIR_HAS_ATTRS) {
        TARE_TRY(tare_shlo_next_attr(&op->extra, r->base, in));
        if (op->extra->kind != TARE_SHLO_ATTR_DICTIONARY)
            return tare_mlir_corrupt(in, "an op's attributes are not a dictionary");
    }
    if (mask & TARE_MLIR_HAS_PROPERTIES) TARE_TRY(read_properties(op, r, in));
    if (mask & TARE_MLIR_HAS_RESULTS) TARE_TRY(read_results(op, r, in));
    if (mask & TARE_MLIR_HAS_OPERANDS) TARE_TRY(read_operands(op, r, in));
    if (mask & TARE_MLIR_HAS_SUCCESSORS) return tare_mlir_corrupt(in, "an op with successors");
    if (mask & TARE_MLIR_HAS_USE_ORDERS) TARE_TRY(skip_use_orders(in, op->n_results));
    for (size_t i = 0; i < op->n_results; i++)
        TARE_TRY(define(r, &op->results[i], in));
    return TARE_OK;
}

static tare_status read_body(struct tare_shlo_op *op, struct ops_reader *r, struct tare_mlir_input *in) {
    uint64_t location;
    uint8_t mask;
    TARE_TRY(tare_mlir_byte(&mask, in));
    if (mask & 0x80) return tare_mlir_corrupt(in, "unknown fields of an op");
    TARE_TRY(tare_mlir_varint(&location, in));
    if (tare_shlo_op_is(op, "dot_general") || tare_shlo_op_is(op, "convolution")) /* layers of reports and recipes */
        op->location = tare_shlo_location_name(r->base, location);
    if (tare_shlo_def(op)) TARE_TRY(make_attrs(op, r));
    TARE_TRY(read_fields(op, r, in, mask));
    if (tare_shlo_def(op)) {
        if (op->def && op->extra && !(mask & TARE_MLIR_HAS_PROPERTIES) && r->base->module->bytecode_version < 5)
            TARE_TRY(split_dictionary(op, r));
        TARE_TRY(check_attrs(op));
    }
    if (mask & TARE_MLIR_HAS_REGIONS) {
        if (r->base->depth >= TARE_SHLO_MAX_DEPTH) return tare_mlir_corrupt(in, "regions are nested too deeply");
        r->base->depth++;
        const tare_status status = read_regions(op, r, in);
        r->base->depth--;
        TARE_TRY(status);
    }
    return tare_shlo_def(op) ? check_counts(op) : TARE_OK;
}

static tare_status read_op(struct tare_shlo_op *op, struct ops_reader *r, struct tare_mlir_input *in) {
    size_t name;
    op->offset = in->at;
    TARE_TRY(tare_mlir_index(&name, in, r->base->n_ops, "op name"));
    op->name = r->base->ops[name].name;
    op->def = r->base->ops[name].def;
    op->foreign = r->base->ops[name].foreign;
    r->base->module->n_ops++;
    if (!op->def && strncmp(op->name, "vhlo.", 5) == 0)
        return TARE_FAIL(TARE_UNSUPPORTED, "unknown op '%s' at byte %zu (%s; VHLO 0.9.0 to 1.20.0 is supported)",
                         op->name, op->offset, r->base->module->producer);
    tare_status status = read_body(op, r, in);
    return status == TARE_OK ? status : tare_error_prefix(status, "op %s at byte %zu", op->name, op->offset);
}

/* ---- blocks ---- */

static tare_status read_argument(struct tare_shlo_value *arg, struct ops_reader *r, struct tare_mlir_input *in) {
    uint64_t type, location;
    bool has_location = true;
    if (r->base->module->bytecode_version >= 4)
        TARE_TRY(tare_mlir_flagged(&type, &has_location, in));
    else
        TARE_TRY(tare_mlir_varint(&type, in));
    if (has_location) TARE_TRY(tare_mlir_varint(&location, in));
    if (type >= r->base->n_types) return tare_mlir_corrupt(in, "a type index out of range");
    TARE_TRY(tare_shlo_read_type(&arg->type, r->base, (size_t)type));
    return define(r, arg, in);
}

static tare_status read_arguments(struct tare_shlo_block *block, struct ops_reader *r, struct tare_mlir_input *in) {
    uint8_t has_orders = 0;
    TARE_TRY(tare_mlir_count(&block->n_args, in, 1));
    block->args = TARE_NEW_ARRAY(r->base->arena, struct tare_shlo_value, block->n_args);
    if (block->n_args && !block->args) return TARE_NO_MEMORY;
    for (size_t i = 0; i < block->n_args; i++)
        TARE_TRY(read_argument(&block->args[i], r, in));
    if (r->base->module->bytecode_version >= 3) TARE_TRY(tare_mlir_byte(&has_orders, in));
    return has_orders ? skip_use_orders(in, block->n_args) : TARE_OK;
}

static tare_status read_block(struct tare_shlo_block *block, struct ops_reader *r, struct tare_mlir_input *in) {
    uint64_t count;
    bool has_arguments;
    TARE_TRY(tare_mlir_flagged(&count, &has_arguments, in));
    if (has_arguments) TARE_TRY(read_arguments(block, r, in));
    if (count > tare_mlir_left(in) / LEAST_OP_BYTES) return tare_mlir_corrupt(in, "a count exceeds the section");
    block->n_ops = (size_t)count;
    block->ops = TARE_NEW_ARRAY(r->base->arena, struct tare_shlo_op, block->n_ops);
    if (block->n_ops && !block->ops) return TARE_NO_MEMORY;
    for (size_t i = 0; i < block->n_ops; i++)
        TARE_TRY(read_op(&block->ops[i], r, in));
    return TARE_OK;
}

/* The section holds one block with one builtin.module. */
tare_status tare_shlo_read_ops(struct tare_shlo_reader *reader, struct tare_mlir_input in) {
    struct ops_reader r = { .base = reader };
    struct tare_shlo_block top = { 0 };
    TARE_TRY(read_block(&top, &r, &in));
    TARE_TRY(tare_mlir_at_end(&in, "ops"));
    if (top.n_ops != 1 || strcmp(top.ops[0].name, "builtin.module") != 0 || top.ops[0].n_regions != 1)
        return TARE_FAIL(TARE_CORRUPT, "expected one builtin.module, got %zu ops", top.n_ops);
    reader->module->root = &top.ops[0];
    return TARE_OK;
}

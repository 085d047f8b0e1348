/* A table of the file (strings, attributes, types, op names, properties) contains each entry once: an entry is encoded,
 * with the indices of the entries that it refers to, and looked up by its bytes. So entries come after those that they
 * contain, and one walk over the ops fills all tables. Constants are looked up by their address, and their elements are
 * not copied before the end. */
#include "convert/stablehlo/write.h"

#include "base/alloc.h"
#include "base/map.h"
#include "convert/stablehlo/codes.h"

#include <string.h>

/* The attributes and types of VHLO ops are VHLO's; the module and dictionaries of discardable attributes are builtin.
 */
enum dialect { BUILTIN, VHLO, N_DIALECTS };
static const char *const dialects[N_DIALECTS] = { "builtin", "vhlo" };

struct entry {
    const char *bytes;
    size_t size;
    const uint8_t *elements; /* of a constant, after the bytes */
    size_t n_elements;
    enum dialect dialect;
};

struct table {
    struct entry *entries;
    size_t count, capacity;
    struct tare_map by_bytes; /* dialect and bytes -> index + 1 */
    struct tare_map by_address;
};

struct writer {
    const struct tare_shlo_module *module;
    int version;
    struct tare_arena arena;
    struct table strings, attrs, types, ops, properties;
    size_t *numbers; /* of values in their scope, by the value's number in the module */
    struct tare_strbuf ir;
};

/* ---- numbers ---- */

/* MLIR's varint: the number of bytes is the position of the lowest set bit. */
static void put_varint(struct tare_strbuf *out, uint64_t value) {
    for (int bytes = 1; bytes <= 8; bytes++) {
        if (bytes < 8 ? value >> (7 * bytes) != 0 : value >> 56 != 0) continue;
        const uint64_t word = value << bytes | UINT64_C(1) << (bytes - 1);
        for (int i = 0; i < bytes; i++)
            tare_strbuf_putc(out, (char)(word >> (8 * i)));
        return;
    }
    tare_strbuf_putc(out, 0);
    for (int i = 0; i < 8; i++)
        tare_strbuf_putc(out, (char)(value >> (8 * i)));
}

static void put_signed(struct tare_strbuf *out, int64_t value) {
    put_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void put_numbers(struct tare_strbuf *out, const int64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        put_signed(out, numbers[i]);
}

static void put_flagged(struct tare_strbuf *out, uint64_t value, bool flag) {
    put_varint(out, value << 1 | flag);
}

/* ---- tables ---- */

static tare_status add_entry(size_t *index, struct table *table, struct entry entry) {
    if (table->count == table->capacity &&
        !tare_grow((void **)&table->entries, &table->capacity, table->count + 1, sizeof *table->entries))
        return TARE_NO_MEMORY;
    *index = table->count;
    table->entries[table->count++] = entry;
    return TARE_OK;
}

/* The index of the entry with these bytes, which it frees. */
static tare_status intern(size_t *index, struct writer *w, struct table *table, enum dialect dialect,
                          struct tare_strbuf *bytes) {
    char *key;
    tare_status status = tare_strbuf_status(bytes);
    if (status == TARE_OK) {
        key = tare_arena_alloc(&w->arena, bytes->size + 1);
        if (!key) status = TARE_NO_MEMORY;
    }
    if (status == TARE_OK) {
        key[0] = (char)dialect;
        if (bytes->size) memcpy(key + 1, bytes->data, bytes->size);
        const uintptr_t known = (uintptr_t)tare_map_get_n(&table->by_bytes, key, bytes->size + 1);
        *index = known - 1;
        if (!known) {
            status =
                add_entry(index, table, (struct entry){ .bytes = key + 1, .size = bytes->size, .dialect = dialect });
            if (status == TARE_OK &&
                !tare_map_set_n(&table->by_bytes, key, bytes->size + 1, (void *)(uintptr_t)(*index + 1)))
                status = TARE_NO_MEMORY;
        }
    }
    tare_strbuf_free(bytes);
    return status;
}

/* Appends the index of the entry with these bytes, which it frees, also if `encoded`, the status of encoding them, is
 * an error, which it returns. */
static tare_status put_interned(struct tare_strbuf *out, struct writer *w, struct table *table, enum dialect dialect,
                                struct tare_strbuf *bytes, tare_status encoded) {
    size_t index = 0;
    if (encoded != TARE_OK) {
        tare_strbuf_free(bytes);
        return encoded;
    }
    TARE_TRY(intern(&index, w, table, dialect, bytes));
    put_varint(out, index);
    return TARE_OK;
}

static tare_status string_index(size_t *index, struct writer *w, const char *text, size_t size) {
    struct tare_strbuf bytes = { 0 };
    tare_strbuf_append(&bytes, text, size);
    tare_strbuf_putc(&bytes, 0);
    return intern(index, w, &w->strings, BUILTIN, &bytes);
}

static tare_status put_string(struct tare_strbuf *out, struct writer *w, const char *text, size_t size) {
    size_t index = 0;
    TARE_TRY(string_index(&index, w, text, size));
    put_varint(out, index);
    return TARE_OK;
}

/* ---- types ---- */

static tare_status put_type(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_type *type,
                            enum dialect dialect);
static tare_status put_attr(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_attr *attr,
                            enum dialect dialect);

static tare_status put_types(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_type_list *types) {
    put_varint(out, types->count);
    for (size_t i = 0; i < types->count; i++)
        TARE_TRY(put_type(out, w, types->items[i], VHLO));
    return TARE_OK;
}

static void put_scales(struct tare_strbuf *out, const struct tare_shlo_quantized *q) {
    for (size_t i = 0; i < q->count; i++) {
        int64_t bits;
        memcpy(&bits, &q->scales[i], sizeof bits);
        put_signed(out, bits);
    }
}

/* Per axis the range comes before the scales, per tensor after them. */
static tare_status encode_quantized(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_type *type) {
    const struct tare_shlo_quantized *q = type->quantized;
    const bool per_axis = type->kind == TARE_SHLO_QUANTIZED_PER_AXIS;
    put_varint(out, q->is_signed);
    TARE_TRY(put_type(out, w, q->storage, VHLO));
    TARE_TRY(put_type(out, w, q->expressed, VHLO));
    if (per_axis) {
        put_varint(out, (uint64_t)q->axis);
    } else {
        put_scales(out, q);
        put_signed(out, q->zero_points[0]);
    }
    put_signed(out, q->minimum);
    put_signed(out, q->maximum);
    if (!per_axis) return TARE_OK;
    put_varint(out, q->count);
    put_scales(out, q);
    put_varint(out, q->count);
    put_numbers(out, q->zero_points, q->count);
    return TARE_OK;
}

static tare_status encode_vhlo_type(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_type *type) {
    put_varint(out, type->kind == TARE_SHLO_TENSOR && type->encoding ? TARE_SHLO_TENSOR_ENCODED : type->kind);
    switch (type->kind) {
    case TARE_SHLO_COMPLEX:
    case TARE_SHLO_UNRANKED:
        return put_type(out, w, type->element, VHLO);
    case TARE_SHLO_FUNCTION:
        TARE_TRY(put_types(out, w, &type->inputs));
        return put_types(out, w, &type->outputs);
    case TARE_SHLO_TENSOR:
    case TARE_SHLO_BUFFER:
        if (type->encoding) TARE_TRY(put_attr(out, w, type->encoding, VHLO));
        put_varint(out, type->rank);
        put_numbers(out, type->dims, type->rank);
        return put_type(out, w, type->element, VHLO);
    case TARE_SHLO_TUPLE:
    case TARE_SHLO_FUTURE:
        return put_types(out, w, &type->inputs);
    case TARE_SHLO_QUANTIZED:
    case TARE_SHLO_QUANTIZED_PER_AXIS:
        return encode_quantized(out, w, type);
    default:
        return TARE_OK;
    }
}

/* Builtin attributes of modules are numbers of these types. */
static tare_status encode_builtin_type(struct tare_strbuf *out, const struct tare_shlo_type *type) {
    const int bits = tare_shlo_type_bits(type);
    switch (type->kind) {
    case TARE_SHLO_BF16:
        put_varint(out, TARE_MLIR_TYPE_BF16);
        return TARE_OK;
    case TARE_SHLO_F16:
        put_varint(out, TARE_MLIR_TYPE_F16);
        return TARE_OK;
    case TARE_SHLO_F32:
        put_varint(out, TARE_MLIR_TYPE_F32);
        return TARE_OK;
    case TARE_SHLO_F64:
        put_varint(out, TARE_MLIR_TYPE_F64);
        return TARE_OK;
    case TARE_SHLO_INDEX:
        put_varint(out, TARE_MLIR_TYPE_INDEX);
        return TARE_OK;
    default:
        break;
    }
    if (!bits || tare_shlo_type_is_float(type->kind))
        return TARE_FAIL(TARE_UNSUPPORTED, "a builtin attribute of a type that is not scalar");
    put_varint(out, TARE_MLIR_TYPE_INTEGER);
    put_varint(out,
               (uint64_t)bits << 2 | (tare_shlo_kind_is_unsigned(type->kind) && type->kind != TARE_SHLO_BOOL ? 2 : 0));
    return TARE_OK;
}

static tare_status put_type(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_type *type,
                            enum dialect dialect) {
    struct tare_strbuf bytes = { 0 };
    const tare_status status = dialect == VHLO ? encode_vhlo_type(&bytes, w, type) : encode_builtin_type(&bytes, type);
    return put_interned(out, w, &w->types, dialect, &bytes, status);
}

/* ---- attributes ---- */

/* Up to 8 bits as one byte, up to 64 as a signed varint of the zero-extended word. */
static void put_bits(struct tare_strbuf *out, uint64_t value, int bits) {
    if (bits < 64) value &= (UINT64_C(1) << bits) - 1;
    if (bits <= 8)
        tare_strbuf_putc(out, (char)value);
    else
        put_signed(out, (int64_t)value);
}

static tare_status put_items(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_attr *attr,
                             size_t per_entry, enum dialect dialect) {
    put_varint(out, attr->n_items / per_entry);
    for (size_t i = 0; i < attr->n_items; i++)
        TARE_TRY(put_attr(out, w, attr->items[i], dialect));
    return TARE_OK;
}

static tare_status encode_number(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_attr *attr,
                                 enum dialect dialect) {
    TARE_TRY(put_type(out, w, attr->type, dialect));
    put_bits(out, attr->bits, tare_shlo_type_bits(attr->type));
    return TARE_OK;
}

static tare_status encode_alias(struct tare_strbuf *out, const struct tare_shlo_attr *attr) {
    put_varint(out, attr->n_first);
    put_numbers(out, attr->numbers, attr->n_first);
    put_signed(out, (int64_t)attr->bits);
    put_varint(out, attr->n_numbers - attr->n_first);
    put_numbers(out, attr->numbers + attr->n_first, attr->n_numbers - attr->n_first);
    return TARE_OK;
}

static tare_status encode_vhlo_attr(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_attr *attr) {
    const int code = attr->kind == TARE_SHLO_ATTR_ENUM ? attr->code : tare_vhlo_code_of(attr->kind);
    if (!code) return TARE_FAIL(TARE_UNSUPPORTED, "an attribute that VHLO does not have");
    put_varint(out, (uint64_t)code);
    switch (attr->kind) {
    case TARE_SHLO_ATTR_ARRAY:
        return put_items(out, w, attr, 1, VHLO);
    case TARE_SHLO_ATTR_DICTIONARY:
        return put_items(out, w, attr, 2, VHLO);
    case TARE_SHLO_ATTR_BOOL:
    case TARE_SHLO_ATTR_ENUM:
        put_varint(out, attr->bits);
        return TARE_OK;
    case TARE_SHLO_ATTR_INTEGER:
    case TARE_SHLO_ATTR_FLOAT:
        return encode_number(out, w, attr, VHLO);
    case TARE_SHLO_ATTR_STRING:
        return put_string(out, w, attr->text.data, attr->text.size);
    case TARE_SHLO_ATTR_TENSOR:
        TARE_TRY(put_type(out, w, attr->type, VHLO));
        put_varint(out, attr->size);
        return TARE_OK; /* the elements follow */
    case TARE_SHLO_ATTR_TYPE:
        return put_type(out, w, attr->type, VHLO);
    case TARE_SHLO_ATTR_ALIAS:
        return encode_alias(out, attr);
    case TARE_SHLO_ATTR_EXTENSIONS:
        put_varint(out, attr->n_numbers);
        put_numbers(out, attr->numbers, attr->n_numbers);
        return TARE_OK;
    case TARE_SHLO_ATTR_ACCURACY:
        put_numbers(out, attr->numbers, 3);
        return put_attr(out, w, attr->items[0], VHLO);
    default:
        return TARE_FAIL(TARE_UNSUPPORTED, "attributes of Shardy are not written");
    }
}

static tare_status encode_builtin_attr(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_attr *attr) {
    switch (attr->kind) {
    case TARE_SHLO_ATTR_ARRAY:
        put_varint(out, TARE_MLIR_ATTR_ARRAY);
        return put_items(out, w, attr, 1, BUILTIN);
    case TARE_SHLO_ATTR_DICTIONARY:
        put_varint(out, TARE_MLIR_ATTR_DICTIONARY);
        return put_items(out, w, attr, 2, BUILTIN);
    case TARE_SHLO_ATTR_STRING:
        put_varint(out, TARE_MLIR_ATTR_STRING);
        return put_string(out, w, attr->text.data, attr->text.size);
    case TARE_SHLO_ATTR_UNIT:
        put_varint(out, TARE_MLIR_ATTR_UNIT);
        return TARE_OK;
    case TARE_SHLO_ATTR_INTEGER:
    case TARE_SHLO_ATTR_FLOAT:
        put_varint(out, attr->kind == TARE_SHLO_ATTR_FLOAT ? TARE_MLIR_ATTR_FLOAT : TARE_MLIR_ATTR_INTEGER);
        return encode_number(out, w, attr, BUILTIN);
    default:
        return TARE_FAIL(TARE_UNSUPPORTED, "a builtin attribute of a kind that is not written");
    }
}

/* Is the attribute builtin although VHLO ops have it? VHLO has no symbols and no units. */
static enum dialect dialect_of(const struct tare_shlo_attr *attr, enum dialect dialect) {
    return attr->kind == TARE_SHLO_ATTR_UNIT ? BUILTIN : dialect;
}

static tare_status attr_index(size_t *index, struct writer *w, const struct tare_shlo_attr *attr,
                              enum dialect dialect) {
    const bool is_constant = attr->kind == TARE_SHLO_ATTR_TENSOR;
    const uintptr_t known =
        is_constant ? (uintptr_t)tare_map_get_n(&w->attrs.by_address, (const char *)&attr, sizeof attr) : 0;
    struct tare_strbuf bytes = { 0 };
    if (known) {
        *index = known - 1;
        return TARE_OK;
    }
    dialect = dialect_of(attr, dialect);
    tare_status status = dialect == VHLO ? encode_vhlo_attr(&bytes, w, attr) : encode_builtin_attr(&bytes, w, attr);
    if (status != TARE_OK) {
        tare_strbuf_free(&bytes);
        return status;
    }
    if (!is_constant) return intern(index, w, &w->attrs, dialect, &bytes);
    struct entry entry = { .size = bytes.size, .elements = attr->data, .n_elements = attr->size, .dialect = dialect };
    const struct tare_shlo_attr **key = TARE_NEW(&w->arena, const struct tare_shlo_attr *);
    entry.bytes = tare_arena_strndup(&w->arena, bytes.data, bytes.size);
    tare_strbuf_free(&bytes);
    if (!entry.bytes || !key) return TARE_NO_MEMORY;
    *key = attr;
    TARE_TRY(add_entry(index, &w->attrs, entry));
    return tare_map_set_n(&w->attrs.by_address, (const char *)key, sizeof *key, (void *)(uintptr_t)(*index + 1))
               ? TARE_OK
               : TARE_NO_MEMORY;
}

static tare_status put_attr(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_attr *attr,
                            enum dialect dialect) {
    size_t index = 0;
    TARE_TRY(attr_index(&index, w, attr, dialect));
    put_varint(out, index);
    return TARE_OK;
}

/* The discardable attributes of an op: a builtin dictionary whose values are those of the op's dialect. */
static tare_status put_extra(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_attr *extra,
                             enum dialect dialect) {
    struct tare_strbuf bytes = { 0 };
    tare_status status = TARE_OK;
    put_varint(&bytes, TARE_MLIR_ATTR_DICTIONARY);
    put_varint(&bytes, extra->n_items / 2);
    for (size_t i = 0; i < extra->n_items && status == TARE_OK; i++)
        status = put_attr(&bytes, w, extra->items[i], i % 2 ? dialect : BUILTIN);
    return put_interned(out, w, &w->attrs, BUILTIN, &bytes, status);
}

/* A location is a place in a file, which every version of MLIR's bytecode has: its name, line and column 1. */
static tare_status put_location(struct tare_strbuf *out, struct writer *w, const char *location) {
    struct tare_strbuf bytes = { 0 }, name = { 0 };
    tare_status status = TARE_OK;
    put_varint(&bytes, location ? TARE_MLIR_ATTR_FILE_LOCATION : TARE_MLIR_ATTR_UNKNOWN_LOCATION);
    if (location) {
        put_varint(&name, TARE_MLIR_ATTR_STRING);
        status = put_string(&name, w, location, strlen(location));
        status = put_interned(&bytes, w, &w->attrs, BUILTIN, &name, status);
        put_varint(&bytes, 1);
        put_varint(&bytes, 1);
    }
    return put_interned(out, w, &w->attrs, BUILTIN, &bytes, status);
}

/* ---- ops ---- */

static tare_status put_op(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_op *op, size_t first);

static void put_section(struct tare_strbuf *out, int id, const struct tare_strbuf *content) {
    tare_strbuf_putc(out, (char)id);
    put_varint(out, content->size);
    tare_strbuf_append(out, content->data, content->size);
    if (content->failed) out->failed = true;
}

static size_t values_of(const struct tare_shlo_block *block) {
    size_t count = block->n_args;
    for (size_t i = 0; i < block->n_ops; i++)
        count += block->ops[i].n_results;
    return count;
}

/* A region of one block, whose values are numbered from `first` on. */
static tare_status put_region(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_block *block,
                              size_t first) {
    const size_t count = values_of(block);
    size_t next = first;
    put_varint(out, 1);
    put_varint(out, count);
    put_flagged(out, block->n_ops, block->n_args > 0);
    if (block->n_args) {
        put_varint(out, block->n_args);
        for (size_t i = 0; i < block->n_args; i++) {
            struct tare_strbuf type = { 0 };
            size_t index = 0;
            w->numbers[block->args[i].number] = next++;
            tare_status status = encode_vhlo_type(&type, w, block->args[i].type);
            if (status != TARE_OK) {
                tare_strbuf_free(&type);
                return status;
            }
            TARE_TRY(intern(&index, w, &w->types, VHLO, &type));
            put_flagged(out, index, false); /* no location */
        }
        tare_strbuf_putc(out, 0); /* no orders of uses */
    }
    for (size_t i = 0; i < block->n_ops; i++) {
        for (size_t k = 0; k < block->ops[i].n_results; k++)
            w->numbers[block->ops[i].results[k].number] = next++;
        TARE_TRY(put_op(out, w, &block->ops[i], first + count));
    }
    return TARE_OK;
}

/* The regions of functions and of the module begin a scope of their own, in a section; others continue after the
 * `first` numbers of their parents. */
static tare_status put_regions(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_op *op, size_t first) {
    const bool isolated = !op->def || tare_shlo_op_is(op, "func");
    struct tare_strbuf section = { 0 };
    tare_status status = TARE_OK;
    put_flagged(out, op->n_regions, isolated);
    for (size_t i = 0; i < op->n_regions && status == TARE_OK; i++)
        status = put_region(isolated ? &section : out, w, &op->regions[i], isolated ? 0 : first);
    if (isolated) put_section(out, TARE_MLIR_SECTION_IR, &section);
    tare_strbuf_free(&section);
    return status;
}

/* The module's name and visibility, which are absent, or the attributes of a VHLO op in the order of their names. */
static tare_status put_properties(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_op *op) {
    struct tare_strbuf bytes = { 0 };
    tare_status status = TARE_OK;
    if (!op->def) {
        put_varint(&bytes, 0);
        put_varint(&bytes, 0);
    }
    for (size_t i = 0; op->def && i < op->def->n_attrs && status == TARE_OK; i++)
        status = put_attr(&bytes, w, op->attrs[i], VHLO);
    return put_interned(out, w, &w->properties, BUILTIN, &bytes, status);
}

static tare_status put_op_name(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_op *op) {
    struct tare_strbuf name = { 0 };
    size_t index = 0;
    tare_strbuf_puts(&name, strchr(op->name, '.') + 1);
    const tare_status status = string_index(&index, w, name.data, name.size);
    return put_interned(out, w, &w->ops, op->def ? VHLO : BUILTIN, &name, status);
}

static tare_status check_op(const struct writer *w, const struct tare_shlo_op *op) {
    if (!op->def)
        return strcmp(op->name, "builtin.module") == 0
                   ? TARE_OK
                   : TARE_FAIL(TARE_UNSUPPORTED, "op %s: the dialect is not written", op->name);
    if (w->version < op->def->since || (op->def->until && w->version > op->def->until))
        return TARE_FAIL(TARE_UNSUPPORTED, "op %s: not in VHLO %d.%d.%d", op->name, w->version / 1000000,
                         w->version / 1000 % 1000, w->version % 1000);
    return TARE_OK;
}

/* `first`: the number after those of the regions around the op. */
static tare_status put_op(struct tare_strbuf *out, struct writer *w, const struct tare_shlo_op *op, size_t first) {
    const bool has_properties = !op->def || op->def->n_attrs;
    TARE_TRY(check_op(w, op));
    TARE_TRY(put_op_name(out, w, op));
    tare_strbuf_putc(out, (char)((op->extra ? TARE_MLIR_HAS_ATTRS : 0) | (op->n_results ? TARE_MLIR_HAS_RESULTS : 0) |
                                 (op->n_operands ? TARE_MLIR_HAS_OPERANDS : 0) |
                                 (op->n_regions ? TARE_MLIR_HAS_REGIONS : 0) |
                                 (has_properties ? TARE_MLIR_HAS_PROPERTIES : 0)));
    TARE_TRY(put_location(out, w, op->location));
    if (op->extra) TARE_TRY(put_extra(out, w, op->extra, op->def ? VHLO : BUILTIN));
    if (has_properties) TARE_TRY(put_properties(out, w, op));
    if (op->n_results) put_varint(out, op->n_results);
    for (size_t i = 0; i < op->n_results; i++)
        TARE_TRY(put_type(out, w, op->results[i].type, VHLO));
    if (op->n_operands) put_varint(out, op->n_operands);
    for (size_t i = 0; i < op->n_operands; i++)
        put_varint(out, w->numbers[op->operands[i]->number]);
    return op->n_regions ? put_regions(out, w, op, first) : TARE_OK;
}

/* ---- the file ---- */

static void put_strings(struct tare_strbuf *out, const struct table *strings) {
    struct tare_strbuf section = { 0 };
    put_varint(&section, strings->count);
    for (size_t i = strings->count; i-- > 0;)
        put_varint(&section, strings->entries[i].size);
    for (size_t i = 0; i < strings->count; i++)
        tare_strbuf_append(&section, strings->entries[i].bytes, strings->entries[i].size);
    put_section(out, TARE_MLIR_SECTION_STRINGS, &section);
    tare_strbuf_free(&section);
}

/* Entries in groups of one dialect. */
static void put_groups(struct tare_strbuf *out, const struct table *table,
                       void (*put)(struct tare_strbuf *out, struct writer *w, const struct entry *entry),
                       struct writer *w) {
    for (size_t i = 0; i < table->count;) {
        size_t end = i;
        while (end < table->count && table->entries[end].dialect == table->entries[i].dialect)
            end++;
        put_varint(out, table->entries[i].dialect);
        put_varint(out, end - i);
        for (; i < end; i++)
            put(out, w, &table->entries[i]);
    }
}

static void put_size(struct tare_strbuf *out, struct writer *w, const struct entry *entry) {
    (void)w;
    put_flagged(out, entry->size + entry->n_elements, true); /* coded by the dialect */
}

static void put_registered_name(struct tare_strbuf *out, struct writer *w, const struct entry *entry) {
    size_t index = 0;
    if (string_index(&index, w, entry->bytes, entry->size) != TARE_OK) out->failed = true;
    put_flagged(out, index, true);
}

static void put_dialects(struct tare_strbuf *out, struct writer *w) {
    struct tare_strbuf section = { 0 };
    put_varint(&section, N_DIALECTS);
    for (int i = 0; i < N_DIALECTS; i++) {
        size_t index = 0;
        if (string_index(&index, w, dialects[i], strlen(dialects[i])) != TARE_OK) section.failed = true;
        put_flagged(&section, index, false); /* no version */
    }
    put_varint(&section, w->ops.count);
    put_groups(&section, &w->ops, put_registered_name, w);
    put_section(out, TARE_MLIR_SECTION_DIALECTS, &section);
    tare_strbuf_free(&section);
}

static void put_offsets(struct tare_strbuf *out, struct writer *w) {
    struct tare_strbuf section = { 0 };
    put_varint(&section, w->attrs.count);
    put_varint(&section, w->types.count);
    put_groups(&section, &w->attrs, put_size, w);
    put_groups(&section, &w->types, put_size, w);
    put_section(out, TARE_MLIR_SECTION_OFFSETS, &section);
    tare_strbuf_free(&section);
}

static void put_data(struct tare_strbuf *out, const struct writer *w) {
    const struct table *const tables[] = { &w->attrs, &w->types };
    uint64_t size = 0;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < tables[t]->count; i++)
            size += tables[t]->entries[i].size + tables[t]->entries[i].n_elements;
    tare_strbuf_putc(out, TARE_MLIR_SECTION_DATA);
    put_varint(out, size);
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < tables[t]->count; i++) {
            tare_strbuf_append(out, tables[t]->entries[i].bytes, tables[t]->entries[i].size);
            tare_strbuf_append(out, tables[t]->entries[i].elements, tables[t]->entries[i].n_elements);
        }
}

static void put_property_table(struct tare_strbuf *out, const struct table *properties) {
    struct tare_strbuf section = { 0 };
    put_varint(&section, properties->count);
    for (size_t i = 0; i < properties->count; i++) {
        put_varint(&section, properties->entries[i].size);
        tare_strbuf_append(&section, properties->entries[i].bytes, properties->entries[i].size);
    }
    put_section(out, TARE_MLIR_SECTION_PROPERTIES, &section);
    tare_strbuf_free(&section);
}

static void put_header(struct tare_strbuf *out, int version) {
    tare_strbuf_append(out, tare_mlir_magic, sizeof tare_mlir_magic);
    put_varint(out, TARE_MLIR_NEWEST_BYTECODE);
    tare_strbuf_printf(out, "StableHLO_v%d.%d.%d", version / 1000000, version / 1000 % 1000, version % 1000);
    tare_strbuf_putc(out, 0);
}

static tare_status put_file(struct tare_strbuf *out, struct writer *w) {
    struct tare_strbuf resources = { 0 };
    put_flagged(&w->ir, 1, false); /* a block of one op without arguments */
    TARE_TRY(put_op(&w->ir, w, w->module->root, 0));
    TARE_TRY(tare_strbuf_status(&w->ir));
    put_header(out, w->version);
    put_dialects(out, w);
    put_offsets(out, w);
    put_data(out, w);
    put_section(out, TARE_MLIR_SECTION_IR, &w->ir);
    put_varint(&resources, 0); /* no groups */
    put_section(out, TARE_MLIR_SECTION_RESOURCE_OFFSETS, &resources);
    tare_strbuf_free(&resources);
    put_section(out, TARE_MLIR_SECTION_RESOURCES, &resources);
    put_strings(out, &w->strings); /* last: the sections before add to them */
    put_property_table(out, &w->properties);
    return tare_strbuf_status(out);
}

static void free_table(struct table *table) {
    tare_free(table->entries);
    tare_map_free(&table->by_bytes);
    tare_map_free(&table->by_address);
}

tare_status tare_shlo_write(struct tare_strbuf *out, const struct tare_shlo_module *module, int version) {
    struct writer w = { .module = module,
                        .version = version,
                        .numbers = tare_calloc(module->n_values + 1, sizeof *w.numbers) };
    const tare_status status = w.numbers ? put_file(out, &w) : TARE_NO_MEMORY;
    tare_free(w.numbers);
    tare_strbuf_free(&w.ir);
    for (struct table *const *table =
             (struct table *const[]){ &w.strings, &w.attrs, &w.types, &w.ops, &w.properties, NULL };
         *table; table++)
        free_table(*table);
    tare_arena_free(&w.arena);
    return status;
}

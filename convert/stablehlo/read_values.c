/* Decoding types and attributes, which contain each other: VHLO's, and the builtin ones that other dialects use next to
 * them. Attributes of other dialects and locations stay opaque. */
#include "convert/stablehlo/codes.h"
#include "convert/stablehlo/reader.h"

#include <string.h>

/* ---- types ---- */

/* The next index of `in` and its type. */
static tare_status shlo_next_type(const struct tare_shlo_type **out, struct tare_shlo_reader *reader,
                                  struct tare_mlir_input *in) {
    size_t index;
    TARE_TRY(tare_mlir_index(&index, in, reader->n_types, "type"));
    return tare_shlo_read_type(out, reader, index);
}

tare_status tare_shlo_next_types(struct tare_shlo_type_list *out, struct tare_shlo_reader *reader,
                                 struct tare_mlir_input *in) {
    TARE_TRY(tare_mlir_count(&out->count, in, 1));
    out->items = TARE_NEW_ARRAY(reader->arena, const struct tare_shlo_type *, out->count);
    if (out->count && !out->items) return TARE_NO_MEMORY;
    for (size_t i = 0; i < out->count; i++)
        TARE_TRY(shlo_next_type(&out->items[i], reader, in));
    return TARE_OK;
}

/* A count and that many signed integers. */
static tare_status shlo_next_numbers(const int64_t **out, size_t *count, struct tare_shlo_reader *reader,
                                     struct tare_mlir_input *in) {
    int64_t *numbers;
    TARE_TRY(tare_mlir_count(count, in, 1));
    numbers = TARE_NEW_ARRAY(reader->arena, int64_t, *count + 1);
    if (!numbers) return TARE_NO_MEMORY;
    for (size_t i = 0; i < *count; i++)
        TARE_TRY(tare_mlir_signed(&numbers[i], in));
    *out = numbers;
    return TARE_OK;
}

static tare_status read_dims(struct tare_shlo_type *type, struct tare_shlo_reader *reader, struct tare_mlir_input *in) {
    TARE_TRY(shlo_next_numbers(&type->dims, &type->rank, reader, in));
    for (size_t i = 0; i < type->rank; i++)
        if (type->dims[i] < 0 && type->dims[i] != TARE_SHLO_DYNAMIC)
            return tare_mlir_corrupt(in, "a negative dimension");
    return shlo_next_type(&type->element, reader, in);
}

static tare_status read_scales(struct tare_shlo_quantized *q, struct tare_shlo_reader *reader,
                               struct tare_mlir_input *in, bool list) {
    const int64_t *bits;
    size_t zero_points = 1;
    if (list) {
        TARE_TRY(shlo_next_numbers(&bits, &q->count, reader, in));
    } else {
        int64_t *one = TARE_NEW(reader->arena, int64_t);
        if (!one) return TARE_NO_MEMORY;
        TARE_TRY(tare_mlir_signed(one, in));
        bits = one;
        q->count = 1;
    }
    double *scales = TARE_NEW_ARRAY(reader->arena, double, q->count + 1);
    if (!scales) return TARE_NO_MEMORY;
    for (size_t i = 0; i < q->count; i++)
        memcpy(&scales[i], &bits[i], sizeof *scales);
    q->scales = scales;
    if (list) {
        TARE_TRY(shlo_next_numbers(&q->zero_points, &zero_points, reader, in));
    } else {
        int64_t *zero = TARE_NEW(reader->arena, int64_t);
        if (!zero) return TARE_NO_MEMORY;
        TARE_TRY(tare_mlir_signed(zero, in));
        q->zero_points = zero;
    }
    return zero_points == q->count ? TARE_OK : tare_mlir_corrupt(in, "as many zero points as scales are expected");
}

/* Per axis the range comes before the scales, per tensor after them. */
static tare_status read_quantized(struct tare_shlo_type *type, struct tare_shlo_reader *reader,
                                  struct tare_mlir_input *in) {
    const bool per_axis = type->kind == TARE_SHLO_QUANTIZED_PER_AXIS;
    struct tare_shlo_quantized *q = TARE_NEW(reader->arena, struct tare_shlo_quantized);
    uint64_t flags, axis;
    if (!q) return TARE_NO_MEMORY;
    type->quantized = q;
    q->axis = -1;
    TARE_TRY(tare_mlir_varint(&flags, in));
    q->is_signed = flags & 1;
    TARE_TRY(shlo_next_type(&q->storage, reader, in));
    TARE_TRY(shlo_next_type(&q->expressed, reader, in));
    if (per_axis) {
        TARE_TRY(tare_mlir_varint(&axis, in));
        if (axis > INT32_MAX) return tare_mlir_corrupt(in, "a quantized dimension out of range");
        q->axis = (int64_t)axis;
    } else {
        TARE_TRY(read_scales(q, reader, in, false));
    }
    TARE_TRY(tare_mlir_signed(&q->minimum, in));
    TARE_TRY(tare_mlir_signed(&q->maximum, in));
    return per_axis ? read_scales(q, reader, in, true) : TARE_OK;
}

static tare_status read_vhlo_type(struct tare_shlo_type *type, struct tare_shlo_reader *reader,
                                  struct tare_mlir_input *in) {
    uint64_t code;
    TARE_TRY(tare_mlir_varint(&code, in));
    if (code >= TARE_SHLO_N_TYPES)
        return TARE_FAIL(TARE_UNSUPPORTED, "unknown VHLO type code %llu at byte %zu", (unsigned long long)code, in->at);
    type->kind = (enum tare_shlo_type_kind)code;
    switch (type->kind) {
    case TARE_SHLO_COMPLEX:
    case TARE_SHLO_UNRANKED:
        return shlo_next_type(&type->element, reader, in);
    case TARE_SHLO_FUNCTION:
        TARE_TRY(tare_shlo_next_types(&type->inputs, reader, in));
        return tare_shlo_next_types(&type->outputs, reader, in);
    case TARE_SHLO_TENSOR_ENCODED:
        type->kind = TARE_SHLO_TENSOR;
        TARE_TRY(tare_shlo_next_attr(&type->encoding, reader, in));
        return read_dims(type, reader, in);
    case TARE_SHLO_TENSOR:
    case TARE_SHLO_BUFFER:
        return read_dims(type, reader, in);
    case TARE_SHLO_TUPLE:
    case TARE_SHLO_FUTURE:
        return tare_shlo_next_types(&type->inputs, reader, in);
    case TARE_SHLO_QUANTIZED:
    case TARE_SHLO_QUANTIZED_PER_AXIS:
        return read_quantized(type, reader, in);
    default:
        return TARE_OK;
    }
}

/* varint width << 2 | signedness; signless integers count as signed ones, i1 as bool. */
static tare_status read_integer(struct tare_shlo_type *type, struct tare_mlir_input *in) {
    static const uint8_t widths[] = { 2, 4, 8, 16, 32, 64 };
    static const uint8_t kinds[2][6] = {
        { TARE_SHLO_SI2, TARE_SHLO_SI4, TARE_SHLO_SI8, TARE_SHLO_SI16, TARE_SHLO_SI32, TARE_SHLO_SI64 },
        { TARE_SHLO_UI2, TARE_SHLO_UI4, TARE_SHLO_UI8, TARE_SHLO_UI16, TARE_SHLO_UI32, TARE_SHLO_UI64 },
    };
    uint64_t value;
    TARE_TRY(tare_mlir_varint(&value, in));
    if (value >> 2 == 1) {
        type->kind = TARE_SHLO_BOOL;
        return TARE_OK;
    }
    for (size_t i = 0; i < sizeof widths; i++)
        if (value >> 2 == widths[i]) {
            type->kind = kinds[(value & 3) == 2][i];
            return TARE_OK;
        }
    return TARE_FAIL(TARE_UNSUPPORTED, "an integer type of %llu bits at byte %zu", (unsigned long long)(value >> 2),
                     in->at);
}

static tare_status read_builtin_type(struct tare_shlo_type *type, struct tare_shlo_reader *reader,
                                     struct tare_mlir_input *in) {
    static const uint8_t scalars[] = {
        [TARE_MLIR_TYPE_INDEX] = TARE_SHLO_INDEX, [TARE_MLIR_TYPE_BF16] = TARE_SHLO_BF16,
        [TARE_MLIR_TYPE_F16] = TARE_SHLO_F16,     [TARE_MLIR_TYPE_F32] = TARE_SHLO_F32,
        [TARE_MLIR_TYPE_F64] = TARE_SHLO_F64,     [TARE_MLIR_TYPE_NONE] = TARE_SHLO_NONE
    };
    uint64_t code;
    TARE_TRY(tare_mlir_varint(&code, in));
    switch (code) {
    case TARE_MLIR_TYPE_INTEGER:
        return read_integer(type, in);
    case TARE_MLIR_TYPE_COMPLEX:
        type->kind = TARE_SHLO_COMPLEX;
        return shlo_next_type(&type->element, reader, in);
    case TARE_MLIR_TYPE_FUNCTION:
        type->kind = TARE_SHLO_FUNCTION;
        TARE_TRY(tare_shlo_next_types(&type->inputs, reader, in));
        return tare_shlo_next_types(&type->outputs, reader, in);
    case TARE_MLIR_TYPE_TUPLE:
        type->kind = TARE_SHLO_TUPLE;
        return tare_shlo_next_types(&type->inputs, reader, in);
    case TARE_MLIR_TYPE_TENSOR_ENCODED:
        TARE_TRY(tare_shlo_next_attr(&type->encoding, reader, in)); /* fallthrough */
    case TARE_MLIR_TYPE_TENSOR:
        type->kind = TARE_SHLO_TENSOR;
        return read_dims(type, reader, in);
    default:
        if (code >= sizeof scalars || !scalars[code])
            return TARE_FAIL(TARE_UNSUPPORTED, "unknown builtin type code %llu at byte %zu", (unsigned long long)code,
                             in->at);
        type->kind = (enum tare_shlo_type_kind)scalars[code];
        return TARE_OK;
    }
}

static tare_status decode_type(struct tare_shlo_type *type, struct tare_shlo_reader *reader,
                               const struct tare_mlir_entry *entry) {
    struct tare_mlir_input in = { reader->module->data, entry->at, entry->end };
    const char *dialect = reader->dialects[entry->dialect];
    if (!entry->custom) return TARE_FAIL(TARE_UNSUPPORTED, "a type as assembly text at byte %zu", entry->at);
    if (strcmp(dialect, "vhlo") == 0)
        TARE_TRY(read_vhlo_type(type, reader, &in));
    else if (strcmp(dialect, "builtin") == 0)
        TARE_TRY(read_builtin_type(type, reader, &in));
    else
        return TARE_FAIL(TARE_UNSUPPORTED, "a type of dialect '%s' at byte %zu (expected vhlo or builtin)", dialect,
                         entry->at);
    return tare_mlir_at_end(&in, "type");
}

tare_status tare_shlo_read_type(const struct tare_shlo_type **out, struct tare_shlo_reader *reader, size_t index) {
    struct tare_mlir_entry *entry = &reader->type_entries[index];
    struct tare_shlo_type *type;
    if (!reader->types[index]) {
        if (entry->busy || reader->depth >= TARE_SHLO_MAX_DEPTH)
            return TARE_FAIL(TARE_CORRUPT, "type %zu at byte %zu contains itself or is nested too deeply", index,
                             entry->at);
        type = TARE_NEW(reader->arena, struct tare_shlo_type);
        if (!type) return TARE_NO_MEMORY;
        entry->busy = true;
        reader->depth++;
        tare_status status = decode_type(type, reader, entry);
        reader->depth--;
        entry->busy = false;
        TARE_TRY(status);
        reader->types[index] = type;
    }
    *out = reader->types[index];
    return TARE_OK;
}

/* ---- attributes ---- */

/* The attribute with this index. */
static tare_status read_attr(const struct tare_shlo_attr **out, struct tare_shlo_reader *reader, size_t index);

tare_status tare_shlo_next_attr(const struct tare_shlo_attr **out, struct tare_shlo_reader *reader,
                                struct tare_mlir_input *in) {
    size_t index;
    TARE_TRY(tare_mlir_index(&index, in, reader->n_attrs, "attribute"));
    return read_attr(out, reader, index);
}

static tare_status shlo_next_text(struct tare_shlo_text *out, struct tare_shlo_reader *reader,
                                  struct tare_mlir_input *in) {
    size_t index;
    TARE_TRY(tare_mlir_index(&index, in, reader->n_strings, "string"));
    *out = reader->strings[index];
    return TARE_OK;
}

static tare_status make_items(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader, size_t count) {
    attr->items = TARE_NEW_ARRAY(reader->arena, const struct tare_shlo_attr *, count);
    attr->n_items = count;
    return count && !attr->items ? TARE_NO_MEMORY : TARE_OK;
}

static tare_status read_items(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader, struct tare_mlir_input *in,
                              size_t per_entry) {
    size_t count;
    TARE_TRY(tare_mlir_count(&count, in, per_entry));
    TARE_TRY(make_items(attr, reader, count * per_entry));
    for (size_t i = 0; i < attr->n_items; i++) {
        TARE_TRY(tare_shlo_next_attr(&attr->items[i], reader, in));
        if (per_entry == 2 && i % 2 == 0 && attr->items[i]->kind != TARE_SHLO_ATTR_STRING)
            return tare_mlir_corrupt(in, "a dictionary key is not a string");
    }
    return TARE_OK;
}

/* Up to 8 bits as one byte, up to 64 as a signed varint of the zero-extended word. */
static tare_status read_bits(uint64_t *out, struct tare_mlir_input *in, int bits) {
    uint8_t byte;
    int64_t word;
    if (bits <= 0) return tare_mlir_corrupt(in, "a number whose type is not scalar");
    if (bits <= 8) {
        TARE_TRY(tare_mlir_byte(&byte, in));
        word = byte;
    } else {
        TARE_TRY(tare_mlir_signed(&word, in));
    }
    *out = bits < 64 ? (uint64_t)word & ((UINT64_C(1) << bits) - 1) : (uint64_t)word;
    return TARE_OK;
}

static tare_status read_number(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                               struct tare_mlir_input *in) {
    TARE_TRY(shlo_next_type(&attr->type, reader, in));
    const int bits = tare_shlo_type_bits(attr->type);
    if (tare_shlo_type_is_float(attr->type->kind) != (attr->kind == TARE_SHLO_ATTR_FLOAT))
        return tare_mlir_corrupt(in, "a number of the wrong type");
    TARE_TRY(read_bits(&attr->bits, in, bits));
    if (attr->kind == TARE_SHLO_ATTR_INTEGER && bits < 64 && !tare_shlo_kind_is_unsigned(attr->type->kind) &&
        attr->bits >> (bits - 1))
        attr->bits |= ~UINT64_C(0) << bits;
    return TARE_OK;
}

static tare_status read_enum(struct tare_shlo_attr *attr, struct tare_mlir_input *in, uint64_t code) {
    TARE_TRY(tare_mlir_varint(&attr->bits, in));
    if (attr->bits >= TARE_VHLO_MOST_ENUM_VALUES || !tare_vhlo_enums[code][attr->bits])
        return TARE_FAIL(TARE_UNSUPPORTED, "unknown enumeration value %llu at byte %zu", (unsigned long long)attr->bits,
                         in->at);
    attr->code = (int)code;
    attr->text.data = tare_vhlo_enums[code][attr->bits];
    attr->text.size = strlen(attr->text.data);
    return TARE_OK;
}

static tare_status read_tensor(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                               struct tare_mlir_input *in) {
    uint64_t size;
    TARE_TRY(shlo_next_type(&attr->type, reader, in));
    TARE_TRY(tare_mlir_varint(&size, in));
    TARE_TRY(tare_mlir_bytes(&attr->data, in, size));
    attr->size = (size_t)size;
    return tare_shlo_tensor_check(attr) ? TARE_OK : tare_mlir_corrupt(in, "a constant's size does not fit its type");
}

static tare_status read_alias(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                              struct tare_mlir_input *in) {
    const int64_t *outputs, *operands;
    int64_t operand, *all;
    size_t n_operands;
    TARE_TRY(shlo_next_numbers(&outputs, &attr->n_first, reader, in));
    TARE_TRY(tare_mlir_signed(&operand, in));
    TARE_TRY(shlo_next_numbers(&operands, &n_operands, reader, in));
    attr->n_numbers = attr->n_first + n_operands;
    all = TARE_NEW_ARRAY(reader->arena, int64_t, attr->n_numbers + 1);
    if (!all) return TARE_NO_MEMORY;
    memcpy(all, outputs, attr->n_first * sizeof *all);
    memcpy(all + attr->n_first, operands, n_operands * sizeof *all);
    attr->numbers = all;
    attr->bits = (uint64_t)operand;
    return TARE_OK;
}

/* `count` signed numbers without a stored count, into attr->numbers. */
static tare_status shlo_read_fixed(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                   struct tare_mlir_input *in, size_t count) {
    int64_t *numbers = TARE_NEW_ARRAY(reader->arena, int64_t, count);
    if (!numbers) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare_mlir_signed(&numbers[i], in));
    attr->numbers = numbers;
    attr->n_numbers = count;
    return TARE_OK;
}

/* `count` attributes without a stored count. */
static tare_status read_parts(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader, struct tare_mlir_input *in,
                              size_t count) {
    TARE_TRY(make_items(attr, reader, count));
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare_shlo_next_attr(&attr->items[i], reader, in));
    return TARE_OK;
}

/* name, then 0 or 1 and the sub axis. */
static tare_status read_axis_ref(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                 struct tare_mlir_input *in) {
    uint64_t present;
    TARE_TRY(make_items(attr, reader, 2));
    TARE_TRY(tare_shlo_next_attr(&attr->items[0], reader, in));
    TARE_TRY(tare_mlir_varint(&present, in));
    attr->n_items = present ? 2 : 1;
    return present ? tare_shlo_next_attr(&attr->items[1], reader, in) : TARE_OK;
}

/* axes, then index << 1 | 1 of the device ids, or 0. */
static tare_status read_mesh(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader, struct tare_mlir_input *in) {
    uint64_t index;
    bool present;
    TARE_TRY(make_items(attr, reader, 2));
    TARE_TRY(tare_shlo_next_attr(&attr->items[0], reader, in));
    TARE_TRY(tare_mlir_flagged(&index, &present, in));
    attr->n_items = present ? 2 : 1;
    if (!present) return TARE_OK;
    if (index >= reader->n_attrs) return tare_mlir_corrupt(in, "an attribute index out of range");
    return read_attr(&attr->items[1], reader, (size_t)index);
}

static tare_status read_accuracy(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                 struct tare_mlir_input *in) {
    TARE_TRY(shlo_read_fixed(attr, reader, in, 3));
    return read_parts(attr, reader, in, 1);
}

static tare_status read_mesh_axis(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                  struct tare_mlir_input *in) {
    TARE_TRY(read_parts(attr, reader, in, 1));
    return shlo_read_fixed(attr, reader, in, 1);
}

static tare_status read_bool(struct tare_shlo_attr *attr, struct tare_mlir_input *in) {
    TARE_TRY(tare_mlir_varint(&attr->bits, in));
    return attr->bits <= 1 ? TARE_OK : tare_mlir_corrupt(in, "a bool is neither 0 nor 1");
}

static tare_status read_vhlo_attr(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                  struct tare_mlir_input *in) {
    uint64_t code;
    TARE_TRY(tare_mlir_varint(&code, in));
    if (!code || code >= TARE_VHLO_N_ATTRS)
        return TARE_FAIL(TARE_UNSUPPORTED, "unknown VHLO attribute code %llu at byte %zu", (unsigned long long)code,
                         in->at);
    attr->kind = tare_vhlo_enums[code][1] ? TARE_SHLO_ATTR_ENUM : (enum tare_shlo_attr_kind)tare_vhlo_kinds[code];
    switch (attr->kind) {
    case TARE_SHLO_ATTR_ARRAY:
        return read_items(attr, reader, in, 1);
    case TARE_SHLO_ATTR_DICTIONARY:
        return read_items(attr, reader, in, 2);
    case TARE_SHLO_ATTR_BOOL:
        return read_bool(attr, in);
    case TARE_SHLO_ATTR_ENUM:
        return read_enum(attr, in, code);
    case TARE_SHLO_ATTR_INTEGER:
    case TARE_SHLO_ATTR_FLOAT:
        return read_number(attr, reader, in);
    case TARE_SHLO_ATTR_STRING:
        return shlo_next_text(&attr->text, reader, in);
    case TARE_SHLO_ATTR_TENSOR:
        return read_tensor(attr, reader, in);
    case TARE_SHLO_ATTR_TYPE:
        return shlo_next_type(&attr->type, reader, in);
    case TARE_SHLO_ATTR_ALIAS:
        return read_alias(attr, reader, in);
    case TARE_SHLO_ATTR_EXTENSIONS:
        return shlo_next_numbers(&attr->numbers, &attr->n_numbers, reader, in);
    case TARE_SHLO_ATTR_ACCURACY:
        return read_accuracy(attr, reader, in);
    case TARE_SHLO_ATTR_SUB_AXIS:
        return shlo_read_fixed(attr, reader, in, 2);
    case TARE_SHLO_ATTR_AXIS_REF:
        return read_axis_ref(attr, reader, in);
    case TARE_SHLO_ATTR_MESH_AXES:
        return read_parts(attr, reader, in, 2);
    case TARE_SHLO_ATTR_MESH_AXIS:
        return read_mesh_axis(attr, reader, in);
    case TARE_SHLO_ATTR_MESH:
        return read_mesh(attr, reader, in);
    default:
        return tare_mlir_corrupt(in, "an attribute of no known kind");
    }
}

static tare_status read_symbol(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                               struct tare_mlir_input *in) {
    const struct tare_shlo_attr *name;
    TARE_TRY(tare_shlo_next_attr(&name, reader, in));
    attr->kind = TARE_SHLO_ATTR_SYMBOL;
    attr->text = name->text;
    return name->kind == TARE_SHLO_ATTR_STRING ? TARE_OK : tare_mlir_corrupt(in, "a symbol's name is not a string");
}

static tare_status read_typed_string(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                     struct tare_mlir_input *in) {
    attr->kind = TARE_SHLO_ATTR_STRING;
    TARE_TRY(shlo_next_text(&attr->text, reader, in));
    return shlo_next_type(&attr->type, reader, in);
}

/* Kinds that no module attribute has (locations among them) stay opaque. */
static tare_status read_builtin_attr(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                                     struct tare_mlir_input *in) {
    const size_t start = in->at;
    uint64_t code;
    TARE_TRY(tare_mlir_varint(&code, in));
    switch (code) {
    case TARE_MLIR_ATTR_ARRAY:
        attr->kind = TARE_SHLO_ATTR_ARRAY;
        return read_items(attr, reader, in, 1);
    case TARE_MLIR_ATTR_DICTIONARY:
        attr->kind = TARE_SHLO_ATTR_DICTIONARY;
        return read_items(attr, reader, in, 2);
    case TARE_MLIR_ATTR_STRING:
        attr->kind = TARE_SHLO_ATTR_STRING;
        return shlo_next_text(&attr->text, reader, in);
    case TARE_MLIR_ATTR_STRING_TYPED:
        return read_typed_string(attr, reader, in);
    case TARE_MLIR_ATTR_SYMBOL:
        return read_symbol(attr, reader, in);
    case TARE_MLIR_ATTR_TYPE:
        attr->kind = TARE_SHLO_ATTR_TYPE;
        return shlo_next_type(&attr->type, reader, in);
    case TARE_MLIR_ATTR_UNIT:
        attr->kind = TARE_SHLO_ATTR_UNIT;
        return TARE_OK;
    case TARE_MLIR_ATTR_INTEGER:
        attr->kind = TARE_SHLO_ATTR_INTEGER;
        return read_number(attr, reader, in);
    case TARE_MLIR_ATTR_FLOAT:
        attr->kind = TARE_SHLO_ATTR_FLOAT;
        return read_number(attr, reader, in);
    case TARE_MLIR_ATTR_DENSE:
        attr->kind = TARE_SHLO_ATTR_TENSOR;
        return read_tensor(attr, reader, in);
    default:
        attr->kind = TARE_SHLO_ATTR_OPAQUE;
        attr->data = in->data + start;
        attr->size = in->end - start;
        in->at = in->end;
        return TARE_OK;
    }
}

/* A named location has its name first, a call site the location of the callee. */
static const char *name_of_location(struct tare_shlo_reader *reader, uint64_t index, int depth) {
    enum { MOST = 8 };
    const struct tare_shlo_attr *name;
    uint64_t code, inner;
    if (index >= reader->n_attrs || depth == MOST) return NULL;
    const struct tare_mlir_entry *entry = &reader->attr_entries[index];
    struct tare_mlir_input in = { reader->module->data, entry->at, entry->end };
    if (!entry->custom || strcmp(reader->dialects[entry->dialect], "builtin") != 0) return NULL;
    if (tare_mlir_varint(&code, &in) != TARE_OK || tare_mlir_varint(&inner, &in) != TARE_OK) return NULL;
    if (code == TARE_MLIR_ATTR_CALL_SITE) return name_of_location(reader, inner, depth + 1);
    if (code != TARE_MLIR_ATTR_NAMED_LOCATION || inner >= reader->n_attrs) return NULL;
    if (read_attr(&name, reader, (size_t)inner) != TARE_OK || name->kind != TARE_SHLO_ATTR_STRING) return NULL;
    return tare_arena_strndup(reader->arena, name->text.data, name->text.size);
}

const char *tare_shlo_location_name(struct tare_shlo_reader *reader, uint64_t index) {
    const char *name = name_of_location(reader, index, 0);
    if (!name) tare_error_clear();
    return name;
}

static tare_status decode_attr(struct tare_shlo_attr *attr, struct tare_shlo_reader *reader,
                               const struct tare_mlir_entry *entry) {
    struct tare_mlir_input in = { reader->module->data, entry->at, entry->end };
    const char *dialect = reader->dialects[entry->dialect];
    if (entry->custom && strcmp(dialect, "vhlo") == 0) {
        TARE_TRY(read_vhlo_attr(attr, reader, &in));
    } else if (entry->custom && strcmp(dialect, "builtin") == 0) {
        TARE_TRY(read_builtin_attr(attr, reader, &in));
    } else {
        attr->kind = TARE_SHLO_ATTR_OPAQUE;
        attr->text = (struct tare_shlo_text){ dialect, strlen(dialect) };
        attr->data = in.data + in.at;
        attr->size = tare_mlir_left(&in);
        return TARE_OK;
    }
    return tare_mlir_at_end(&in, "attribute");
}

static tare_status read_attr(const struct tare_shlo_attr **out, struct tare_shlo_reader *reader, size_t index) {
    struct tare_mlir_entry *entry = &reader->attr_entries[index];
    struct tare_shlo_attr *attr;
    if (!reader->attrs[index]) {
        if (entry->busy || reader->depth >= TARE_SHLO_MAX_DEPTH)
            return TARE_FAIL(TARE_CORRUPT, "attribute %zu at byte %zu contains itself or is nested too deeply", index,
                             entry->at);
        attr = TARE_NEW(reader->arena, struct tare_shlo_attr);
        if (!attr) return TARE_NO_MEMORY;
        entry->busy = true;
        reader->depth++;
        tare_status status = decode_attr(attr, reader, entry);
        reader->depth--;
        entry->busy = false;
        TARE_TRY(status);
        reader->attrs[index] = attr;
    }
    *out = reader->attrs[index];
    return TARE_OK;
}

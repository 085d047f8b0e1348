/* Decodes types: those of VHLO and the builtin types that other dialects use. */
#include "convert/stablehlo/reader.h"

#include <string.h>

/* Codes of builtin types (mlir/lib/IR/BuiltinDialectBytecode.cpp). */
enum {
    BUILTIN_INTEGER = 0,
    BUILTIN_INDEX = 1,
    BUILTIN_FUNCTION = 2,
    BUILTIN_BF16 = 3,
    BUILTIN_F16 = 4,
    BUILTIN_F32 = 5,
    BUILTIN_F64 = 6,
    BUILTIN_COMPLEX = 9,
    BUILTIN_NONE = 12,
    BUILTIN_TENSOR = 13,
    BUILTIN_TENSOR_ENCODED = 14,
    BUILTIN_TUPLE = 15,
};

int tare_shlo_type_bits(const struct tare_shlo_type *type) {
    static const uint8_t bits[TARE_SHLO_N_TYPES] = {
        [TARE_SHLO_BOOL] = 1,       [TARE_SHLO_BF16] = 16,      [TARE_SHLO_F16] = 16,
        [TARE_SHLO_F32] = 32,       [TARE_SHLO_F64] = 64,       [TARE_SHLO_F8E4M3FN] = 8,
        [TARE_SHLO_F8E5M2] = 8,     [TARE_SHLO_INDEX] = 64,     [TARE_SHLO_SI4] = 4,
        [TARE_SHLO_SI8] = 8,        [TARE_SHLO_SI16] = 16,      [TARE_SHLO_SI32] = 32,
        [TARE_SHLO_SI64] = 64,      [TARE_SHLO_UI4] = 4,        [TARE_SHLO_UI8] = 8,
        [TARE_SHLO_UI16] = 16,      [TARE_SHLO_UI32] = 32,      [TARE_SHLO_UI64] = 64,
        [TARE_SHLO_F8E4M3FNUZ] = 8, [TARE_SHLO_F8E5M2FNUZ] = 8, [TARE_SHLO_F8E4M3B11FNUZ] = 8,
        [TARE_SHLO_SI2] = 2,        [TARE_SHLO_UI2] = 2,        [TARE_SHLO_TF32] = 19,
        [TARE_SHLO_F8E4M3] = 8,     [TARE_SHLO_F8E3M4] = 8,     [TARE_SHLO_F4E2M1FN] = 4,
        [TARE_SHLO_F6E2M3FN] = 6,   [TARE_SHLO_F6E3M2FN] = 6,   [TARE_SHLO_F8E8M0FNU] = 8,
    };
    return bits[type->kind];
}

bool tare_shlo_type_is_float(enum tare_shlo_type_kind kind) {
    return (kind >= TARE_SHLO_BF16 && kind <= TARE_SHLO_F8E5M2) ||
           (kind >= TARE_SHLO_F8E4M3FNUZ && kind <= TARE_SHLO_F8E4M3B11FNUZ) ||
           (kind >= TARE_SHLO_TF32 && kind <= TARE_SHLO_F8E8M0FNU);
}

tare_status tare_shlo_next_type(const struct tare_shlo_type **out, struct tare_shlo_reader *reader,
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
        TARE_TRY(tare_shlo_next_type(&out->items[i], reader, in));
    return TARE_OK;
}

tare_status tare_shlo_next_numbers(const int64_t **out, size_t *count, struct tare_shlo_reader *reader,
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
    TARE_TRY(tare_shlo_next_numbers(&type->dims, &type->rank, reader, in));
    for (size_t i = 0; i < type->rank; i++)
        if (type->dims[i] < 0 && type->dims[i] != TARE_SHLO_DYNAMIC)
            return tare_mlir_corrupt(in, "a negative dimension");
    return tare_shlo_next_type(&type->element, reader, in);
}

static tare_status read_scales(struct tare_shlo_quantized *q, struct tare_shlo_reader *reader,
                               struct tare_mlir_input *in, bool list) {
    const int64_t *bits;
    size_t zero_points = 1;
    if (list) {
        TARE_TRY(tare_shlo_next_numbers(&bits, &q->count, reader, in));
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
        TARE_TRY(tare_shlo_next_numbers(&q->zero_points, &zero_points, reader, in));
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
    TARE_TRY(tare_shlo_next_type(&q->storage, reader, in));
    TARE_TRY(tare_shlo_next_type(&q->expressed, reader, in));
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

static tare_status read_vhlo(struct tare_shlo_type *type, struct tare_shlo_reader *reader, struct tare_mlir_input *in) {
    uint64_t code;
    TARE_TRY(tare_mlir_varint(&code, in));
    if (code >= TARE_SHLO_N_TYPES)
        return TARE_FAIL(TARE_UNSUPPORTED, "unknown VHLO type code %llu at byte %zu", (unsigned long long)code, in->at);
    type->kind = (enum tare_shlo_type_kind)code;
    switch (type->kind) {
    case TARE_SHLO_COMPLEX:
    case TARE_SHLO_UNRANKED:
        return tare_shlo_next_type(&type->element, reader, in);
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

static tare_status read_builtin(struct tare_shlo_type *type, struct tare_shlo_reader *reader,
                                struct tare_mlir_input *in) {
    static const uint8_t scalars[] = {
        [BUILTIN_INDEX] = TARE_SHLO_INDEX, [BUILTIN_BF16] = TARE_SHLO_BF16, [BUILTIN_F16] = TARE_SHLO_F16,
        [BUILTIN_F32] = TARE_SHLO_F32,     [BUILTIN_F64] = TARE_SHLO_F64,   [BUILTIN_NONE] = TARE_SHLO_NONE
    };
    uint64_t code;
    TARE_TRY(tare_mlir_varint(&code, in));
    switch (code) {
    case BUILTIN_INTEGER:
        return read_integer(type, in);
    case BUILTIN_COMPLEX:
        type->kind = TARE_SHLO_COMPLEX;
        return tare_shlo_next_type(&type->element, reader, in);
    case BUILTIN_FUNCTION:
        type->kind = TARE_SHLO_FUNCTION;
        TARE_TRY(tare_shlo_next_types(&type->inputs, reader, in));
        return tare_shlo_next_types(&type->outputs, reader, in);
    case BUILTIN_TUPLE:
        type->kind = TARE_SHLO_TUPLE;
        return tare_shlo_next_types(&type->inputs, reader, in);
    case BUILTIN_TENSOR_ENCODED:
        TARE_TRY(tare_shlo_next_attr(&type->encoding, reader, in)); /* fallthrough */
    case BUILTIN_TENSOR:
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

static tare_status decode(struct tare_shlo_type *type, struct tare_shlo_reader *reader,
                          const struct tare_mlir_entry *entry) {
    struct tare_mlir_input in = { reader->module->data, entry->at, entry->end };
    const char *dialect = reader->dialects[entry->dialect];
    if (!entry->custom) return TARE_FAIL(TARE_UNSUPPORTED, "a type as assembly text at byte %zu", entry->at);
    if (strcmp(dialect, "vhlo") == 0)
        TARE_TRY(read_vhlo(type, reader, &in));
    else if (strcmp(dialect, "builtin") == 0)
        TARE_TRY(read_builtin(type, reader, &in));
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
        tare_status status = decode(type, reader, entry);
        reader->depth--;
        entry->busy = false;
        TARE_TRY(status);
        reader->types[index] = type;
    }
    *out = reader->types[index];
    return TARE_OK;
}

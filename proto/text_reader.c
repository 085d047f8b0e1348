/* The reader of the text format. */
#include "base/ascii.h"
#include "base/option.h"
#include "base/varint.h"
#include "proto/field.h"
#include "proto/message.h"
#include "proto/tensorflow/saved_model.pb-c.h"
#include "proto/text_format.h"
#include "proto/text_scanner.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FIELDS = 128, MAX_ENUM_NAMES = 256 };

struct reader {
    struct tare_text_scanner scan;
    struct tare_arena *arena;
    struct tare_strbuf string; /* the string being read */
    bool closed_enums;         /* the number of an enum must be one of its values */
};

/* The message being read. */
struct target {
    ProtobufCMessage *message;
    uint64_t seen[MAX_FIELDS / 64]; /* singular fields that are set, by index */
    int depth;
};

/* Messages that an Any may be expanded to: what TensorFlow packs into collections and object graphs. */
static const ProtobufCMessageDescriptor *const any_types[] = {
    &tensorflow__asset_file_def__descriptor, &tensorflow__variable_def__descriptor,
    &tensorflow__signature_def__descriptor,  &tensorflow__tensor_info__descriptor,
    &tensorflow__tensor_proto__descriptor,   &tensorflow__composite_tensor_variant_metadata__descriptor,
};

static tare_status read_fields(struct reader *r, ProtobufCMessage *message, const char *opened, int depth);

static const char *type_name(const ProtobufCFieldDescriptor *field) {
    static const char *const names[] = { "an int32", "an int32",   "an int32", "an int64", "an int64", "an int64",
                                         "a uint32", "a uint32",   "a uint64", "a uint64", "a float",  "a double",
                                         "a bool",   "a value of", "a string", "a string", "a message" };
    return names[field->type];
}

static tare_status fail_kind(const struct reader *r, const char *at, const ProtobufCMessage *message,
                             const ProtobufCFieldDescriptor *field, const char *got) {
    const ProtobufCEnumDescriptor *values = field->type == PROTOBUF_C_TYPE_ENUM ? field->descriptor : NULL;
    return tare_text_fail(&r->scan, at, "field '%s' of %s takes %s%s%s (got %s)", field->name,
                          message->descriptor->short_name, type_name(field), values ? " " : "",
                          values ? values->short_name : "", got);
}

static tare_status fail_word(const struct reader *r, const char *at, const ProtobufCMessage *message,
                             const ProtobufCFieldDescriptor *field, const char *word) {
    char quoted[TARE_TEXT_WORD_SIZE + 2];
    snprintf(quoted, sizeof quoted, "'%s'", word);
    return fail_kind(r, at, message, field, quoted);
}

static tare_status fail_no_field(const struct reader *r, const char *at, const ProtobufCMessageDescriptor *descriptor,
                                 const char *name) {
    const char *names[MAX_FIELDS + 1] = { NULL }, *near;
    for (unsigned i = 0; i < descriptor->n_fields && i < MAX_FIELDS; i++)
        names[i] = descriptor->fields[i].name;
    near = tare_nearest_name(name, names);
    return tare_text_fail(&r->scan, at, near ? "%s has no field '%s' (did you mean '%s'?)" : "%s has no field '%s'",
                          descriptor->short_name, name, near);
}

/* The value that is nearest to what was written; NULL where another is as near, as TPU and GPU are to CPU. */
static const char *nearest_value(const char *written, const char *const *names) {
    const char *near = tare_nearest_name(written, names);
    for (size_t i = 0; near && names[i] && !tare_same_letters(written, near); i++)
        if (names[i] != near && tare_edit_distance(written, names[i]) == tare_edit_distance(written, near)) return NULL;
    return near;
}

/* Lists the values of short enums, in their order. */
static tare_status fail_no_value(const struct reader *r, const char *at, const ProtobufCEnumDescriptor *values,
                                 const char *name) {
    enum { MOST_LISTED = 20 };
    const char *names[MAX_ENUM_NAMES + 1] = { NULL }, *near;
    struct tare_strbuf text = { 0 };
    for (unsigned i = 0; i < values->n_value_names && i < MAX_ENUM_NAMES; i++)
        names[i] = values->values_by_name[i].name;
    near = nearest_value(name, names);
    if (near) tare_strbuf_printf(&text, " (did you mean '%s'?)", near);
    for (unsigned i = 0; i < values->n_values && values->n_values <= MOST_LISTED; i++)
        tare_strbuf_printf(&text, "%s%s", i ? ", " : "; expected ", values->values[i].name);
    const tare_status status =
        tare_text_fail(&r->scan, at, "%s has no value '%s'%s", values->short_name, name, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    return status;
}

static tare_status store_integer(const struct reader *r, const char *at, const ProtobufCMessage *message,
                                 const ProtobufCFieldDescriptor *field, void *slot, const char *word) {
    bool is_signed = field->type <= PROTOBUF_C_TYPE_SFIXED64, wide = tare_field_value_size(field) == 8, negative;
    uint64_t magnitude = 0, lowest = 0, highest = wide ? UINT64_MAX : UINT32_MAX;
    bool integer = tare_text_parse_integer(word, &negative, &magnitude);
    if (!integer && (word[negative] == '0' || strspn(word + negative, "0123456789") != strlen(word + negative)))
        return fail_word(r, at, message, field, word);
    if (is_signed) {
        highest >>= 1;
        lowest = highest + 1;
    }
    if (!integer || magnitude > (negative ? lowest : highest))
        return tare_text_fail(&r->scan, at, "%s is out of range for field '%s' of %s, %s", word, field->name,
                              message->descriptor->short_name, type_name(field));
    if (negative) magnitude = 0 - magnitude;
    if (wide)
        *(uint64_t *)slot = magnitude;
    else
        *(uint32_t *)slot = (uint32_t)magnitude;
    return TARE_OK;
}

static tare_status store_bool(const struct reader *r, const char *at, const ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field, void *slot, const char *word) {
    static const char *const words[] = { "false", "False", "f", "0", "true", "True", "t", "1" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0) {
            *(protobuf_c_boolean *)slot = i >= 4;
            return TARE_OK;
        }
    }
    return fail_word(r, at, message, field, word);
}

static tare_status store_enum(const struct reader *r, const char *at, const ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field, void *slot, const char *word) {
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(field->descriptor, word);
    uint64_t magnitude;
    bool negative;
    if (value) {
        *(int32_t *)slot = value->value;
        return TARE_OK;
    }
    if (!tare_text_parse_integer(word, &negative, &magnitude)) {
        if (*word == '-' || (*word >= '0' && *word <= '9')) return fail_word(r, at, message, field, word);
        return fail_no_value(r, at, field->descriptor, word);
    }
    if (magnitude > (uint64_t)INT32_MAX + negative) return fail_word(r, at, message, field, word);
    const int32_t number = (int32_t)(negative ? 0 - (uint32_t)magnitude : (uint32_t)magnitude);
    if (r->closed_enums && !protobuf_c_enum_descriptor_get_value(field->descriptor, number))
        return fail_no_value(r, at, field->descriptor, word);
    *(int32_t *)slot = number;
    return TARE_OK;
}

static tare_status read_string(struct reader *r, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                               void *slot) {
    const char *at = r->scan.at;
    char seen[48], *copy;
    if (!tare_text_at_string(&r->scan)) return fail_kind(r, at, message, field, tare_text_seen(&r->scan, seen));
    r->string.size = 0;
    TARE_TRY(tare_text_string(&r->scan, &r->string));
    if (field->type == PROTOBUF_C_TYPE_STRING && r->string.size && memchr(r->string.data, '\0', r->string.size))
        return tare_text_fail(&r->scan, at, "the string of field '%s' of %s holds a NUL byte", field->name,
                              message->descriptor->short_name);
    copy = tare_arena_strndup(r->arena, r->string.data, r->string.size);
    if (!copy) return TARE_NO_MEMORY;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        *(char **)slot = copy;
    else
        *(ProtobufCBinaryData *)slot = (ProtobufCBinaryData){ .len = r->string.size, .data = (uint8_t *)copy };
    return TARE_OK;
}

static tare_status read_scalar(struct reader *r, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                               void *slot);

static bool is_single_enum(const ProtobufCFieldDescriptor *field) {
    return field->type == PROTOBUF_C_TYPE_ENUM && field->label != PROTOBUF_C_LABEL_REPEATED;
}

static unsigned count_names(const ProtobufCFieldDescriptor *field) {
    return ((const ProtobufCEnumDescriptor *)field->descriptor)->n_value_names;
}

/* The word or string that comes next; false: something else does. */
static bool peek_name(const struct reader *r, struct tare_strbuf *name) {
    struct tare_text_scanner ahead = r->scan;
    char word[TARE_TEXT_WORD_SIZE];
    const bool is_string = tare_text_at_string(&ahead);
    const tare_status status = is_string ? tare_text_string(&ahead, name) : tare_text_scalar(&ahead, word);
    if (status != TARE_OK) return tare_error_clear(), false;
    if (!is_string) tare_strbuf_puts(name, word);
    return !name->failed;
}

/* The field whose values have the name that comes next: quantization_method: STATIC_RANGE; if none has, the field with
 * the most names, whose error lists them. NULL: none. */
static const ProtobufCFieldDescriptor *field_of_value(const struct reader *r,
                                                      const ProtobufCMessageDescriptor *descriptor) {
    const ProtobufCFieldDescriptor *named = NULL, *richest = NULL;
    struct tare_strbuf name = { 0 };
    if (!r->scan.relaxed || !peek_name(r, &name)) descriptor = NULL;
    for (unsigned i = 0; descriptor && !named && i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (!is_single_enum(field)) continue;
        if (!richest || count_names(field) > count_names(richest)) richest = field;
        if (protobuf_c_enum_descriptor_get_value_by_name(field->descriptor, tare_strbuf_text(&name))) named = field;
    }
    tare_strbuf_free(&name);
    return named ? named : richest;
}

static tare_status read_submessage(struct reader *r, const ProtobufCMessage *message,
                                   const ProtobufCFieldDescriptor *field, ProtobufCMessage **slot, int depth) {
    const char *opened = r->scan.at;
    const bool opens = tare_text_peek(&r->scan, '{') || tare_text_peek(&r->scan, '<');
    const ProtobufCFieldDescriptor *only = opens ? NULL : field_of_value(r, field->descriptor);
    char seen[48];
    if (!opens && !only) return fail_kind(r, opened, message, field, tare_text_seen(&r->scan, seen));
    if (depth >= TARE_MESSAGE_MAX_DEPTH)
        return tare_text_fail(&r->scan, opened, "messages are nested deeper than %d", TARE_MESSAGE_MAX_DEPTH);
    if (!*slot) *slot = tare_message_new(r->arena, field->descriptor);
    if (!*slot) return TARE_NO_MEMORY;
    if (only) return read_scalar(r, *slot, only, tare_field_set(*slot, only));
    tare_text_take(&r->scan, *opened);
    return read_fields(r, *slot, opened, depth + 1);
}

static tare_status read_quoted_enum(struct reader *r, const ProtobufCMessage *message,
                                    const ProtobufCFieldDescriptor *field, void *slot) {
    const char *at = r->scan.at;
    r->string.size = 0;
    TARE_TRY(tare_text_string(&r->scan, &r->string));
    return store_enum(r, at, message, field, slot, tare_strbuf_text(&r->string));
}

static tare_status read_scalar(struct reader *r, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                               void *slot) {
    const char *at = r->scan.at;
    char word[TARE_TEXT_WORD_SIZE], seen[48];
    if (r->scan.relaxed && field->type == PROTOBUF_C_TYPE_ENUM && tare_text_at_string(&r->scan))
        return read_quoted_enum(r, message, field, slot);
    if (tare_text_at_string(&r->scan) || tare_text_peek(&r->scan, '{') || tare_text_peek(&r->scan, '<') ||
        tare_text_peek(&r->scan, '['))
        return fail_kind(r, at, message, field,
                         tare_text_at_string(&r->scan) ? "a string" : tare_text_seen(&r->scan, seen));
    TARE_TRY(tare_text_scalar(&r->scan, word));
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return store_bool(r, at, message, field, slot, word);
    case PROTOBUF_C_TYPE_ENUM:
        return store_enum(r, at, message, field, slot, word);
    case PROTOBUF_C_TYPE_FLOAT:
        return tare_text_parse_float(word, slot) ? TARE_OK : fail_word(r, at, message, field, word);
    case PROTOBUF_C_TYPE_DOUBLE:
        return tare_text_parse_double(word, slot) ? TARE_OK : fail_word(r, at, message, field, word);
    default:
        return store_integer(r, at, message, field, slot, word);
    }
}

static tare_status read_value(struct reader *r, struct target *target, const ProtobufCFieldDescriptor *field) {
    ProtobufCMessage *message = target->message;
    void *slot = field->label == PROTOBUF_C_LABEL_REPEATED ? tare_field_append(message, field, r->arena, 1)
                                                           : tare_field_set(message, field);
    if (!slot) return TARE_NO_MEMORY;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) return read_submessage(r, message, field, slot, target->depth);
    if (!tare_field_is_packable(field)) return read_string(r, message, field, slot);
    return read_scalar(r, message, field, slot);
}

static tare_status read_list(struct reader *r, struct target *target, const ProtobufCFieldDescriptor *field) {
    char seen[48];
    if (field->label != PROTOBUF_C_LABEL_REPEATED)
        return tare_text_fail(&r->scan, r->scan.at, "field '%s' of %s takes one value (got a list)", field->name,
                              target->message->descriptor->short_name);
    tare_text_take(&r->scan, '[');
    if (tare_text_take(&r->scan, ']')) return TARE_OK;
    do
        TARE_TRY(read_value(r, target, field));
    while (tare_text_take(&r->scan, ','));
    if (tare_text_take(&r->scan, ']')) return TARE_OK;
    return tare_text_fail(&r->scan, r->scan.at, "expected ',' or ']' in the list (got %s)",
                          tare_text_seen(&r->scan, seen));
}

static tare_status check_first_time(const struct reader *r, const char *at, struct target *target,
                                    const ProtobufCFieldDescriptor *field) {
    const ProtobufCMessageDescriptor *descriptor = target->message->descriptor;
    size_t index = (size_t)(field - descriptor->fields);
    uint32_t held;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return TARE_OK;
    if (target->seen[index / 64] & (uint64_t)1 << (index % 64))
        return tare_text_fail(&r->scan, at, "field '%s' of %s is set twice", field->name, descriptor->short_name);
    target->seen[index / 64] |= (uint64_t)1 << (index % 64);
    if (!tare_field_in_oneof(field)) return TARE_OK;
    held = tare_field_oneof_case(target->message, field);
    if (!held) return TARE_OK;
    return tare_text_fail(&r->scan, at, "fields '%s' and '%s' of %s are both set (only one of them may be)",
                          protobuf_c_message_descriptor_get_field(descriptor, held)->name, field->name,
                          descriptor->short_name);
}

static tare_status wanted_colon(const struct reader *r, const char *name) {
    char seen[48];
    return tare_text_fail(&r->scan, r->scan.at, "expected ':' after '%s' (got %s)", name,
                          tare_text_seen(&r->scan, seen));
}

/* The scanner is after the field's name, which began at `at`. */
static tare_status read_field_value(struct reader *r, struct target *target, const ProtobufCFieldDescriptor *field,
                                    const char *at, bool colon) {
    bool opens = tare_text_peek(&r->scan, '{') || tare_text_peek(&r->scan, '<');
    if (opens && field->type != PROTOBUF_C_TYPE_MESSAGE) {
        char name[TARE_TEXT_WORD_SIZE];
        const ProtobufCFieldDescriptor *other;
        snprintf(name, sizeof name, "%s_message", field->name);
        other = protobuf_c_message_descriptor_get_field_by_name(target->message->descriptor, name);
        if (other && other->type == PROTOBUF_C_TYPE_MESSAGE) {
            TARE_TRY(check_first_time(r, at, target, field));
            field = other;
        }
    }
    if (!colon && !(field->type == PROTOBUF_C_TYPE_MESSAGE && (opens || tare_text_peek(&r->scan, '['))))
        return wanted_colon(r, field->name);
    TARE_TRY(check_first_time(r, at, target, field));
    if (tare_text_peek(&r->scan, '[')) return read_list(r, target, field);
    return read_value(r, target, field);
}

static bool take_colon(struct reader *r) {
    return tare_text_take(&r->scan, ':') || (r->scan.relaxed && tare_text_take(&r->scan, '='));
}

/* A string: a length-delimited field. */
static tare_status read_unknown_string(struct reader *r, ProtobufCMessage *message, uint32_t number) {
    struct tare_strbuf payload = { 0 };
    uint8_t bytes[TARE_VARINT_MAX];
    tare_status status;
    r->string.size = 0;
    TARE_TRY(tare_text_string(&r->scan, &r->string));
    tare_strbuf_append(&payload, bytes, tare_varint_write(bytes, r->string.size));
    tare_strbuf_append(&payload, r->string.data, r->string.size);
    status = payload.failed ? TARE_NO_MEMORY
                            : tare_message_add_unknown(message, r->arena, number, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                                       payload.data, payload.size);
    tare_strbuf_free(&payload);
    return status;
}

/* A number: of fixed width in 8 or 16 hexadecimal digits, else a varint. */
static tare_status read_unknown_number(struct reader *r, ProtobufCMessage *message, uint32_t number) {
    const char *at = r->scan.at;
    char word[TARE_TEXT_WORD_SIZE];
    uint64_t value;
    uint8_t bytes[TARE_VARINT_MAX];
    bool negative;
    size_t digits;
    TARE_TRY(tare_text_scalar(&r->scan, word));
    if (!tare_text_parse_integer(word, &negative, &value) || negative)
        return tare_text_fail(&r->scan, at, "unknown field %u takes a whole number or a string (got '%s')", number,
                              word);
    digits = strlen(word) - 2;
    if (word[0] != '0' || (digits != 8 && digits != 16))
        return tare_message_add_unknown(message, r->arena, number, PROTOBUF_C_WIRE_TYPE_VARINT, bytes,
                                        tare_varint_write(bytes, value));
    memcpy(bytes, &value, 8);
    return tare_message_add_unknown(message, r->arena, number,
                                    digits == 8 ? PROTOBUF_C_WIRE_TYPE_32BIT : PROTOBUF_C_WIRE_TYPE_64BIT, bytes,
                                    digits / 2);
}

/* `12: …`: an unknown field, even if the message has this number: its wire type was different then. */
static tare_status read_numbered(struct reader *r, struct target *target) {
    const char *at = r->scan.at;
    char word[TARE_TEXT_WORD_SIZE];
    uint64_t number;
    bool negative;
    TARE_TRY(tare_text_scalar(&r->scan, word));
    if (!tare_text_parse_integer(word, &negative, &number) || negative || number == 0 || number >= 1u << 29)
        return tare_text_fail(&r->scan, at, "'%s' is not a field number", word);
    if (r->scan.relaxed) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(target->message->descriptor, (unsigned)number);
        return tare_text_fail(&r->scan, at, "a field by its number, %s (expected %s)", word,
                              field ? field->name : "the name of a field");
    }
    if (!take_colon(r)) return wanted_colon(r, word);
    if (tare_text_at_string(&r->scan)) return read_unknown_string(r, target->message, (uint32_t)number);
    return read_unknown_number(r, target->message, (uint32_t)number);
}

/* [type.googleapis.com/package.Message] { … } in an Any: the scanner is at the bracket. */
static tare_status read_expanded_any(struct reader *r, struct target *target) {
    const char *at = r->scan.at, *slash, *opened;
    char url[TARE_TEXT_WORD_SIZE];
    const ProtobufCMessageDescriptor *type = NULL;
    Google__Protobuf__Any *any = (Google__Protobuf__Any *)target->message;
    ProtobufCMessage *inner;
    if (target->message->descriptor != &google__protobuf__any__descriptor)
        return tare_text_fail(&r->scan, at, "%s has no extensions", target->message->descriptor->short_name);
    tare_text_take(&r->scan, '[');
    TARE_TRY(tare_text_type_name(&r->scan, url));
    if (!tare_text_take(&r->scan, ']')) return tare_text_fail(&r->scan, r->scan.at, "expected ']' after '%s'", url);
    slash = strrchr(url, '/');
    for (size_t i = 0; slash && i < sizeof any_types / sizeof *any_types; i++)
        if (strcmp(any_types[i]->name, slash + 1) == 0) type = any_types[i];
    if (!type) return tare_text_fail(&r->scan, at, "'%s' is not a known message type", url);
    if (any->type_url[0]) return tare_text_fail(&r->scan, at, "Any is set twice");
    take_colon(r);
    opened = r->scan.at;
    if (!tare_text_take(&r->scan, '{') && !tare_text_take(&r->scan, '<')) return wanted_colon(r, url);
    inner = tare_message_new(r->arena, type);
    if (!inner) return TARE_NO_MEMORY;
    if (target->depth >= TARE_MESSAGE_MAX_DEPTH)
        return tare_text_fail(&r->scan, opened, "messages are nested deeper than %d", TARE_MESSAGE_MAX_DEPTH);
    TARE_TRY(read_fields(r, inner, opened, target->depth + 1));
    any->type_url = tare_arena_strdup(r->arena, url);
    any->value.len = protobuf_c_message_get_packed_size(inner);
    any->value.data = tare_arena_alloc(r->arena, any->value.len);
    if (!any->type_url || !any->value.data) return TARE_NO_MEMORY;
    protobuf_c_message_pack(inner, any->value.data);
    return TARE_OK;
}

static tare_status read_field(struct reader *r, struct target *target) {
    const char *at = r->scan.at;
    char name[TARE_TEXT_WORD_SIZE];
    const ProtobufCFieldDescriptor *field;
    if (tare_text_peek(&r->scan, '[')) return read_expanded_any(r, target);
    if (*at >= '0' && *at <= '9') return read_numbered(r, target);
    TARE_TRY(tare_text_name(&r->scan, name));
    field = protobuf_c_message_descriptor_get_field_by_name(target->message->descriptor, name);
    if (!field) return fail_no_field(r, at, target->message->descriptor, name);
    return read_field_value(r, target, field, at, take_colon(r));
}

/* Reads fields up to the bracket that closes `opened`; NULL: up to the end of the text. */
static tare_status read_fields(struct reader *r, ProtobufCMessage *message, const char *opened, int depth) {
    struct target target = { .message = message, .depth = depth };
    char close = !opened ? '\0' : *opened == '{' ? '}' : '>';
    if (message->descriptor->n_fields > MAX_FIELDS)
        return TARE_FAIL(TARE_INTERNAL, "%s has %u fields (expected at most %d)", message->descriptor->short_name,
                         message->descriptor->n_fields, MAX_FIELDS);
    for (;;) {
        if (opened && tare_text_take(&r->scan, close)) return tare_message_merge_map_entries(message);
        if (r->scan.at == r->scan.end) {
            if (!opened) return tare_message_merge_map_entries(message);
            return tare_text_fail(&r->scan, opened, "the message is not closed (expected '%c')", close);
        }
        TARE_TRY(read_field(r, &target));
        if (!tare_text_take(&r->scan, ',')) tare_text_take(&r->scan, ';');
    }
}

tare_status tare_text_format_read(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                                  struct tare_arena *arena, const char *text, size_t size, enum tare_text_mode mode,
                                  const char *what) {
    struct reader r = { .arena = arena, .closed_enums = mode != TARE_TEXT_STRICT };
    tare_status status;
    ProtobufCMessage *message = tare_message_new(arena, descriptor);
    *out = NULL;
    if (!message) return TARE_NO_MEMORY;
    tare_text_scanner_init(&r.scan, text, size, mode == TARE_TEXT_RELAXED, what);
    status = read_fields(&r, message, NULL, 1);
    tare_strbuf_free(&r.string);
    if (status == TARE_OK) *out = message;
    return status;
}

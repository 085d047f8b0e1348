/* The reader of the wire format. It parses one field at a time into a record, then stores its value by descriptor. */
#include "proto/message.h"
#include "base/alloc.h"
#include "base/varint.h"
#include "proto/field.h"

#include <stdbool.h>
#include <string.h>

struct reader {
    const uint8_t *start;
    const char *what;
    const struct tare_message_reading *reading; /* NULL: read everything */
    struct tare_arena *arena;
    size_t limit; /* maximum size of the arena */
};

/* A serialized field. */
struct record {
    const uint8_t *tag, *payload; /* payload: after the length of a length-delimited field */
    const uint8_t *value;         /* after the tag */
    const uint8_t *end;
    uint64_t number; /* the value of a varint */
    uint32_t field;
    unsigned wire;
};

static long long offset_of(const struct reader *r, const uint8_t *at) {
    return (long long)(at - r->start);
}

static tare_status fail_cut(const struct reader *r, const struct record *record) {
    return TARE_FAIL(TARE_CORRUPT, "%s: field %u at byte %lld is cut off", r->what, record->field,
                     offset_of(r, record->tag));
}

static tare_status read_record(struct record *out, const struct reader *r, const uint8_t *at, const uint8_t *end) {
    uint64_t tag, size;
    out->tag = at;
    at = tare_varint_read(&tag, at, end);
    if (!at) return TARE_FAIL(TARE_CORRUPT, "%s: the tag at byte %lld is cut off", r->what, offset_of(r, out->tag));
    if (tag > UINT32_MAX || tag < 8)
        return TARE_FAIL(TARE_CORRUPT, "%s: byte %lld is not a field tag", r->what, offset_of(r, out->tag));
    out->field = (uint32_t)tag >> 3;
    out->wire = (unsigned)tag & 7;
    out->value = out->payload = at;
    switch (out->wire) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        out->end = tare_varint_read(&out->number, at, end);
        return out->end ? TARE_OK : fail_cut(r, out);
    case PROTOBUF_C_WIRE_TYPE_64BIT:
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        size = out->wire == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;
        if ((uint64_t)(end - at) < size) return fail_cut(r, out);
        out->end = at + size;
        return TARE_OK;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        at = tare_varint_read(&size, at, end);
        if (!at) return fail_cut(r, out);
        if ((uint64_t)(end - at) < size)
            return TARE_FAIL(TARE_CORRUPT,
                             "%s: field %u at byte %lld runs past the end (needs %llu bytes, %lld are left)", r->what,
                             out->field, offset_of(r, out->tag), (unsigned long long)size, (long long)(end - at));
        out->payload = at;
        out->end = at + size;
        return TARE_OK;
    case 3:
    case 4:
        return TARE_FAIL(TARE_UNSUPPORTED, "%s: field %u at byte %lld is a group", r->what, out->field,
                         offset_of(r, out->tag));
    default:
        return TARE_FAIL(TARE_CORRUPT, "%s: field %u at byte %lld has wire type %u (expected 0 to 5)", r->what,
                         out->field, offset_of(r, out->tag), out->wire);
    }
}

static void store_varint(void *slot, ProtobufCType type, uint64_t value) {
    uint32_t low = (uint32_t)value;
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        *(uint64_t *)slot = value;
        break;
    case PROTOBUF_C_TYPE_SINT64:
        *(uint64_t *)slot = (value >> 1) ^ (0 - (value & 1));
        break;
    case PROTOBUF_C_TYPE_SINT32:
        *(uint32_t *)slot = (low >> 1) ^ (0 - (low & 1));
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)slot = value != 0;
        break;
    default:
        *(uint32_t *)slot = low;
    }
}

static tare_status check_growth(const struct reader *r, const struct record *record) {
    if (r->arena->bytes <= r->limit) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "%s: takes more than %d times its size in memory (at byte %lld)", r->what,
                     TARE_MESSAGE_MAX_GROWTH, offset_of(r, record->tag));
}

static tare_status read_packed(const struct reader *r, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                               const struct record *record) {
    const uint8_t *at = record->payload;
    size_t bytes = (size_t)(record->end - at), count = 0, width = tare_field_value_size(field);
    char *slot;
    if (bytes == 0) return TARE_OK;
    if (tare_field_wire_type(field) != PROTOBUF_C_WIRE_TYPE_VARINT) {
        if (bytes % width)
            return TARE_FAIL(TARE_CORRUPT,
                             "%s: packed field %u at byte %lld has %zu bytes (expected a multiple of %zu)", r->what,
                             record->field, offset_of(r, record->tag), bytes, width);
        slot = tare_field_append(message, field, r->arena, bytes / width);
        if (!slot) return TARE_NO_MEMORY;
        memcpy(slot, at, bytes);
        return TARE_OK;
    }
    for (size_t i = 0; i < bytes; i++)
        count += !(at[i] & 0x80);
    if (count == 0) return fail_cut(r, record);
    slot = tare_field_append(message, field, r->arena, count);
    if (!slot) return TARE_NO_MEMORY;
    for (; at < record->end; slot += width) {
        uint64_t value;
        at = tare_varint_read(&value, at, record->end);
        if (!at) return fail_cut(r, record);
        store_varint(slot, field->type, value);
    }
    return TARE_OK;
}

static tare_status read_string(const struct reader *r, char **slot, const struct record *record) {
    size_t size = (size_t)(record->end - record->payload);
    if (memchr(record->payload, '\0', size))
        return TARE_FAIL(TARE_UNSUPPORTED, "%s: the string of field %u at byte %lld holds a NUL byte", r->what,
                         record->field, offset_of(r, record->tag));
    *slot = size ? tare_arena_strndup(r->arena, (const char *)record->payload, size)
                 : (char *)(uintptr_t)protobuf_c_empty_string;
    return *slot ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status read_bytes(const struct reader *r, ProtobufCBinaryData *slot, const struct record *record) {
    *slot = (ProtobufCBinaryData){ .len = (size_t)(record->end - record->payload) };
    if (!slot->len) return TARE_OK;
    slot->data = tare_arena_alloc(r->arena, slot->len + 1);
    if (!slot->data) return TARE_NO_MEMORY;
    memcpy(slot->data, record->payload, slot->len);
    slot->data[slot->len] = 0;
    return TARE_OK;
}

static tare_status read_message(const struct reader *r, ProtobufCMessage *message, const uint8_t *at,
                                const uint8_t *end, int depth);

static bool is_left(const struct reader *r, ProtobufCMessage *message, const struct record *record) {
    const struct tare_message_part part = { record->payload, (size_t)(record->end - record->payload) };
    return r->reading && r->reading->leave && r->reading->leave(r->reading->arg, message, record->field, part);
}

static tare_status read_value(const struct reader *r, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                              const struct record *record, int depth) {
    void *slot;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE && is_left(r, message, record)) return TARE_OK;
    slot = field->label == PROTOBUF_C_LABEL_REPEATED ? tare_field_append(message, field, r->arena, 1)
                                                     : tare_field_set(message, field);
    if (!slot) return TARE_NO_MEMORY;
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        return read_string(r, slot, record);
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(r, slot, record);
    case PROTOBUF_C_TYPE_MESSAGE: {
        ProtobufCMessage **child = slot;
        if (depth >= TARE_MESSAGE_MAX_DEPTH)
            return TARE_FAIL(TARE_CORRUPT, "%s: messages are nested deeper than %d at byte %lld", r->what,
                             TARE_MESSAGE_MAX_DEPTH, offset_of(r, record->tag));
        if (!*child) *child = tare_message_new(r->arena, field->descriptor);
        if (!*child) return TARE_NO_MEMORY;
        return read_message(r, *child, record->payload, record->end, depth + 1);
    }
    default:
        if (record->wire == PROTOBUF_C_WIRE_TYPE_VARINT)
            store_varint(slot, field->type, record->number);
        else
            memcpy(slot, record->payload, tare_field_value_size(field));
        return TARE_OK;
    }
}

/* Fields are mostly in number order: tries the previous field and its successor first. */
static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *descriptor, uint32_t number,
                                                  unsigned *hint) {
    const ProtobufCFieldDescriptor *field;
    for (unsigned i = *hint; i < descriptor->n_fields && i < *hint + 2; i++) {
        if (descriptor->fields[i].id == number) {
            *hint = i;
            return &descriptor->fields[i];
        }
    }
    field = protobuf_c_message_descriptor_get_field(descriptor, number);
    if (field) *hint = (unsigned)(field - descriptor->fields);
    return field;
}

static tare_status read_message(const struct reader *r, ProtobufCMessage *message, const uint8_t *at,
                                const uint8_t *end, int depth) {
    unsigned hint = 0;
    while (at < end) {
        struct record record = { 0 };
        const ProtobufCFieldDescriptor *field;
        TARE_TRY(read_record(&record, r, at, end));
        field = find_field(message->descriptor, record.field, &hint);
        if (field && record.wire == tare_field_wire_type(field))
            TARE_TRY(read_value(r, message, field, &record, depth));
        else if (field && record.wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED &&
                 field->label == PROTOBUF_C_LABEL_REPEATED)
            TARE_TRY(read_packed(r, message, field, &record));
        else
            TARE_TRY(tare_message_add_unknown(message, r->arena, record.field, (ProtobufCWireType)record.wire,
                                              record.value, (size_t)(record.end - record.value)));
        TARE_TRY(check_growth(r, &record));
        at = record.end;
    }
    return tare_message_merge_map_entries(message);
}

static void set_limit(struct reader *r, size_t size) {
    if (!tare_mul_size(&r->limit, size, TARE_MESSAGE_MAX_GROWTH) ||
        !tare_add_size(&r->limit, r->limit, r->arena->bytes) ||
        !tare_add_size(&r->limit, r->limit, TARE_MESSAGE_FREE_GROWTH))
        r->limit = SIZE_MAX;
}

tare_status tare_message_merge(ProtobufCMessage *message, struct tare_arena *arena, const void *data, size_t size,
                               const char *what) {
    struct reader r = { .start = data, .what = what, .arena = arena };
    set_limit(&r, size);
    return size ? read_message(&r, message, data, r.start + size, 1) : TARE_OK;
}

tare_status tare_message_unpack_part(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                                     struct tare_arena *arena, struct tare_message_part part,
                                     const struct tare_message_reading *reading) {
    struct reader r = { .start = reading->start, .what = reading->what, .arena = arena, .reading = reading };
    ProtobufCMessage *message = tare_message_new(arena, descriptor);
    *out = NULL;
    if (!message) return TARE_NO_MEMORY;
    set_limit(&r, part.size);
    if (part.size) TARE_TRY(read_message(&r, message, part.data, part.data + part.size, reading->depth + 1));
    *out = message;
    return TARE_OK;
}

tare_status tare_message_next(uint32_t *field, struct tare_message_part *payload, struct tare_message_part *rest,
                              const struct tare_message_reading *reading) {
    const struct reader r = { .start = reading->start, .what = reading->what };
    struct record record = { 0 };
    const uint8_t *end;
    *field = 0;
    *payload = (struct tare_message_part){ NULL, 0 };
    if (!rest->size) return TARE_OK;
    end = rest->data + rest->size;
    TARE_TRY(read_record(&record, &r, rest->data, end));
    *field = record.field;
    if (record.wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        *payload = (struct tare_message_part){ record.payload, (size_t)(record.end - record.payload) };
    *rest = (struct tare_message_part){ record.end, (size_t)(end - record.end) };
    return TARE_OK;
}

tare_status tare_message_unpack(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                                struct tare_arena *arena, const void *data, size_t size, const char *what) {
    ProtobufCMessage *message = tare_message_new(arena, descriptor);
    *out = NULL;
    if (!message) return TARE_NO_MEMORY;
    TARE_TRY(tare_message_merge(message, arena, data, size, what));
    *out = message;
    return TARE_OK;
}

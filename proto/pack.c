/* The writer of the wire format. It writes from the end to the front, so that the length of a message is known when its
 * prefix is written: a single pass without computing sizes first. */
#include "base/alloc.h"
#include "base/varint.h"
#include "proto/field.h"
#include "proto/message.h"

#include <string.h>

struct writer {
    uint8_t *data; /* the bytes written so far are its last `used` ones */
    size_t used, capacity;
    tare_status status;
};

static bool make_room(struct writer *w, size_t extra) {
    size_t expected, larger;
    uint8_t *data;
    if (w->status != TARE_OK) return false;
    if (extra <= w->capacity - w->used) return true;
    if (!tare_add_size(&expected, w->used, extra) || expected > INT32_MAX) {
        w->status = TARE_FAIL(TARE_UNSUPPORTED, "the message is larger than protobuf's limit of %d bytes", INT32_MAX);
        return false;
    }
    larger = w->capacity * 2 < expected ? expected + 256 : w->capacity * 2;
    data = tare_malloc(larger);
    if (!data) {
        w->status = TARE_NO_MEMORY;
        return false;
    }
    if (w->used) memcpy(data + larger - w->used, w->data + w->capacity - w->used, w->used);
    tare_free(w->data);
    w->data = data;
    w->capacity = larger;
    return true;
}

static void put(struct writer *w, const void *data, size_t size) {
    if (size == 0 || !make_room(w, size)) return;
    w->used += size;
    memcpy(w->data + w->capacity - w->used, data, size);
}

static void put_varint(struct writer *w, uint64_t value) {
    uint8_t bytes[TARE_VARINT_MAX];
    put(w, bytes, tare_varint_write(bytes, value));
}

static void put_tag(struct writer *w, uint32_t number, unsigned wire_type) {
    put_varint(w, (uint64_t)number << 3 | wire_type);
}

/* The encoded value of a varint type; negative numbers are sign-extended to 64 bits. */
static uint64_t varint_of(ProtobufCType type, const void *value) {
    uint64_t wide;
    uint32_t narrow;
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
        return *(const uint64_t *)value;
    case PROTOBUF_C_TYPE_SINT64:
        wide = *(const uint64_t *)value;
        return wide << 1 ^ (0 - (wide >> 63));
    case PROTOBUF_C_TYPE_SINT32:
        narrow = *(const uint32_t *)value;
        return narrow << 1 ^ (0 - (narrow >> 31));
    case PROTOBUF_C_TYPE_UINT32:
        return *(const uint32_t *)value;
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)value != 0;
    default:
        return (uint64_t)(int64_t) * (const int32_t *)value;
    }
}

static void put_message(struct writer *w, const ProtobufCMessage *message);

/* Writes a value, with its length prefix if it has one, without a tag. */
static void put_value(struct writer *w, const ProtobufCFieldDescriptor *field, const void *value) {
    size_t before = w->used;
    switch (tare_field_wire_type(field)) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        put_varint(w, varint_of(field->type, value));
        return;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        put(w, value, 4);
        return;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        put(w, value, 8);
        return;
    default:
        break;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (*(ProtobufCMessage *const *)value) put_message(w, *(ProtobufCMessage *const *)value);
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(char *const *)value;
        if (text) put(w, text, strlen(text));
    } else {
        put(w, ((const ProtobufCBinaryData *)value)->data, ((const ProtobufCBinaryData *)value)->len);
    }
    put_varint(w, w->used - before);
}

static void put_field(struct writer *w, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    size_t count = tare_field_count(message, field), before = w->used;
    ProtobufCWireType wire_type = tare_field_wire_type(field);
    if (count == 0) return;
    if (!(field->flags & PROTOBUF_C_FIELD_FLAG_PACKED) || field->label != PROTOBUF_C_LABEL_REPEATED) {
        while (count-- > 0 && w->status == TARE_OK) {
            put_value(w, field, tare_field_value(message, field, count));
            put_tag(w, field->id, wire_type);
        }
        return;
    }
    if (wire_type == PROTOBUF_C_WIRE_TYPE_VARINT) {
        while (count-- > 0 && w->status == TARE_OK)
            put_value(w, field, tare_field_value(message, field, count));
    } else {
        put(w, tare_field_value(message, field, 0), count * tare_field_value_size(field));
    }
    put_varint(w, w->used - before);
    put_tag(w, field->id, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
}

static void put_message(struct writer *w, const ProtobufCMessage *message) {
    for (unsigned i = message->n_unknown_fields; i-- > 0;) {
        const ProtobufCMessageUnknownField *field = &message->unknown_fields[i];
        put(w, field->data, field->len);
        put_tag(w, field->tag, field->wire_type);
    }
    for (unsigned i = message->descriptor->n_fields; i-- > 0 && w->status == TARE_OK;)
        put_field(w, message, &message->descriptor->fields[i]);
}

tare_status tare_message_pack(uint8_t **data, size_t *size, const ProtobufCMessage *message) {
    struct writer w = { 0 };
    *data = NULL;
    *size = 0;
    if (make_room(&w, 1)) put_message(&w, message);
    if (w.status != TARE_OK) {
        tare_free(w.data);
        return tare_error_prefix(w.status, "%s", message->descriptor->short_name);
    }
    memmove(w.data, w.data + w.capacity - w.used, w.used);
    *data = w.data;
    *size = w.used;
    return TARE_OK;
}

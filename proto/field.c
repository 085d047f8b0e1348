/* Access to message members by descriptor. */
#include "proto/field.h"
#include "base/alloc.h"
#include "base/map.h"

#include <string.h>

static bool is_entry(const ProtobufCMessageDescriptor *descriptor) {
    size_t size;
    if (descriptor->n_fields != 2 || strcmp(descriptor->fields[0].name, "key") != 0 ||
        strcmp(descriptor->fields[1].name, "value") != 0)
        return false;
    size = strlen(descriptor->short_name);
    return size > 5 && strcmp(descriptor->short_name + size - 5, "Entry") == 0;
}

static void *member_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    return (char *)(uintptr_t)message + field->offset;
}

ProtobufCMessage *tare_message_new(struct tare_arena *arena, const ProtobufCMessageDescriptor *descriptor) {
    ProtobufCMessage *message = tare_arena_alloc(arena, descriptor->sizeof_message);
    if (!message) return NULL;
    descriptor->message_init(message);
    if (descriptor->n_fields == 2 && descriptor->fields[1].type == PROTOBUF_C_TYPE_MESSAGE && is_entry(descriptor)) {
        ProtobufCMessage **value = member_of(message, &descriptor->fields[1]);
        *value = tare_message_new(arena, descriptor->fields[1].descriptor);
        if (!*value) return NULL;
    }
    return message;
}

ProtobufCWireType tare_field_wire_type(const ProtobufCFieldDescriptor *field) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

size_t tare_field_value_size(const ProtobufCFieldDescriptor *field) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
        return sizeof(char *);
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(ProtobufCMessage *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

bool tare_field_is_packable(const ProtobufCFieldDescriptor *field) {
    return field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE &&
           field->type != PROTOBUF_C_TYPE_BYTES;
}

static size_t *count_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    return (size_t *)((char *)(uintptr_t)message + field->quantifier_offset);
}

static uint32_t *case_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    return (uint32_t *)((char *)(uintptr_t)message + field->quantifier_offset);
}

static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    static const char zeros[8];
    const void *member = member_of(message, field);
    if (tare_field_in_oneof(field) && *case_of(message, field) != field->id) return false;
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return *(ProtobufCMessage *const *)member;
    case PROTOBUF_C_TYPE_STRING:
        if (tare_field_in_oneof(field) || field->label == PROTOBUF_C_LABEL_OPTIONAL) return *(char *const *)member;
        return *(char *const *)member && (**(char *const *)member || is_entry(message->descriptor));
    default:
        if (tare_field_in_oneof(field)) return true;
        if (field->label != PROTOBUF_C_LABEL_NONE) return *(const protobuf_c_boolean *)case_of(message, field);
        if (field->type == PROTOBUF_C_TYPE_BYTES) return ((const ProtobufCBinaryData *)member)->len > 0;
        return memcmp(member, zeros, tare_field_value_size(field)) != 0 || is_entry(message->descriptor);
    }
}

size_t tare_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    if (field->label == PROTOBUF_C_LABEL_REPEATED) return *count_of(message, field);
    return is_set(message, field) ? 1 : 0;
}

const void *tare_field_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, size_t i) {
    const void *member = member_of(message, field);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) return member;
    return *(const char *const *)member + i * tare_field_value_size(field);
}

uint32_t tare_field_oneof_case(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    return *case_of(message, field);
}

void *tare_field_set(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field) {
    void *member = member_of(message, field);
    if (tare_field_in_oneof(field)) {
        if (*case_of(message, field) != field->id) memset(member, 0, tare_field_value_size(field));
        *case_of(message, field) = field->id;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset) {
        *(protobuf_c_boolean *)case_of(message, field) = 1; /* strings and messages have no presence flag */
    }
    return member;
}

static size_t capacity_for(size_t count) {
    if (count == 0) return 0;
    if (count <= 2) return 2;
    return (size_t)1 << (64 - __builtin_clzll((unsigned long long)count - 1));
}

/* Makes space for `count` more elements after the first `held`. */
static bool grow(struct tare_arena *arena, void **items, size_t held, size_t count, size_t item_size) {
    void *larger;
    if (count > SIZE_MAX / 64 - held) return false;
    if (capacity_for(held + count) == capacity_for(held)) return true;
    larger = tare_arena_calloc(arena, capacity_for(held + count), item_size);
    if (!larger) return false;
    if (held) memcpy(larger, *items, held * item_size);
    *items = larger;
    return true;
}

void *tare_field_append(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, struct tare_arena *arena,
                        size_t count) {
    void **items = member_of(message, field);
    size_t *held = count_of(message, field), first = *held;
    if (!grow(arena, items, first, count, tare_field_value_size(field))) return NULL;
    *held += count;
    return (char *)*items + first * tare_field_value_size(field);
}

tare_status tare_message_add_unknown(ProtobufCMessage *message, struct tare_arena *arena, uint32_t number,
                                     ProtobufCWireType wire_type, const void *data, size_t size) {
    ProtobufCMessageUnknownField *field;
    char *copy;
    void *items = message->unknown_fields;
    if (!grow(arena, &items, message->n_unknown_fields, 1, sizeof *field)) return TARE_NO_MEMORY;
    message->unknown_fields = items;
    copy = tare_arena_strndup(arena, data, size);
    if (!copy) return TARE_NO_MEMORY;
    field = &message->unknown_fields[message->n_unknown_fields++];
    *field = (ProtobufCMessageUnknownField){ .tag = number, .wire_type = wire_type, .len = size };
    field->data = (uint8_t *)copy;
    return TARE_OK;
}

/* ---- duplicate keys of maps ---- */

struct key {
    const void *data;
    size_t size;
};

static struct key key_of(const ProtobufCMessage *entry) {
    const ProtobufCFieldDescriptor *field = &entry->descriptor->fields[0];
    const void *member = member_of(entry, field);
    const char *text;
    if (field->type != PROTOBUF_C_TYPE_STRING) return (struct key){ member, tare_field_value_size(field) };
    text = *(const char *const *)member;
    return (struct key){ text ? text : "", text ? strlen(text) : 0 };
}

/* Few entries: pairs are compared. */
static size_t merge_few(ProtobufCMessage **entries, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct key key = key_of(entries[i]);
        size_t same = 0;
        for (; same < kept; same++) {
            const struct key other = key_of(entries[same]);
            if (other.size == key.size && memcmp(other.data, key.data, key.size) == 0) break;
        }
        entries[same] = entries[i];
        kept += same == kept;
    }
    return kept;
}

/* positions: key -> slot of `entries` that holds its entry. */
static tare_status merge_many(size_t *kept, struct tare_map *positions, ProtobufCMessage **entries, size_t count) {
    *kept = 0;
    for (size_t i = 0; i < count; i++) {
        const struct key key = key_of(entries[i]);
        ProtobufCMessage **slot = tare_map_get_n(positions, key.data, key.size);
        if (!slot) slot = &entries[(*kept)++];
        *slot = entries[i]; /* the map borrows the key of the entry that is in the slot */
        if (!tare_map_set_n(positions, key.data, key.size, slot)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

tare_status tare_message_merge_map_entries(ProtobufCMessage *message) {
    enum { FEW = 16 };
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    for (unsigned f = 0; f < descriptor->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[f];
        struct tare_map positions = { 0 };
        tare_status status = TARE_OK;
        if (field->label != PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE) continue;
        size_t *count = count_of(message, field);
        ProtobufCMessage **entries = *(ProtobufCMessage ***)member_of(message, field);
        if (*count < 2 || !is_entry(field->descriptor)) continue;
        if (*count <= FEW)
            *count = merge_few(entries, *count);
        else
            status = merge_many(count, &positions, entries, *count);
        tare_map_free(&positions);
        TARE_TRY(status);
    }
    return TARE_OK;
}

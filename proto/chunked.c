/* Assembles a chunked message. The last record is the index: a tree of parts, each with the path to its field. A part
 * that is a message is merged into the message at its path; strings and bytes are set. Every record is used once, so
 * that the result cannot be larger than the file. */
#include "proto/chunked.h"
#include "base/alloc.h"
#include "proto/field.h"
#include "proto/message.h"
#include "proto/riegeli.h"
#include "proto/tensorflow/chunk.pb-c.h"

#include <string.h>

struct merger {
    struct tare_arena *arena;
    const struct tare_riegeli_record *records;
    size_t n_records;
    const Tensorflow__ChunkMetadata *index;
    bool *used; /* by chunk */
};

/* A location in the message: a message, or a field of strings or bytes. */
struct place {
    ProtobufCMessage *message;
    const ProtobufCFieldDescriptor *field; /* NULL: the message itself */
    void *slot;
};

static tare_status find_chunk(const struct tare_riegeli_record **out, struct merger *m, uint64_t number) {
    const Tensorflow__ChunkMetadata__ChunkInfo *info;
    if (number >= m->index->n_chunks)
        return TARE_FAIL(TARE_CORRUPT, "part %llu is not in the list of %zu", (unsigned long long)number,
                         m->index->n_chunks);
    if (m->used[number]) return TARE_FAIL(TARE_CORRUPT, "part %llu is used twice", (unsigned long long)number);
    m->used[number] = true;
    info = m->index->chunks[number];
    for (size_t low = 0, high = m->n_records; low < high;) {
        size_t middle = low + (high - low) / 2;
        *out = &m->records[middle];
        if ((*out)->position == info->offset) return TARE_OK;
        if ((*out)->position < info->offset)
            low = middle + 1;
        else
            high = middle;
    }
    return TARE_FAIL(TARE_CORRUPT, "part %llu has no record at %llu", (unsigned long long)number,
                     (unsigned long long)info->offset);
}

/* ---- the path to a field ---- */

static tare_status message_in(struct place *place, struct merger *m, const ProtobufCFieldDescriptor *field,
                              void *slot) {
    ProtobufCMessage **child = slot;
    if (!slot) return TARE_NO_MEMORY;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
        place->field = field;
        place->slot = slot;
        return TARE_OK;
    }
    if (!*child) *child = tare_message_new(m->arena, field->descriptor);
    place->message = *child;
    place->field = NULL;
    return *child ? TARE_OK : TARE_NO_MEMORY;
}

/* Maps are lists of entries with fields key = 1 and value = 2. */
static tare_status step_map(struct place *place, struct merger *m, const ProtobufCFieldDescriptor *list,
                            const Tensorflow__FieldIndex__MapKey *key) {
    const ProtobufCMessageDescriptor *entries = list->type == PROTOBUF_C_TYPE_MESSAGE ? list->descriptor : NULL;
    const ProtobufCFieldDescriptor *value = entries ? protobuf_c_message_descriptor_get_field(entries, 2) : NULL;
    size_t count = tare_field_count(place->message, list);
    if (!value || entries->fields[0].type != PROTOBUF_C_TYPE_STRING || !key ||
        key->type_case != TENSORFLOW__FIELD_INDEX__MAP_KEY__TYPE_S)
        return TARE_FAIL(TARE_UNSUPPORTED, "field %s has a key that is not a string", list->name);
    for (size_t i = 0; i < count; i++) {
        ProtobufCMessage *entry = *(ProtobufCMessage *const *)tare_field_value(place->message, list, i);
        const char *text = *(char *const *)tare_field_value(entry, &entries->fields[0], 0);
        if (strcmp(text, key->s) != 0) continue;
        return message_in(place, m, value, (char *)entry + value->offset);
    }
    return TARE_FAIL(TARE_CORRUPT, "field %s has no entry '%s'", list->name, key->s);
}

static tare_status step_index(struct place *place, struct merger *m, const ProtobufCFieldDescriptor *field,
                              uint64_t index) {
    size_t count = tare_field_count(place->message, field);
    if (index > count)
        return TARE_FAIL(TARE_CORRUPT, "field %s has no element %llu of %zu", field->name, (unsigned long long)index,
                         count);
    return message_in(place, m, field,
                      index < count ? (void *)(uintptr_t)tare_field_value(place->message, field, index)
                                    : tare_field_append(place->message, field, m->arena, 1));
}

/* Follows one field, and its element if there is one; *used: number of tags consumed. */
static tare_status step(struct place *place, struct merger *m, Tensorflow__FieldIndex *const *tags, size_t count,
                        size_t *used) {
    const ProtobufCFieldDescriptor *field;
    *used = 1;
    if (place->field || tags[0]->kind_case != TENSORFLOW__FIELD_INDEX__KIND_FIELD)
        return TARE_FAIL(TARE_CORRUPT, "the path of a part does not begin with a field of a message");
    field = protobuf_c_message_descriptor_get_field(place->message->descriptor, tags[0]->field);
    if (!field || (field->type != PROTOBUF_C_TYPE_MESSAGE && field->type != PROTOBUF_C_TYPE_BYTES &&
                   field->type != PROTOBUF_C_TYPE_STRING))
        return TARE_FAIL(TARE_UNSUPPORTED, "a part belongs into field %u of %s", tags[0]->field,
                         place->message->descriptor->name);
    if (field->label != PROTOBUF_C_LABEL_REPEATED)
        return message_in(place, m, field,
                          tare_field_count(place->message, field) || !tare_field_in_oneof(field)
                              ? (void *)((char *)place->message + field->offset)
                              : tare_field_set(place->message, field));
    if (count > 1 && tags[1]->kind_case == TENSORFLOW__FIELD_INDEX__KIND_MAP_KEY) {
        *used = 2;
        return step_map(place, m, field, tags[1]->map_key);
    }
    if (count > 1 && tags[1]->kind_case == TENSORFLOW__FIELD_INDEX__KIND_INDEX) {
        *used = 2;
        return step_index(place, m, field, tags[1]->index);
    }
    return message_in(place, m, field, tare_field_append(place->message, field, m->arena, 1));
}

/* ---- merging ---- */

static tare_status add_bytes(const struct place *place, struct merger *m, const struct tare_riegeli_record *record) {
    ProtobufCBinaryData *bytes = place->slot;
    uint8_t *joined;
    if (place->field->type != PROTOBUF_C_TYPE_BYTES)
        return TARE_FAIL(TARE_UNSUPPORTED, "a part is the text %s", place->field->name);
    joined = tare_arena_alloc(m->arena, bytes->len + record->size + 1);
    if (!joined) return TARE_NO_MEMORY;
    if (bytes->len) memcpy(joined, bytes->data, bytes->len);
    if (record->size) memcpy(joined + bytes->len, record->data, record->size);
    *bytes = (ProtobufCBinaryData){ .len = bytes->len + record->size, .data = joined };
    return TARE_OK;
}

static tare_status merge(struct place place, struct merger *m, const Tensorflow__ChunkedMessage *part);

static tare_status merge_field(struct place place, struct merger *m, const Tensorflow__ChunkedField *field) {
    size_t used;
    for (size_t i = 0; i < field->n_field_tag; i += used)
        TARE_TRY(step(&place, m, field->field_tag + i, field->n_field_tag - i, &used));
    return field->message ? merge(place, m, field->message) : TARE_OK;
}

/* Depth is bounded: the index itself is a message. */
static tare_status merge(struct place place, struct merger *m, const Tensorflow__ChunkedMessage *part) {
    const struct tare_riegeli_record *record;
    if (part->part_case == TENSORFLOW__CHUNKED_MESSAGE__PART_CHUNK_INDEX) {
        TARE_TRY(find_chunk(&record, m, part->chunk_index));
        TARE_TRY(place.field ? add_bytes(&place, m, record)
                             : tare_message_merge(place.message, m->arena, record->data, record->size, "a part"));
    }
    for (size_t i = 0; i < part->n_chunked_fields; i++)
        TARE_TRY(merge_field(place, m, part->chunked_fields[i]));
    return TARE_OK;
}

static tare_status read_all(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                            struct tare_arena *arena, const void *data, size_t size) {
    struct merger m = { .arena = arena };
    struct tare_riegeli_record *records;
    ProtobufCMessage *index, *message;
    TARE_TRY(tare_riegeli_read(&records, &m.n_records, arena, data, size));
    if (!m.n_records) return TARE_FAIL(TARE_CORRUPT, "there is no record");
    m.records = records;
    m.n_records--;
    TARE_TRY(tare_message_unpack(&index, &tensorflow__chunk_metadata__descriptor, arena, records[m.n_records].data,
                                 records[m.n_records].size, "its index"));
    m.index = (const Tensorflow__ChunkMetadata *)index;
    m.used = TARE_NEW_ARRAY(arena, bool, m.index->n_chunks + 1);
    message = tare_message_new(arena, descriptor);
    if (!m.used || !message) return TARE_NO_MEMORY;
    if (!m.index->message) return TARE_FAIL(TARE_CORRUPT, "its index does not describe a message");
    TARE_TRY(merge((struct place){ .message = message }, &m, m.index->message));
    *out = message;
    return TARE_OK;
}

tare_status tare_chunked_read(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                              struct tare_arena *arena, const void *data, size_t size, const char *what) {
    *out = NULL;
    return tare_error_prefix(read_all(out, descriptor, arena, data, size), "%s", what);
}

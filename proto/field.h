/* The members of protobuf-c messages, reached through descriptors: what the wire reader and the text reader share.
 *
 * Arrays of repeated fields made here have room for the next power of two (at least 2) of elements, so that appending
 * is linear and needs no capacity beside the count. Append only to messages that were made here. */
#ifndef TARE_PROTO_FIELD_H
#define TARE_PROTO_FIELD_H

#include "base/arena.h"
#include "base/status.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* A message with its defaults, in the arena; NULL when memory is out. A map entry gets its value message too, so that
 * it is never NULL. */
ProtobufCMessage *tare_message_new(struct tare_arena *arena, const ProtobufCMessageDescriptor *descriptor);

/* Bytes of one value in memory. */
size_t tare_field_value_size(const ProtobufCFieldDescriptor *field);
/* True for the numeric types, bool and enum: those that may be packed. */
bool tare_field_is_packable(const ProtobufCFieldDescriptor *field);
/* How a single value goes on the wire. */
ProtobufCWireType tare_field_wire_type(const ProtobufCFieldDescriptor *field);
/* Values that the message holds: the count of a repeated field, else 1 or 0. A proto3 field without presence counts as
 * 0 when it has its default, by its bits (so that -0.0 is a value). Key and value of a map entry (a message XEntry of
 * key and value) count as 1 whatever they are, as in protobuf's own maps. */
size_t tare_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* The i-th value, i < tare_field_count. */
const void *tare_field_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, size_t i);

/* Where a singular value goes, marked as present. A oneof that held another member is cleared first. */
void *tare_field_set(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* The first of `count` new zeroed values of a repeated field; NULL when memory is out. */
void *tare_field_append(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, struct tare_arena *arena,
                        size_t count);
/* The id of the member that a oneof holds, 0 for none; `field` is one of its members. */
uint32_t tare_field_oneof_case(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
static inline bool tare_field_in_oneof(const ProtobufCFieldDescriptor *field) {
    return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
}

/* Adds a field that the descriptor lacks; `data` (with the length prefix, for PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) is
 * copied into the arena. */
tare_status tare_message_add_unknown(ProtobufCMessage *message, struct tare_arena *arena, uint32_t number,
                                     ProtobufCWireType wire_type, const void *data, size_t size);

#endif

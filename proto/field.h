/* Access to the members of protobuf-c messages by descriptor, for the wire and text readers and writers.
 *
 * The capacity of repeated fields is the count rounded up to a power of two (at least 2), so that appending takes
 * linear time without a stored capacity. Append only to messages created by these functions. */
#ifndef TARE_PROTO_FIELD_H
#define TARE_PROTO_FIELD_H

#include "base/arena.h"
#include "base/status.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* Creates a message with its defaults in the arena; NULL if out of memory. In a map entry, the value message is created
 * as well, so that it is never NULL. */
ProtobufCMessage *tare_message_new(struct tare_arena *arena, const ProtobufCMessageDescriptor *descriptor);

/* Bytes of one value in memory. */
size_t tare_field_value_size(const ProtobufCFieldDescriptor *field);
/* True for the numeric types, bool and enum: those that may be packed. */
bool tare_field_is_packable(const ProtobufCFieldDescriptor *field);
/* The wire type of a single value. */
ProtobufCWireType tare_field_wire_type(const ProtobufCFieldDescriptor *field);
/* Number of values: the count of a repeated field, otherwise 1 or 0. A proto3 field without presence has 0 if its bits
 * are those of the default (-0.0 is a value). Key and value of a map entry (a message XEntry of key and value) always
 * have 1, as in protobuf's maps. */
size_t tare_field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* The i-th value, i < tare_field_count. */
const void *tare_field_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, size_t i);

/* The slot of a singular value, which is marked as present. Another member of its oneof is cleared first. */
void *tare_field_set(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* Appends `count` zeroed values to a repeated field and returns the first; NULL if out of memory. */
void *tare_field_append(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, struct tare_arena *arena,
                        size_t count);
/* Removes the entries of map fields whose key a later entry has, as protobuf's parsers do: the last entry holds the
 * value, at the position of the first. The readers call it for each message. TARE_NO_MEMORY or TARE_OK. */
tare_status tare_message_merge_map_entries(ProtobufCMessage *message);
/* The id of the member that is set in a oneof, 0 for none; `field` is any of its members. */
uint32_t tare_field_oneof_case(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
static inline bool tare_field_in_oneof(const ProtobufCFieldDescriptor *field) {
    return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
}

/* Adds a field that the descriptor lacks; `data` (with the length prefix, for PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) is
 * copied into the arena. */
tare_status tare_message_add_unknown(ProtobufCMessage *message, struct tare_arena *arena, uint32_t number,
                                     ProtobufCWireType wire_type, const void *data, size_t size);

#endif

/* Protobuf messages from and to bytes, with the structs of protobuf-c.
 *
 * protobuf-c's own reader and writer are not used: this reader allocates in an arena, checks untrusted input and
 * reports the offset of errors; this writer encodes map entries as protobuf does. */
#ifndef TARE_PROTO_MESSAGE_H
#define TARE_PROTO_MESSAGE_H

#include "base/arena.h"
#include "base/status.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TARE_MESSAGE_MAX_DEPTH = 100,       /* nesting depth, the same limit as protobuf's */
    TARE_MESSAGE_MAX_GROWTH = 64,       /* a message takes at most this many times its size in memory … */
    TARE_MESSAGE_FREE_GROWTH = 1 << 20, /* … plus this many bytes */
};

/* Reads a message that is `size` bytes long. Everything in *out is in the arena (strings and bytes are copied, aligned
 * to 16 bytes); free it with the arena, never with protobuf-c's free functions. `what` names the bytes in error texts
 * (a file name).
 *
 * Repeated numbers may be packed or not. A singular message that occurs twice is merged; of a scalar the last value
 * is used. Unknown fields, and known ones with another wire type, are kept in unknown_fields. A map entry without
 * value has the default message, never NULL.
 *
 * TARE_CORRUPT with the byte offset: a field that is truncated or exceeds its message, an invalid tag, messages nested
 * too deeply, more memory than the limits above. TARE_UNSUPPORTED: groups; a string (not bytes) with a NUL byte, which
 * protobuf-c cannot represent. TARE_NO_MEMORY. */
tare_status tare_message_unpack(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                                struct tare_arena *arena, const void *data, size_t size,
                                const char *what) TARE_WARN_UNUSED;

/* Like unpack, into an existing message (of unpack or tare_message_new) in the same arena: repeated fields are
 * appended, others replaced or merged. After a failure the message is partially changed. */
tare_status tare_message_merge(ProtobufCMessage *message, struct tare_arena *arena, const void *data, size_t size,
                               const char *what) TARE_WARN_UNUSED;

/* Reading a large message without loading it entirely: parts are skipped and can be read separately later. */
struct tare_message_part {
    const uint8_t *data;
    size_t size;
};
struct tare_message_reading {
    const void *start; /* start of the file: offsets in errors are relative to it */
    const char *what;
    int depth; /* number of enclosing messages */
    /* Called for every message field, repeated or not: true omits it from `parent`. NULL: nothing is omitted. */
    bool (*leave)(void *arg, ProtobufCMessage *parent, uint32_t field, struct tare_message_part part);
    void *arg;
};
/* Like tare_message_unpack, for a part of a file. */
tare_status tare_message_unpack_part(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                                     struct tare_arena *arena, struct tare_message_part part,
                                     const struct tare_message_reading *reading) TARE_WARN_UNUSED;
/* Reads the next field of a serialized message and moves *at after it: its number, and the payload of a
 * length-delimited field (size 0, data NULL for others). `field` 0: the end. */
tare_status tare_message_next(uint32_t *field, struct tare_message_part *payload, struct tare_message_part *rest,
                              const struct tare_message_reading *reading) TARE_WARN_UNUSED;

/* Serializes a message: fields in number order, then unknown fields; the same bytes as protobuf writes, except for the
 * order of map entries. Release *data with tare_free.
 * TARE_UNSUPPORTED beyond protobuf's limit of 2 GiB, TARE_NO_MEMORY. */
tare_status tare_message_pack(uint8_t **data, size_t *size, const ProtobufCMessage *message) TARE_WARN_UNUSED;

#endif

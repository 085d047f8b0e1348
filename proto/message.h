/* Protobuf messages from and to bytes.
 *
 * Reader and writer are our own and not protobuf-c's: the one reads straight into an arena, trusts nothing, and knows
 * the byte at which something is wrong; the other writes map entries as protobuf does. The structs are protobuf-c's. */
#ifndef TARE_PROTO_MESSAGE_H
#define TARE_PROTO_MESSAGE_H

#include "base/arena.h"
#include "base/status.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TARE_MESSAGE_MAX_DEPTH = 100,       /* messages in messages, as protobuf's own limit */
    TARE_MESSAGE_MAX_GROWTH = 64,       /* a message takes at most this many times its size in memory … */
    TARE_MESSAGE_FREE_GROWTH = 1 << 20, /* … and this many bytes more */
};

/* Reads a message that is `size` bytes long. Everything in *out is in the arena (strings and bytes are copied, aligned
 * to 16 bytes); free it with the arena, never with protobuf-c's free functions. `what` names the bytes in error texts
 * (a file name).
 *
 * Repeated numbers may be packed or not. A singular message that occurs twice is merged, a scalar that does so is the
 * last one. Unknown fields, and known ones with another wire type, are kept in unknown_fields. A map entry without
 * value gets the default message, never NULL.
 *
 * TARE_CORRUPT with the byte offset: a field that is cut off or runs past its message, a bad tag, messages nested too
 * deeply, more memory than the limits above. TARE_UNSUPPORTED: groups; a string (not bytes) that holds a NUL byte,
 * which protobuf-c's structs cannot. TARE_NO_MEMORY. */
tare_status tare_message_unpack(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                                struct tare_arena *arena, const void *data, size_t size,
                                const char *what) TARE_WARN_UNUSED;

/* As unpack into a message that was made here (unpack, tare_message_new) in the same arena: repeated fields grow, the
 * others are replaced or merged. After a failure the message is partly changed. */
tare_status tare_message_merge(ProtobufCMessage *message, struct tare_arena *arena, const void *data, size_t size,
                               const char *what) TARE_WARN_UNUSED;

/* Reading a large message without having all of it in memory: parts of it are passed by, and read on their own later.
 */
struct tare_message_part {
    const uint8_t *data;
    size_t size;
};
struct tare_message_reading {
    const void *start; /* of the file: offsets in error texts count from here */
    const char *what;
    int depth; /* messages around this one */
    /* Asked for every message field, repeated or not: true leaves it out of `parent`. NULL: nothing is left out. */
    bool (*leave)(void *arg, ProtobufCMessage *parent, uint32_t field, struct tare_message_part part);
    void *arg;
};
/* As tare_message_unpack for a part of a file. */
tare_status tare_message_unpack_part(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                                     struct tare_arena *arena, struct tare_message_part part,
                                     const struct tare_message_reading *reading) TARE_WARN_UNUSED;
/* The next field of a message on the wire, *at moving behind it: its number, and the payload of a length-delimited one
 * (size 0, data NULL for the others). `field` 0: the end. */
tare_status tare_message_next(uint32_t *field, struct tare_message_part *payload, struct tare_message_part *rest,
                              const struct tare_message_reading *reading) TARE_WARN_UNUSED;

/* The bytes of a message: fields in number order, then the unknown ones; the same bytes as protobuf's own writer gives
 * but for the order of map entries. Release *data with tare_free.
 * TARE_UNSUPPORTED beyond protobuf's limit of 2 GiB, TARE_NO_MEMORY. */
tare_status tare_message_pack(uint8_t **data, size_t *size, const ProtobufCMessage *message) TARE_WARN_UNUSED;

/* A deep copy in an arena. */
tare_status tare_message_copy(ProtobufCMessage **out, struct tare_arena *arena,
                              const ProtobufCMessage *message) TARE_WARN_UNUSED;

#endif

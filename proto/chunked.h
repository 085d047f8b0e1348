/* Messages over 2 GiB, which TensorFlow's proto splitter stores in parts, as records of a Riegeli file. */
#ifndef TARE_PROTO_CHUNKED_H
#define TARE_PROTO_CHUNKED_H

#include "base/arena.h"
#include "base/status.h"

#include <protobuf-c/protobuf-c.h>

/* Reads the file and assembles the message; everything is in the arena. `what` names the file in error texts.
 * TARE_CORRUPT, TARE_UNSUPPORTED, TARE_NO_MEMORY as for tare_riegeli_read and tare_message_unpack. */
tare_status tare_chunked_read(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                              struct tare_arena *arena, const void *data, size_t size,
                              const char *what) TARE_WARN_UNUSED;

#endif

/* Messages in protobuf's text format, to compare them with what is expected. */
#ifndef TESTS_SUPPORT_TEXT_WRITER_H
#define TESTS_SUPPORT_TEXT_WRITER_H

#include "base/status.h"
#include "base/strbuf.h"

#include <protobuf-c/protobuf-c.h>

/* Appends a message in the layout of protobuf's writer: indented by two spaces, fields in number order, floats with the
 * fewest digits that read back to the same bits. Unknown fields follow the known ones under their numbers and can be
 * read back (varint: decimal, fixed: hexadecimal of full width, length-delimited: a string).
 * TARE_NO_MEMORY. */
tare_status text_writer_put(struct tare_strbuf *out, const ProtobufCMessage *message) TARE_WARN_UNUSED;

#endif

/* Protobuf's text format, by descriptor, for all messages.
 *
 * Fields as `name: value`, messages in {} or <> with an optional colon, lists in [], separators , and ;,
 * comments, every C escape, adjacent strings, numbers in decimal, hexadecimal and octal, enums by name or number,
 * unknown fields by number (known ones only by name). Any may be expanded
 * ([type.googleapis.com/tensorflow.AssetFileDef] { … }) if the message is known. A message value of a scalar field NAME
 * is stored in the field NAME_message if there is one, so that a field that changed from message to scalar can be read
 * in both forms.
 */
#ifndef TARE_PROTO_TEXT_FORMAT_H
#define TARE_PROTO_TEXT_FORMAT_H

#include "base/arena.h"
#include "base/status.h"

#include <protobuf-c/protobuf-c.h>

enum tare_text_mode {
    TARE_TEXT_STRICT,
    TARE_TEXT_CLOSED,  /* strict, and the number of an enum must be one of its values: for readers that index tables */
    TARE_TEXT_RELAXED, /* for options on a command line: enums as in TARE_TEXT_CLOSED; also name=value, an enumerator in
                          quotes, and a backslash before white space, which is white space */
};

/* Reads a message; everything in *out is in the arena. `what` precedes the position in error texts ("options.txt");
 * NULL: texts begin with line:column (both from 1, columns in bytes).
 *
 * TARE_INVALID_ARGUMENT with the position: syntax, unknown names (with the nearest known one), values that are invalid
 * for their field, a singular field set twice, two members of a oneof, more than 100 levels. TARE_NO_MEMORY. */
tare_status tare_text_format_read(ProtobufCMessage **out, const ProtobufCMessageDescriptor *descriptor,
                                  struct tare_arena *arena, const char *text, size_t size, enum tare_text_mode mode,
                                  const char *what) TARE_WARN_UNUSED;

#endif

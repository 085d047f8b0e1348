/* A growing string: NUL-terminated, may contain NUL bytes. A zeroed struct is an empty string.
 *
 * Append functions return nothing. When one runs out of memory the buffer is marked as failed, further appends are
 * ignored, and the owner checks once, with tare_strbuf_status, before it uses the contents. */
#ifndef TARE_BASE_STRBUF_H
#define TARE_BASE_STRBUF_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tare_strbuf {
    char *data; /* NULL while empty; use tare_strbuf_text */
    size_t size, capacity;
    bool failed; /* an append ran out of memory; the contents are incomplete */
};

void tare_strbuf_append(struct tare_strbuf *buf, const void *data, size_t size);
/* Appends `value` as a varint (base/varint.h). */
void tare_strbuf_append_varint(struct tare_strbuf *buf, uint64_t value);
void tare_strbuf_puts(struct tare_strbuf *buf, const char *text);
void tare_strbuf_putc(struct tare_strbuf *buf, char c);
void tare_strbuf_printf(struct tare_strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends bytes C-escaped as protobuf's text format does: \n \r \t \" \' \\ and octal \ooo for the rest outside
 * 0x20..0x7e. */
void tare_strbuf_escape(struct tare_strbuf *buf, const void *data, size_t size);
/* Appends a word of a shell command, in single quotes if it contains anything but plain characters, in
 * $'…' if one of them is a control character, since commands are printed on one line. */
void tare_strbuf_shell_word(struct tare_strbuf *buf, const char *word);
/* Appends `text` as one line with control characters escaped (base/visible.h). */
void tare_strbuf_put_visible(struct tare_strbuf *buf, const char *text);
/* The contents as a C string, "" if empty; owned by the buffer and valid until the next append. */
const char *tare_strbuf_text(const struct tare_strbuf *buf);
/* Number of characters of a UTF-8 string: its width on a terminal if no character is wide or combining. */
size_t tare_text_width(const char *text);
/* TARE_NO_MEMORY, with the error text set, if an append failed; otherwise TARE_OK. Check it before using the contents.
 */
tare_status tare_strbuf_status(const struct tare_strbuf *buf) TARE_WARN_UNUSED;
/* Writes the contents to the stream; nothing if an append failed: a command that prints reports the failed allocation
 * at its end (base/control.h). */
void tare_strbuf_print(const struct tare_strbuf *buf, FILE *out);
/* Frees the contents and empties the buffer. */
void tare_strbuf_free(struct tare_strbuf *buf);

#endif

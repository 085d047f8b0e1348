/* A growing text (NUL-terminated, may hold NUL bytes). Zero it to start; memory errors stick and show at the end. */
#ifndef TARE_BASE_STRBUF_H
#define TARE_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tare_strbuf {
    char *data; /* NULL while empty; use tare_strbuf_text */
    size_t size, capacity;
    bool failed; /* an append found no memory; the text is cut */
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
const char *tare_strbuf_text(const struct tare_strbuf *buf);
/* Characters of a UTF-8 text: its width on a terminal, as far as none is wide or combining. */
size_t tare_text_width(const char *text);
void tare_strbuf_free(struct tare_strbuf *buf);

#endif

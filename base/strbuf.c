/* Growing strings. */
#include "base/strbuf.h"
#include "base/format.h"
#include "base/alloc.h"
#include "base/varint.h"
#include "base/visible.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool reserve(struct tare_strbuf *buf, size_t extra) {
    size_t expected;
    if (buf->failed || !tare_add_size(&expected, buf->size, extra) || !tare_add_size(&expected, expected, 1) ||
        (expected > buf->capacity && !tare_grow((void **)&buf->data, &buf->capacity, expected, 1)))
        buf->failed = true;
    return !buf->failed;
}

void tare_strbuf_append(struct tare_strbuf *buf, const void *data, size_t size) {
    if (!reserve(buf, size)) return;
    if (size) memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    buf->data[buf->size] = '\0';
}

void tare_strbuf_append_varint(struct tare_strbuf *buf, uint64_t value) {
    uint8_t bytes[TARE_VARINT_MAX];
    tare_strbuf_append(buf, bytes, tare_varint_write(bytes, value));
}

void tare_strbuf_puts(struct tare_strbuf *buf, const char *text) {
    tare_strbuf_append(buf, text, strlen(text));
}

void tare_strbuf_putc(struct tare_strbuf *buf, char c) {
    tare_strbuf_append(buf, &c, 1);
}

void tare_strbuf_printf(struct tare_strbuf *buf, const char *format, ...) {
    va_list args, again;
    int size;
    va_start(args, format);
    va_copy(again, args);
    size = tare_format_va(NULL, 0, format, args);
    if (size >= 0 && reserve(buf, (size_t)size)) {
        tare_format_va(buf->data + buf->size, (size_t)size + 1, format, again);
        buf->size += (size_t)size;
    }
    va_end(again);
    va_end(args);
}

void tare_strbuf_escape(struct tare_strbuf *buf, const void *data, size_t size) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = bytes[i];
        switch (c) {
        case '\n':
            tare_strbuf_puts(buf, "\\n");
            break;
        case '\r':
            tare_strbuf_puts(buf, "\\r");
            break;
        case '\t':
            tare_strbuf_puts(buf, "\\t");
            break;
        case '"':
            tare_strbuf_puts(buf, "\\\"");
            break;
        case '\'':
            tare_strbuf_puts(buf, "\\'");
            break;
        case '\\':
            tare_strbuf_puts(buf, "\\\\");
            break;
        default:
            if (c < 0x20 || c > 0x7e) {
                const char octal[] = { '\\', (char)('0' + (c >> 6)), (char)('0' + (c >> 3 & 7)),
                                       (char)('0' + (c & 7)) };
                tare_strbuf_append(buf, octal, sizeof octal);
            } else {
                tare_strbuf_putc(buf, (char)c);
            }
        }
    }
}

const char *tare_strbuf_text(const struct tare_strbuf *buf) {
    return buf->data ? buf->data : "";
}

tare_status tare_strbuf_status(const struct tare_strbuf *buf) {
    if (!buf->failed) return TARE_OK;
    return TARE_FAIL(TARE_NO_MEMORY, "out of memory (expected more than %zu bytes)", buf->capacity);
}

void tare_strbuf_put_visible(struct tare_strbuf *buf, const char *text) {
    const size_t size = strlen(text);
    size_t used;
    for (size_t at = 0; at < size; at += used) {
        char step[TARE_VISIBLE_MAX];
        tare_strbuf_append(buf, step, tare_visible_step(step, &used, text + at, size - at, false, true));
    }
}

/* The program's standard output escapes what it gets (cli/output/visible_output.h). */
/* The stream has no buffer: each fwrite is a system call. A line of usual length is one, so that nothing that others
 * write comes between its parts. */
static void print_visible(const struct tare_strbuf *buf, FILE *out) {
    char text[4096];
    size_t used, size = 0;
    flockfile(out);
    for (size_t at = 0; at < buf->size; at += used) {
        size += tare_visible_step(text + size, &used, buf->data + at, buf->size - at, true, true);
        if (size + TARE_VISIBLE_MAX <= sizeof text && at + used < buf->size) continue;
        fwrite(text, 1, size, out);
        size = 0;
    }
    funlockfile(out);
}

void tare_strbuf_print(const struct tare_strbuf *buf, FILE *out) {
    if (buf->failed || !buf->size) return;
    if (out == stderr)
        print_visible(buf, out);
    else
        fwrite(buf->data, 1, buf->size, out);
}

void tare_strbuf_free(struct tare_strbuf *buf) {
    tare_free(buf->data);
    memset(buf, 0, sizeof *buf);
}

/* Continuation bytes are not counted. */
size_t tare_text_width(const char *text) {
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void tare_strbuf_shell_word(struct tare_strbuf *buf, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=,:+-";
    if (*word && !word[strspn(word, plain)]) {
        tare_strbuf_puts(buf, word);
        return;
    }
    bool has_control = false;
    for (const char *at = word; *at; at++)
        has_control |= (unsigned char)*at < ' ' || *at == 0x7f;
    tare_strbuf_puts(buf, has_control ? "$'" : "'");
    for (; *word; word++) {
        if (has_control && ((unsigned char)*word < ' ' || *word == 0x7f))
            tare_strbuf_printf(buf, "\\%03o", (unsigned)*word);
        else if (has_control && (*word == '\'' || *word == '\\'))
            tare_strbuf_printf(buf, "\\%c", *word);
        else if (*word == '\'')
            tare_strbuf_puts(buf, "'\\''");
        else
            tare_strbuf_putc(buf, *word);
    }
    tare_strbuf_putc(buf, '\'');
}

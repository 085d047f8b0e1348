/* Control characters in visible form. */
#include "base/visible.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The character at `text` and its length; length 0: cut off at the end, -1: not UTF-8. */
static int decode(uint32_t *character, const unsigned char *text, size_t size) {
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char first = text[0];
    const int length = first < 0x80   ? 1
                       : first < 0xc2 ? -1
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                       : first < 0xf5 ? 4
                                      : -1;
    uint32_t value = length <= 1 ? first : first & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((size_t)i == size) return 0;
        if ((text[i] & 0xc0) != 0x80) return -1;
        value = value << 6 | (text[i] & 0x3f);
    }
    *character = value;
    if (length > 1 && (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))) return -1;
    return length;
}

static bool is_control(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static size_t escape(char out[TARE_VISIBLE_MAX], uint32_t c) {
    const char *name = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : NULL;
    if (name) {
        memcpy(out, name, 2);
        return 2;
    }
    return (size_t)snprintf(out, TARE_VISIBLE_MAX, "\\u%04x", (unsigned)(c & 0xffff));
}

size_t tare_visible_step(char out[TARE_VISIBLE_MAX], size_t *used, const char *text, size_t size, bool lines,
                         bool last) {
    uint32_t c = 0;
    int length = decode(&c, (const unsigned char *)text, size);
    *used = 0;
    if (length == 0 && !last) return 0;
    *used = length > 0 ? (size_t)length : 1;
    if (length <= 0) return (size_t)snprintf(out, TARE_VISIBLE_MAX, "\\x%02x", (unsigned char)text[0]);
    if (is_control(c) && !(lines && (c == '\n' || c == '\t'))) return escape(out, c);
    memcpy(out, text, (size_t)length);
    return (size_t)length;
}

const char *tare_visible_line(char *out, size_t room, const char *text) {
    const size_t size = strlen(text);
    size_t at = 0, done = 0, used;
    while (at < size) {
        char step[TARE_VISIBLE_MAX];
        const size_t count = tare_visible_step(step, &used, text + at, size - at, false, true);
        if (count >= room - done) break;
        memcpy(out + done, step, count);
        done += count;
        at += used;
    }
    out[done] = '\0';
    return out;
}

bool tare_is_visible(const char *text) {
    const size_t size = strlen(text);
    size_t used;
    for (size_t at = 0; at < size; at += used) {
        char step[TARE_VISIBLE_MAX];
        const size_t count = tare_visible_step(step, &used, text + at, size - at, false, true);
        if (count != used || memcmp(step, text + at, count) != 0) return false;
    }
    return true;
}

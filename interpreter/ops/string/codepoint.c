/* Decoding and encoding of UTF-8, UTF-16, UTF-32 and single-byte encodings. */
#include "interpreter/ops/string/codepoint.h"
#include "base/ascii.h"

#include <string.h>

static const struct {
    const char *name; /* letters and digits only */
    enum tare_encoding encoding;
} encodings[] = {
    { "utf8", TARE_ENCODING_UTF8 },        { "utf16", TARE_ENCODING_UTF16 },     { "utf16be", TARE_ENCODING_UTF16_BE },
    { "utf16le", TARE_ENCODING_UTF16_LE }, { "utf32", TARE_ENCODING_UTF32 },     { "utf32be", TARE_ENCODING_UTF32_BE },
    { "utf32le", TARE_ENCODING_UTF32_LE }, { "iso88591", TARE_ENCODING_LATIN1 }, { "latin1", TARE_ENCODING_LATIN1 },
    { "usascii", TARE_ENCODING_ASCII },    { "ascii", TARE_ENCODING_ASCII },
};

tare_status tare_encoding_find(enum tare_encoding *out, const char *name) {
    char plain[16];
    size_t n = 0;
    for (const char *c = name; *c && n + 1 < sizeof plain; c++)
        if (tare_is_letter_or_digit(*c)) plain[n++] = tare_lower(*c);
    plain[n] = '\0';
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++)
        if (strcmp(plain, encodings[i].name) == 0) {
            *out = encodings[i].encoding;
            return TARE_OK;
        }
    return TARE_FAIL(TARE_UNSUPPORTED, "Could not create converter for input encoding: %s", name);
}

size_t tare_encoding_start(enum tare_encoding *encoding, const unsigned char *text, size_t size) {
    if (*encoding == TARE_ENCODING_UTF16) {
        bool little = size >= 2 && text[0] == 0xFF && text[1] == 0xFE;
        bool big = size >= 2 && text[0] == 0xFE && text[1] == 0xFF;
        *encoding = little ? TARE_ENCODING_UTF16_LE : TARE_ENCODING_UTF16_BE;
        return little || big ? 2 : 0;
    }
    if (*encoding == TARE_ENCODING_UTF32) {
        bool little = size >= 4 && memcmp(text, "\xFF\xFE\0\0", 4) == 0;
        bool big = size >= 4 && memcmp(text, "\0\0\xFE\xFF", 4) == 0;
        *encoding = little ? TARE_ENCODING_UTF32_LE : TARE_ENCODING_UTF32_BE;
        return little || big ? 4 : 0;
    }
    return 0;
}

static size_t ill_formed(uint32_t *code, bool *bad, size_t size) {
    *code = TARE_CODEPOINT_REPLACEMENT;
    *bad = true;
    return size;
}

/* Well-formed byte sequences according to table 3-7 of the Unicode standard; the valid range of the second byte
 * depends on the first. */
static size_t read_utf8(uint32_t *code, bool *bad, const unsigned char *s, size_t size) {
    unsigned char lead = s[0], low = 0x80, high = 0xBF;
    size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    uint32_t value;
    if (length == 0) return ill_formed(code, bad, 1);
    if (length == 1) {
        *code = lead;
        return 1;
    }
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    value = lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (i >= size || s[i] < low || s[i] > high) return ill_formed(code, bad, i);
        value = value << 6 | (s[i] & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    *code = value;
    return length;
}

static uint32_t unit16(const unsigned char *s, bool little) {
    return little ? (uint32_t)s[1] << 8 | s[0] : (uint32_t)s[0] << 8 | s[1];
}

static size_t read_utf16(uint32_t *code, bool *bad, const unsigned char *s, size_t size, bool little) {
    uint32_t first, second;
    if (size < 2) return ill_formed(code, bad, size);
    first = unit16(s, little);
    *code = first;
    if (first < 0xD800 || first > 0xDFFF) return 2;
    if (first > 0xDBFF) return ill_formed(code, bad, 2);
    if (size < 4) return ill_formed(code, bad, size);
    second = unit16(s + 2, little);
    if (second < 0xDC00 || second > 0xDFFF) return ill_formed(code, bad, 2);
    *code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    return 4;
}

static size_t read_utf32(uint32_t *code, bool *bad, const unsigned char *s, size_t size, bool little) {
    if (size < 4) return ill_formed(code, bad, size);
    *code = little ? (uint32_t)s[3] << 24 | (uint32_t)s[2] << 16 | (uint32_t)s[1] << 8 | s[0]
                   : (uint32_t)s[0] << 24 | (uint32_t)s[1] << 16 | (uint32_t)s[2] << 8 | s[3];
    if (*code > 0x10FFFF || (*code >= 0xD800 && *code <= 0xDFFF)) return ill_formed(code, bad, 4);
    return 4;
}

size_t tare_codepoint_read(uint32_t *code, bool *bad, enum tare_encoding encoding, const unsigned char *text,
                           size_t size) {
    *bad = false;
    switch (encoding) {
    case TARE_ENCODING_UTF8:
        return read_utf8(code, bad, text, size);
    case TARE_ENCODING_UTF16:
    case TARE_ENCODING_UTF16_BE:
        return read_utf16(code, bad, text, size, false);
    case TARE_ENCODING_UTF16_LE:
        return read_utf16(code, bad, text, size, true);
    case TARE_ENCODING_UTF32:
    case TARE_ENCODING_UTF32_BE:
        return read_utf32(code, bad, text, size, false);
    case TARE_ENCODING_UTF32_LE:
        return read_utf32(code, bad, text, size, true);
    case TARE_ENCODING_ASCII:
        if (text[0] > 0x7F) return ill_formed(code, bad, 1);
        break;
    case TARE_ENCODING_LATIN1:
        break;
    }
    *code = text[0];
    return 1;
}

void tare_codepoint_write(struct tare_strbuf *out, enum tare_encoding encoding, uint32_t code) {
    char bytes[4];
    size_t n = 0;
    if (code > 0x10FFFF) return;
    if (encoding == TARE_ENCODING_UTF32_BE || encoding == TARE_ENCODING_UTF32) {
        for (int shift = 24; shift >= 0; shift -= 8)
            bytes[n++] = (char)(code >> shift);
    } else if (encoding != TARE_ENCODING_UTF8) {
        if (code >= 0x10000) {
            uint32_t first = 0xD800 + ((code - 0x10000) >> 10);
            bytes[n++] = (char)(first >> 8);
            bytes[n++] = (char)first;
            code = 0xDC00 + ((code - 0x10000) & 0x3FF);
        }
        bytes[n++] = (char)(code >> 8);
        bytes[n++] = (char)code;
    } else {
        if (code >= 0xD800 && code <= 0xDFFF) code = TARE_CODEPOINT_REPLACEMENT;
        if (code < 0x80) {
            bytes[n++] = (char)code;
        } else {
            int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
            bytes[n++] = (char)((more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0) | code >> (6 * more));
            while (more-- > 0)
                bytes[n++] = (char)(0x80 | ((code >> (6 * more)) & 0x3F));
        }
    }
    tare_strbuf_append(out, bytes, n);
}

/* Text encodings: converts bytes to code points and back. Ill-formed input is segmented as in ICU: each maximal
 * subpart that could start a character counts as one error. */
#ifndef TARE_INTERPRETER_OPS_STRING_CODEPOINT_H
#define TARE_INTERPRETER_OPS_STRING_CODEPOINT_H

#include "base/status.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tare_encoding {
    TARE_ENCODING_UTF8,
    TARE_ENCODING_UTF16, /* byte order from the byte order mark, big-endian without one */
    TARE_ENCODING_UTF16_BE,
    TARE_ENCODING_UTF16_LE,
    TARE_ENCODING_UTF32,
    TARE_ENCODING_UTF32_BE,
    TARE_ENCODING_UTF32_LE,
    TARE_ENCODING_LATIN1,
    TARE_ENCODING_ASCII,
};

enum { TARE_CODEPOINT_REPLACEMENT = 0xFFFD };

/* Finds an encoding by name, ignoring case and punctuation ("utf-8", "UTF16BE"). TARE_UNSUPPORTED for an unknown
 * name. */
tare_status tare_encoding_find(enum tare_encoding *out, const char *name);
/* Determines the byte order of UTF-16 and UTF-32 from the byte order mark; returns the size of the mark (0: none). */
size_t tare_encoding_start(enum tare_encoding *encoding, const unsigned char *text, size_t size);
/* Decodes the code point at `text` (size > 0; byte order determined) and returns the number of bytes consumed, at
 * least 1. An ill-formed sequence yields the replacement character and sets *bad. */
size_t tare_codepoint_read(uint32_t *code, bool *bad, enum tare_encoding encoding, const unsigned char *text,
                           size_t size);
/* Appends a code point in UTF-8, UTF-16-BE or UTF-32-BE. A surrogate is kept in UTF-16 and UTF-32 and becomes the
 * replacement character in UTF-8; values above U+10FFFF are dropped. */
void tare_codepoint_write(struct tare_strbuf *out, enum tare_encoding encoding, uint32_t code);

#endif

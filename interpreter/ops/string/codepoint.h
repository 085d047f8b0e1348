/* Text encodings: code points out of bytes and back. Ill-formed input is cut as ICU cuts it: each maximal part that
 * could have begun a character is one error. */
#ifndef TARE_INTERPRETER_OPS_STRING_CODEPOINT_H
#define TARE_INTERPRETER_OPS_STRING_CODEPOINT_H

#include "base/status.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tare_encoding {
    TARE_ENCODING_UTF8,
    TARE_ENCODING_UTF16, /* by byte order mark, else big endian */
    TARE_ENCODING_UTF16_BE,
    TARE_ENCODING_UTF16_LE,
    TARE_ENCODING_UTF32,
    TARE_ENCODING_UTF32_BE,
    TARE_ENCODING_UTF32_LE,
    TARE_ENCODING_LATIN1,
    TARE_ENCODING_ASCII,
};

enum { TARE_CODEPOINT_REPLACEMENT = 0xFFFD };

/* By name, whatever its case and punctuation ("utf-8", "UTF16BE"); TARE_UNSUPPORTED for one that is not listed. */
tare_status tare_encoding_find(enum tare_encoding *out, const char *name);
/* Settles the byte order of UTF-16 and UTF-32 by the mark at the start of the text; returns the mark's size (0: none).
 */
size_t tare_encoding_start(enum tare_encoding *encoding, const unsigned char *text, size_t size);
/* The code point at `text` (size > 0; a settled encoding); returns the bytes it takes, at least 1. An ill-formed one is
 * the replacement character, with *bad set. */
size_t tare_codepoint_read(uint32_t *code, bool *bad, enum tare_encoding encoding, const unsigned char *text,
                           size_t size);
/* Appends a code point in UTF-8, UTF-16-BE or UTF-32-BE. A surrogate stays one in UTF-16 and UTF-32 and becomes the
 * replacement character in UTF-8; a value above U+10FFFF is left out. */
void tare_codepoint_write(struct tare_strbuf *out, enum tare_encoding encoding, uint32_t code);

#endif

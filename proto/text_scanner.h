/* Tokens of protobuf's text format, independent of messages. Private to the proto module. */
#ifndef TARE_PROTO_TEXT_SCANNER_H
#define TARE_PROTO_TEXT_SCANNER_H

#include "base/status.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TARE_TEXT_WORD_SIZE = 512 }; /* size of the longest name or number, including the NUL */

/* `at` is always at the first byte of a token: white space and comments after each token are skipped. */
struct tare_text_scanner {
    const char *start, *at, *end;
    const char *what; /* may be NULL */
    bool relaxed;
};

void tare_text_scanner_init(struct tare_text_scanner *scanner, const char *text, size_t size, bool relaxed,
                            const char *what);
/* Sets the error text "what:line:column: …" for a position in the text; returns TARE_INVALID_ARGUMENT. */
tare_status tare_text_fail(const struct tare_text_scanner *scanner, const char *at, const char *format, ...)
    TARE_PRINTF(3, 4);
/* The next token for errors ("end of text", "'x'"), into `text`; returns `text`. */
const char *tare_text_seen(const struct tare_text_scanner *scanner, char text[48]);

/* True if the next byte is `c`; take also consumes it. */
static inline bool tare_text_peek(const struct tare_text_scanner *scanner, char c) {
    return scanner->at < scanner->end && *scanner->at == c;
}
bool tare_text_take(struct tare_text_scanner *scanner, char c);
/* True if the next token is a string. */
bool tare_text_at_string(const struct tare_text_scanner *scanner);

/* A name: letters, digits, underscores. Fails if there is none. */
tare_status tare_text_name(struct tare_text_scanner *scanner, char word[TARE_TEXT_WORD_SIZE]);
/* A type name as in an expanded Any: names with dots and slashes. */
tare_status tare_text_type_name(struct tare_text_scanner *scanner, char word[TARE_TEXT_WORD_SIZE]);
/* A number or name with its sign, as written: "-0x1f", "1.5e-3f", "inf", "true". Fails when there is none. */
tare_status tare_text_scalar(struct tare_text_scanner *scanner, char word[TARE_TEXT_WORD_SIZE]);
/* One or more string literals, appended to `out` as one. */
tare_status tare_text_string(struct tare_text_scanner *scanner, struct tare_strbuf *out);

/* "-12", "0x1f", "017" as sign and magnitude; false if the word is not an integer or exceeds 64 bits. */
bool tare_text_parse_integer(const char *word, bool *negative, uint64_t *magnitude);
/* A decimal number, "1.5f", "inf", "-infinity", "nan"; false if the word is not a number. */
bool tare_text_parse_double(const char *word, double *value);
bool tare_text_parse_float(const char *word, float *value);

#endif

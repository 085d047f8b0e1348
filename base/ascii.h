/* Letters, digits and spaces of ASCII, as in the locale "C".
 *
 * Those of <ctype.h> and strcasecmp are what the locale of the host says: a Turkish one does not pair I with i, and one
 * of a single byte has letters beyond ASCII. Names in models, files and options are the same everywhere. */
#ifndef TARE_BASE_ASCII_H
#define TARE_BASE_ASCII_H

#include <stdbool.h>
#include <stddef.h>

static inline bool tare_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline bool tare_is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool tare_is_letter_or_digit(char c) {
    return tare_is_letter(c) || tare_is_digit(c);
}

static inline bool tare_is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline char tare_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline char tare_upper(char c) {
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* The first `size` bytes are the same text but for upper and lower case; a text may end before. */
static inline bool tare_same_letters_n(const char *a, const char *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (tare_lower(a[i]) != tare_lower(b[i])) return false;
        if (!a[i]) break;
    }
    return true;
}

static inline bool tare_same_letters(const char *a, const char *b) {
    return tare_same_letters_n(a, b, (size_t)-1);
}

#endif

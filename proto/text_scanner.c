/* Names, numbers and strings of the text format. */
#include "proto/text_scanner.h"
#include "base/ascii.h"
#include "base/format.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_letter(char c) {
    return tare_is_letter(c) || c == '_';
}

/* A backslash that a shell would have removed: only white space follows up to the end of the line. */
static bool at_continuation(const struct tare_text_scanner *s) {
    return s->relaxed && *s->at == '\\' && (s->at + 1 == s->end || tare_is_space(s->at[1]));
}

static void skip_space(struct tare_text_scanner *s) {
    while (s->at < s->end) {
        if (*s->at == '#') {
            const char *line_end = memchr(s->at, '\n', (size_t)(s->end - s->at));
            s->at = line_end ? line_end + 1 : s->end;
        } else if (tare_is_space(*s->at) || at_continuation(s)) {
            s->at++;
        } else {
            return;
        }
    }
}

void tare_text_scanner_init(struct tare_text_scanner *s, const char *text, size_t size, bool relaxed,
                            const char *what) {
    const char *start = text + tare_file_mark_size(text, size);
    *s =
        (struct tare_text_scanner){ .start = start, .at = start, .end = text + size, .what = what, .relaxed = relaxed };
    skip_space(s);
}

tare_status tare_text_fail(const struct tare_text_scanner *s, const char *at, const char *format, ...) {
    long long line = 1;
    const char *line_start = s->start;
    va_list args;
    for (const char *c = s->start; c < at; c++) {
        if (*c == '\n') {
            line++;
            line_start = c + 1;
        }
    }
    va_start(args, format);
    tare_fail_va(TARE_INVALID_ARGUMENT, format, args);
    va_end(args);
    return tare_error_prefix(TARE_INVALID_ARGUMENT, "%s%s%lld:%lld", s->what ? s->what : "", s->what ? ":" : "", line,
                             (long long)(at - line_start) + 1);
}

const char *tare_text_seen(const struct tare_text_scanner *s, char text[48]) {
    const char *at = s->at;
    if (at == s->end) return strcpy(text, "end of text");
    while (at < s->end && at - s->at < 32 && (is_letter(*at) || tare_is_digit(*at) || *at == '.' || *at == '-'))
        at++;
    if (at > s->at)
        snprintf(text, 48, "'%.*s'", (int)(at - s->at), s->at);
    else if (*at > ' ' && *at <= '~')
        snprintf(text, 48, "'%c'", *at);
    else
        snprintf(text, 48, "byte 0x%02x", (unsigned char)*at);
    return text;
}

bool tare_text_take(struct tare_text_scanner *s, char c) {
    if (!tare_text_peek(s, c)) return false;
    s->at++;
    skip_space(s);
    return true;
}

bool tare_text_at_string(const struct tare_text_scanner *s) {
    return tare_text_peek(s, '"') || tare_text_peek(s, '\'');
}

static tare_status take_word(struct tare_text_scanner *s, char word[TARE_TEXT_WORD_SIZE], const char *end) {
    size_t size = (size_t)(end - s->at);
    if (size >= TARE_TEXT_WORD_SIZE)
        return tare_text_fail(s, s->at, "a word of %zu letters is too long (expected at most %d)", size,
                              TARE_TEXT_WORD_SIZE - 1);
    memcpy(word, s->at, size);
    word[size] = '\0';
    s->at = end;
    skip_space(s);
    return TARE_OK;
}

tare_status tare_text_name(struct tare_text_scanner *s, char word[TARE_TEXT_WORD_SIZE]) {
    const char *at = s->at;
    char seen[48];
    while (at < s->end && (is_letter(*at) || (at > s->at && tare_is_digit(*at))))
        at++;
    if (at == s->at) return tare_text_fail(s, at, "expected a name (got %s)", tare_text_seen(s, seen));
    return take_word(s, word, at);
}

tare_status tare_text_type_name(struct tare_text_scanner *s, char word[TARE_TEXT_WORD_SIZE]) {
    const char *at = s->at;
    char seen[48];
    while (at < s->end && (is_letter(*at) || tare_is_digit(*at) || *at == '.' || *at == '/' || *at == '-'))
        at++;
    if (at == s->at) return tare_text_fail(s, at, "expected a type name (got %s)", tare_text_seen(s, seen));
    return take_word(s, word, at);
}

tare_status tare_text_scalar(struct tare_text_scanner *s, char word[TARE_TEXT_WORD_SIZE]) {
    const char *at;
    char seen[48];
    bool negative = tare_text_take(s, '-'), hexadecimal;
    size_t sign = negative ? 1 : 0;
    at = s->at;
    hexadecimal = s->end - at > 1 && *at == '0' && (at[1] == 'x' || at[1] == 'X');
    while (at < s->end && (is_letter(*at) || tare_is_digit(*at) || *at == '.' ||
                           ((*at == '-' || *at == '+') && at > s->at && tare_is_digit(*s->at) && !hexadecimal &&
                            (at[-1] == 'e' || at[-1] == 'E'))))
        at++;
    if (at == s->at) return tare_text_fail(s, at, "expected a value (got %s)", tare_text_seen(s, seen));
    TARE_TRY(take_word(s, word, at));
    if (sign) {
        size_t size = strlen(word);
        if (size + 1 >= TARE_TEXT_WORD_SIZE) return tare_text_fail(s, s->at, "the number is too long");
        memmove(word + 1, word, size + 1);
        word[0] = '-';
    }
    return TARE_OK;
}

static int digit_of(char c, int base) {
    int digit = tare_is_digit(c)       ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    return digit < base ? digit : -1;
}

static const char *read_digits(const char *at, const char *end, int base, int most, uint32_t *value) {
    *value = 0;
    for (int i = 0; i < most && at < end && digit_of(*at, base) >= 0; i++)
        *value = *value * (uint32_t)base + (uint32_t)digit_of(*at++, base);
    return at;
}

static void append_utf8(struct tare_strbuf *out, uint32_t c) {
    if (c < 0x80) {
        tare_strbuf_putc(out, (char)c);
        return;
    }
    if (c < 0x800) {
        tare_strbuf_putc(out, (char)(0xc0 | c >> 6));
    } else {
        if (c < 0x10000) {
            tare_strbuf_putc(out, (char)(0xe0 | c >> 12));
        } else {
            tare_strbuf_putc(out, (char)(0xf0 | c >> 18));
            tare_strbuf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        tare_strbuf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
    }
    tare_strbuf_putc(out, (char)(0x80 | (c & 0x3f)));
}

/* \uXXXX and \UXXXXXXXX, also as a pair of surrogates. */
static tare_status read_unicode(const struct tare_text_scanner *s, const char **at, struct tare_strbuf *out) {
    const char *from = *at - 2;
    int width = (*at)[-1] == 'u' ? 4 : 8;
    uint32_t c, low;
    const char *end = read_digits(*at, s->end, 16, width, &c);
    if (end - *at == width && c >= 0xd800 && c < 0xdc00 && s->end - end >= 6 && end[0] == '\\' && end[1] == 'u' &&
        read_digits(end + 2, s->end, 16, 4, &low) == end + 6 && low >= 0xdc00 && low < 0xe000) {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        width += 6;
        end += 6;
    }
    if (end - *at != width || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return tare_text_fail(s, from, "'\\%c' is not the escape of a character", (*at)[-1]);
    append_utf8(out, c);
    *at = end;
    return TARE_OK;
}

/* *at is after the backslash. */
static tare_status read_escape(const struct tare_text_scanner *s, const char **at, struct tare_strbuf *out) {
    static const char letters[] = "nrtabfv\\'\"?", meanings[] = "\n\r\t\a\b\f\v\\'\"?";
    const char *from = *at - 1, *end, *letter;
    uint32_t value;
    char c = *(*at)++;
    if (digit_of(c, 8) >= 0) {
        *at = read_digits(*at - 1, s->end, 8, 3, &value);
        tare_strbuf_putc(out, (char)value);
        return TARE_OK;
    }
    if (c == 'x' || c == 'X') {
        end = read_digits(*at, s->end, 16, 2, &value);
        if (end == *at) return tare_text_fail(s, from, "'\\%c' without hexadecimal digits", c);
        *at = end;
        tare_strbuf_putc(out, (char)value);
        return TARE_OK;
    }
    if (c == 'u' || c == 'U') return read_unicode(s, at, out);
    letter = c ? strchr(letters, c) : NULL;
    if (!letter && c > ' ' && c <= '~') return tare_text_fail(s, from, "'\\%c' is not an escape", c);
    if (!letter) return tare_text_fail(s, from, "a backslash before byte 0x%02x is not an escape", (unsigned char)c);
    tare_strbuf_putc(out, meanings[letter - letters]);
    return TARE_OK;
}

static tare_status read_literal(struct tare_text_scanner *s, struct tare_strbuf *out) {
    const char *from = s->at, *at = from + 1, *plain;
    for (;;) {
        plain = at;
        while (at < s->end && *at != *from && *at != '\\' && *at != '\n')
            at++;
        tare_strbuf_append(out, plain, (size_t)(at - plain));
        if (at < s->end && *at == *from) break;
        if (at >= s->end || *at == '\n' || at + 1 == s->end)
            return tare_text_fail(s, from, "the string does not end on its line");
        at++;
        TARE_TRY(read_escape(s, &at, out));
    }
    s->at = at + 1;
    skip_space(s);
    return TARE_OK;
}

tare_status tare_text_string(struct tare_text_scanner *s, struct tare_strbuf *out) {
    do
        TARE_TRY(read_literal(s, out));
    while (tare_text_at_string(s));
    return out->failed ? TARE_NO_MEMORY : TARE_OK;
}

bool tare_text_parse_integer(const char *word, bool *negative, uint64_t *magnitude) {
    int base = 10;
    *negative = *word == '-';
    *magnitude = 0;
    word += *negative;
    if (*word == '0' && (word[1] == 'x' || word[1] == 'X')) {
        base = 16;
        word += 2;
    } else if (*word == '0' && word[1]) {
        base = 8;
    }
    if (!*word) return false;
    for (; *word; word++) {
        int digit = digit_of(*word, base);
        if (digit < 0 || __builtin_mul_overflow(*magnitude, (uint64_t)base, magnitude) ||
            __builtin_add_overflow(*magnitude, (uint64_t)digit, magnitude))
            return false;
    }
    return true;
}

/* Copies the word without the f of a C float constant; false if it is not a decimal number, inf or nan. */
static bool clean_number(char copy[TARE_TEXT_WORD_SIZE], const char *word) {
    const char *digits = word + (*word == '-');
    size_t size = strlen(word);
    memcpy(copy, word, size + 1);
    if (is_letter(*digits))
        return tare_same_letters(digits, "inf") || tare_same_letters(digits, "infinity") ||
               tare_same_letters(digits, "nan");
    if (*digits == '0' && (digits[1] == 'x' || digits[1] == 'X')) return false;
    if (copy[size - 1] == 'f' || copy[size - 1] == 'F') copy[size - 1] = '\0';
    return true;
}

bool tare_text_parse_double(const char *word, double *value) {
    char copy[TARE_TEXT_WORD_SIZE], *end;
    if (!clean_number(copy, word)) return false;
    *value = tare_read_double(copy, &end);
    return end > copy && !*end;
}

bool tare_text_parse_float(const char *word, float *value) {
    char copy[TARE_TEXT_WORD_SIZE], *end;
    if (!clean_number(copy, word)) return false;
    *value = tare_read_float(copy, &end);
    return end > copy && !*end;
}

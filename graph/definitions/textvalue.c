/* Syntax of protobuf's text format. */
#include "graph/definitions/textvalue.h"
#include "base/ascii.h"
#include "base/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32 };

static bool is_word(char c) {
    return tare_is_letter_or_digit(c) || c == '_';
}

void tare_text_skip(struct tare_text_reader *reader) {
    while (reader->at < reader->end) {
        char c = *reader->at;
        if (c == '#')
            while (reader->at < reader->end && *reader->at != '\n')
                reader->at++;
        else if (c == ' ' || (c >= '\t' && c <= '\r'))
            reader->at++;
        else
            return;
    }
}

static bool next_is(struct tare_text_reader *reader, char c) {
    tare_text_skip(reader);
    return reader->at < reader->end && *reader->at == c;
}

static bool take(struct tare_text_reader *reader, char c) {
    bool found = next_is(reader, c);
    if (found) reader->at++;
    return found;
}

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

/* Up to `most` digits of a number escape. */
static bool number_escape(struct tare_text_reader *reader, int base, int most, char *out) {
    int value = 0, digits = 0;
    while (digits < most && reader->at < reader->end && digit_of(*reader->at) < base) {
        value = value * base + digit_of(*reader->at++);
        digits++;
    }
    *out = (char)value;
    return digits > 0 && value <= 0xff;
}

static bool escape(struct tare_text_reader *reader, char *out) {
    static const char letters[] = "abfnrtv\\'\"?", bytes[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *found;
    if (reader->at == reader->end) return false;
    if (*reader->at >= '0' && *reader->at <= '7') return number_escape(reader, 8, 3, out);
    if (*reader->at == 'x' || *reader->at == 'X') {
        reader->at++;
        return number_escape(reader, 16, 2, out);
    }
    found = strchr(letters, *reader->at);
    if (!found || !*found) return false;
    reader->at++;
    *out = bytes[found - letters];
    return true;
}

/* One quoted piece into `text`. */
static bool quoted(struct tare_text_reader *reader, char *text, size_t *size) {
    char quote = *reader->at++;
    while (reader->at < reader->end && *reader->at != quote) {
        char c = *reader->at++;
        if (c == '\n' || (c == '\\' && !escape(reader, &c))) return false;
        text[(*size)++] = c;
    }
    if (reader->at == reader->end) return false;
    reader->at++;
    return true;
}

static bool read_string(struct tare_text_reader *reader, struct tare_text_value *value) {
    size_t size = 0;
    char *text = tare_arena_alloc(reader->arena, (size_t)(reader->end - reader->at) + 1);
    if (!text) return false;
    while (next_is(reader, '"') || next_is(reader, '\''))
        if (!quoted(reader, text, &size)) return false;
    text[size] = '\0';
    value->kind = TARE_TEXT_STRING;
    value->text = (struct tare_str){ text, size };
    return true;
}

static bool read_scalar(struct tare_text_reader *reader, struct tare_text_value *value) {
    const char *start = reader->at;
    if (*reader->at == '-') reader->at++;
    while (reader->at < reader->end) {
        char c = *reader->at, before = reader->at[-(reader->at > start)];
        bool exponent_sign = (c == '-' || c == '+') && reader->at > start && (before == 'e' || before == 'E');
        if (!is_word(c) && c != '.' && !exponent_sign) break;
        reader->at++;
    }
    value->kind = TARE_TEXT_SCALAR;
    value->text.size = (size_t)(reader->at - start);
    value->text.data = tare_arena_strndup(reader->arena, start, value->text.size);
    return value->text.data && value->text.size > (size_t)(*start == '-');
}

static bool read_fields(struct tare_text_reader *reader, struct tare_text_value *message, char close);

static bool read_message(struct tare_text_reader *reader, struct tare_text_value *value) {
    char close = *reader->at++ == '{' ? '}' : '>';
    bool fine;
    if (++reader->depth > DEEPEST) return false;
    value->kind = TARE_TEXT_MESSAGE;
    fine = read_fields(reader, value, close);
    reader->depth--;
    return fine;
}

struct tare_text_value *tare_text_read(struct tare_text_reader *reader) {
    struct tare_text_value *value = TARE_NEW(reader->arena, struct tare_text_value);
    bool fine;
    tare_text_skip(reader);
    if (!value || reader->at == reader->end) return NULL;
    if (*reader->at == '"' || *reader->at == '\'')
        fine = read_string(reader, value);
    else if (*reader->at == '{' || *reader->at == '<')
        fine = read_message(reader, value);
    else
        fine = read_scalar(reader, value);
    return fine ? value : NULL;
}

/* The value, or the values in brackets, of one field; *tail is where the next field is hung. */
static bool read_field_values(struct tare_text_reader *reader, const char *name, struct tare_text_value ***tail) {
    bool list = take(reader, '[');
    if (list && take(reader, ']')) return true;
    do {
        struct tare_text_value *value = tare_text_read(reader);
        if (!value) return false;
        value->name = name;
        **tail = value;
        *tail = &value->next;
    } while (list && take(reader, ','));
    return !list || take(reader, ']');
}

static bool read_fields(struct tare_text_reader *reader, struct tare_text_value *message, char close) {
    struct tare_text_value **tail = &message->fields;
    while (!take(reader, close)) {
        const char *start = reader->at, *name;
        bool colon;
        while (reader->at < reader->end && is_word(*reader->at))
            reader->at++;
        if (reader->at == start) return false;
        name = tare_arena_strndup(reader->arena, start, (size_t)(reader->at - start));
        if (!name) return false;
        colon = take(reader, ':');
        if (!colon && !next_is(reader, '{') && !next_is(reader, '<')) return false;
        if (!read_field_values(reader, name, &tail)) return false;
        if (!take(reader, ',')) take(reader, ';');
    }
    return true;
}

const struct tare_text_value *tare_text_find(const struct tare_text_value *field, const char *name) {
    while (field && strcmp(field->name, name) != 0)
        field = field->next;
    return field;
}

bool tare_text_int(int64_t *out, const struct tare_text_value *value) {
    char *end;
    long long number;
    if (value->kind != TARE_TEXT_SCALAR) return false;
    errno = 0;
    number = strtoll(value->text.data, &end, 0);
    *out = number;
    return errno == 0 && end == value->text.data + value->text.size;
}

bool tare_text_float(double *out, const struct tare_text_value *value) {
    const char *text = value->text.data;
    char *end;
    if (value->kind != TARE_TEXT_SCALAR || tare_same_letters_n(text + (*text == '-'), "0x", 2)) return false;
    *out = tare_read_double(text, &end);
    if (end > text && (*end == 'f' || *end == 'F')) end++;
    return end > text && end == text + value->text.size;
}

bool tare_text_bool(bool *out, const struct tare_text_value *value) {
    static const char *const words[] = { "false", "true", "False", "True", "f", "t", "0", "1" };
    if (value->kind != TARE_TEXT_SCALAR) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        *out = i & 1;
        if (strcmp(value->text.data, words[i]) == 0) return true;
    }
    return false;
}

static int dtype_of_enum_name(const char *name, size_t size) {
    char lower[64];
    if (size >= sizeof lower) return TARE_DT_INVALID;
    for (size_t i = 0; i <= size; i++)
        lower[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    return tare_dtype_from_name(lower, size);
}

int tare_text_dtype(const struct tare_text_value *value) {
    const char *text = value->text.data;
    int64_t number;
    if (value->kind != TARE_TEXT_SCALAR) return TARE_DT_INVALID;
    if (strncmp(text, "DT_", 3) == 0) return dtype_of_enum_name(text + 3, value->text.size - 3);
    if (tare_text_int(&number, value))
        return number > 0 && number < 2 * TARE_DT_REF_OFFSET && tare_dtype_get((int)number) ? (int)number
                                                                                            : TARE_DT_INVALID;
    return tare_dtype_from_name(text, value->text.size);
}

/* A small reader of protobuf's text format, for the values in op specifications: it parses the syntax (fields, nesting,
 * lists, strings with escapes, comments) but has no message types. The caller interprets the tree. */
#ifndef TARE_GRAPH_DEFINITIONS_TEXTVALUE_H
#define TARE_GRAPH_DEFINITIONS_TEXTVALUE_H

#include "base/arena.h"
#include "base/tensor/tensor.h"

enum tare_text_kind {
    TARE_TEXT_SCALAR, /* a number or identifier as written, a sign in front */
    TARE_TEXT_STRING, /* unescaped bytes */
    TARE_TEXT_MESSAGE,
};

/* One value; inside a message a named field. A repeated field in list form becomes one entry per item. */
struct tare_text_value {
    const char *name; /* NULL outside a message */
    enum tare_text_kind kind;
    struct tare_str text;           /* SCALAR, STRING; NUL-terminated after its size */
    struct tare_text_value *fields; /* MESSAGE: first field */
    struct tare_text_value *next;   /* following field of the same message */
};

struct tare_text_reader {
    const char *at, *end;
    struct tare_arena *arena;
    int depth;
};

/* Skips white space and comments. */
void tare_text_skip(struct tare_text_reader *reader);
/* Reads one value: a quoted string (adjacent ones join), a scalar, or a message in { } or < >. NULL when what follows
 * is none; `reader->at` is then where reading stopped. */
struct tare_text_value *tare_text_read(struct tare_text_reader *reader);
/* The first field of that name at or after `field`; NULL: none. */
const struct tare_text_value *tare_text_find(const struct tare_text_value *field, const char *name);

/* Numbers of scalars; false when the text is none or does not fit. */
bool tare_text_int(int64_t *out, const struct tare_text_value *value);
bool tare_text_float(double *out, const struct tare_text_value *value);
bool tare_text_bool(bool *out, const struct tare_text_value *value);
/* An enum value DT_FLOAT, DT_INT32_REF, its number, or a dtype's name; TARE_DT_INVALID when it is none. */
int tare_text_dtype(const struct tare_text_value *value);

#endif

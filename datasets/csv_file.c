/* CSV files. Opening makes one pass over the text, which records where each row begins and which kinds of values a
 * column has; reading a record parses its row again. A quoted value may contain separators, line breaks and doubled
 * quotes. */
#include "datasets/csv_file.h"
#include "base/ascii.h"
#include "base/format.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "base/strbuf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_SIZE = 64 }; /* longer values are not numbers */

/* The kinds of values of a column, a set: the dtype follows from it, in whatever order rows and files are read. */
enum kind {
    INTEGERS = 1, /* that int64 holds */
    LARGE = 2,    /* integers that it does not hold */
    NUMBERS = 4,  /* fractions, exponents, inf, nan */
    TEXTS = 8,
};

struct column {
    const char *name;
    unsigned kinds;
    const char *text; /* the first value that is neither an integer of int64 nor another number, with its place; or NULL
                       */
    const char *large; /* the first LARGE one */
};

struct tare_csv_columns {
    struct tare_arena arena;
    struct tare_map by_name; /* struct column */
};

struct row {
    int64_t offset, line; /* of its first byte; lines from 1 */
};

struct tare_csv_file {
    struct tare_arena arena;
    char *text; /* `size` bytes */
    size_t size;
    char separator;
    const char *path;
    struct column *columns;
    size_t n_columns;
    struct row *rows;
    size_t n_rows, capacity;
};

/* ---- values ---- */

struct cursor {
    const char *at, *end;
    int64_t line;
    char separator;
};

/* Parses the value at the cursor into `out` and moves to the next one; *last: it ends the row. False: a quote is not
 * closed. */
static bool read_value(struct tare_strbuf *out, bool *last, struct cursor *c) {
    bool quoted = c->at < c->end && *c->at == '"';
    size_t in_quotes = 0;
    out->size = 0;
    for (c->at += quoted; c->at < c->end; c->at++) {
        const char x = *c->at;
        c->line += x == '\n';
        if (quoted && x == '"') {
            if (c->at + 1 < c->end && c->at[1] == '"')
                c->at++; /* a doubled quote is a quote */
            else {
                quoted = false;
                in_quotes = out->size;
                continue;
            }
        } else if (!quoted && (x == c->separator || x == '\n')) {
            break;
        }
        tare_strbuf_putc(out, *c->at);
    }
    if (quoted) return false;
    *last = c->at == c->end || *c->at == '\n';
    if (c->at < c->end) c->at++;
    if (*last && out->size > in_quotes && out->data[out->size - 1] == '\r') out->size--; /* of the line break */
    return true;
}

/* The value without surrounding spaces as a C string in `text`; false if it is too long for a number. */
static bool number_text(char text[NUMBER_SIZE], const char *data, size_t size) {
    while (size && (*data == ' ' || *data == '\t'))
        data++, size--;
    while (size && (data[size - 1] == ' ' || data[size - 1] == '\t'))
        size--;
    if (size >= NUMBER_SIZE || memchr(data, '\0', size)) return false;
    memcpy(text, data, size);
    text[size] = '\0';
    return true;
}

static bool is_integer(const char *text) {
    text += *text == '+' || *text == '-';
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* False if int64 does not hold it. */
static bool parse_integer(int64_t *out, const char *text) {
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return !errno;
}

static bool parse_float(double *out, const char *text) {
    char *end;
    if (strspn(text, "+-.0123456789eE") != strlen(text) && !tare_same_letters(text, "nan") &&
        !tare_same_letters(text, "inf") && !tare_same_letters(text, "-inf"))
        return false;
    *out = tare_read_double(text, &end);
    return end != text && !*end;
}

/* 0: the value is empty, and any dtype fits. */
static unsigned kind_of(const char *data, size_t size) {
    char text[NUMBER_SIZE];
    int64_t integer;
    double number;
    if (!number_text(text, data, size)) return TEXTS;
    if (!*text) return 0;
    if (is_integer(text)) return parse_integer(&integer, text) ? INTEGERS : LARGE;
    return parse_float(&number, text) ? NUMBERS : TEXTS;
}

/* Large integers are texts unless the column has fractions: as float32 they would be other integers. */
static int dtype_of(const struct column *column) {
    if (column->kinds & TEXTS) return TARE_DT_STRING;
    if (column->kinds & NUMBERS) return TARE_DT_FLOAT;
    if (column->kinds & LARGE) return TARE_DT_STRING;
    return column->kinds & INTEGERS ? TARE_DT_INT64 : TARE_DT_INVALID;
}

/* "data.csv: line 7: 'n/a'"; NULL: out of memory. */
static const char *place_text(struct tare_csv_file *file, int64_t line, const struct tare_strbuf *value,
                              const char *cause) {
    const bool is_long = value->size > NUMBER_SIZE;
    return tare_arena_printf(&file->arena, "%s: line %lld: '%.*s%s'%s", file->path, (long long)line,
                             is_long ? NUMBER_SIZE : (int)value->size, tare_strbuf_text(value), is_long ? "…" : "",
                             cause);
}

/* Adds the kind of a value; false: out of memory. */
static bool add_kind(struct tare_csv_file *file, struct column *column, int64_t line, const struct tare_strbuf *value) {
    const unsigned kind = kind_of(tare_strbuf_text(value), value->size), new = kind & ~column->kinds;
    column->kinds |= kind;
    if (new == TEXTS) return (column->text = place_text(file, line, value, "")) != NULL;
    if (new == LARGE) return (column->large = place_text(file, line, value, ", which int64 does not hold")) != NULL;
    return true;
}

/* ---- opening ---- */

static char separator_of(const char *text, size_t size) {
    bool quoted = false;
    for (size_t i = 0; i < size && (quoted || text[i] != '\n'); i++) {
        if (text[i] == '"') quoted = !quoted;
        if (!quoted && (text[i] == ',' || text[i] == ';' || text[i] == '\t')) return text[i];
    }
    return '\0';
}

bool tare_csv_is_start(const uint8_t *head, size_t size) {
    const uint8_t *line = size ? memchr(head, '\n', size) : NULL;
    for (size_t i = 0; i < size; i++)
        if (head[i] == 0x7f || (head[i] < 0x20 && !strchr("\t\n\r", head[i]))) return false;
    if (!line || head[0] == '{' || head[0] == '<') return false;
    const char separator = separator_of((const char *)head, size);
    return separator && separator_of((const char *)line + 1, (size_t)(head + size - line) - 1) == separator;
}

static bool is_blank(const struct cursor *c) {
    for (const char *at = c->at; at < c->end; at++)
        if (*at != ' ' && *at != '\t' && *at != '\r' && *at != '\n') return false;
    return true;
}

static tare_status read_names(struct tare_csv_file *file, struct cursor *c) {
    struct tare_strbuf value = { 0 };
    size_t capacity = 0, numbers = 0;
    struct column *columns = NULL;
    tare_status status = TARE_OK;
    for (bool last = false; !last && status == TARE_OK;) {
        if (!read_value(&value, &last, c)) {
            status = TARE_FAIL(TARE_CORRUPT, "line 1: a quoted column name is not closed");
        } else if (!TARE_GROW(columns, file->n_columns, capacity) || value.failed) {
            status = TARE_NO_MEMORY;
        } else {
            const char *name = tare_arena_strndup(&file->arena, tare_strbuf_text(&value), value.size);
            if (!name) status = TARE_NO_MEMORY;
            if (!(kind_of(tare_strbuf_text(&value), value.size) & (TEXTS | LARGE))) numbers++;
            columns[file->n_columns++] = (struct column){ .name = name };
        }
    }
    tare_strbuf_free(&value);
    if (status == TARE_OK && numbers == file->n_columns)
        status = TARE_FAIL(TARE_CORRUPT, "line 1: numbers (expected the names of the columns)");
    file->columns = tare_arena_extend(&file->arena, columns, file->n_columns, 0, sizeof *columns);
    tare_free(columns);
    return file->columns ? status : TARE_NO_MEMORY;
}

static tare_status check_names(const struct tare_csv_file *file) {
    struct tare_map names = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < file->n_columns && status == TARE_OK; i++) {
        if (!*file->columns[i].name)
            status = TARE_FAIL(TARE_CORRUPT, "line 1: column %zu has no name", i + 1);
        else if (tare_map_get(&names, file->columns[i].name))
            status = TARE_FAIL(TARE_CORRUPT, "line 1: duplicate column '%s'", file->columns[i].name);
        else if (!tare_map_set(&names, file->columns[i].name, &file->columns[i]))
            status = TARE_NO_MEMORY;
    }
    tare_map_free(&names);
    return status;
}

/* Adds the kinds of the row's values, which read_row can read; false: out of memory. */
static bool add_kinds(struct tare_csv_file *file, struct cursor c, struct tare_strbuf *value) {
    const int64_t line = c.line;
    bool last = false;
    for (size_t i = 0; i < file->n_columns && read_value(value, &last, &c); i++)
        if (value->failed || !add_kind(file, &file->columns[i], line, value)) return false;
    return true;
}

/* Moves to the end of the row. The values of a row with an error, which is reported when it is read, do not count.
 * False: out of memory. */
static bool scan_row(struct tare_csv_file *file, struct cursor *c, struct tare_strbuf *value) {
    const struct cursor start = *c;
    size_t count = 0;
    unsigned new = 0;
    for (bool last = false; !last; count++) {
        if (!read_value(value, &last, c)) return !value->failed; /* at the end of the file */
        if (count < file->n_columns && !value->failed)
            new |= kind_of(tare_strbuf_text(value), value->size) & ~file->columns[count].kinds;
    }
    if (value->failed || count != file->n_columns || !new) return !value->failed;
    return add_kinds(file, start, value);
}

/* Records where rows begin and the kinds of values of the columns. */
static tare_status scan_rows(struct tare_csv_file *file, struct cursor *c) {
    struct tare_strbuf value = { 0 };
    bool has_memory = true;
    while (c->at < c->end && has_memory) {
        if (*c->at == '\n' || (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n')) { /* an empty line */
            c->at += *c->at == '\r' ? 2 : 1;
            c->line++;
            continue;
        }
        has_memory = TARE_GROW(file->rows, file->n_rows, file->capacity);
        if (!has_memory) break;
        file->rows[file->n_rows++] = (struct row){ c->at - file->text, c->line };
        has_memory = scan_row(file, c, &value);
    }
    tare_strbuf_free(&value);
    return has_memory ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status parse(struct tare_csv_file *file) {
    struct cursor c = { file->text, file->text + file->size, 1, ',' };
    if (memchr(file->text, '\0', file->size)) return TARE_FAIL(TARE_CORRUPT, "a NUL byte in a CSV file");
    c.at += tare_file_mark_size(file->text, file->size);
    c.separator = separator_of(c.at, (size_t)(c.end - c.at));
    if (!c.separator) c.separator = ',';
    file->separator = c.separator;
    if (is_blank(&c)) return TARE_FAIL(TARE_CORRUPT, "the file is empty (expected the names of the columns)");
    TARE_TRY(read_names(file, &c));
    TARE_TRY(check_names(file));
    return scan_rows(file, &c);
}

tare_status tare_csv_file_open(struct tare_csv_file **out, const char *path, uint8_t *bytes, size_t size) {
    struct tare_csv_file *file = tare_calloc(1, sizeof *file);
    tare_status status;
    *out = NULL;
    if (!file) {
        tare_free(bytes);
        return TARE_NO_MEMORY;
    }
    file->text = (char *)bytes;
    file->size = size;
    file->path = tare_arena_strdup(&file->arena, path);
    status = file->path ? tare_error_prefix(parse(file), "%s", path) : TARE_NO_MEMORY;
    if (status == TARE_OK)
        *out = file;
    else
        tare_csv_file_close(file);
    return status;
}

void tare_csv_file_close(struct tare_csv_file *file) {
    if (!file) return;
    tare_free(file->text);
    tare_free(file->rows);
    tare_arena_free(&file->arena);
    tare_free(file);
}

int64_t tare_csv_file_rows(const struct tare_csv_file *file) {
    return (int64_t)file->n_rows;
}

int64_t tare_csv_file_offset(const struct tare_csv_file *file, int64_t row) {
    return (size_t)row < file->n_rows ? file->rows[row].offset : (int64_t)file->size;
}

/* ---- reading ---- */

/* A number that float32 does not hold is no value: it is an error where the column is used. */
static tare_status add_float(struct tare_features *out, const char *name, const char *text, int64_t line) {
    double number = 0;
    if (!parse_float(&number, text)) return TARE_FAIL(TARE_INTERNAL, "column '%s': not numeric", name);
    const float value = (float)number;
    /* strtod returns an infinity also for what double does not hold. */
    if (!isinf(value) || tare_same_letters(text + (*text == '-'), "inf"))
        return tare_features_add_float(out, name, value);
    return tare_features_add_invalid(
        out, name, tare_arena_printf(&out->arena, "line %lld: column '%s': %s", (long long)line, name, text));
}

static tare_status add_value(struct tare_features *out, const struct column *column, const struct tare_strbuf *value,
                             int64_t line) {
    const int dtype = dtype_of(column);
    char text[NUMBER_SIZE];
    int64_t integer = 0;
    if (dtype == TARE_DT_STRING)
        return tare_features_add_text(out, column->name, tare_strbuf_text(value), value->size,
                                      column->kinds & TEXTS ? column->text : column->large);
    if (!number_text(text, tare_strbuf_text(value), value->size) || !*text)
        return tare_features_add_absent(out, column->name, dtype);
    if (dtype == TARE_DT_FLOAT) return add_float(out, column->name, text, line);
    if (!parse_integer(&integer, text)) return TARE_FAIL(TARE_INTERNAL, "column '%s': not an integer", column->name);
    return tare_features_add_int(out, column->name, integer);
}

static tare_status read_row(struct tare_features *out, const struct tare_csv_file *file, const struct row *row,
                            struct tare_strbuf *value) {
    struct cursor c = { file->text + row->offset, file->text + file->size, row->line, file->separator };
    size_t count = 0;
    for (bool last = false; !last; count++) {
        if (!read_value(value, &last, &c))
            return TARE_FAIL(TARE_CORRUPT, "line %lld: a quoted value is not closed", (long long)row->line);
        if (value->failed) return TARE_NO_MEMORY;
        if (count < file->n_columns) TARE_TRY(add_value(out, &file->columns[count], value, row->line));
    }
    if (count == file->n_columns) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "line %lld: wrong number of values (expected %zu as in line 1, got %zu)",
                     (long long)row->line, file->n_columns, count);
}

tare_status tare_csv_file_read(struct tare_features *out, const struct tare_csv_file *file, int64_t row) {
    struct tare_strbuf value = { 0 };
    *out = (struct tare_features){ 0 };
    const tare_status status = read_row(out, file, &file->rows[row], &value);
    tare_strbuf_free(&value);
    return status;
}

/* ---- columns of several files ---- */

struct tare_csv_columns *tare_csv_columns_new(void) {
    return tare_calloc(1, sizeof(struct tare_csv_columns));
}

void tare_csv_columns_free(struct tare_csv_columns *columns) {
    if (!columns) return;
    tare_map_free(&columns->by_name);
    tare_arena_free(&columns->arena);
    tare_free(columns);
}

/* The column of that name, which may be new; NULL: out of memory. */
static struct column *shared_column(struct tare_csv_columns *columns, const char *name) {
    struct column *shared = tare_map_get(&columns->by_name, name);
    if (shared) return shared;
    shared = TARE_NEW(&columns->arena, struct column);
    if (!shared) return NULL;
    *shared = (struct column){ .name = tare_arena_strdup(&columns->arena, name) };
    return shared->name && tare_map_set(&columns->by_name, shared->name, shared) ? shared : NULL;
}

tare_status tare_csv_columns_add(struct tare_csv_columns *columns, const struct tare_csv_file *file) {
    for (size_t i = 0; i < file->n_columns; i++) {
        const struct column *own = &file->columns[i];
        struct column *shared = shared_column(columns, own->name);
        if (!shared) return TARE_NO_MEMORY;
        shared->kinds |= own->kinds;
        if (own->text && !shared->text && !(shared->text = tare_arena_strdup(&columns->arena, own->text)))
            return TARE_NO_MEMORY;
        if (own->large && !shared->large && !(shared->large = tare_arena_strdup(&columns->arena, own->large)))
            return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

tare_status tare_csv_file_share(struct tare_csv_file *file, const struct tare_csv_columns *columns) {
    for (size_t i = 0; i < file->n_columns; i++) {
        struct column *own = &file->columns[i];
        const struct column *shared = tare_map_get(&columns->by_name, own->name);
        struct column both = shared ? *shared : *own;
        if (!shared) continue;
        both.kinds |= own->kinds;
        if (shared->kinds && dtype_of(&both) != dtype_of(shared))
            return TARE_FAIL(TARE_TYPE,
                             "%s: column '%s' is %s here and %s in the files before, which could not be compared "
                             "(standard input and pipes are read once, after the first file: store them as files)",
                             file->path, own->name, tare_dtype_name(dtype_of(&both)),
                             tare_dtype_name(dtype_of(shared)));
        *own = both;
    }
    return TARE_OK;
}

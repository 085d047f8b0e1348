/* CSV files. Opening makes one pass over the text, which records where each row begins and which dtype fits all values
 * of a column; reading a record parses its row again. A quoted value may contain separators, line breaks and doubled
 * quotes. */
#include "datasets/csv_file.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_SIZE = 64 }; /* longer values are not numbers */

struct column {
    const char *name;
    int dtype;
};

struct row {
    int64_t offset, line; /* of its first byte; lines from 1 */
};

struct tare_csv_file {
    struct tare_arena arena;
    char *text; /* `size` bytes */
    size_t size;
    char separator;
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
    out->size = 0;
    for (c->at += quoted; c->at < c->end; c->at++) {
        const char x = *c->at;
        c->line += x == '\n';
        if (quoted && x == '"') {
            if (c->at + 1 < c->end && c->at[1] == '"')
                c->at++; /* a doubled quote is a quote */
            else {
                quoted = false;
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
    if (*last && out->size && out->data[out->size - 1] == '\r') out->size--;
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

static bool parse_integer(int64_t *out, const char *text) {
    char *end;
    if (!*text || strspn(text, "+-0123456789") != strlen(text)) return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return !*end && !errno;
}

static bool parse_float(double *out, const char *text) {
    char *end;
    if (strspn(text, "+-.0123456789eE") != strlen(text) && strcasecmp(text, "nan") != 0 &&
        strcasecmp(text, "inf") != 0 && strcasecmp(text, "-inf") != 0)
        return false;
    *out = strtod(text, &end);
    return end != text && !*end;
}

/* The narrowest of int64, float32 and string that holds the value and those of `dtype`. */
static int widen(int dtype, const char *data, size_t size) {
    char text[NUMBER_SIZE];
    int64_t integer;
    double number;
    if (dtype == TARE_DT_STRING || !number_text(text, data, size)) return TARE_DT_STRING;
    if (!*text) return dtype; /* absent */
    if (dtype != TARE_DT_FLOAT && parse_integer(&integer, text)) return TARE_DT_INT64;
    return parse_float(&number, text) ? TARE_DT_FLOAT : TARE_DT_STRING;
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
            if (widen(TARE_DT_INVALID, tare_strbuf_text(&value), value.size) != TARE_DT_STRING) numbers++;
            columns[file->n_columns++] = (struct column){ name, TARE_DT_INVALID };
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

/* Records where rows begin and widens the dtypes of the columns. Rows with an error are reported when they are read. */
static tare_status scan_rows(struct tare_csv_file *file, struct cursor *c) {
    struct tare_strbuf value = { 0 };
    while (c->at < c->end) {
        const struct row row = { c->at - file->text, c->line };
        bool last = false;
        if (*c->at == '\n' || (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n')) { /* an empty line */
            c->at += *c->at == '\r' ? 2 : 1;
            c->line++;
            continue;
        }
        if (!TARE_GROW(file->rows, file->n_rows, file->capacity)) break;
        file->rows[file->n_rows++] = row;
        for (size_t i = 0; !last; i++) {
            if (!read_value(&value, &last, c)) last = true;
            if (i < file->n_columns && !value.failed)
                file->columns[i].dtype = widen(file->columns[i].dtype, tare_strbuf_text(&value), value.size);
        }
    }
    const bool complete = c->at == c->end && !value.failed;
    tare_strbuf_free(&value);
    return complete ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status parse(struct tare_csv_file *file) {
    struct cursor c = { file->text, file->text + file->size, 1, ',' };
    if (memchr(file->text, '\0', file->size)) return TARE_FAIL(TARE_CORRUPT, "a NUL byte in a CSV file");
    if (file->size >= 3 && memcmp(file->text, "\xef\xbb\xbf", 3) == 0) c.at += 3; /* a byte order mark */
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
    status = tare_error_prefix(parse(file), "%s", path);
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

static tare_status add_value(struct tare_features *out, const struct column *column, const struct tare_strbuf *value) {
    char text[NUMBER_SIZE];
    int64_t integer = 0;
    double number = 0;
    if (column->dtype == TARE_DT_STRING)
        return tare_features_add_bytes(out, column->name, tare_strbuf_text(value), value->size);
    if (!number_text(text, tare_strbuf_text(value), value->size) || !*text)
        return tare_features_add_absent(out, column->name, column->dtype);
    if (column->dtype == TARE_DT_INT64 && parse_integer(&integer, text))
        return tare_features_add_int(out, column->name, integer);
    if (!parse_float(&number, text)) return TARE_FAIL(TARE_INTERNAL, "column '%s': not numeric", column->name);
    return tare_features_add_float(out, column->name, (float)number);
}

static tare_status read_row(struct tare_features *out, const struct tare_csv_file *file, const struct row *row,
                            struct tare_strbuf *value) {
    struct cursor c = { file->text + row->offset, file->text + file->size, row->line, file->separator };
    size_t count = 0;
    for (bool last = false; !last; count++) {
        if (!read_value(value, &last, &c))
            return TARE_FAIL(TARE_CORRUPT, "line %lld: a quoted value is not closed", (long long)row->line);
        if (value->failed) return TARE_NO_MEMORY;
        if (count < file->n_columns) TARE_TRY(add_value(out, &file->columns[count], value));
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

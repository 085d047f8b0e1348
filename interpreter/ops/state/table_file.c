/* Initializes lookup tables from the lines of a text file (table_file.h). */
#include "interpreter/ops/state/table_file.h"
#include "base/format.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *path;
    const struct tare_table_file *form;
    int64_t line;
    struct tare_tensor key, value; /* one element each */
};

static tare_status column(struct tare_str *out, const struct reader *reader, struct tare_str text, int64_t index) {
    const char *end = text.data + text.size;
    int64_t at = 0;
    for (const char *start = text.data;; at++) {
        const char *stop = memchr(start, reader->form->delimiter, (size_t)(end - start));
        if (!stop) stop = end;
        if (at == index) {
            *out = (struct tare_str){ start, (size_t)(stop - start) };
            return TARE_OK;
        }
        if (stop == end) break;
        start = stop + 1;
    }
    return TARE_FAIL(TARE_CORRUPT, "Invalid number of columns in %s line %lld: expected at least %lld got %lld",
                     reader->path, (long long)reader->line, (long long)index + 1, (long long)at + 1);
}

static tare_status store_text(struct tare_tensor *to, const struct reader *reader, struct tare_str text) {
    char number[64], *end = NULL;
    if (to->dtype == TARE_DT_STRING) return tare_tensor_set_string(to, 0, text.data, text.size);
    if (text.size && text.size < sizeof number) {
        memcpy(number, text.data, text.size);
        number[text.size] = '\0';
        errno = 0;
        switch (to->dtype) {
        case TARE_DT_INT32:
            TARE_DATA(int32_t, to)[0] = (int32_t)strtol(number, &end, 10);
            break;
        case TARE_DT_INT64:
            TARE_DATA(int64_t, to)[0] = strtoll(number, &end, 10);
            break;
        case TARE_DT_FLOAT:
            TARE_DATA(float, to)[0] = tare_read_float(number, &end);
            break;
        case TARE_DT_DOUBLE:
            TARE_DATA(double, to)[0] = tare_read_double(number, &end);
            break;
        default:
            return TARE_FAIL(TARE_UNSUPPORTED, "a table file with %s", tare_dtype_name(to->dtype));
        }
    }
    if (end && *end == '\0' && !errno) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "Field %.*s in line %lld is not a valid %s", (int)text.size, text.data,
                     (long long)reader->line, tare_dtype_name(to->dtype));
}

static tare_status store(struct tare_tensor *to, const struct reader *reader, struct tare_str line, int64_t index) {
    struct tare_str text = line;
    if (index == TARE_TABLE_LINE_NUMBER) {
        int64_t number = reader->line + reader->form->offset;
        if (to->dtype == TARE_DT_INT64)
            TARE_DATA(int64_t, to)[0] = number;
        else if (to->dtype == TARE_DT_INT32)
            TARE_DATA(int32_t, to)[0] = (int32_t)number;
        else
            return TARE_FAIL(TARE_TYPE, "a line number as %s (expected int64)", tare_dtype_name(to->dtype));
        return TARE_OK;
    }
    if (index != TARE_TABLE_WHOLE_LINE) TARE_TRY(column(&text, reader, line, index));
    return store_text(to, reader, text);
}

/* Removes each CR of the line in place, as TensorFlow's reader does (CR LF line ends, but also others). */
static struct tare_str without_returns(char *start, const char *end) {
    size_t size = 0;
    for (const char *from = start; from < end; from++)
        if (*from != '\r') start[size++] = *from;
    return (struct tare_str){ start, size };
}

static tare_status read_lines(struct reader *reader, struct tare_table *table, char *data, size_t size) {
    char *end = data + size;
    for (char *start = data; start < end && reader->line != reader->form->vocab_size; reader->line++) {
        char *stop = memchr(start, '\n', (size_t)(end - start));
        const struct tare_str line = without_returns(start, stop ? stop : end);
        TARE_TRY(store(&reader->key, reader, line, reader->form->key_index));
        TARE_TRY(store(&reader->value, reader, line, reader->form->value_index));
        TARE_TRY(tare_table_insert(table, &reader->key, &reader->value));
        start = stop ? stop + 1 : end;
    }
    if (reader->form->vocab_size >= 0 && reader->line < reader->form->vocab_size)
        return TARE_FAIL(TARE_CORRUPT, "Invalid vocab_size in %s: expected %lld but got %lld", reader->path,
                         (long long)reader->form->vocab_size, (long long)reader->line);
    return TARE_OK;
}

tare_status tare_table_read_file(struct tare_table *table, const char *path, const struct tare_table_file *form) {
    struct reader reader = { .path = path, .form = form };
    struct tare_shape scalar = tare_shape_scalar();
    char *data = NULL;
    size_t size;
    tare_status status = TARE_OK;
    if (tare_table_value_shape(table)->rank)
        return TARE_FAIL(TARE_UNSUPPORTED, "a table of tensors filled from a file");
    TARE_CHECK(tare_file_read(&data, &size, path));
    TARE_CHECK(tare_tensor_new(&reader.key, tare_table_key_dtype(table), &scalar));
    TARE_CHECK(tare_tensor_new(&reader.value, tare_table_value_dtype(table), &scalar));
    status = read_lines(&reader, table, data, size);
done:
    tare_free(data);
    tare_tensor_reset(&reader.key);
    tare_tensor_reset(&reader.value);
    return status;
}

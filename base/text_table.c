/* Text tables. Cells are stored as text until all rows, and thereby the column widths, are known. */
#include "base/text_table.h"
#include "base/format.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/visible.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct tare_text_table {
    struct tare_arena arena;
    const struct tare_text_table_column *columns;
    size_t n_columns;
    const char **cells; /* row by row, n_columns each; NULL: empty */
    size_t n_rows, capacity;
    size_t next; /* next cell of the last row */
    size_t fit;  /* characters per line; 0: unlimited */
    bool failed;
};

struct tare_text_table *tare_text_table_new(const struct tare_text_table_column *columns) {
    struct tare_text_table *table = tare_calloc(1, sizeof *table);
    if (!table) return NULL;
    table->columns = columns;
    while (columns[table->n_columns].heading)
        table->n_columns++;
    return table;
}

void tare_text_table_free(struct tare_text_table *table) {
    if (!table) return;
    tare_arena_free(&table->arena);
    tare_free(table->cells);
    tare_free(table);
}

void tare_text_table_fit(struct tare_text_table *table, size_t width) {
    if (table) table->fit = width;
}

void tare_text_table_row(struct tare_text_table *table) {
    if (!table || table->failed) return;
    if (table->n_rows == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 16;
        const char **grown = tare_realloc(table->cells, capacity * table->n_columns, sizeof *grown);
        if (!grown) {
            table->failed = true;
            return;
        }
        table->cells = grown;
        table->capacity = capacity;
    }
    memset(&table->cells[table->n_rows * table->n_columns], 0, table->n_columns * sizeof *table->cells);
    table->n_rows++;
    table->next = 0;
}

void tare_text_table_cell(struct tare_text_table *table, const char *format, ...) {
    va_list args, again;
    char *text;
    int size;
    if (!table || table->failed || !table->n_rows || table->next >= table->n_columns) return;
    va_start(args, format);
    va_copy(again, args);
    size = tare_format_va(NULL, 0, format, args);
    text = size < 0 ? NULL : tare_arena_alloc(&table->arena, (size_t)size + 1);
    if (text) tare_format_va(text, (size_t)size + 1, format, again);
    if (text && !tare_is_visible(text)) { /* every byte of a name could become six */
        char *visible = tare_arena_alloc(&table->arena, 6 * (size_t)size + 1);
        if (visible) tare_visible_line(visible, 6 * (size_t)size + 1, text);
        text = visible;
    }
    table->failed |= !text;
    table->cells[(table->n_rows - 1) * table->n_columns + table->next++] = text;
    va_end(again);
    va_end(args);
}

void tare_text_table_skip(struct tare_text_table *table) {
    if (table) table->next++;
}

/* 0: the column is not shown. */
static size_t column_width(const struct tare_text_table *table, size_t column) {
    size_t width = 0;
    bool filled = table->columns[column].always;
    for (size_t r = 0; r < table->n_rows; r++) {
        const char *cell = table->cells[r * table->n_columns + column];
        size_t w = cell ? tare_text_width(cell) : 1;
        filled |= cell != NULL;
        if (w > width) width = w;
    }
    if (!filled) return 0;
    return width > tare_text_width(table->columns[column].heading) ? width
                                                                   : tare_text_width(table->columns[column].heading);
}

struct line {
    struct tare_strbuf *out;
    size_t owed; /* pending spaces, printed before the next text */
    bool started;
};

static void put(struct line *line, const char *text, size_t width, bool left) {
    size_t fill = width - tare_text_width(text);
    size_t before = line->owed + (line->started ? 2 : 0) + (left ? 0 : fill);
    for (size_t i = 0; i < before; i++)
        tare_strbuf_putc(line->out, ' ');
    tare_strbuf_puts(line->out, text);
    line->owed = left ? fill : 0;
    line->started = true;
}

/* `row` -1: the headings. */
static void print_line(struct tare_strbuf *out, const struct tare_text_table *table, const size_t *widths, long row) {
    struct line line = { out, 0, false };
    for (size_t c = 0; c < table->n_columns; c++) {
        const char *cell = row < 0 ? table->columns[c].heading : table->cells[(size_t)row * table->n_columns + c];
        if (widths[c]) put(&line, cell ? cell : "-", widths[c], table->columns[c].left);
    }
    tare_strbuf_putc(out, '\n');
}

static void print_lines(struct tare_strbuf *out, const struct tare_text_table *table, const size_t *widths) {
    print_line(out, table, widths, -1);
    for (size_t r = 0; r < table->n_rows; r++)
        print_line(out, table, widths, (long)r);
}

/* Width of the columns [first, end), each with the gap after it. */
static size_t span(const size_t *widths, size_t first, size_t end) {
    size_t sum = 0;
    for (size_t c = first; c < end; c++)
        sum += widths[c] ? widths[c] + 2 : 0;
    return sum;
}

/* Number of leading columns that every part repeats: the text columns, or only the first one; 0 if names take up most
 * of a line. */
static size_t repeated(const struct tare_text_table *table, const size_t *widths) {
    size_t keys = 0;
    while (keys < table->n_columns && (table->columns[keys].left || !widths[keys]))
        keys++;
    if (span(widths, 0, keys) > table->fit / 2) keys = table->n_columns ? 1 : 0;
    return span(widths, 0, keys) > 2 * table->fit / 3 ? 0 : keys;
}

/* `part` has space for the widths of all columns. */
static void print_parts(struct tare_strbuf *out, const struct tare_text_table *table, const size_t *widths, size_t keys,
                        size_t *part) {
    const size_t n = table->n_columns, room = table->fit + 2 - span(widths, 0, keys); /* no gap after the last one */
    for (size_t first = keys; first < n;) {
        size_t end = first + 1;
        while (end < n && span(widths, first, end + 1) <= room)
            end++;
        memset(part, 0, n * sizeof *part);
        memcpy(part, widths, keys * sizeof *part);
        memcpy(part + first, widths + first, (end - first) * sizeof *part);
        if (first > keys) tare_strbuf_putc(out, '\n');
        print_lines(out, table, part);
        first = end;
    }
}

void tare_text_table_print(struct tare_strbuf *out, const struct tare_text_table *table) {
    size_t *widths = table ? tare_calloc(2 * table->n_columns + 1, sizeof *widths) : NULL, keys = 0;
    if (!widths || table->failed) {
        out->failed = true;
        tare_free(widths);
        return;
    }
    for (size_t c = 0; c < table->n_columns; c++)
        widths[c] = column_width(table, c);
    if (table->fit && span(widths, 0, table->n_columns) > table->fit + 2) keys = repeated(table, widths);
    if (keys)
        print_parts(out, table, widths, keys, widths + table->n_columns);
    else
        print_lines(out, table, widths);
    tare_free(widths);
}

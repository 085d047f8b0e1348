/* Tables of reports. Cells are stored until the end, when empty columns are known and can be omitted. */
#include "eval/report/report_table.h"
#include "base/format.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/text_table.h"
#include "eval/report/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct cell {
    const char *text; /* NULL: empty */
    enum { PLAIN, SERIES, BAR, LINK } kind;
    int series;
    double share;
    const char *path; /* of a link */
};

struct tare_report_table {
    struct tare_arena arena;
    enum tare_report_form form;
    const struct tare_report_column *columns;
    size_t n_columns, n_rows, capacity;
    struct cell *cells; /* row by row, n_columns each */
    size_t next;        /* next cell of the last row */
    size_t fit;
    bool explains; /* the help of columns is printed */
    bool failed;
};

struct tare_report_table *tare_report_table_new(enum tare_report_form form, const struct tare_report_column *columns) {
    struct tare_report_table *table = tare_calloc(1, sizeof *table);
    if (!table) return NULL;
    table->form = form;
    table->columns = columns;
    while (table->n_columns < TARE_REPORT_COLUMNS && columns[table->n_columns].heading)
        table->n_columns++;
    return table;
}

void tare_report_table_fit(struct tare_report_table *table, size_t width) {
    if (table) table->fit = width;
}

void tare_report_table_explain(struct tare_report_table *table) {
    if (table) table->explains = true;
}

void tare_report_table_row(struct tare_report_table *table) {
    if (!table || table->failed) return;
    if (table->n_rows == table->capacity) {
        const size_t capacity = table->capacity ? 2 * table->capacity : 16;
        struct cell *grown = tare_realloc(table->cells, capacity * table->n_columns, sizeof *grown);
        table->failed = !grown;
        if (!grown) return;
        table->cells = grown;
        table->capacity = capacity;
    }
    for (size_t c = 0; c < table->n_columns; c++)
        table->cells[table->n_rows * table->n_columns + c] = (struct cell){ 0 };
    table->n_rows++;
    table->next = 0;
}

/* The next cell; NULL at the end of the row. */
static struct cell *next_cell(struct tare_report_table *table) {
    if (!table || table->failed || !table->n_rows || table->next >= table->n_columns) return NULL;
    return &table->cells[(table->n_rows - 1) * table->n_columns + table->next++];
}

void tare_report_table_cell(struct tare_report_table *table, const char *format, ...) {
    struct cell *cell = next_cell(table);
    va_list args, again;
    char *text;
    if (!cell) return;
    va_start(args, format);
    va_copy(again, args);
    const int size = tare_format_va(NULL, 0, format, args);
    text = size < 0 ? NULL : tare_arena_alloc(&table->arena, (size_t)size + 1);
    if (text) tare_format_va(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    table->failed |= !text;
    cell->text = text;
}

void tare_report_table_series(struct tare_report_table *table, int series, const char *text) {
    struct cell *cell = next_cell(table);
    if (!cell) return;
    *cell = (struct cell){ .kind = SERIES, .series = series, .text = tare_arena_strdup(&table->arena, text) };
    table->failed |= !cell->text;
}

void tare_report_table_link(struct tare_report_table *table, const char *path, const char *text) {
    struct cell *cell = next_cell(table);
    if (!cell) return;
    *cell = (struct cell){ .kind = path ? LINK : PLAIN,
                           .text = tare_arena_strdup(&table->arena, text),
                           .path = path ? tare_arena_strdup(&table->arena, path) : NULL };
    table->failed |= !cell->text || (path && !cell->path);
}

void tare_report_table_skip(struct tare_report_table *table) {
    (void)next_cell(table);
}

void tare_report_table_text(struct tare_report_table *table, const char *text) {
    if (text)
        tare_report_table_cell(table, "%s", text);
    else
        tare_report_table_skip(table);
}

void tare_report_table_number(struct tare_report_table *table, const char *format, double value) {
    char text[64];
    if (isnan(value)) {
        tare_report_table_skip(table);
        return;
    }
    tare_format(text, sizeof text, format, value);
    tare_report_table_cell(table, "%s", text);
}

/* Pages have a space before the percent sign; terminals save the column. */
void tare_report_table_share(struct tare_report_table *table, int decimals, double share) {
    if (isnan(share))
        tare_report_table_skip(table);
    else
        tare_report_table_cell(table, "%.*f%s%%", decimals, 100 * share,
                               table && table->form == TARE_IN_PAGE ? " " : "");
}

void tare_report_table_bar(struct tare_report_table *table, double share) {
    const size_t at = table ? table->next : 0;
    tare_report_table_share(table, 0, share);
    if (!table || table->failed || !table->n_rows || at >= table->n_columns) return;
    struct cell *cell = &table->cells[(table->n_rows - 1) * table->n_columns + at];
    cell->kind = BAR;
    cell->share = share;
}

void tare_report_table_db_bar(struct tare_report_table *table, double db) {
    const size_t at = table ? table->next : 0;
    tare_report_table_db(table, db);
    if (!table || table->failed || !table->n_rows || at >= table->n_columns || isnan(db)) return;
    struct cell *cell = &table->cells[(table->n_rows - 1) * table->n_columns + at];
    cell->kind = BAR;
    cell->share = db > 60 ? 0 : db < 0 ? 1 : (60 - db) / 60;
}

void tare_report_table_db(struct tare_report_table *table, double db) {
    if (isinf(db))
        tare_report_table_text(table, db > 0 ? "exact" : "none");
    else
        tare_report_table_number(table, "%.2f", db);
}

/* ---- printing ---- */

static bool is_shown(const struct tare_report_table *table, size_t column) {
    const struct tare_report_column *c = &table->columns[column];
    if (c->only && c->only != table->form) return false;
    for (size_t r = 0; r < table->n_rows; r++)
        if (table->cells[r * table->n_columns + column].text) return true;
    return false;
}

static void page_cell(struct tare_page_table *page, const struct cell *cell) {
    if (!cell->text)
        tare_page_table_skip(page);
    else if (cell->kind == SERIES)
        tare_page_table_series_cell(page, cell->series, "%s", cell->text);
    else if (cell->kind == LINK)
        tare_page_table_file_cell(page, cell->path, "%s", cell->text);
    else if (cell->kind == BAR)
        tare_page_table_bar_cell(page, cell->share, "%s", cell->text);
    else
        tare_page_table_cell(page, "%s", cell->text);
}

static void print_page(struct tare_strbuf *out, const struct tare_report_table *table, const bool *shown) {
    struct tare_page_column columns[TARE_REPORT_COLUMNS + 1] = { { 0 } };
    struct tare_page_table page;
    size_t count = 0;
    for (size_t c = 0; c < table->n_columns; c++)
        if (shown[c])
            columns[count++] = (struct tare_page_column){ .heading = table->columns[c].heading,
                                                          .help = table->columns[c].help,
                                                          .left = table->columns[c].left,
                                                          .wraps = table->columns[c].wraps };
    tare_page_table_begin(&page, out, columns);
    for (size_t r = 0; r < table->n_rows; r++) {
        tare_page_table_row(&page);
        for (size_t c = 0; c < table->n_columns; c++)
            if (shown[c]) page_cell(&page, &table->cells[r * table->n_columns + c]);
    }
    tare_page_table_end(&page);
}

static bool has_bars(const struct tare_report_table *table, size_t column) {
    for (size_t r = 0; r < table->n_rows; r++)
        if (table->cells[r * table->n_columns + column].kind == BAR) return true;
    return false;
}

static void print_text(struct tare_strbuf *out, const struct tare_report_table *table, const bool *shown) {
    struct tare_text_table_column columns[TARE_REPORT_COLUMNS + 1] = { { 0 } };
    struct tare_text_table *text;
    size_t count = 0;
    for (size_t c = 0; c < table->n_columns; c++)
        if (shown[c])
            columns[count++] = (struct tare_text_table_column){ .heading = table->columns[c].heading,
                                                                .left = table->columns[c].left && !has_bars(table, c) };
    text = tare_text_table_new(columns);
    for (size_t r = 0; r < table->n_rows; r++) {
        tare_text_table_row(text);
        for (size_t c = 0; c < table->n_columns; c++) {
            const char *cell = table->cells[r * table->n_columns + c].text;
            if (shown[c] && cell) tare_text_table_cell(text, "%s", cell);
            if (shown[c] && !cell) tare_text_table_skip(text);
        }
    }
    tare_text_table_fit(text, table->fit);
    tare_text_table_print(out, text);
    tare_text_table_free(text);
    for (size_t c = 1; c < table->n_columns && table->explains; c++)
        if (shown[c] && table->columns[c].help)
            tare_strbuf_printf(out, "%s: %s\n", table->columns[c].heading, table->columns[c].help);
}

void tare_report_table_end(struct tare_strbuf *out, struct tare_report_table *table) {
    bool shown[TARE_REPORT_COLUMNS] = { false };
    out->failed = out->failed || !table || table->failed;
    if (table && !table->failed && table->n_rows) {
        for (size_t c = 0; c < table->n_columns; c++)
            shown[c] = is_shown(table, c);
        if (table->form == TARE_IN_PAGE)
            print_page(out, table, shown);
        else
            print_text(out, table, shown);
    }
    if (!table) return;
    tare_arena_free(&table->arena);
    tare_free(table->cells);
    tare_free(table);
}

/* Comparing reports. */
#include "eval/report_diff.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/text_table.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static tare_status load(json_t **out, const char *path) {
    json_error_t error;
    char *text;
    size_t size;
    TARE_TRY(tare_file_read(&text, &size, path));
    *out = json_loadb(text, size, 0, &error);
    tare_free(text);
    if (!*out) return TARE_FAIL(TARE_CORRUPT, "%s: line %d: %s", path, error.line, error.text);
    if (json_is_array(json_object_get(*out, "results")) || json_is_array(json_object_get(*out, "jobs"))) return TARE_OK;
    json_decref(*out);
    return TARE_FAIL(TARE_CORRUPT, "%s: this is no report of 'tare compare' or 'tare batch' (no \"results\" or \"jobs\")", path);
}

static const json_t *rows_of(const json_t *report) {
    const json_t *rows = json_object_get(report, "results");
    return rows ? rows : json_object_get(report, "jobs");
}

static const char *text_of(const json_t *row, const char *key) {
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

static void name_of(char name[256], const json_t *row) {
    if (*text_of(row, "name"))
        snprintf(name, 256, "%s", text_of(row, "name"));
    else
        snprintf(name, 256, "%s%s%s%s%s", text_of(row, "method"), *text_of(row, "algorithm") ? " " : "", text_of(row, "algorithm"),
                 *text_of(row, "granularity") ? " " : "", text_of(row, "granularity"));
}

static const json_t *find(const json_t *rows, const char *name) {
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)(uintptr_t)rows, i, row) {
        char other[256];
        name_of(other, row);
        if (strcmp(name, other) == 0) return row;
    }
    return NULL;
}

static const struct figure {
    const char *key, *heading;
    double factor;
    const char *format;
} figures[] = {
    { "top1", "top-1 %", 100, "%.2f" },
    { "agreement", "agree %", 100, "%.2f" },
    { "sqnr_db", "SQNR dB", 1, "%.2f" },
    { "size_bytes", "weights MB", 1e-6, "%.3f" },
    { "seconds", "seconds", 1, "%.2f" },
};
enum { N_FIGURES = sizeof figures / sizeof *figures };

static void figure_cells(struct tare_text_table *table, const struct figure *f, const json_t *const pair[2]) {
    char text[64];
    double values[2];
    for (int side = 0; side < 2; side++) {
        const json_t *value = pair[side] ? json_object_get(pair[side], f->key) : NULL;
        values[side] = json_is_number(value) ? f->factor * json_number_value(value) : NAN;
        snprintf(text, sizeof text, f->format, values[side]);
        if (isnan(values[side]))
            tare_text_table_skip(table);
        else
            tare_text_table_cell(table, "%s", text);
    }
    if (isnan(values[0]) || isnan(values[1]))
        tare_text_table_skip(table);
    else
        tare_text_table_cell(table, "%+.3g", values[1] - values[0]);
}

static void add_row(struct tare_text_table *table, const char *name, const json_t *first, const json_t *second) {
    const json_t *const pair[2] = { first, second };
    tare_text_table_row(table);
    tare_text_table_cell(table, "%s", name);
    for (size_t i = 0; i < N_FIGURES; i++) figure_cells(table, &figures[i], pair);
}

static void compare(struct tare_strbuf *out, const json_t *first, const json_t *second) {
    struct tare_text_table_column columns[2 + 3 * N_FIGURES] = { { .heading = "", .left = true } };
    struct tare_text_table *table;
    size_t i;
    json_t *row;
    for (size_t f = 0; f < N_FIGURES; f++) {
        columns[1 + 3 * f].heading = figures[f].heading;
        columns[2 + 3 * f].heading = "second";
        columns[3 + 3 * f].heading = "change";
    }
    table = tare_text_table_new(columns);
    json_array_foreach((json_t *)(uintptr_t)rows_of(first), i, row) {
        char name[256];
        name_of(name, row);
        add_row(table, name, row, find(rows_of(second), name));
    }
    json_array_foreach((json_t *)(uintptr_t)rows_of(second), i, row) {
        char name[256];
        name_of(name, row);
        if (!find(rows_of(first), name)) add_row(table, name, NULL, row);
    }
    tare_text_table_print(out, table);
    tare_text_table_free(table);
}

tare_status tare_report_diff_text(struct tare_strbuf *out, const char *first, const char *second) {
    json_t *a = NULL, *b = NULL;
    tare_status status = load(&a, first);
    if (status == TARE_OK) {
        status = load(&b, second);
        if (status == TARE_OK) {
            tare_strbuf_printf(out, "first   %s\nsecond  %s\n\n", first, second);
            compare(out, a, b);
            json_decref(b);
        }
        json_decref(a);
    }
    return status;
}

/* Compares two JSON reports of `tare compare` or `tare batch`: rows are matched by method, algorithm and granularity,
 * or by job name, and each figure is shown as a pair. */
#include "eval/report/report_diff.h"
#include "base/alloc.h"
#include "base/file.h"
#include "eval/report/comparison_columns.h"
#include "eval/report/json_text.h"
#include "eval/report/page.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The value of a row's measure. A comparison has it in a list next to the rows. */
#define MEASURE "measure_value"

static void add_measure(json_t *report) {
    const json_t *values = json_object_get(json_object_get(report, "measure"), "results");
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(report, "results"), i, row) if (json_is_object(row))
        json_object_set(row, MEASURE, json_object_get(json_array_get(values, i), "value"));
}

static tare_status load(json_t **out, const char *path) {
    json_error_t error;
    char *text;
    size_t size;
    TARE_TRY(tare_file_read(&text, &size, path));
    *out = tare_json_parse(text, size, &error);
    tare_free(text);
    if (!*out) return TARE_FAIL(TARE_CORRUPT, "%s: line %d: %s", path, error.line, error.text);
    add_measure(*out);
    if (json_is_array(json_object_get(*out, "results")) || json_is_array(json_object_get(*out, "jobs"))) return TARE_OK;
    json_decref(*out);
    return TARE_FAIL(TARE_CORRUPT, "%s: not a report of 'tare compare' or 'tare batch' (no \"results\" or \"jobs\")",
                     path);
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
        snprintf(name, 256, "%s%s%s%s%s", text_of(row, "method"), *text_of(row, "algorithm") ? " " : "",
                 text_of(row, "algorithm"), *text_of(row, "granularity") ? " " : "", text_of(row, "granularity"));
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

/* Calls `pair` for every name in either report: first those of the first report in its order, then the new ones. */
static void each_pair(const json_t *const reports[2],
                      void (*pair)(void *arg, const char *name, const json_t *const rows[2]), void *arg) {
    for (int side = 0; side < 2; side++) {
        size_t i;
        json_t *row;
        json_array_foreach((json_t *)(uintptr_t)rows_of(reports[side]), i, row) {
            char name[256];
            const json_t *other;
            name_of(name, row);
            other = find(rows_of(reports[!side]), name);
            if (side == 0)
                pair(arg, name, (const json_t *const[2]){ row, other });
            else if (!other)
                pair(arg, name, (const json_t *const[2]){ NULL, row });
        }
    }
}

/* ---- tables, one a figure ---- */

struct table {
    const struct tare_comparison_column *column;
    struct tare_report_table *rows;
    bool known; /* a row has the figure */
};

static void add_row(void *arg, const char *name, const json_t *const rows[2]) {
    struct table *table = arg;
    double values[2];
    tare_report_table_row(table->rows);
    tare_report_table_text(table->rows, name);
    for (int side = 0; side < 2; side++) {
        const json_t *value = rows[side] ? json_object_get(rows[side], tare_comparison_json_key(table->column)) : NULL;
        values[side] = json_is_number(value) ? table->column->diff.factor * json_number_value(value) : NAN;
        table->known |= !isnan(values[side]);
        tare_report_table_number(table->rows, table->column->diff.format, values[side]);
    }
    tare_report_table_number(table->rows, "%+.3g", values[1] - values[0]);
}

static void put_tables(struct tare_strbuf *out, enum tare_report_form form, const json_t *const reports[2]) {
    for (size_t f = 0; f < tare_comparison_n_columns; f++) {
        const struct tare_comparison_column *column = &tare_comparison_columns[f];
        const struct tare_report_column columns[] = {
            { .heading = column->diff.heading, .left = true, .wraps = true },
            { .heading = "first" },
            { .heading = "second" },
            { .heading = "change" },
            { 0 },
        };
        struct table table = { .column = column };
        struct tare_strbuf text = { 0 };
        if (!column->diff.heading) continue;
        table.rows = tare_report_table_new(form, columns);
        each_pair(reports, add_row, &table);
        tare_report_table_end(&text, table.rows);
        if (table.known && form == TARE_IN_TEXT) tare_strbuf_putc(out, '\n');
        if (table.known) tare_strbuf_append(out, text.data, text.size);
        out->failed = out->failed || text.failed;
        tare_strbuf_free(&text);
    }
}

/* ---- JSON ---- */

static json_t *figure_of(const json_t *row, const char *key) {
    const json_t *value = row ? json_object_get(row, key) : NULL;
    return json_is_number(value) ? json_real(json_number_value(value)) : json_null();
}

static void add_object(void *arg, const char *name, const json_t *const rows[2]) {
    json_t *object = json_pack("{s:o}", "name", tare_json_text(name));
    for (size_t f = 0; f < tare_comparison_n_columns; f++) {
        const char *key = tare_comparison_json_key(&tare_comparison_columns[f]);
        if (!tare_comparison_columns[f].diff.heading) continue;
        if (rows[0] ? json_object_get(rows[0], key) || (rows[1] && json_object_get(rows[1], key))
                    : json_object_get(rows[1], key) != NULL)
            json_object_set_new(object, key, json_pack("[o, o]", figure_of(rows[0], key), figure_of(rows[1], key)));
    }
    json_array_append_new(arg, object);
}

/* ---- reports ---- */

static tare_status load_both(json_t *out[2], const char *first, const char *second) {
    tare_status status = load(&out[0], first);
    if (status != TARE_OK) return status;
    status = load(&out[1], second);
    if (status != TARE_OK) json_decref(out[0]);
    return status;
}

tare_status tare_report_diff_text(struct tare_strbuf *out, const char *first, const char *second) {
    json_t *reports[2];
    TARE_TRY(load_both(reports, first, second));
    tare_strbuf_printf(out, "first   %s\nsecond  %s\n", first, second);
    put_tables(out, TARE_IN_TEXT, (const json_t *const[2]){ reports[0], reports[1] });
    json_decref(reports[0]);
    json_decref(reports[1]);
    return TARE_OK;
}

tare_status tare_report_diff_html(struct tare_strbuf *out, const char *first, const char *second) {
    json_t *reports[2];
    TARE_TRY(load_both(reports, first, second));
    tare_page_begin(out, "Two reports side by side", NULL);
    tare_page_sides(out, first, second);
    put_tables(out, TARE_IN_PAGE, (const json_t *const[2]){ reports[0], reports[1] });
    tare_page_end(out);
    json_decref(reports[0]);
    json_decref(reports[1]);
    return TARE_OK;
}

tare_status tare_report_diff_json(struct tare_strbuf *out, const char *first, const char *second) {
    json_t *reports[2], *results = json_array();
    tare_status status = load_both(reports, first, second);
    if (status != TARE_OK) {
        json_decref(results);
        return status;
    }
    each_pair((const json_t *const[2]){ reports[0], reports[1] }, add_object, results);
    json_decref(reports[0]);
    json_decref(reports[1]);
    return tare_json_write(out, json_pack("{s:o, s:o, s:o}", "first", tare_json_text(first), "second",
                                          tare_json_text(second), "results", results));
}

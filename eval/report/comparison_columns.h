/* The figures of a comparison that its reports show: one row of the table is a column of the terminal, the page and
 * CSV, a member of JSON, and a table of 'tare diff'. Used by eval/report/ only. */
#ifndef TARE_EVAL_REPORT_COMPARISON_COLUMNS_H
#define TARE_EVAL_REPORT_COMPARISON_COLUMNS_H

#include "eval/measure.h"
#include "eval/report/report_table.h"

#include <jansson.h>

/* What a figure is of: one output of one model. */
struct tare_comparison_cell {
    const struct tare_comparison *comparison;
    const struct tare_comparison_row *row;
    const struct tare_metrics *metrics;
};

/* The tables of the terminal and the page, of which the first fits into 80 columns; JSON has the last two groups. */
enum { TARE_SUMMARY_COLUMNS = 1, TARE_MODEL_COLUMNS = 2, TARE_COST_COLUMNS = 4 };

/* Rows are in the order of the tables, JSON and 'tare diff'; new columns of CSV come last. */
struct tare_comparison_column {
    const char *key;                                              /* in CSV and JSON */
    double (*value)(const struct tare_comparison_cell *cell);     /* NaN: not known */
    const char *(*text)(const struct tare_comparison_cell *cell); /* in CSV, instead of the value; NULL: empty */
    int csv;                                                      /* place in CSV; 0: it has none */
    const char *csv_format;                                       /* NULL: nine digits */
    unsigned json;                                                /* group; 0: not in JSON */
    const char *json_key;                                         /* if it has another key there */
    enum { TARE_JSON_KNOWN, TARE_JSON_ALWAYS, TARE_JSON_COUNT } json_form;
    unsigned tables;
    const char *heading, *help; /* heading NULL: the title of the measure */
    double factor;              /* 0: 1 */
    const char *format;         /* NULL: a share as a percentage, with `decimals` */
    int decimals;
    void (*put)(struct tare_report_table *table, const struct tare_comparison_cell *cell); /* instead of the value */
    bool left;
    enum tare_report_form only;
    struct {
        const char *heading;
        double factor;
        const char *format;
    } diff; /* of two reports side by side, by the key in JSON */
};
extern const struct tare_comparison_column tare_comparison_columns[];
extern const size_t tare_comparison_n_columns;
const char *tare_comparison_json_key(const struct tare_comparison_column *column);

/* Appends one of the tables, with a row a model, at one output. */
void tare_comparison_put(struct tare_strbuf *out, enum tare_report_form form, const struct tare_comparison *comparison,
                         unsigned table, size_t output);
/* Appends the name of a combination that was not measured: its method, algorithm and granularity. */
void tare_comparison_put_skipped(struct tare_strbuf *out, const struct tare_comparison_skipped *skipped);
/* Sets the figures of a group in a JSON object. */
void tare_comparison_set(json_t *object, const struct tare_comparison_cell *cell, unsigned group);

#endif

/* One table for a terminal or a page: rows are written once, to whichever is made. Columns that no row has filled are
 * left out of both.
 *
 * A table takes memory until it is ended; without it the functions do nothing and the end says so in the buffer. */
#ifndef TARE_EVAL_REPORT_REPORT_TABLE_H
#define TARE_EVAL_REPORT_REPORT_TABLE_H

#include "base/status.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

enum tare_report_form { TARE_IN_TEXT = 1, TARE_IN_PAGE = 2 };
enum { TARE_REPORT_COLUMNS = 32 }; /* at most */

/* One column; an array of them ends with a row without heading. */
struct tare_report_column {
    const char *heading;
    const char *help;           /* shown when the pointer rests on the heading of a page; may be NULL */
    bool left;                  /* text; numbers stand on the right (in text those behind a page's bars, too) */
    bool wraps;                 /* in a page long text may be broken over lines */
    enum tare_report_form only; /* the other form leaves it out; 0: both have it */
};

struct tare_report_table;

/* `columns` is borrowed. */
struct tare_report_table *tare_report_table_new(enum tare_report_form form, const struct tare_report_column *columns);
/* As text: the line that it should fit into (base/text_table.h). */
void tare_report_table_fit(struct tare_report_table *table, size_t width);
/* Begins a row; cells are filled from the left, those of the other form included. */
void tare_report_table_row(struct tare_report_table *table);
void tare_report_table_cell(struct tare_report_table *table, const char *format, ...) TARE_PRINTF(2, 3);
/* The next `count` cells stay empty (a dash where the column is shown). */
void tare_report_table_skip(struct tare_report_table *table, int count);
/* Text, a number by a format with one double, a share as a percentage, decibels ("exact", "none" where they are
 * infinite); empty for NULL and NaN. */
void tare_report_table_text(struct tare_report_table *table, const char *text);
void tare_report_table_number(struct tare_report_table *table, const char *format, double value);
void tare_report_table_share(struct tare_report_table *table, int decimals, double share);
void tare_report_table_db(struct tare_report_table *table, double db);
/* In a page the text stands behind the swatch of a series, and the percentage behind a bar that is as long. */
void tare_report_table_series(struct tare_report_table *table, int series, const char *text);
void tare_report_table_bar(struct tare_report_table *table, int decimals, double share);
/* Appends the table, unless it has no rows, and frees it. */
void tare_report_table_end(struct tare_strbuf *out, struct tare_report_table *table);

#endif

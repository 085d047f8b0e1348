/* One table for a terminal or a page: the same calls produce either. Columns that are empty in every row are omitted.
 *
 * After an allocation failure the functions do nothing, and tare_report_table_end sets the buffer's `failed`. */
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
    const char *help;           /* tooltip of the heading in a page; may be NULL */
    bool left;                  /* left-aligned text; numbers are right-aligned (in text, bar columns as well) */
    bool wraps;                 /* long text may wrap in a page */
    enum tare_report_form only; /* the only form that has the column; 0: both */
};

struct tare_report_table;

/* `columns` is borrowed. */
struct tare_report_table *tare_report_table_new(enum tare_report_form form, const struct tare_report_column *columns);
/* For text: characters per line that the table should fit into (base/text_table.h). */
void tare_report_table_fit(struct tare_report_table *table, size_t width);
/* For text: the help of the columns after the first follows the table, a line each. */
void tare_report_table_explain(struct tare_report_table *table);
/* Begins a row; cells are filled from the left, including those of the other form. */
void tare_report_table_row(struct tare_report_table *table);
void tare_report_table_cell(struct tare_report_table *table, const char *format, ...) TARE_PRINTF(2, 3);
/* Leaves the next cell empty (printed as a dash). */
void tare_report_table_skip(struct tare_report_table *table);
/* Text, a number by a format with one double, a share as a percentage, decibels ("exact" and "none" for infinities).
 * NULL and NaN are empty cells. */
void tare_report_table_text(struct tare_report_table *table, const char *text);
void tare_report_table_number(struct tare_report_table *table, const char *format, double value);
void tare_report_table_share(struct tare_report_table *table, int decimals, double share);
void tare_report_table_db(struct tare_report_table *table, double db);
/* In a page, the text is a link to a file next to the page; `path` NULL: it is not. */
void tare_report_table_link(struct tare_report_table *table, const char *path, const char *text);
/* In a page, the text follows the marker of a series, and the percentage follows a bar of that length. */
void tare_report_table_series(struct tare_report_table *table, int series, const char *text);
void tare_report_table_bar(struct tare_report_table *table, double share);
/* Decibels after a bar that is longer for more noise: full at 0 dB, empty from 60 dB. */
void tare_report_table_db_bar(struct tare_report_table *table, double db);
/* Appends the table unless it has no rows, and frees it. */
void tare_report_table_end(struct tare_strbuf *out, struct tare_report_table *table);

#endif

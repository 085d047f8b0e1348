/* Text tables with aligned columns. Widths are counted in characters (UTF-8 code points), so that names in any language
 * are aligned. Columns without any value are omitted. */
#ifndef TARE_BASE_TEXT_TABLE_H
#define TARE_BASE_TEXT_TABLE_H

#include "base/strbuf.h"

#include <stdbool.h>

struct tare_text_table;

/* One column; an array of them ends with a row without heading. */
struct tare_text_table_column {
    const char *heading;
    bool left;   /* aligned to the left (text); numbers are aligned to the right */
    bool always; /* shown even if no row has a value */
};

/* Headings are borrowed. NULL if out of memory; the functions below accept NULL and do nothing. */
struct tare_text_table *tare_text_table_new(const struct tare_text_table_column *columns);
void tare_text_table_free(struct tare_text_table *table);
/* Sets the maximum line width in characters; 0: unlimited. A wider table is printed in parts, one below another; each
 * repeats the leading text columns (names) if there is space. */
void tare_text_table_fit(struct tare_text_table *table, size_t width);
/* Starts a row; cells are filled from left to right. */
void tare_text_table_row(struct tare_text_table *table);
/* Sets the next cell of the row. Cells beyond the last column are dropped. */
void tare_text_table_cell(struct tare_text_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Leaves the next cell empty; printed as "-". */
void tare_text_table_skip(struct tare_text_table *table);
/* Appends the heading and rows with two spaces between columns and no trailing spaces. */
void tare_text_table_print(struct tare_strbuf *out, const struct tare_text_table *table);

#endif

/* Text tables with aligned columns, for people. Width is counted in characters (UTF-8 code points), so that names in
 * any language line up. Columns that no row has filled are left out. */
#ifndef TARE_BASE_TEXT_TABLE_H
#define TARE_BASE_TEXT_TABLE_H

#include "base/strbuf.h"

#include <stdbool.h>

struct tare_text_table;

/* One column; an array of them ends with a row without heading. */
struct tare_text_table_column {
    const char *heading;
    bool left;   /* text; numbers stand on the right */
    bool always; /* shown also when no row has filled it */
};

/* Headings are borrowed. NULL: no memory; the functions below take NULL and do nothing. */
struct tare_text_table *tare_text_table_new(const struct tare_text_table_column *columns);
void tare_text_table_free(struct tare_text_table *table);
/* The line that the table should fit into, in characters; 0: any. One that is wider is printed in parts below each
 * other, each with the leading columns of text (names) again, where these leave room. */
void tare_text_table_fit(struct tare_text_table *table, size_t width);
/* Begins a row; cells are filled from the left. */
void tare_text_table_row(struct tare_text_table *table);
/* The next cell of the row. Cells beyond the last column are dropped. */
void tare_text_table_cell(struct tare_text_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next cell stays empty ("-" where its column is shown). */
void tare_text_table_skip(struct tare_text_table *table);
/* Appends heading and rows, two spaces between columns, none at the end of a line. */
void tare_text_table_print(struct tare_strbuf *out, const struct tare_text_table *table);

#endif

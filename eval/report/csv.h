/* Cells of CSV files (RFC 4180). */
#ifndef TARE_EVAL_REPORT_CSV_H
#define TARE_EVAL_REPORT_CSV_H

#include "base/strbuf.h"

/* Appends the text, quoted when it contains a comma, quote or line break, and after a single quote when a spreadsheet
 * would take it for a formula; nothing for NULL. */
void tare_csv_text(struct tare_strbuf *out, const char *text);
/* Appends a comma and the number ("inf", "-inf"); only the comma for NaN. */
void tare_csv_number(struct tare_strbuf *out, double value);

#endif

/* Cells of CSV files (RFC 4180). */
#ifndef TARE_EVAL_REPORT_CSV_H
#define TARE_EVAL_REPORT_CSV_H

#include "base/strbuf.h"

#include <stdint.h>

/* The text, quoted where a comma, quote or line break is in it; nothing for NULL. */
void tare_csv_text(struct tare_strbuf *out, const char *text);
/* A comma, and the number ("inf", "-inf"); nothing for NaN. */
void tare_csv_number(struct tare_strbuf *out, double value);
/* A comma, and the share with six decimals where `whole` is not 0. */
void tare_csv_share(struct tare_strbuf *out, int64_t part, int64_t whole);

#endif

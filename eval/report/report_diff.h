/* Two JSON reports of a comparison or a batch side by side. */
#ifndef TARE_EVAL_REPORT_REPORT_DIFF_H
#define TARE_EVAL_REPORT_REPORT_DIFF_H

#include "base/status.h"
#include "base/strbuf.h"

/* Rows with the same method, algorithm and granularity (jobs of the same name) stand together. TARE_CORRUPT for a file
 * that is no such report. */
tare_status tare_report_diff_text(struct tare_strbuf *out, const char *first, const char *second) TARE_WARN_UNUSED;
/* The same as a page. */
tare_status tare_report_diff_html(struct tare_strbuf *out, const char *first, const char *second) TARE_WARN_UNUSED;
/* The same as JSON: every figure as a pair of numbers, null where a report has none. */
tare_status tare_report_diff_json(struct tare_strbuf *out, const char *first, const char *second) TARE_WARN_UNUSED;

#endif

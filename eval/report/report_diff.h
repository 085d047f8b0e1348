/* Differences of two JSON reports of a comparison or a batch. */
#ifndef TARE_EVAL_REPORT_REPORT_DIFF_H
#define TARE_EVAL_REPORT_REPORT_DIFF_H

#include "base/status.h"
#include "base/strbuf.h"

/* Rows with the same method, algorithm and granularity (jobs of the same name) are matched. TARE_CORRUPT: a file is not
 * such a report. */
tare_status tare_report_diff_text(struct tare_strbuf *out, const char *first, const char *second) TARE_WARN_UNUSED;
/* The same as an HTML page. */
tare_status tare_report_diff_html(struct tare_strbuf *out, const char *first, const char *second) TARE_WARN_UNUSED;
/* The same as JSON: every figure is a pair of numbers, null when a report does not have it. */
tare_status tare_report_diff_json(struct tare_strbuf *out, const char *first, const char *second) TARE_WARN_UNUSED;

#endif

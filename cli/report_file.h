/* --report FILE: the extension selects the format. */
#ifndef TARE_CLI_REPORT_FILE_H
#define TARE_CLI_REPORT_FILE_H

#include "base/status.h"
#include "base/strbuf.h"

/* TARE_REPORT_JUNIT: .xml, of commands that judge several things (tare_report_check does not accept it). */
enum tare_report_kind { TARE_REPORT_UNKNOWN, TARE_REPORT_HTML, TARE_REPORT_JSON, TARE_REPORT_CSV, TARE_REPORT_JUNIT };

enum tare_report_kind tare_report_kind(const char *path);
/* TARE_USAGE unless the name ends in .html, .json or .csv, or is NULL. */
tare_status tare_report_check(const char *path) TARE_WARN_UNUSED;
/* The same for reports that have no tables: .html or .json. */
tare_status tare_report_check_page(const char *path) TARE_WARN_UNUSED;
/* Writes the whole text. */
tare_status tare_report_write(const char *path, const struct tare_strbuf *text) TARE_WARN_UNUSED;

#endif

/* --report FILE. */
#include "cli/report_file.h"
#include "base/output.h"

#include <string.h>

enum tare_report_kind tare_report_kind(const char *path) {
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".html") == 0) return TARE_REPORT_HTML;
    if (dot && strcmp(dot, ".json") == 0) return TARE_REPORT_JSON;
    if (dot && strcmp(dot, ".xml") == 0) return TARE_REPORT_JUNIT;
    return dot && strcmp(dot, ".csv") == 0 ? TARE_REPORT_CSV : TARE_REPORT_UNKNOWN;
}

tare_status tare_report_check(const char *path) {
    const enum tare_report_kind kind = path ? tare_report_kind(path) : TARE_REPORT_HTML;
    if (kind != TARE_REPORT_UNKNOWN && kind != TARE_REPORT_JUNIT) return TARE_OK;
    return TARE_FAIL(TARE_USAGE, "--report %s: unknown format (expected .html, .json or .csv)", path);
}

tare_status tare_report_check_page(const char *path) {
    const enum tare_report_kind kind = path ? tare_report_kind(path) : TARE_REPORT_HTML;
    if (kind == TARE_REPORT_HTML || kind == TARE_REPORT_JSON) return TARE_OK;
    return TARE_FAIL(TARE_USAGE, "--report %s: unknown format (expected .html or .json)", path);
}

tare_status tare_report_write(const char *path, const struct tare_strbuf *text) {
    TARE_TRY(tare_strbuf_status(text));
    return tare_file_write(path, tare_strbuf_text(text), text->size);
}

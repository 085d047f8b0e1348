/* Thread-local error text. Texts that are too long are truncated at the end; the location at the beginning stays. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 4096 };

static _Thread_local char error_text[TEXT_SIZE];

tare_status tare_fail_va(tare_status status, const char *format, va_list args) {
    char text[TEXT_SIZE]; /* arguments may point into error_text */
    vsnprintf(text, sizeof text, format, args);
    memcpy(error_text, text, strlen(text) + 1);
    return status;
}

tare_status tare_fail(tare_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tare_fail_va(status, format, args);
    va_end(args);
    return status;
}

tare_status tare_error_prefix(tare_status status, const char *format, ...) {
    char text[TEXT_SIZE];
    va_list args;
    int used;

    if (status == TARE_OK || status == TARE_INTERRUPTED) return status;
    va_start(args, format);
    used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (used < 0) return status;
    if ((size_t)used < sizeof text) snprintf(text + used, sizeof text - (size_t)used, ": %s", error_text);
    memcpy(error_text, text, strlen(text) + 1);
    return status;
}

const char *tare_error_text(void) {
    return error_text;
}

void tare_error_clear(void) {
    error_text[0] = '\0';
}

tare_status tare_error_dismiss(tare_status status) {
    if (status == TARE_NO_MEMORY || status == TARE_INTERRUPTED) return status;
    if (status != TARE_OK) tare_error_clear();
    return TARE_OK;
}

void tare_error_set(const char *text) {
    snprintf(error_text, sizeof error_text, "%s", text);
}

const char *tare_status_name(tare_status status) {
    static const char *const names[] = {
        [TARE_OK] = "ok",
        [TARE_INVALID_ARGUMENT] = "invalid argument",
        [TARE_UNSUPPORTED] = "unsupported",
        [TARE_CORRUPT] = "corrupt",
        [TARE_TYPE] = "wrong dtype",
        [TARE_SHAPE] = "wrong shape",
        [TARE_NOT_FOUND] = "not found",
        [TARE_IO] = "input/output error",
        [TARE_NO_MEMORY] = "out of memory",
        [TARE_INTERRUPTED] = "interrupted",
        [TARE_USAGE] = "usage",
        [TARE_INTERNAL] = "internal error",
    };
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}

/* Thread-local error text. Of texts that are too long, the location at the beginning and the reason at the end stay. */
#include "base/status.h"
#include "base/format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 4096 };

static _Thread_local char error_text[TEXT_SIZE];

tare_status tare_fail_va(tare_status status, const char *format, va_list args) {
    char text[TEXT_SIZE]; /* arguments may point into error_text */
    tare_format_va(text, sizeof text, format, args);
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

static bool continues_character(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80; /* UTF-8 */
}

/* Shortens a text to TEXT_SIZE by its middle. */
static void keep_ends(char *text) {
    static const char gap[] = " … ";
    const size_t size = strlen(text);
    size_t head = TEXT_SIZE / 2, tail = size - (TEXT_SIZE / 2 - sizeof gap);
    if (size < TEXT_SIZE) return;
    while (head > 0 && continues_character(text[head]))
        head--;
    while (tail < size && continues_character(text[tail]))
        tail++;
    memcpy(text + head, gap, sizeof gap - 1);
    memmove(text + head + sizeof gap - 1, text + tail, size - tail + 1);
}

tare_status tare_error_prefix(tare_status status, const char *format, ...) {
    char text[2 * TEXT_SIZE];
    va_list args;
    int used;

    if (status == TARE_OK || status == TARE_INTERRUPTED) return status;
    va_start(args, format);
    used = tare_format_va(text, TEXT_SIZE, format, args);
    va_end(args);
    if (used < 0) return status;
    if (used >= TEXT_SIZE) used = TEXT_SIZE - 1;
    snprintf(text + used, sizeof text - (size_t)used, ": %s", error_text);
    keep_ends(text);
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

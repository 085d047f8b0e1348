/* Status codes and error texts.
 *
 * A function that can fail returns tare_status and sets the error text. TARE_FAIL does both, callers prepend context
 * with tare_error_prefix, and the command line prints "tare: " and the text as one line. The text is thread-local: a
 * thread that waits for others copies their text with tare_error_set. */
#ifndef TARE_BASE_STATUS_H
#define TARE_BASE_STATUS_H

#include "include/tare/status.h" /* tare_status, tare_error_text, tare_status_name */

#include <stdarg.h>

/* Short names inside the library; TARE_ERROR_* are for programs. */
#define TARE_INVALID_ARGUMENT TARE_ERROR_INVALID_ARGUMENT
#define TARE_UNSUPPORTED TARE_ERROR_UNSUPPORTED
#define TARE_CORRUPT TARE_ERROR_CORRUPT
#define TARE_TYPE TARE_ERROR_TYPE
#define TARE_SHAPE TARE_ERROR_SHAPE
#define TARE_NOT_FOUND TARE_ERROR_NOT_FOUND
#define TARE_IO TARE_ERROR_IO
#define TARE_NO_MEMORY TARE_ERROR_NO_MEMORY
#define TARE_INTERRUPTED TARE_ERROR_INTERRUPTED
#define TARE_USAGE TARE_ERROR_USAGE
#define TARE_INTERNAL TARE_ERROR_INTERNAL

#define TARE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define TARE_WARN_UNUSED TARE_CHECKED

/* Sets the error text of this thread and returns `status`, which must not be TARE_OK. The text describes the error,
 * with the expected and the actual value in parentheses: "input 0 has the wrong rank (expected 4, got 3)"; no trailing
 * period or newline. */
tare_status tare_fail(tare_status status, const char *format, ...) TARE_PRINTF(2, 3);
tare_status tare_fail_va(tare_status status, const char *format, va_list args) TARE_PRINTF(2, 0);
#define TARE_FAIL(status, ...) tare_fail((status), __VA_ARGS__)

/* Prepends "context: " to the error text of this thread unless `status` is TARE_OK, or TARE_INTERRUPTED, whose place
 * does not matter; returns `status`. */
tare_status tare_error_prefix(tare_status status, const char *format, ...) TARE_PRINTF(2, 3);

void tare_error_clear(void);
/* For an attempt whose failure only means "no" or "unknown": clears the error text and returns TARE_OK.
 * TARE_NO_MEMORY and TARE_INTERRUPTED, which say nothing about what was tried, are returned as they are. */
tare_status tare_error_dismiss(tare_status status) TARE_WARN_UNUSED;
/* Sets the error text of this thread to a copy of `text`, the text of another thread. */
void tare_error_set(const char *text);

/* Returns from the calling function if the expression fails. */
#define TARE_TRY(expression)                                                                                           \
    do {                                                                                                               \
        tare_status try_status_ = (expression);                                                                        \
        if (try_status_ != TARE_OK) return try_status_;                                                                \
    } while (0)

/* Goes to the cleanup label `done` if the expression fails; needs a variable `tare_status status`. */
#define TARE_CHECK(expression)                                                                                         \
    do {                                                                                                               \
        status = (expression);                                                                                         \
        if (status != TARE_OK) goto done;                                                                              \
    } while (0)

#endif

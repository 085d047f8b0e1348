/* Status codes and the text that goes with them.
 *
 * A function that can fail returns tare_status. Failure and text come together: TARE_FAIL sets both, callers add
 * context on the way up with tare_error_prefix, and the command line prints "tare: " and the text as one line.
 * The text is thread-local; a thread that hands work to others carries their text over with tare_error_set. */
#ifndef TARE_BASE_STATUS_H
#define TARE_BASE_STATUS_H

#include "include/tare/status.h" /* tare_status, tare_error_text, tare_status_name */

#include <stdarg.h>

/* name, text; in the order of the enumeration, which is public */
#define TARE_STATUS_LIST(X)                                                                                            \
    X(OK, "ok")                                                                                                        \
    X(INVALID_ARGUMENT, "invalid argument")                                                                            \
    X(UNSUPPORTED, "unsupported")                                                                                      \
    X(CORRUPT, "corrupt")                                                                                              \
    X(TYPE, "wrong dtype")                                                                                             \
    X(SHAPE, "wrong shape")                                                                                            \
    X(NOT_FOUND, "not found")                                                                                          \
    X(IO, "input/output error")                                                                                        \
    X(NO_MEMORY, "out of memory")                                                                                      \
    X(INTERRUPTED, "interrupted")                                                                                      \
    X(USAGE, "usage")                                                                                                  \
    X(INTERNAL, "internal error")

#define TARE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define TARE_WARN_UNUSED __attribute__((warn_unused_result))

/* Sets the error text of this thread and returns `status` (never TARE_OK). The text says what, and got and expected in
 * brackets: "input 0 has rank 3 (expected 4)"; no trailing full stop or newline. */
tare_status tare_fail(tare_status status, const char *format, ...) TARE_PRINTF(2, 3);
tare_status tare_fail_va(tare_status status, const char *format, va_list args) TARE_PRINTF(2, 0);
#define TARE_FAIL(status, ...) tare_fail((status), __VA_ARGS__)

/* Puts "context: " before the error text of this thread; returns `status`. Does nothing when status is TARE_OK. */
tare_status tare_error_prefix(tare_status status, const char *format, ...) TARE_PRINTF(2, 3);

void tare_error_clear(void);
/* Carries another thread's text over to this one. */
void tare_error_set(const char *text);

/* Forwards a failure. */
#define TARE_TRY(expression)                                                                                           \
    do {                                                                                                               \
        tare_status try_status_ = (expression);                                                                        \
        if (try_status_ != TARE_OK) return try_status_;                                                                \
    } while (0)

/* Forwards a failure to the function's clean-up: needs `tare_status status` and a label `done`. */
#define TARE_CHECK(expression)                                                                                         \
    do {                                                                                                               \
        status = (expression);                                                                                         \
        if (status != TARE_OK) goto done;                                                                              \
    } while (0)

#endif

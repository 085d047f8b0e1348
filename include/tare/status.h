/* How functions of tare fail: a status, and a text beside it.
 *
 * The text is one line for a person: where, what is wrong, what was found and what was expected
 * ("my_model/saved_model.pb: …"). It belongs to the thread: tare_error_text() right behind the call that failed, on the
 * thread that called. */
#ifndef TARE_STATUS_H
#define TARE_STATUS_H

#include "api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tare_status {
    TARE_OK,               /* done */
    TARE_INVALID_ARGUMENT, /* an argument or option does not fit the model, the data or another argument */
    TARE_UNSUPPORTED,      /* nothing is wrong, but tare cannot do it: an op without kernel, a TPU would refuse it */
    TARE_CORRUPT,          /* a file is not what it should be: checksum, length, structure */
    TARE_TYPE,             /* an element type does not fit */
    TARE_SHAPE,            /* a shape does not fit */
    TARE_NOT_FOUND,        /* there is no signature, input, function, file … of that name */
    TARE_IO,               /* the system could not read or write */
    TARE_NO_MEMORY,        /* memory is out, or a limit on it is reached */
    TARE_INTERRUPTED,      /* tare_context_cancel asked for it */
    TARE_USAGE,            /* a text of options is wrong: unknown name, bad value, options that exclude each other */
    TARE_INTERNAL          /* a fault of tare itself */
} tare_status;

/* The text of the last failure on this thread, "" when there was none. Good until the thread's next call of tare. */
TARE_API const char *tare_error_text(void);
/* What a status is called: "wrong shape". A static text. */
TARE_API const char *tare_status_name(tare_status status);

#ifdef __cplusplus
}
#endif

#endif

/* Errors: a status code and a text.
 *
 * The text is one line for a person: where the error is, what is wrong, what was expected and what was found
 * ("my_model/saved_model.pb: …"). It is stored per thread: read tare_error_text() on the thread that made the call,
 * before its next call of the library. */
#ifndef TARE_STATUS_H
#define TARE_STATUS_H

#include "api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers are part of the binary interface: existing codes keep theirs, new codes are added at the end. */
typedef enum tare_status {
    TARE_OK = 0,                     /* success */
    TARE_ERROR_INVALID_ARGUMENT = 1, /* an argument or option does not fit the model, the data or another argument */
    TARE_ERROR_UNSUPPORTED = 2,      /* valid, but tare cannot do it: an op without a kernel or that no TPU compiles */
    TARE_ERROR_CORRUPT = 3,          /* a file is damaged or malformed: checksum, length, structure */
    TARE_ERROR_TYPE = 4,             /* wrong element type */
    TARE_ERROR_SHAPE = 5,            /* wrong shape */
    TARE_ERROR_NOT_FOUND = 6,        /* no signature, input, function, file … of that name */
    TARE_ERROR_IO = 7,               /* the system could not read or write */
    TARE_ERROR_NO_MEMORY = 8,        /* out of memory, or a limit on memory is reached */
    TARE_ERROR_INTERRUPTED = 9,      /* stopped by tare_context_cancel */
    TARE_ERROR_USAGE = 10,           /* malformed option text: unknown name, invalid value, conflicting options */
    TARE_ERROR_INTERNAL = 11         /* a bug in tare */
} tare_status;

/* The text of this thread's last failure, "" if there was none. Valid until the thread's next call of the library. */
TARE_API const char *tare_error_text(void);
/* A short name for a status: "wrong shape"; "unknown status" for other numbers. A static string. */
TARE_API const char *tare_status_name(tare_status status);

#ifdef __cplusplus
}
#endif

#endif

/* What work is done with: ops of your own, threads, and who is told of progress and warnings.
 *
 * Every function that takes a context takes NULL, too: built-in ops, all processors, nobody is told. A context must
 * outlive the models and readers that were opened with it. Set it up before it is used; while it is in use, only
 * tare_context_cancel may be called, from any thread or signal handler. */
#ifndef TARE_CONTEXT_H
#define TARE_CONTEXT_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tare_context_handle tare_context;

/* How far a call is: `what` is "calibrating", "comparing" …, `done` counts from 0, `total` is -1 while it is not known.
 * Called about ten times a second and once at the end, by any thread of the library, by one at a time. It may cancel;
 * it must not call anything else of the library. */
typedef void (*tare_progress_function)(void *arg, const char *what, int64_t done, int64_t total);
/* A warning or note that a person should see: one line, good until the function returns. On the thread of the call. */
typedef void (*tare_message_function)(void *arg, const char *text);

/* A context with the defaults. Close it with tare_context_close. TARE_NO_MEMORY. */
TARE_API tare_status tare_context_open(tare_context **out);
/* Frees it and unloads its libraries of ops. NULL is fine. */
TARE_API void tare_context_close(tare_context *context);
/* Loads a shared library of ops (tare/op.h). Errors begin with its path; a library that failed stays loaded in part. */
TARE_API tare_status tare_context_add_plugin(tare_context *context, const char *path);
/* Workers of calibration and comparison where their options do not say: 0 is one a processor, the default. Results do
 * not depend on it. */
TARE_API void tare_context_set_threads(tare_context *context, int threads);
/* NULL ends it. */
TARE_API void tare_context_on_progress(tare_context *context, tare_progress_function function, void *arg);
/* NULL ends it. */
TARE_API void tare_context_on_message(tare_context *context, tare_message_function function, void *arg);
/* 1: calls that work over records stop at the next record, fail with TARE_INTERRUPTED and leave nothing behind; later
 * ones fail at once. 0: go on as before. */
TARE_API void tare_context_cancel(tare_context *context, int cancel);

#ifdef __cplusplus
}
#endif

#endif

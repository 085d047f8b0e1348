/* Settings shared by calls: custom ops, threads, progress and log callbacks, cancellation.
 *
 * Wherever a function takes a context, NULL means the defaults: built-in ops, one thread per processor, no callbacks. A
 * context must outlive the models and readers opened with it. Configure it before use; while a call uses it, only
 * tare_context_cancel may be called, from any thread or signal handler. */
#ifndef TARE_CONTEXT_H
#define TARE_CONTEXT_H

#include "log.h"
#include "status.h"

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-safe once it is configured: calls only read it. */
typedef struct tare_context_handle tare_context;

/* Progress of a call: `what` is "calibrating", "comparing" …, `done` counts from 0, `total` is -1 while unknown. Called
 * about ten times per second and once at the end, on any thread of the library, never concurrently, also not for two
 * calls with one context: one waits for the other's callback. The callback may call tare_context_cancel and no other
 * function of the library. */
typedef void (*tare_progress_function)(void *arg, const char *what, int64_t done, int64_t total);
/* A log message: one line without a newline, valid during the call. Called on the thread that called the library, so by
 * several threads at once if their calls share the context; on a thread of the library only for the warning that a
 * state (tare_model_calibrate) cannot be saved. */
typedef void (*tare_log_function)(void *arg, enum tare_log_level level, const char *text);

/* Creates a context with the defaults. Release it with tare_context_close. TARE_ERROR_NO_MEMORY. */
TARE_API TARE_CHECKED tare_status tare_context_open(tare_context **out);
/* Frees the context and unloads its op libraries. No-op if NULL. */
TARE_API void tare_context_close(tare_context *context);
/* Loads a shared library of custom ops (tare/op.h). Errors begin with `path`. After a failure, ops that the library
 * registered before it failed remain registered. */
TARE_API TARE_CHECKED tare_status tare_context_add_plugin(tare_context *context, const char *path);
/* Number of worker threads of calibration and comparison unless their options set it; 0, the default, means one per
 * processor. Results do not depend on it. */
TARE_API void tare_context_set_threads(tare_context *context, int threads);
/* 1: models without a checkpoint, whose variables then have no values, may be quantized, converted and unwrapped, with
 * a warning in the log. 0, the default: these calls fail with TARE_ERROR_NOT_FOUND. */
TARE_API void tare_context_allow_missing_variables(tare_context *context, int allow);
/* Sets the progress callback; NULL removes it. */
TARE_API void tare_context_on_progress(tare_context *context, tare_progress_function function, void *arg);
/* Sets the log callback, which receives messages of level `most` and more important ones (TARE_LOG_WARNING: warnings
 * only). NULL removes it. */
TARE_API void tare_context_on_log(tare_context *context, enum tare_log_level most, tare_log_function function,
                                  void *arg);
/* 1: calls with this context, its models, runners, calibrators and readers stop, as a rule within a second and also
 * inside a record or a loop of the model, fail with TARE_ERROR_INTERRUPTED and leave no partial files; later calls fail
 * as well. 0: clears the cancellation; call it when no other call is in progress. */
TARE_API void tare_context_cancel(tare_context *context, int cancel);
/* Later calls of this thread are cancelled while *flag is not 0, instead of by tare_context_cancel: where several
 * threads share a context, one call can then be cancelled alone. NULL: by tare_context_cancel again. A calibrator keeps
 * the flag of its tare_calibrator_open for its worker threads. The flag must outlive the calls and these calibrators.
 * Any thread or signal handler may set it at any time. */
TARE_API void tare_thread_cancel_by(const volatile sig_atomic_t *flag);

#ifdef __cplusplus
}
#endif

#endif

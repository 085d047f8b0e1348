/* Contexts, versions, strings, and the beginning and end of every public function. */
#include "base/alloc.h"
#include "interpreter/ops/builtin.h"
#include "base/strbuf.h"
#include "interpreter/plugins/plugin.h"
#include "api/handles.h"

#include <stdlib.h>
#include <string.h>

const char *tare_version(void) {
    return TARE_VERSION;
}

int32_t tare_version_number(void) {
    return TARE_VERSION_NUMBER;
}

enum { MOST_CALLS = 8 };

/* Public functions that are at work on this thread: a callback of one may call another. */
static _Thread_local struct {
    struct tare_call outer[MOST_CALLS];
    int depth;
} calls;

/* Of calls that tare_thread_cancel_by cancels; `cancelled` NULL: the context does it. */
static _Thread_local struct tare_control own;

void tare_thread_cancel_by(const volatile sig_atomic_t *flag) {
    own.cancelled = flag;
}

static struct tare_control *control_of(struct tare_context_handle *context, int depth) {
    if (!own.cancelled) return context ? &context->control : NULL;
    if (depth == 0) own = (struct tare_control){ .cancelled = own.cancelled };
    return &own;
}

void tare_public_begin(struct tare_context_handle *context, uint64_t family) {
    const int depth = calls.depth++;
    tare_error_clear();
    if (depth < MOST_CALLS) calls.outer[depth] = tare_control_call();
    tare_control_begin(control_of(context, depth), family);
}

uint64_t tare_public_family(void) {
    return tare_control_call().family;
}

tare_status tare_public_end(tare_status status) {
    const int depth = --calls.depth;
    status = tare_control_conclude(status);
    tare_control_end();
    if (depth < MOST_CALLS) tare_control_join(calls.outer[depth]);
    if (status != TARE_OK && !*tare_error_text()) tare_fail(status, "%s", tare_status_name(status));
    return status;
}

tare_status tare_public_text(char **out, const struct tare_strbuf *text) {
    *out = NULL;
    TARE_TRY(tare_control_verify());
    TARE_TRY(tare_strbuf_status(text));
    *out = malloc(text->size + 1);
    if (!*out) return TARE_NO_MEMORY;
    memcpy(*out, tare_strbuf_text(text), text->size + 1);
    return TARE_OK;
}

void tare_text_free(char *text) {
    free(text);
}

tare_status tare_context_open(tare_context **out) {
    tare_public_begin(NULL, 0);
    *out = tare_calloc(1, sizeof **out);
    if (!*out) return tare_public_end(TARE_NO_MEMORY);
    (*out)->control.cancelled = &(*out)->cancelled;
    pthread_mutex_init(&(*out)->progress_lock, NULL);
    return tare_public_end(TARE_OK);
}

void tare_context_close(tare_context *context) {
    if (!context) return;
    tare_plugins_free(context->plugins);
    pthread_mutex_destroy(&context->progress_lock);
    tare_free(context);
}

static tare_status add_plugin(tare_context *context, const char *path) {
    if (!context->plugins) context->plugins = tare_plugins_new(tare_ops_builtin());
    return context->plugins ? tare_plugins_load(context->plugins, path) : TARE_NO_MEMORY;
}

tare_status tare_context_add_plugin(tare_context *context, const char *path) {
    tare_public_begin(context, 0);
    return tare_public_end(add_plugin(context, path));
}

void tare_context_set_threads(tare_context *context, int threads) {
    context->threads = threads > 0 ? threads : 0;
}

void tare_context_allow_missing_variables(tare_context *context, int allow) {
    context->allows_missing = allow != 0;
}

void tare_context_on_progress(tare_context *context, tare_progress_function function, void *arg) {
    context->progress = function;
    context->progress_arg = arg;
}

void tare_context_on_log(tare_context *context, enum tare_log_level most, tare_log_function function, void *arg) {
    context->log = function;
    context->log_arg = arg;
    context->log_level = most;
}

void tare_context_cancel(tare_context *context, int cancel) {
    __atomic_store_n(&context->cancelled, cancel ? TARE_STOP_INTERRUPTED : TARE_STOP_NONE, __ATOMIC_RELAXED);
    if (!cancel) context->control.stopped = 0;
}

const struct tare_op_registry *tare_public_ops(const struct tare_context_handle *context) {
    return context && context->plugins ? tare_plugins_ops(context->plugins) : tare_ops_builtin();
}

static void report_progress(void *arg, const char *what, int64_t done, int64_t total) {
    struct tare_context_handle *context = arg;
    pthread_mutex_lock(&context->progress_lock);
    context->progress(context->progress_arg, what, done, total);
    pthread_mutex_unlock(&context->progress_lock);
}

tare_progress_function tare_public_progress(const struct tare_context_handle *context) {
    return context && context->progress ? report_progress : NULL;
}

const volatile sig_atomic_t *tare_public_interrupted(const struct tare_context_handle *context) {
    if (own.cancelled) return own.cancelled;
    return context ? &context->cancelled : NULL;
}

struct tare_log tare_public_log(const struct tare_context_handle *context) {
    if (!context || !context->log) return (struct tare_log){ 0 };
    return (struct tare_log){ .most = context->log_level, .write = context->log, .arg = context->log_arg };
}

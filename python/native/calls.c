/* Long calls of the library. The work runs on a thread of its own, so that the calling thread can run Python's signal
 * handlers (Ctrl-C) and the callbacks of the library, which come on other threads: generators, metrics, progress bars
 * and loggers then run where the caller runs, as Python programs expect.
 *
 * Threads that need a callback queue at `turn`; the one that has it sets `request` and waits until the calling thread
 * has served it. */
#include "native.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SIGNALS_NANOSECONDS = 50000000 }; /* time between two looks at signals */

struct call {
    pthread_mutex_t turn; /* held by the thread whose request is served */
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    tare_status (*request)(void *arg); /* NULL: none */
    void *request_arg;
    tare_status answer;
    int waiting; /* threads that have found this call in its context */
    bool answered, ended;
    PyObject *type, *value, *traceback; /* of the first exception; owned by the calling thread */
    volatile sig_atomic_t *cancelled;   /* set by an exception: of this call, and the calibrator that it waits for */
    struct context *context;            /* whose callbacks come here; NULL: none */
    tare_status (*work)(void *arg);
    void *work_arg;
    tare_status status;
    char *text;
};

static void *run_work(void *arg) {
    struct call *call = arg;
    tare_thread_cancel_by(call->cancelled);
    const tare_status status = call->work(call->work_arg);
    pthread_mutex_lock(&call->lock);
    call->status = status;
    call->text = status == TARE_OK ? NULL : strdup(tare_error_text());
    call->ended = true;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->lock);
    return NULL;
}

/* The call that serves the callbacks of a context, NULL: none. It does not end before `leave`. */
static struct call *enter(struct context *context) {
    struct call *call;
    if (!context) return NULL;
    pthread_mutex_lock(&context->guard);
    if ((call = context->call)) {
        pthread_mutex_lock(&call->lock);
        call->waiting++;
        pthread_mutex_unlock(&call->lock);
    }
    pthread_mutex_unlock(&context->guard);
    return call;
}

static void leave(struct call *call) {
    pthread_mutex_lock(&call->lock);
    call->waiting--;
    pthread_cond_broadcast(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

/* Makes `call` that of its context, unless it has one. */
static bool attach(struct call *call) {
    struct context *context = call->context;
    bool is_free = true;
    if (!context) return true;
    pthread_mutex_lock(&context->guard);
    is_free = !context->call;
    if (is_free) context->call = call;
    pthread_mutex_unlock(&context->guard);
    return is_free;
}

static void detach(struct call *call) {
    if (!call->context) return;
    pthread_mutex_lock(&call->context->guard);
    call->context->call = NULL;
    pthread_mutex_unlock(&call->context->guard);
}

tare_status native_serve(struct context *context, tare_status (*function)(void *arg), void *arg) {
    struct call *call = enter(context);
    tare_status status;
    if (!call) { /* a short call: on this thread */
        const PyGILState_STATE state = PyGILState_Ensure();
        status = function(arg);
        if (PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
        PyGILState_Release(state);
        return status;
    }
    pthread_mutex_lock(&call->turn);
    pthread_mutex_lock(&call->lock);
    call->request = function;
    call->request_arg = arg;
    call->answered = false;
    pthread_cond_broadcast(&call->changed);
    while (!call->answered)
        pthread_cond_wait(&call->changed, &call->lock);
    status = call->answer;
    pthread_mutex_unlock(&call->lock);
    pthread_mutex_unlock(&call->turn);
    leave(call);
    return status;
}

/* Keeps the first exception, and stops the library. With the GIL. */
static void keep_exception(struct call *call) {
    if (call->type) {
        PyErr_Clear();
        return;
    }
    PyErr_Fetch(&call->type, &call->value, &call->traceback);
    __atomic_store_n(call->cancelled, 1, __ATOMIC_RELAXED);
}

/* With the lock and without the GIL, both at the beginning and at the end. */
static void serve_request(struct call *call) {
    tare_status (*function)(void *) = call->request;
    void *arg = call->request_arg;
    tare_status status = TARE_ERROR_INTERRUPTED;
    pthread_mutex_unlock(&call->lock);
    const PyGILState_STATE state = PyGILState_Ensure();
    if (!call->type) status = function(arg);
    if (PyErr_Occurred()) {
        keep_exception(call);
        status = TARE_ERROR_INTERRUPTED;
    }
    PyGILState_Release(state);
    pthread_mutex_lock(&call->lock);
    call->request = NULL;
    call->answer = status;
    call->answered = true;
    pthread_cond_broadcast(&call->changed);
}

static void look_at_signals(struct call *call) {
    pthread_mutex_unlock(&call->lock);
    const PyGILState_STATE state = PyGILState_Ensure();
    if (PyErr_CheckSignals() != 0) keep_exception(call);
    PyGILState_Release(state);
    pthread_mutex_lock(&call->lock);
}

static void serve_until_end(struct call *call) {
    pthread_mutex_lock(&call->lock);
    while (!call->ended || call->waiting) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += SIGNALS_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        int waited = 0;
        while ((!call->ended || call->waiting) && !call->request && waited == 0)
            waited = pthread_cond_timedwait(&call->changed, &call->lock, &until);
        if (call->request) serve_request(call);
        if (waited == ETIMEDOUT) look_at_signals(call);
    }
    pthread_mutex_unlock(&call->lock);
}

static void begin(struct call *call) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&call->turn, NULL);
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Raises the exception of a callback or handler, else that of the status. */
static bool end(struct call *call) {
    pthread_cond_destroy(&call->changed);
    pthread_mutex_destroy(&call->lock);
    pthread_mutex_destroy(&call->turn);
    if (call->type)
        PyErr_Restore(call->type, call->value, call->traceback);
    else if (call->status != TARE_OK)
        native_raise_text(call->status, call->text ? call->text : tare_status_name(call->status));
    free(call->text);
    return !PyErr_Occurred();
}

static bool run_call(struct call *call) {
    pthread_t thread;
    bool started;
    begin(call);
    if (!attach(call)) {
        call->status = TARE_OK;
        PyErr_SetString(PyExc_RuntimeError, "a callback may not call the library with the model that calls it");
        return end(call);
    }
    Py_BEGIN_ALLOW_THREADS started = pthread_create(&thread, NULL, run_work, call) == 0;
    if (started) {
        serve_until_end(call);
        pthread_join(thread, NULL);
    }
    detach(call);
    if (started) serve_until_end(call); /* threads that had found the call before */
    Py_END_ALLOW_THREADS if (!started) {
        call->status = TARE_ERROR_NO_MEMORY;
        call->text = strdup("cannot start a thread");
    }
    return end(call);
}

static bool long_call(struct context *context, volatile sig_atomic_t *cancelled, tare_status (*work)(void *arg),
                      void *arg) {
    struct call call = { .context = context, .cancelled = cancelled, .work = work, .work_arg = arg };
    return run_call(&call);
}

bool native_call(struct context *context, tare_status (*work)(void *arg), void *arg) {
    volatile sig_atomic_t cancelled = 0;
    return long_call(context, &cancelled, work, arg);
}

bool native_calibrator_call(struct context *context, struct calibrator *calibrator, tare_status (*work)(void *arg),
                            void *arg) {
    return long_call(context, &calibrator->cancelled, work, arg);
}

/* Only the main thread runs signal handlers. */
bool native_short_call(tare_status (*work)(void *arg), void *arg) {
    volatile sig_atomic_t cancelled = 0;
    struct call call = { .cancelled = &cancelled, .work = work, .work_arg = arg };
    tare_status status;
    if (getpid() == gettid()) return run_call(&call);
    Py_BEGIN_ALLOW_THREADS status = work(arg);
    Py_END_ALLOW_THREADS if (status != TARE_OK) native_raise(status);
    return status == TARE_OK;
}

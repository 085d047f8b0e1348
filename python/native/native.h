/* The extension module tare._native: libtare's handles as capsules, its functions as functions of the same name. It is
 * private to the package: python/tare/ wraps it in classes, checks arguments and documents them.
 *
 * Only the limited API of Python 3.9 is used, so that one binary serves every later version. It has no access to
 * buffers and NumPy's C API: arrays cross the interface as (name, element type, shape, address) with an owner that
 * Python code keeps alive. */
#ifndef TARE_PYTHON_NATIVE_H
#define TARE_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include <tare/tare.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

/* ---- errors (errors.c) ---- */

/* Sets the exception of a status with the text of this thread's last failure; returns NULL. */
PyObject *native_raise(tare_status status);
/* The same with a text. */
PyObject *native_raise_text(tare_status status, const char *text);
PyObject *native_set_errors(PyObject *module, PyObject *classes);

/* ---- handles (handles.c) ---- */

struct call; /* calls.c */

struct context {
    tare_context *context;
    PyObject *progress, *log; /* callables; NULL: none */
    pthread_mutex_t guard;    /* protects `call` */
    struct call *call;        /* running now; NULL: none */
};

/* A calibrator with the flag that cancels its threads, at any time of its life. */
struct calibrator {
    tare_calibrator *calibrator;
    volatile sig_atomic_t cancelled;
};

/* Capsules. Each keeps its parent alive: a model its context, a runner or calibrator its model. */
extern const char native_context[], native_model[], native_calibration[], native_calibrator[], native_runner[],
    native_outputs[], native_comparison[], native_reader[], native_writer[];
/* Makes a capsule that owns the handle and closes it; on failure closes it at once. `parent` may be NULL. */
PyObject *native_capsule(void *handle, const char *kind, PyObject *parent);
/* The handle of a capsule; NULL with an exception for another object or a closed handle. */
void *native_handle(PyObject *capsule, const char *kind);
/* The same; None is NULL, without an exception. */
bool native_optional_handle(void **out, PyObject *capsule, const char *kind);
/* The context of a model, runner, calibrator or comparison; NULL: none. */
struct context *native_context_of(PyObject *capsule);
/* The capsule no longer owns its handle, and counts as closed. 0, or -1 with an exception. */
int native_forget(PyObject *capsule);
/* Closes the handle now: it cannot be used any more. */
PyObject *native_close(PyObject *module, PyObject *capsule);

/* ---- calls (calls.c) ---- */

/* Calls work(arg) on a thread of its own, without the GIL. The calling thread waits, runs Python's signal handlers, and
 * serves callbacks (native_serve). An exception of a handler or a callback cancels this call, and no other one, and is
 * raised once the library has returned. Returns true, or false with an exception; the work may then have succeeded
 * nevertheless, and the caller closes what it made. `context` may be NULL. */
bool native_call(struct context *context, tare_status (*work)(void *arg), void *arg);
/* The same for a call that waits for the threads of a calibrator: cancels these, too. */
bool native_calibrator_call(struct context *context, struct calibrator *calibrator, tare_status (*work)(void *arg),
                            void *arg);
/* The same for work without callbacks, such as a run: any number at the same time. */
bool native_short_call(tare_status (*work)(void *arg), void *arg);
/* Runs function(arg) on the thread that waits in native_call, with the GIL, and returns its result: for callbacks,
 * which come on any thread. A Python exception becomes TARE_ERROR_INTERRUPTED. */
tare_status native_serve(struct context *context, tare_status (*function)(void *arg), void *arg);

/* ---- arrays (arrays.c) ---- */

/* Arrays of the caller; the Python objects that own names and elements must outlive it. */
struct arrays {
    tare_array *items;
    tare_text **texts; /* of string arrays; NULL otherwise */
    size_t count;
};
/* Reads a sequence of (name as bytes, element type, shape, address or list of bytes). Release with native_arrays_free,
 * also after a failure. */
bool native_arrays_read(struct arrays *out, PyObject *sequence);
void native_arrays_free(struct arrays *arrays);
/* A list of (name, element type, shape, address); strings have a list of bytes instead of the address. The elements
 * remain the library's. */
PyObject *native_arrays_list(const tare_array *arrays, size_t count);
/* (name, element type, shape or None), for the descriptions of signatures; -1 is an unknown dim. */
PyObject *native_array_description(const tare_array *array);

/* ---- records (records.c) ---- */

/* A Python iterator of records, each a sequence for native_arrays_read. The last record is kept until the next one. */
struct records {
    tare_records of;
    struct context *context;
    PyObject *iterator, *record;
    struct arrays arrays;
    bool ended;
};
/* The records for the library, during a native_call with this context. Borrows iterator and name. */
const tare_records *native_records_begin(struct records *out, struct context *context, PyObject *iterator,
                                         const char *name);
void native_records_end(struct records *records);

/* ---- texts (handles.c) ---- */

/* The library's text as str; frees it. */
PyObject *native_text(char *text);
/* A path, str or None as UTF-8 bytes in *holder (to be released); *out NULL for None. */
bool native_string(const char **out, PyObject **holder, PyObject *object);
/* A list of bytes as an array of strings, from PyMem_Malloc; the list must outlive it. */
bool native_strings(const char ***out, size_t *count, PyObject *list);

/* ---- functions ---- */

extern PyMethodDef native_model_functions[], native_calibration_functions[], native_run_functions[],
    native_comparison_functions[], native_file_functions[], native_other_functions[];

#endif

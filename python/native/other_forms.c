/* Models for other programs, differences and validity. */
#include "native.h"

/* The arguments and the result of a call. */
struct work {
    char *report;
    tare_context *context;
    const tare_model *model, *other;
    const char *first, *second, *options;
    unsigned flags;
};

/* Runs the work and returns the text that it made. */
static PyObject *text_of(struct context *context, tare_status (*call)(void *arg), struct work *work) {
    if (native_call(context, call, work)) return native_text(work->report);
    tare_text_free(work->report);
    return NULL;
}

static tare_status export_work(void *arg) {
    const struct work *w = arg;
    return tare_model_export(w->model, w->first, w->options);
}

/* Calls a function that writes to a path. */
static PyObject *write_to(PyObject *capsule, PyObject *path, tare_status (*call)(void *arg), struct work *work) {
    PyObject *holder;
    if (!(work->model = native_handle(capsule, native_model))) return NULL;
    if (!native_string(&work->first, &holder, path)) return NULL;
    const bool done = native_call(native_context_of(capsule), call, work);
    Py_XDECREF(holder);
    if (!done) return NULL;
    Py_RETURN_NONE;
}

/* model_export(model, path, options) */
static PyObject *export_model(PyObject *module, PyObject *args) {
    struct work work = { 0 };
    PyObject *capsule, *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOs", &capsule, &path, &work.options)) return NULL;
    return write_to(capsule, path, export_work, &work);
}

static tare_status unwrap_work(void *arg) {
    const struct work *w = arg;
    return tare_model_unwrap(w->model, w->first, w->flags);
}

/* model_unwrap(model, path, flags) */
static PyObject *unwrap_model(PyObject *module, PyObject *args) {
    struct work work = { 0 };
    PyObject *capsule, *path;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOI", &capsule, &path, &work.flags)) return NULL;
    return write_to(capsule, path, unwrap_work, &work);
}

static tare_status diff_models_work(void *arg) {
    struct work *w = arg;
    return tare_model_diff(&w->report, w->model, w->other, w->options);
}

/* model_diff(model, model, options): the differences as text */
static PyObject *diff_models(PyObject *module, PyObject *args) {
    struct work work = { 0 };
    PyObject *first, *second;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOs", &first, &second, &work.options)) return NULL;
    if (!(work.model = native_handle(first, native_model)) || !(work.other = native_handle(second, native_model)))
        return NULL;
    return text_of(native_context_of(first), diff_models_work, &work);
}

static tare_status diff_work(void *arg) {
    struct work *w = arg;
    return tare_diff(&w->report, w->context, w->first, w->second, w->options);
}

/* diff(context, path, path, options): the same for paths */
static PyObject *diff_paths(PyObject *module, PyObject *args) {
    struct work work = { 0 };
    PyObject *capsule, *first, *second, *holders[2] = { NULL, NULL }, *result = NULL;
    struct context *context;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOs", &capsule, &first, &second, &work.options)) return NULL;
    if (!(context = native_handle(capsule, native_context))) return NULL;
    work.context = context->context;
    if (native_string(&work.first, &holders[0], first) && native_string(&work.second, &holders[1], second))
        result = text_of(context, diff_work, &work);
    Py_XDECREF(holders[0]);
    Py_XDECREF(holders[1]);
    return result;
}

static tare_status validate_work(void *arg) {
    struct work *w = arg;
    return tare_validate(&w->report, NULL, w->context, w->first, w->second);
}

/* validate(context, path, tags or None): the report as JSON */
static PyObject *validate(PyObject *module, PyObject *args) {
    struct work work = { 0 };
    PyObject *capsule, *path, *holder, *result;
    struct context *context;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOz", &capsule, &path, &work.second)) return NULL;
    if (!(context = native_handle(capsule, native_context))) return NULL;
    if (!native_string(&work.first, &holder, path)) return NULL;
    work.context = context->context;
    result = text_of(context, validate_work, &work);
    Py_XDECREF(holder);
    return result;
}

PyMethodDef native_other_functions[] = {
    { "model_export", export_model, METH_VARARGS, NULL }, { "model_unwrap", unwrap_model, METH_VARARGS, NULL },
    { "model_diff", diff_models, METH_VARARGS, NULL },    { "diff", diff_paths, METH_VARARGS, NULL },
    { "validate", validate, METH_VARARGS, NULL },         { 0 },
};

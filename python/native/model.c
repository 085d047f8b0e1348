/* Contexts and models: opening, describing, writing, quantizing, converting, and both by measurement. */
#include "native.h"

/* ---- contexts ---- */

struct progress {
    struct context *context;
    const char *what;
    int64_t done, total;
};

static tare_status call_progress(void *arg) {
    const struct progress *p = arg;
    PyObject *result =
        PyObject_CallFunction(p->context->progress, "sLL", p->what, (long long)p->done, (long long)p->total);
    Py_XDECREF(result);
    return result ? TARE_OK : TARE_ERROR_INTERRUPTED;
}

static void on_progress(void *arg, const char *what, int64_t done, int64_t total) {
    struct progress progress = { arg, what, done, total };
    (void)native_serve(arg, call_progress, &progress);
}

struct message {
    struct context *context;
    enum tare_log_level level;
    const char *text;
};

static tare_status call_log(void *arg) {
    const struct message *m = arg;
    PyObject *text = PyUnicode_DecodeUTF8(m->text, (Py_ssize_t)strlen(m->text), "replace");
    PyObject *result = text ? PyObject_CallFunction(m->context->log, "iN", (int)m->level, text) : NULL;
    Py_XDECREF(result);
    return result ? TARE_OK : TARE_ERROR_INTERRUPTED;
}

static void on_log(void *arg, enum tare_log_level level, const char *text) {
    struct message message = { arg, level, text };
    (void)native_serve(arg, call_log, &message);
}

/* context(log) */
static PyObject *open_context(PyObject *module, PyObject *log) {
    struct context *context = PyMem_Calloc(1, sizeof *context);
    (void)module;
    if (!context) return PyErr_NoMemory();
    const tare_status status = tare_context_open(&context->context);
    if (status != TARE_OK) {
        PyMem_Free(context);
        return native_raise(status);
    }
    Py_INCREF(log);
    context->log = log;
    pthread_mutex_init(&context->guard, NULL);
    tare_context_on_log(context->context, TARE_LOG_DETAIL, on_log, context);
    return native_capsule(context, native_context, NULL);
}

/* context_progress(context, callable or None) */
static PyObject *set_progress(PyObject *module, PyObject *args) {
    PyObject *capsule, *callable;
    struct context *context;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &callable)) return NULL;
    if (!(context = native_handle(capsule, native_context))) return NULL;
    PyObject *before = context->progress;
    context->progress = callable == Py_None ? NULL : callable;
    Py_XINCREF(context->progress);
    Py_XDECREF(before);
    tare_context_on_progress(context->context, context->progress ? on_progress : NULL, context);
    Py_RETURN_NONE;
}

/* context_set(context, threads, allow missing variables) */
static PyObject *set_context(PyObject *module, PyObject *args) {
    PyObject *capsule;
    int threads, allows;
    struct context *context;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oip", &capsule, &threads, &allows)) return NULL;
    if (!(context = native_handle(capsule, native_context))) return NULL;
    tare_context_set_threads(context->context, threads);
    tare_context_allow_missing_variables(context->context, allows);
    Py_RETURN_NONE;
}

/* context_plugin(context, path) */
static PyObject *add_plugin(PyObject *module, PyObject *args) {
    PyObject *capsule, *path, *holder;
    const char *text;
    struct context *context;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &path)) return NULL;
    if (!(context = native_handle(capsule, native_context)) || !native_string(&text, &holder, path)) return NULL;
    const tare_status status = tare_context_add_plugin(context->context, text);
    Py_XDECREF(holder);
    if (status != TARE_OK) return native_raise(status);
    Py_RETURN_NONE;
}

/* ---- opening and describing ---- */

struct opening {
    tare_model *model;
    tare_context *context;
    const char *directory, *tags;
};

static tare_status open_work(void *arg) {
    struct opening *o = arg;
    return tare_model_open_tagged(&o->model, o->context, o->directory, o->tags);
}

/* model_open(context, path, tags or None) */
static PyObject *open_model(PyObject *module, PyObject *args) {
    struct opening opening = { 0 };
    PyObject *capsule, *path, *holder;
    struct context *context;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOz", &capsule, &path, &opening.tags)) return NULL;
    if (!(context = native_handle(capsule, native_context))) return NULL;
    if (!native_string(&opening.directory, &holder, path)) return NULL;
    opening.context = context->context;
    const bool opened = native_call(context, open_work, &opening);
    Py_XDECREF(holder);
    if (opened) return native_capsule(opening.model, native_model, capsule);
    tare_model_close(opening.model);
    return NULL;
}

static PyObject *describe_side(const tare_model *model, const char *signature, bool inputs) {
    const size_t count = inputs ? tare_model_input_count(model, signature) : tare_model_output_count(model, signature);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        tare_array array;
        const tare_status status =
            inputs ? tare_model_input(&array, model, signature, i) : tare_model_output(&array, model, signature, i);
        PyObject *item = status == TARE_OK ? native_array_description(&array) : native_raise(status);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) Py_CLEAR(list);
    }
    return list;
}

/* model_signatures(model): a list of (name, inputs, outputs) */
static PyObject *signatures(PyObject *module, PyObject *capsule) {
    const tare_model *model = native_handle(capsule, native_model);
    (void)module;
    if (!model) return NULL;
    const size_t count = tare_model_signature_count(model);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const char *name = tare_model_signature_name(model, i);
        PyObject *item =
            Py_BuildValue("(sNN)", name, describe_side(model, name, true), describe_side(model, name, false));
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) Py_CLEAR(list);
    }
    return list;
}

/* model_describe(model): JSON */
static PyObject *describe(PyObject *module, PyObject *capsule) {
    const tare_model *model = native_handle(capsule, native_model);
    tare_status status;
    char *text;
    (void)module;
    if (!model) return NULL;
    Py_BEGIN_ALLOW_THREADS status = tare_model_describe(&text, model);
    Py_END_ALLOW_THREADS return status == TARE_OK ? native_text(text) : native_raise(status);
}

/* model_weight_size(model) */
static PyObject *weight_size(PyObject *module, PyObject *capsule) {
    const tare_model *model = native_handle(capsule, native_model);
    (void)module;
    if (!model) return NULL;
    const int64_t bytes = tare_model_weight_size(model);
    return bytes < 0 ? native_raise(TARE_ERROR_NO_MEMORY) : PyLong_FromLongLong(bytes);
}

struct writing {
    const tare_model *model;
    const char *directory;
    unsigned flags;
};

static tare_status write_work(void *arg) {
    const struct writing *w = arg;
    return tare_model_write(w->model, w->directory, w->flags);
}

/* model_write(model, path, flags) */
static PyObject *write_model(PyObject *module, PyObject *args) {
    struct writing writing;
    PyObject *capsule, *path, *holder;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOI", &capsule, &path, &writing.flags)) return NULL;
    if (!(writing.model = native_handle(capsule, native_model))) return NULL;
    if (!native_string(&writing.directory, &holder, path)) return NULL;
    const bool written = native_call(native_context_of(capsule), write_work, &writing);
    Py_XDECREF(holder);
    if (!written) return NULL;
    Py_RETURN_NONE;
}

/* ---- quantizing and converting ---- */

struct making {
    tare_model *made;
    char *report;
    const tare_model *model;
    const char *method, *options;
    void *calibration;
    unsigned flags;
    int keep; /* 0: only the report */
};

/* (model or None, report as JSON) */
static PyObject *made_model(const struct making *making, PyObject *parent) {
    PyObject *report = native_text(making->report), *model = Py_None;
    if (making->made)
        model = native_capsule(making->made, native_model, parent);
    else
        Py_INCREF(model);
    return Py_BuildValue("(NN)", model, report);
}

/* Runs the work and returns what it made. */
static PyObject *make(tare_status (*work)(void *arg), struct making *making, PyObject *capsule) {
    if (native_call(native_context_of(capsule), work, making)) return made_model(making, PyCapsule_GetContext(capsule));
    tare_model_close(making->made);
    tare_text_free(making->report);
    return NULL;
}

static tare_status quantize_work(void *arg) {
    struct making *m = arg;
    return tare_model_quantize_report(m->keep ? &m->made : NULL, &m->report, m->model, m->method, m->calibration,
                                      m->options);
}

/* model_quantize(model, method, calibration or None, options, keep) */
static PyObject *quantize(PyObject *module, PyObject *args) {
    struct making making = { 0 };
    PyObject *capsule, *calibration;
    (void)module;
    if (!PyArg_ParseTuple(args, "OsOsp", &capsule, &making.method, &calibration, &making.options, &making.keep))
        return NULL;
    if (!(making.model = native_handle(capsule, native_model))) return NULL;
    if (!native_optional_handle(&making.calibration, calibration, native_calibration)) return NULL;
    return make(quantize_work, &making, capsule);
}

static tare_status convert_work(void *arg) {
    struct making *m = arg;
    return tare_model_convert(&m->made, &m->report, m->model, m->options, m->calibration, m->flags);
}

/* model_convert(model, converter options, calibration or None, flags) */
static PyObject *convert(PyObject *module, PyObject *args) {
    struct making making = { 0 };
    PyObject *capsule, *calibration;
    (void)module;
    if (!PyArg_ParseTuple(args, "OsOI", &capsule, &making.options, &calibration, &making.flags)) return NULL;
    if (!(making.model = native_handle(capsule, native_model))) return NULL;
    if (!native_optional_handle(&making.calibration, calibration, native_calibration)) return NULL;
    return make(convert_work, &making, capsule);
}

static tare_status check_work(void *arg) {
    struct making *m = arg;
    return tare_model_check(&m->report, m->model, m->options);
}

/* model_check(model, options): the report as JSON */
static PyObject *check(PyObject *module, PyObject *args) {
    struct making making = { 0 };
    PyObject *capsule;
    (void)module;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &making.options)) return NULL;
    if (!(making.model = native_handle(capsule, native_model))) return NULL;
    return native_call(native_context_of(capsule), check_work, &making) ? native_text(making.report) : NULL;
}

/* ---- quantizing or converting by measurement ---- */

struct automatic {
    char *report;
    const tare_model *model;
    const char *directory, **paths, *options;
    size_t n_paths;
};

static tare_status auto_work(void *arg) {
    struct automatic *a = arg;
    return tare_model_auto(&a->report, a->model, a->directory, a->paths, a->n_paths, a->options);
}

/* model_auto(model, path, list of paths as bytes, options): the comparison as JSON */
static PyObject *make_automatically(PyObject *module, PyObject *args) {
    struct automatic work = { 0 };
    PyObject *capsule, *path, *paths, *holder;
    bool done = false;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!s", &capsule, &path, &PyList_Type, &paths, &work.options)) return NULL;
    if (!(work.model = native_handle(capsule, native_model))) return NULL;
    if (!native_string(&work.directory, &holder, path)) return NULL;
    if (native_strings(&work.paths, &work.n_paths, paths))
        done = native_call(native_context_of(capsule), auto_work, &work);
    PyMem_Free(work.paths);
    Py_XDECREF(holder);
    if (done) return native_text(work.report);
    tare_text_free(work.report);
    return NULL;
}

PyMethodDef native_model_functions[] = {
    { "context", open_context, METH_O, NULL },
    { "context_progress", set_progress, METH_VARARGS, NULL },
    { "context_set", set_context, METH_VARARGS, NULL },
    { "context_plugin", add_plugin, METH_VARARGS, NULL },
    { "model_open", open_model, METH_VARARGS, NULL },
    { "model_signatures", signatures, METH_O, NULL },
    { "model_describe", describe, METH_O, NULL },
    { "model_weight_size", weight_size, METH_O, NULL },
    { "model_write", write_model, METH_VARARGS, NULL },
    { "model_quantize", quantize, METH_VARARGS, NULL },
    { "model_convert", convert, METH_VARARGS, NULL },
    { "model_check", check, METH_VARARGS, NULL },
    { "model_auto", make_automatically, METH_VARARGS, NULL },
    { 0 },
};

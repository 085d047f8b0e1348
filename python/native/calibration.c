/* Calibrations: from files, from arrays one record at a time, and what they contain. */
#include "native.h"

struct calibrating {
    tare_calibration *made;
    const tare_model *model;
    tare_calibrator *calibrator;
    const char **paths;
    size_t n_paths;
    const tare_records *records;
    const char *options;
};

static tare_status calibrate_work(void *arg) {
    struct calibrating *c = arg;
    return tare_model_calibrate(&c->made, c->model, c->paths, c->n_paths, c->options);
}

/* model_calibrate(model, list of paths as bytes, options) */
static PyObject *calibrate(PyObject *module, PyObject *args) {
    struct calibrating work = { 0 };
    PyObject *capsule, *paths;
    bool done = false;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!s", &capsule, &PyList_Type, &paths, &work.options)) return NULL;
    if (!(work.model = native_handle(capsule, native_model))) return NULL;
    if (native_strings(&work.paths, &work.n_paths, paths))
        done = native_call(native_context_of(capsule), calibrate_work, &work);
    PyMem_Free(work.paths);
    if (done) return native_capsule(work.made, native_calibration, NULL);
    tare_calibration_close(work.made);
    return NULL;
}

static tare_status calibrate_records_work(void *arg) {
    struct calibrating *c = arg;
    return tare_model_calibrate_records(&c->made, c->model, c->records, c->options);
}

/* model_calibrate_records(model, iterator, name, options) */
static PyObject *calibrate_records(PyObject *module, PyObject *args) {
    struct calibrating work = { 0 };
    struct records records;
    PyObject *capsule, *iterator;
    const char *name;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOss", &capsule, &iterator, &name, &work.options)) return NULL;
    if (!(work.model = native_handle(capsule, native_model))) return NULL;
    work.records = native_records_begin(&records, native_context_of(capsule), iterator, name);
    const bool done = native_call(native_context_of(capsule), calibrate_records_work, &work);
    native_records_end(&records);
    if (done) return native_capsule(work.made, native_calibration, NULL);
    tare_calibration_close(work.made);
    return NULL;
}

/* ---- one record at a time ---- */

/* calibrator_open(model, options) */
static PyObject *open_calibrator(PyObject *module, PyObject *args) {
    PyObject *capsule;
    const tare_model *model;
    const char *options;
    struct calibrator *made;
    tare_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &options)) return NULL;
    if (!(model = native_handle(capsule, native_model))) return NULL;
    if (!(made = PyMem_Calloc(1, sizeof *made))) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS tare_thread_cancel_by(&made->cancelled);
    status = tare_calibrator_open(&made->calibrator, model, options);
    tare_thread_cancel_by(NULL);
    Py_END_ALLOW_THREADS if (status == TARE_OK) return native_capsule(made, native_calibrator, capsule);
    PyMem_Free(made);
    return native_raise(status);
}

/* calibrator_push(calibrator, inputs) */
static PyObject *push(PyObject *module, PyObject *args) {
    PyObject *capsule, *sequence;
    struct arrays inputs;
    const struct calibrator *calibrator;
    tare_status status = TARE_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &sequence)) return NULL;
    if (!(calibrator = native_handle(capsule, native_calibrator))) return NULL;
    if (native_arrays_read(&inputs, sequence)) {
        Py_BEGIN_ALLOW_THREADS status = tare_calibrator_push(calibrator->calibrator, inputs.items, inputs.count);
        Py_END_ALLOW_THREADS
    }
    native_arrays_free(&inputs);
    if (PyErr_Occurred()) return NULL;
    if (status != TARE_OK) return native_raise(status);
    Py_RETURN_NONE;
}

static tare_status finish_work(void *arg) {
    struct calibrating *c = arg;
    return tare_calibrator_finish(&c->made, c->calibrator);
}

/* calibrator_finish(calibrator) */
static PyObject *finish(PyObject *module, PyObject *capsule) {
    struct calibrator *calibrator = native_handle(capsule, native_calibrator);
    struct calibrating work = { 0 };
    (void)module;
    if (!calibrator) return NULL;
    work.calibrator = calibrator->calibrator;
    if (native_calibrator_call(native_context_of(capsule), calibrator, finish_work, &work))
        return native_capsule(work.made, native_calibration, NULL);
    tare_calibration_close(work.made);
    return NULL;
}

/* ---- files and contents ---- */

/* calibration_open(path) */
static PyObject *open_file(PyObject *module, PyObject *object) {
    tare_calibration *calibration;
    PyObject *holder;
    const char *path;
    tare_status status;
    (void)module;
    if (!native_string(&path, &holder, object)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = tare_calibration_open(&calibration, path);
    Py_END_ALLOW_THREADS Py_XDECREF(holder);
    return status == TARE_OK ? native_capsule(calibration, native_calibration, NULL) : native_raise(status);
}

/* calibration_write(calibration, path) */
static PyObject *write_file(PyObject *module, PyObject *args) {
    PyObject *capsule, *object, *holder;
    const tare_calibration *calibration;
    const char *path;
    tare_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &object)) return NULL;
    if (!(calibration = native_handle(capsule, native_calibration))) return NULL;
    if (!native_string(&path, &holder, object)) return NULL;
    Py_BEGIN_ALLOW_THREADS status = tare_calibration_write(calibration, path);
    Py_END_ALLOW_THREADS Py_XDECREF(holder);
    if (status != TARE_OK) return native_raise(status);
    Py_RETURN_NONE;
}

/* The handles of a list of calibrations, from PyMem_Malloc; the list must outlive it. */
static bool read_calibrations(const tare_calibration ***out, size_t *count, PyObject *list) {
    const Py_ssize_t size = PyList_Size(list);
    *out = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof **out);
    if (!*out) return size < 0 ? false : PyErr_NoMemory();
    *count = (size_t)size;
    for (Py_ssize_t i = 0; i < size; i++)
        if (!((*out)[i] = native_handle(PyList_GetItem(list, i), native_calibration))) return false;
    return true;
}

/* calibration_add(calibration, list of others): all of them, or none */
static PyObject *add(PyObject *module, PyObject *args) {
    PyObject *capsule, *list;
    const tare_calibration **others = NULL;
    tare_calibration *calibration;
    tare_status status = TARE_OK;
    size_t count;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &capsule, &PyList_Type, &list)) return NULL;
    if (!(calibration = native_handle(capsule, native_calibration))) return NULL;
    if (read_calibrations(&others, &count, list)) {
        Py_BEGIN_ALLOW_THREADS status = tare_calibration_add_all(calibration, others, count);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(others);
    if (PyErr_Occurred()) return NULL;
    if (status != TARE_OK) return native_raise(status);
    Py_RETURN_NONE;
}

/* calibration_copy(calibration) */
static PyObject *copy(PyObject *module, PyObject *capsule) {
    const tare_calibration *calibration = native_handle(capsule, native_calibration);
    tare_calibration *made;
    (void)module;
    if (!calibration) return NULL;
    const tare_status status = tare_calibration_copy(&made, calibration);
    return status == TARE_OK ? native_capsule(made, native_calibration, NULL) : native_raise(status);
}

/* calibration_count(calibration) */
static PyObject *count_records(PyObject *module, PyObject *capsule) {
    const tare_calibration *calibration = native_handle(capsule, native_calibration);
    (void)module;
    return calibration ? PyLong_FromLongLong(tare_calibration_record_count(calibration)) : NULL;
}

/* calibration_report(calibration, options) */
static PyObject *report(PyObject *module, PyObject *args) {
    PyObject *capsule;
    const tare_calibration *calibration;
    const char *options;
    tare_status status;
    char *text;
    (void)module;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &options)) return NULL;
    if (!(calibration = native_handle(capsule, native_calibration))) return NULL;
    Py_BEGIN_ALLOW_THREADS status = tare_calibration_report(&text, calibration, options);
    Py_END_ALLOW_THREADS return status == TARE_OK ? native_text(text) : native_raise(status);
}

/* calibration_histogram(calibration, function, node, output): bytes of tare_calibration_bin, 24 each */
static PyObject *histogram(PyObject *module, PyObject *args) {
    PyObject *capsule, *bytes;
    const tare_calibration *calibration;
    const char *function, *node;
    tare_calibration_bin *bins;
    size_t count;
    int output;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ossi", &capsule, &function, &node, &output)) return NULL;
    if (!(calibration = native_handle(capsule, native_calibration))) return NULL;
    tare_status status;
    Py_BEGIN_ALLOW_THREADS status = tare_calibration_histogram(&bins, &count, calibration, function, node, output);
    Py_END_ALLOW_THREADS if (status != TARE_OK) return native_raise(status);
    bytes = PyBytes_FromStringAndSize((const char *)bins, (Py_ssize_t)(count * sizeof *bins));
    tare_calibration_bins_free(bins);
    return bytes;
}

PyMethodDef native_calibration_functions[] = {
    { "model_calibrate", calibrate, METH_VARARGS, NULL },
    { "model_calibrate_records", calibrate_records, METH_VARARGS, NULL },
    { "calibrator_open", open_calibrator, METH_VARARGS, NULL },
    { "calibrator_push", push, METH_VARARGS, NULL },
    { "calibrator_finish", finish, METH_O, NULL },
    { "calibration_open", open_file, METH_O, NULL },
    { "calibration_write", write_file, METH_VARARGS, NULL },
    { "calibration_add", add, METH_VARARGS, NULL },
    { "calibration_copy", copy, METH_O, NULL },
    { "calibration_count", count_records, METH_O, NULL },
    { "calibration_report", report, METH_VARARGS, NULL },
    { "calibration_histogram", histogram, METH_VARARGS, NULL },
    { 0 },
};

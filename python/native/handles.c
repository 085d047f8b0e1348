/* Capsules that own the library's handles, contexts with their callbacks, and conversions of strings. */
#include "native.h"

const char native_context[] = "tare.context", native_model[] = "tare.model", native_calibration[] = "tare.calibration",
           native_calibrator[] = "tare.calibrator", native_runner[] = "tare.runner", native_outputs[] = "tare.outputs",
           native_comparison[] = "tare.comparison", native_reader[] = "tare.reader", native_writer[] = "tare.writer";

/* A closed capsule points here, because it cannot be NULL. */
static char closed;

static void close_context(struct context *context) {
    tare_context_close(context->context);
    Py_XDECREF(context->progress);
    Py_XDECREF(context->log);
    pthread_mutex_destroy(&context->guard);
    PyMem_Free(context);
}

/* Workers of a calibrator may wait for the GIL while they end, so it is released. */
static void close_calibrator(struct calibrator *calibrator) {
    Py_BEGIN_ALLOW_THREADS tare_calibrator_close(calibrator->calibrator);
    Py_END_ALLOW_THREADS PyMem_Free(calibrator);
}

static void close_handle(void *handle, const char *kind) {
    if (handle == &closed) return;
    if (kind == native_context) close_context(handle);
    if (kind == native_model) tare_model_close(handle);
    if (kind == native_calibration) tare_calibration_close(handle);
    if (kind == native_calibrator) close_calibrator(handle);
    if (kind == native_runner) tare_runner_close(handle);
    if (kind == native_outputs) tare_outputs_close(handle);
    if (kind == native_comparison) tare_comparison_close(handle);
    if (kind == native_reader) tare_reader_close(handle);
    if (kind == native_writer) tare_writer_discard(handle);
}

static void destroy(PyObject *capsule) {
    const char *kind = PyCapsule_GetName(capsule);
    PyObject *parent = PyCapsule_GetContext(capsule);
    close_handle(PyCapsule_GetPointer(capsule, kind), kind);
    Py_XDECREF(parent);
}

PyObject *native_capsule(void *handle, const char *kind, PyObject *parent) {
    PyObject *capsule = PyCapsule_New(handle, kind, destroy);
    if (!capsule) {
        close_handle(handle, kind);
        return NULL;
    }
    Py_XINCREF(parent);
    PyCapsule_SetContext(capsule, parent);
    return capsule;
}

void *native_handle(PyObject *capsule, const char *kind) {
    void *handle = PyCapsule_GetPointer(capsule, kind);
    if (handle != &closed) return handle;
    PyErr_Format(PyExc_ValueError, "the %s is closed", kind + sizeof "tare." - 1);
    return NULL;
}

bool native_optional_handle(void **out, PyObject *capsule, const char *kind) {
    *out = NULL;
    if (capsule == Py_None) return true;
    *out = native_handle(capsule, kind);
    return *out;
}

struct context *native_context_of(PyObject *capsule) {
    while (capsule && PyCapsule_GetName(capsule) != native_context)
        capsule = PyCapsule_GetContext(capsule);
    return capsule ? PyCapsule_GetPointer(capsule, native_context) : NULL;
}

int native_forget(PyObject *capsule) {
    return PyCapsule_SetPointer(capsule, &closed);
}

PyObject *native_close(PyObject *module, PyObject *capsule) {
    const char *kind = PyCapsule_GetName(capsule);
    void *handle;
    (void)module;
    if (PyErr_Occurred() || !(handle = PyCapsule_GetPointer(capsule, kind))) return NULL;
    if (native_forget(capsule) != 0) return NULL;
    close_handle(handle, kind);
    Py_RETURN_NONE;
}

/* ---- texts ---- */

PyObject *native_text(char *text) {
    PyObject *object = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    tare_text_free(text);
    return object;
}

bool native_string(const char **out, PyObject **holder, PyObject *object) {
    *out = NULL;
    *holder = NULL;
    if (object == Py_None) return true;
    if (!PyUnicode_FSConverter(object, holder)) return false;
    *out = PyBytes_AsString(*holder);
    return *out;
}

bool native_strings(const char ***out, size_t *count, PyObject *list) {
    const Py_ssize_t size = PyList_Size(list);
    *out = NULL;
    *count = 0;
    if (size < 0) return false;
    *out = PyMem_Calloc((size_t)size + 1, sizeof **out);
    if (!*out) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++)
        if (!((*out)[i] = PyBytes_AsString(PyList_GetItem(list, i)))) return false;
    *count = (size_t)size;
    return true;
}

/* Data files: reading and writing records. */
#include "native.h"

/* reader_open(context, list of paths as bytes, spec or None) */
static PyObject *open_reader(PyObject *module, PyObject *args) {
    PyObject *capsule, *list, *spec, *holder = NULL, *result = NULL;
    struct context *context;
    const char **paths = NULL, *spec_path;
    size_t count;
    tare_reader *reader;
    tare_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!O", &capsule, &PyList_Type, &list, &spec)) return NULL;
    if (!(context = native_handle(capsule, native_context))) return NULL;
    if (native_string(&spec_path, &holder, spec) && native_strings(&paths, &count, list)) {
        Py_BEGIN_ALLOW_THREADS status = tare_reader_open(&reader, context->context, paths, count, spec_path);
        Py_END_ALLOW_THREADS result =
            status == TARE_OK ? native_capsule(reader, native_reader, capsule) : native_raise(status);
    }
    PyMem_Free(paths);
    Py_XDECREF(holder);
    return result;
}

/* reader_next(reader): a list of arrays, valid until the next call, or None */
static PyObject *read_next(PyObject *module, PyObject *capsule) {
    tare_reader *reader = native_handle(capsule, native_reader);
    const tare_array *arrays;
    tare_status status;
    size_t count;
    (void)module;
    if (!reader) return NULL;
    Py_BEGIN_ALLOW_THREADS status = tare_reader_next(reader, &arrays, &count);
    Py_END_ALLOW_THREADS if (status != TARE_OK) return native_raise(status);
    if (!arrays) Py_RETURN_NONE;
    return native_arrays_list(arrays, count);
}

/* writer_open(path) */
static PyObject *open_writer(PyObject *module, PyObject *object) {
    PyObject *holder;
    const char *path;
    tare_writer *writer;
    (void)module;
    if (!native_string(&path, &holder, object)) return NULL;
    const tare_status status = tare_writer_open(&writer, path);
    Py_XDECREF(holder);
    return status == TARE_OK ? native_capsule(writer, native_writer, NULL) : native_raise(status);
}

/* writer_add(writer, arrays) */
static PyObject *write_record(PyObject *module, PyObject *args) {
    PyObject *capsule, *sequence;
    struct arrays arrays;
    tare_writer *writer;
    tare_status status = TARE_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &sequence)) return NULL;
    if (!(writer = native_handle(capsule, native_writer))) return NULL;
    if (native_arrays_read(&arrays, sequence)) {
        Py_BEGIN_ALLOW_THREADS status = tare_writer_add(writer, arrays.items, arrays.count);
        Py_END_ALLOW_THREADS
    }
    native_arrays_free(&arrays);
    if (PyErr_Occurred()) return NULL;
    if (status != TARE_OK) return native_raise(status);
    Py_RETURN_NONE;
}

/* writer_finish(writer): completes the file and closes the writer, also on failure */
static PyObject *finish_writer(PyObject *module, PyObject *capsule) {
    tare_writer *writer = native_handle(capsule, native_writer);
    tare_status status;
    (void)module;
    if (!writer || native_forget(capsule) != 0) return NULL;
    Py_BEGIN_ALLOW_THREADS status = tare_writer_close(writer);
    Py_END_ALLOW_THREADS if (status != TARE_OK) return native_raise(status);
    Py_RETURN_NONE;
}

PyMethodDef native_file_functions[] = {
    { "reader_open", open_reader, METH_VARARGS, NULL }, { "reader_next", read_next, METH_O, NULL },
    { "writer_open", open_writer, METH_O, NULL },       { "writer_add", write_record, METH_VARARGS, NULL },
    { "writer_finish", finish_writer, METH_O, NULL },   { 0 },
};

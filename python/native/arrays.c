/* Arrays between Python and the library. Elements are never copied here. */
#include "native.h"

void native_arrays_free(struct arrays *arrays) {
    for (size_t i = 0; arrays->texts && i < arrays->count; i++)
        PyMem_Free(arrays->texts[i]);
    PyMem_Free(arrays->texts);
    PyMem_Free(arrays->items);
    *arrays = (struct arrays){ 0 };
}

/* The elements of a string array; the list owns the bytes. */
static bool read_texts(tare_text **out, PyObject *list) {
    const Py_ssize_t size = PyList_Size(list);
    *out = size < 0 ? NULL : PyMem_Calloc((size_t)size + 1, sizeof **out);
    if (!*out) return size < 0 ? false : PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++) {
        char *data;
        Py_ssize_t bytes;
        if (PyBytes_AsStringAndSize(PyList_GetItem(list, i), &data, &bytes) != 0) return false;
        (*out)[i] = (tare_text){ .data = data, .size = (size_t)bytes };
    }
    return true;
}

static bool read_shape(tare_array *out, PyObject *shape) {
    const Py_ssize_t rank = PyTuple_Size(shape);
    if (rank < 0) return false;
    if (rank > TARE_ARRAY_MAX_RANK) {
        char text[256];
        PyOS_snprintf(text, sizeof text, "array %.150s: has %zd dimensions (expected at most %d)", out->name, rank,
                      TARE_ARRAY_MAX_RANK);
        native_raise_text(TARE_ERROR_SHAPE, text);
        return false;
    }
    out->rank = (int32_t)rank;
    for (Py_ssize_t i = 0; i < rank; i++)
        out->dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    return !PyErr_Occurred();
}

static bool read_array(struct arrays *out, PyObject *tuple) {
    tare_array *array = &out->items[out->count];
    PyObject *shape, *elements;
    if (!PyArg_ParseTuple(tuple, "yiO!O", &array->name, &array->dtype, &PyTuple_Type, &shape, &elements)) return false;
    if (!read_shape(array, shape)) return false;
    out->count++;
    if (PyList_Check(elements)) {
        if (!read_texts(&out->texts[out->count - 1], elements)) return false;
        array->data = out->texts[out->count - 1];
        return true;
    }
    array->data = PyLong_AsVoidPtr(elements);
    return !PyErr_Occurred();
}

bool native_arrays_read(struct arrays *out, PyObject *sequence) {
    const Py_ssize_t size = PySequence_Size(sequence);
    *out = (struct arrays){ 0 };
    if (size < 0) return false;
    out->items = PyMem_Calloc((size_t)size + 1, sizeof *out->items);
    out->texts = PyMem_Calloc((size_t)size + 1, sizeof *out->texts);
    if (!out->items || !out->texts) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *tuple = PySequence_GetItem(sequence, i);
        const bool read = tuple && read_array(out, tuple);
        Py_XDECREF(tuple); /* the sequence still owns it */
        if (!read) return false;
    }
    return true;
}

static PyObject *shape_tuple(const tare_array *array) {
    if (array->rank < 0) Py_RETURN_NONE;
    PyObject *shape = PyTuple_New(array->rank);
    for (int i = 0; shape && i < array->rank; i++) {
        PyObject *dim = PyLong_FromLongLong(array->dims[i]);
        if (!dim || PyTuple_SetItem(shape, i, dim) != 0) Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *text_list(const tare_array *array) {
    const tare_text *texts = array->data;
    int64_t count = 1;
    for (int i = 0; i < array->rank; i++)
        count *= array->dims[i];
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *bytes = PyBytes_FromStringAndSize(texts[i].data, (Py_ssize_t)texts[i].size);
        if (!bytes || PyList_SetItem(list, (Py_ssize_t)i, bytes) != 0) Py_CLEAR(list);
    }
    return list;
}

PyObject *native_arrays_list(const tare_array *arrays, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const tare_array *array = &arrays[i];
        PyObject *elements =
            array->dtype == TARE_DTYPE_STRING ? text_list(array) : PyLong_FromVoidPtr((void *)(uintptr_t)array->data);
        PyObject *tuple = Py_BuildValue("(siNN)", array->name, (int)array->dtype, shape_tuple(array), elements);
        if (!tuple || PyList_SetItem(list, (Py_ssize_t)i, tuple) != 0) Py_CLEAR(list);
    }
    return list;
}

PyObject *native_array_description(const tare_array *array) {
    return Py_BuildValue("(siN)", array->name, (int)array->dtype, shape_tuple(array));
}

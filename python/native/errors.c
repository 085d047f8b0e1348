/* Failures of the library as exceptions. The classes are defined in python/tare/_errors.py. */
#include "native.h"

/* By status; set once when the package is imported. */
static PyObject *error_classes;

PyObject *native_set_errors(PyObject *module, PyObject *classes) {
    (void)module;
    Py_INCREF(classes);
    Py_XDECREF(error_classes);
    error_classes = classes;
    Py_RETURN_NONE;
}

PyObject *native_raise_text(tare_status status, const char *text) {
    PyObject *number = PyLong_FromLong((long)status), *class, *error;
    class = error_classes && number ? PyObject_GetItem(error_classes, number) : NULL;
    Py_XDECREF(number);
    if (!class) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, text);
        return NULL;
    }
    error = PyObject_CallFunction(class, "Ni", PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"),
                                  (int)status);
    if (error) PyErr_SetObject(class, error);
    Py_XDECREF(error);
    Py_DECREF(class);
    return NULL;
}

PyObject *native_raise(tare_status status) {
    return native_raise_text(status, tare_error_text());
}

/* The module tare._native. */
#include "native.h"

static PyObject *version(PyObject *module, PyObject *none) {
    (void)module;
    (void)none;
    return PyUnicode_FromString(tare_version());
}

static PyObject *element_name(PyObject *module, PyObject *number) {
    const long dtype = PyLong_AsLong(number);
    (void)module;
    return PyErr_Occurred() ? NULL : PyUnicode_FromString(tare_element_name((int32_t)dtype));
}

static PyMethodDef functions[] = {
    { "version", version, METH_NOARGS, NULL },
    { "element_name", element_name, METH_O, NULL },
    { "set_errors", native_set_errors, METH_O, NULL },
    { "close", native_close, METH_O, NULL },
    { 0 },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", NULL, -1, functions, NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit__native(void); /* Python finds it by its name */

PyMODINIT_FUNC PyInit__native(void) {
    PyMethodDef *const more[] = { native_model_functions,      native_calibration_functions, native_run_functions,
                                  native_comparison_functions, native_file_functions,        native_other_functions };
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < sizeof more / sizeof *more; i++)
        if (PyModule_AddFunctions(module, more[i]) != 0) Py_CLEAR(module);
    return module;
}

/* Runners: arrays in, arrays out. */
#include "native.h"

/* runner_open(model, signature or None) */
static PyObject *open_runner(PyObject *module, PyObject *args) {
    PyObject *capsule;
    const tare_model *model;
    const char *signature;
    tare_runner *runner;
    tare_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oz", &capsule, &signature)) return NULL;
    if (!(model = native_handle(capsule, native_model))) return NULL;
    Py_BEGIN_ALLOW_THREADS status = tare_runner_open(&runner, model, signature);
    Py_END_ALLOW_THREADS return status == TARE_OK ? native_capsule(runner, native_runner, capsule)
                                                  : native_raise(status);
}

/* runner_open_function(model, name, arguments) */
static PyObject *open_function(PyObject *module, PyObject *args) {
    PyObject *capsule, *sequence;
    const tare_model *model;
    const char *name;
    struct arrays arrays;
    tare_runner *runner;
    tare_status status = TARE_ERROR_INVALID_ARGUMENT;
    (void)module;
    if (!PyArg_ParseTuple(args, "OsO", &capsule, &name, &sequence)) return NULL;
    if (!(model = native_handle(capsule, native_model))) return NULL;
    if (native_arrays_read(&arrays, sequence)) {
        Py_BEGIN_ALLOW_THREADS status = tare_runner_open_function(&runner, model, name, arrays.items, arrays.count);
        Py_END_ALLOW_THREADS
    }
    native_arrays_free(&arrays);
    if (PyErr_Occurred()) return NULL;
    return status == TARE_OK ? native_capsule(runner, native_runner, capsule) : native_raise(status);
}

/* function_argument(model, function, argument): an element type; 0: not known, or several */
static PyObject *function_argument(PyObject *module, PyObject *args) {
    PyObject *capsule;
    const tare_model *model;
    const char *name, *argument;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oss", &capsule, &name, &argument)) return NULL;
    if (!(model = native_handle(capsule, native_model))) return NULL;
    return PyLong_FromLong(tare_model_function_argument(model, name, argument));
}

struct running {
    tare_runner *runner;
    struct arrays inputs;
    tare_outputs *outputs;
    const tare_array *items;
    size_t count;
};

static tare_status run_work(void *arg) {
    struct running *r = arg;
    const tare_array *outputs;
    const tare_status status = tare_runner_run(r->runner, r->inputs.items, r->inputs.count, &outputs, &r->count);
    return status == TARE_OK ? tare_runner_take(&r->outputs, r->runner, &r->items, &r->count) : status;
}

/* runner_run(runner, inputs): (list of outputs, their owner) */
static PyObject *run(PyObject *module, PyObject *args) {
    PyObject *capsule, *sequence;
    struct running running = { 0 };
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &sequence)) return NULL;
    if (!(running.runner = native_handle(capsule, native_runner))) return NULL;
    const bool done = native_arrays_read(&running.inputs, sequence) && native_short_call(run_work, &running);
    native_arrays_free(&running.inputs);
    if (!done) tare_outputs_close(running.outputs);
    PyObject *owner = done ? native_capsule(running.outputs, native_outputs, NULL) : NULL;
    return owner ? Py_BuildValue("(NN)", native_arrays_list(running.items, running.count), owner) : NULL;
}

PyMethodDef native_run_functions[] = {
    { "runner_open", open_runner, METH_VARARGS, NULL },
    { "runner_open_function", open_function, METH_VARARGS, NULL },
    { "function_argument", function_argument, METH_VARARGS, NULL },
    { "runner_run", run, METH_VARARGS, NULL },
    { 0 },
};

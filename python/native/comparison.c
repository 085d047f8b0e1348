/* Comparisons, with a metric in Python. */
#include "native.h"

/* ---- metrics ---- */

/* A Python object with the methods begin(), record(outputs, record) and end(). */
struct metric {
    struct context *context;
    PyObject *object;
    const tare_array *outputs, *record;
    size_t n_outputs, n_record;
    double value;
};

/* The name is interned: Python's cache of methods keeps every new string that it is asked for. Takes ownership of the
 * arguments, which may be NULL after a failure. */
static PyObject *call_method(PyObject *object, const char *method, PyObject *first, PyObject *second) {
    PyObject *name = PyUnicode_InternFromString(method), *result = NULL;
    if (name && !PyErr_Occurred()) result = PyObject_CallMethodObjArgs(object, name, first, second, NULL);
    Py_XDECREF(name);
    Py_XDECREF(first);
    Py_XDECREF(second);
    return result;
}

static tare_status call_begin(void *arg) {
    const struct metric *m = arg;
    PyObject *result = call_method(m->object, "begin", NULL, NULL);
    Py_XDECREF(result);
    return result ? TARE_OK : TARE_ERROR_INTERRUPTED;
}

static tare_status call_record(void *arg) {
    const struct metric *m = arg;
    PyObject *result = call_method(m->object, "record", native_arrays_list(m->outputs, m->n_outputs),
                                   native_arrays_list(m->record, m->n_record));
    Py_XDECREF(result);
    return result ? TARE_OK : TARE_ERROR_INTERRUPTED;
}

static tare_status call_end(void *arg) {
    struct metric *m = arg;
    PyObject *result = call_method(m->object, "end", NULL, NULL);
    if (result) m->value = PyFloat_AsDouble(result);
    Py_XDECREF(result);
    return PyErr_Occurred() ? TARE_ERROR_INTERRUPTED : TARE_OK;
}

static tare_status begin(void *arg) {
    struct metric *m = arg;
    return native_serve(m->context, call_begin, m);
}

static tare_status record(void *arg, const tare_array *outputs, size_t n_outputs, const tare_array *arrays, size_t n) {
    struct metric *m = arg;
    m->outputs = outputs;
    m->n_outputs = n_outputs;
    m->record = arrays;
    m->n_record = n;
    return native_serve(m->context, call_record, m);
}

static tare_status end(void *arg, double *value) {
    struct metric *m = arg;
    const tare_status status = native_serve(m->context, call_end, m);
    *value = m->value;
    return status;
}

/* ---- comparisons ---- */

struct comparing {
    tare_comparison *made;
    const tare_model *model;
    tare_comparison_task task;
    struct records records, samples;
    tare_metric metric;
    struct metric metric_object;
};

static tare_status compare_work(void *arg) {
    struct comparing *c = arg;
    return tare_comparison_open(&c->made, c->model, &c->task);
}

static void use_metric(struct comparing *c, struct context *context, PyObject *object, const char *name, int lower) {
    c->metric_object = (struct metric){ .context = context, .object = object };
    c->metric = (tare_metric){ .struct_size = sizeof c->metric,
                               .name = name,
                               .lower_is_better = lower,
                               .arg = &c->metric_object,
                               .begin = begin,
                               .record = record,
                               .end = end };
    c->task.metric = &c->metric;
}

static PyObject *compare_and_close(struct comparing *c, PyObject *model) {
    const bool done = native_call(native_context_of(model), compare_work, c);
    native_records_end(&c->records);
    native_records_end(&c->samples);
    if (done) return native_capsule(c->made, native_comparison, NULL);
    tare_comparison_close(c->made);
    return NULL;
}

/* Records for the task from a list of paths, whose array is from PyMem_Malloc, or an iterator. */
static bool use_data(const char ***paths, size_t *n_paths, const tare_records **records, struct records *holder,
                     struct context *context, PyObject *data, const char *name) {
    if (PyList_Check(data)) return native_strings(paths, n_paths, data);
    *records = native_records_begin(holder, context, data, name);
    return true;
}

/* comparison_open(model, list of paths or iterator, calibration or None, list of paths or iterator of samples or None,
 * metric or None, metric name, lower is better, options) */
static PyObject *open_comparison(PyObject *module, PyObject *args) {
    struct comparing c = { .task.struct_size = sizeof c.task };
    PyObject *model, *data, *calibration, *sampled, *metric, *result = NULL;
    const char *metric_name, **paths = NULL, **samples = NULL;
    struct context *context;
    void *handle;
    int lower;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOzps", &model, &data, &calibration, &sampled, &metric, &metric_name, &lower,
                          &c.task.options))
        return NULL;
    if (!(c.model = native_handle(model, native_model))) return NULL;
    if (!native_optional_handle(&handle, calibration, native_calibration)) return NULL;
    c.task.calibration = handle;
    context = native_context_of(model);
    if (metric != Py_None) use_metric(&c, context, metric, metric_name, lower);
    if (!use_data(&paths, &c.task.n_paths, &c.task.records, &c.records, context, data, "memory")) goto done;
    c.task.paths = paths;
    if (sampled != Py_None &&
        !use_data(&samples, &c.task.n_samples, &c.task.sample_records, &c.samples, context, sampled, "samples"))
        goto done;
    c.task.samples = samples;
    result = compare_and_close(&c, model);
done:
    PyMem_Free(paths);
    PyMem_Free(samples);
    return result;
}

/* comparison_report(comparison, format) */
static PyObject *report(PyObject *module, PyObject *args) {
    PyObject *capsule;
    const tare_comparison *comparison;
    tare_status status;
    int format;
    char *text;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oi", &capsule, &format)) return NULL;
    if (!(comparison = native_handle(capsule, native_comparison))) return NULL;
    Py_BEGIN_ALLOW_THREADS status = tare_comparison_report(&text, comparison, format);
    Py_END_ALLOW_THREADS return status == TARE_OK ? native_text(text) : native_raise(status);
}

PyMethodDef native_comparison_functions[] = {
    { "comparison_open", open_comparison, METH_VARARGS, NULL },
    { "comparison_report", report, METH_VARARGS, NULL },
    { 0 },
};

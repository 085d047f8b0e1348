/* Records from a Python iterator. */
#include "native.h"

static tare_status next_record(void *arg) {
    struct records *r = arg;
    native_arrays_free(&r->arrays);
    Py_CLEAR(r->record);
    r->record = PyIter_Next(r->iterator);
    r->ended = !r->record;
    if (!r->record) return PyErr_Occurred() ? TARE_ERROR_INTERRUPTED : TARE_OK;
    return native_arrays_read(&r->arrays, r->record) ? TARE_OK : TARE_ERROR_INTERRUPTED;
}

static tare_status next(void *arg, const tare_array **arrays, size_t *count) {
    struct records *r = arg;
    const tare_status status = native_serve(r->context, next_record, r);
    *arrays = r->ended ? NULL : r->arrays.items;
    *count = r->arrays.count;
    return status;
}

const tare_records *native_records_begin(struct records *out, struct context *context, PyObject *iterator,
                                         const char *name) {
    *out = (struct records){ .context = context, .iterator = iterator };
    out->of = (tare_records){ .struct_size = sizeof out->of, .name = name, .arg = out, .next = next };
    return &out->of;
}

void native_records_end(struct records *records) {
    native_arrays_free(&records->arrays);
    Py_CLEAR(records->record);
}

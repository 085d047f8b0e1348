/* Helpers shared by the string ops. */
#include "interpreter/ops/string/text.h"

tare_status tare_text_store(struct tare_tensor *tensor, int64_t i, struct tare_strbuf *buf) {
    tare_status status = tare_strbuf_status(buf);
    if (status == TARE_OK) status = tare_tensor_set_string(tensor, i, tare_strbuf_text(buf), buf->size);
    buf->size = 0;
    return status;
}

tare_status tare_text_map(struct tare_kernel *kernel,
                          tare_status (*fn)(struct tare_strbuf *out, struct tare_str text, const void *arg),
                          const void *arg) {
    const struct tare_tensor *in = &kernel->inputs[0];
    struct tare_strbuf buf = { 0 };
    tare_status status = tare_kernel_output(kernel, 0, TARE_DT_STRING, &in->shape);
    for (int64_t i = 0; status == TARE_OK && i < in->elements; i++) {
        status = fn(&buf, tare_text_at(in, i), arg);
        if (status == TARE_OK) status = tare_text_store(&kernel->outputs[0], i, &buf);
    }
    tare_strbuf_free(&buf);
    return status;
}

tare_status tare_text_check_splits(const struct tare_tensor *splits, int64_t values) {
    int64_t last = 0;
    if (splits->shape.rank != 1 || splits->elements < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "row splits must be a vector of at least one element");
    for (int64_t i = 0; i < splits->elements; i++) {
        int64_t split = tare_tensor_get_i64(splits, i);
        if (i == 0 && split != 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "First split value must be 0, got %lld", (long long)split);
        if (split < last || split > values)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid split value %lld, must be in [%lld, %lld]",
                             (long long)split, (long long)last, (long long)values);
        last = split;
    }
    if (last != values)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Last split value must be data size. Expected %lld, got %lld",
                         (long long)values, (long long)last);
    return TARE_OK;
}

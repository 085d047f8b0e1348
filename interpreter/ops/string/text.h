/* Helpers shared by the string ops: reading and writing elements, and building sparse and ragged results of unknown
 * size. */
#ifndef TARE_INTERPRETER_OPS_STRING_TEXT_H
#define TARE_INTERPRETER_OPS_STRING_TEXT_H

#include "base/strbuf.h"
#include "interpreter/kernel.h"

static inline struct tare_str tare_text_at(const struct tare_tensor *tensor, int64_t i) {
    struct tare_str text = TARE_CONST_DATA(struct tare_str, tensor)[i];
    if (!text.data) text.data = ""; /* an element that was never set */
    return text;
}

/* Sets element i to the text in `buf`, which is emptied for reuse. */
tare_status tare_text_store(struct tare_tensor *tensor, int64_t i, struct tare_strbuf *buf);
/* Computes output 0 in the shape of input 0; element i is what `fn` appends for input element i. */
tare_status tare_text_map(struct tare_kernel *kernel,
                          tare_status (*fn)(struct tare_strbuf *out, struct tare_str text, const void *arg),
                          const void *arg);

/* Writes element i of an int32 or int64 tensor. */
static inline void tare_text_set_index(struct tare_tensor *tensor, int64_t i, int64_t value) {
    if (tensor->dtype == TARE_DT_INT32)
        TARE_DATA(int32_t, tensor)[i] = (int32_t)value;
    else
        TARE_DATA(int64_t, tensor)[i] = value;
}

/* Checks the row splits of a ragged tensor: they start at 0, do not decrease, and end at `values` elements. */
tare_status tare_text_check_splits(const struct tare_tensor *splits, int64_t values);

#endif

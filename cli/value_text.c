/* Single values of tensors as text. */
#include "cli/value_text.h"

#include <inttypes.h>

void tare_value_put(struct tare_strbuf *out, const struct tare_tensor *value, int64_t i, int digits) {
    switch (tare_dtype_get(value->dtype)->class) {
    case TARE_CLASS_FLOAT:
        tare_strbuf_printf(out, "%.*g", digits, tare_tensor_get_f64(value, i));
        break;
    case TARE_CLASS_UNSIGNED:
    case TARE_CLASS_SIGNED:
    case TARE_CLASS_BOOL:
    case TARE_CLASS_QUANTIZED:
        if (value->dtype == TARE_DT_UINT64)
            tare_strbuf_printf(out, "%" PRIu64, TARE_CONST_DATA(uint64_t, value)[i]);
        else
            tare_strbuf_printf(out, "%" PRId64, tare_tensor_get_i64(value, i));
        break;
    default:
        if (value->dtype == TARE_DT_COMPLEX64)
            tare_strbuf_printf(out, "%.*g%+.*gj", digits, (double)TARE_CONST_DATA(float, value)[2 * i], digits,
                               (double)TARE_CONST_DATA(float, value)[2 * i + 1]);
        else if (value->dtype == TARE_DT_COMPLEX128)
            tare_strbuf_printf(out, "%.*g%+.*gj", digits, TARE_CONST_DATA(double, value)[2 * i], digits,
                               TARE_CONST_DATA(double, value)[2 * i + 1]);
        else
            tare_strbuf_putc(out, '?');
    }
}

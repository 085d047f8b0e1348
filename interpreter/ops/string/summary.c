#include "interpreter/ops/string/summary.h"

#include "base/format.h"
#include "base/tensor/number.h"
#include "interpreter/ops/string/text.h"
#include "interpreter/ops/support/move.h"

#include <float.h>
#include <math.h>

/* TensorFlow's strings::StrCat: digits10 significant digits if they read back as the same number, max_digits10
 * otherwise. Floats of less than 32 bits are printed as float32. */
static void append_real(struct tare_strbuf *out, double value, bool is_double) {
    char text[64];
    if (isnan(value)) {
        tare_strbuf_puts(out, signbit(value) ? "-nan" : "nan");
        return;
    }
    tare_format(text, sizeof text, "%.*g", is_double ? DBL_DIG : FLT_DIG, value);
    if (is_double ? tare_read_double(text, NULL) != value : tare_read_float(text, NULL) != (float)value)
        tare_format(text, sizeof text, "%.*g", is_double ? DBL_DECIMAL_DIG : FLT_DECIMAL_DIG, value);
    tare_strbuf_puts(out, text);
}

/* As absl::Utf8SafeCEscape: bytes from 0x80 on are not escaped. */
static void append_escaped(struct tare_strbuf *out, struct tare_str text) {
    for (size_t i = 0; i < text.size; i++) {
        if ((unsigned char)text.data[i] < 0x80)
            tare_strbuf_escape(out, text.data + i, 1);
        else
            tare_strbuf_putc(out, text.data[i]);
    }
}

/* Whether TensorFlow prints the elements, in the brackets of the dimensions. */
static bool is_printed(int dtype) {
    const int class = tare_dtype_get(dtype)->class;
    return class != TARE_CLASS_COMPLEX && class != TARE_CLASS_OBJECT && dtype != TARE_DT_QINT32 &&
           dtype != TARE_DT_FLOAT8_E4M3FNUZ && dtype != TARE_DT_FLOAT8_E5M2FNUZ;
}

static void append_element(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t i, const char *quote) {
    switch (tare_dtype_get(tensor->dtype)->class) {
    case TARE_CLASS_STRING:
        tare_strbuf_puts(out, quote);
        append_escaped(out, tare_text_at(tensor, i));
        tare_strbuf_puts(out, quote);
        break;
    case TARE_CLASS_FLOAT:
        append_real(out, tare_tensor_get_f64(tensor, i), tensor->dtype == TARE_DT_DOUBLE);
        break;
    case TARE_CLASS_UNSIGNED:
        tare_strbuf_printf(out, "%llu", (unsigned long long)tare_tensor_get_i64(tensor, i));
        break;
    default:
        tare_strbuf_printf(out, "%lld", (long long)tare_tensor_get_i64(tensor, i));
        break;
    }
}

/* The first `most` elements, without the brackets of dimensions. */
static void append_line(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t most, const char *quote) {
    for (int64_t i = 0; i < most; i++) {
        if (i) tare_strbuf_putc(out, ' ');
        if (is_printed(tensor->dtype))
            append_element(out, tensor, i, quote);
        else if (tare_dtype_get(tensor->dtype)->class == TARE_CLASS_OBJECT)
            tare_strbuf_printf(out, "<%s>", tare_dtype_name(tensor->dtype));
        else
            tare_strbuf_putc(out, '?');
    }
    if (most < tensor->elements) tare_strbuf_puts(out, "...");
}

/* What separates the entries of dimension d. */
static void append_space(struct tare_strbuf *out, const struct tare_tensor *tensor, int d) {
    for (int n = tensor->shape.rank - d - 1; n > 0; n--)
        tare_strbuf_putc(out, '\n');
    for (int n = d + 1 == tensor->shape.rank ? d : 0; n <= d; n++)
        tare_strbuf_putc(out, ' ');
}

static void append_edges(struct tare_strbuf *out, const struct tare_tensor *tensor, int d, int64_t at, int64_t edge) {
    int64_t dim, inner;
    if (d == tensor->shape.rank) {
        append_element(out, tensor, at, "\"");
        return;
    }
    dim = tensor->shape.dims[d];
    inner = tare_move_product(&tensor->shape, d + 1, tensor->shape.rank);
    tare_strbuf_putc(out, '[');
    for (int64_t i = 0; i < dim; i++) {
        const bool skip = edge < dim - edge && i == edge;
        if (i || skip) append_space(out, tensor, d);
        if (skip) {
            tare_strbuf_puts(out, "...");
            i = dim - edge - 1;
            continue;
        }
        append_edges(out, tensor, d + 1, at + i * inner, edge);
    }
    tare_strbuf_putc(out, ']');
}

/* Appends dimension d from element *at on, without its brackets. */
static void append_first(struct tare_strbuf *out, const struct tare_tensor *tensor, int d, int64_t *at, int64_t most) {
    const bool innermost = d + 1 == tensor->shape.rank;
    for (int64_t i = 0; i < tensor->shape.dims[d] && *at < most; i++) {
        if (innermost) {
            if (i) tare_strbuf_putc(out, ' ');
            append_element(out, tensor, (*at)++, "");
            if (*at == most && i + 1 < tensor->shape.dims[d] && d > 0) tare_strbuf_puts(out, "...");
        } else {
            tare_strbuf_putc(out, '[');
            append_first(out, tensor, d + 1, at, most);
            tare_strbuf_putc(out, ']');
        }
    }
}

/* There are no more than elements, so that of an empty tensor's rows none is printed. */
static int64_t limit(const struct tare_tensor *tensor, int64_t most) {
    return most < 0 || most > tensor->elements ? tensor->elements : most;
}

/* TensorFlow prints nothing of booleans if none are asked for. */
static bool is_blank(const struct tare_tensor *tensor, int64_t most) {
    return most == 0 && tensor->dtype == TARE_DT_BOOL;
}

void tare_summarize_edges(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t most) {
    most = limit(tensor, most);
    if (is_blank(tensor, most)) return;
    if (tensor->shape.rank == 0) {
        append_line(out, tensor, most, "\"");
    } else if (is_printed(tensor->dtype)) {
        append_edges(out, tensor, 0, 0, most);
    } else {
        tare_strbuf_putc(out, '[');
        append_line(out, tensor, most, "");
        tare_strbuf_putc(out, ']');
    }
}

void tare_summarize_first(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t most) {
    int64_t at = 0;
    most = limit(tensor, most);
    if (is_blank(tensor, most)) return;
    if (tensor->shape.rank == 0 || !is_printed(tensor->dtype)) {
        append_line(out, tensor, most, "");
        return;
    }
    append_first(out, tensor, 0, &at, most);
    if (most < tensor->elements) tare_strbuf_puts(out, "...");
}

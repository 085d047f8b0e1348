#include "support/tensor_text.h"

#include "base/tensor/number.h"

#include <complex.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *at) {
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

tare_status shape_from_text(struct tare_shape *out, const char *text, const char **end) {
    const char *at = skip_space(text);
    *out = tare_shape_scalar();
    *end = at;
    if (strncmp(at, "<unknown>", 9) == 0) {
        *out = tare_shape_unknown();
        *end = at + 9;
        return TARE_OK;
    }
    if (*at++ != '[') return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no shape", text);
    while (*(at = skip_space(at)) != ']') {
        char *after = NULL;
        if (out->rank == TARE_MAX_RANK) return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' has too many dims", text);
        if (*at == '?') {
            out->dims[out->rank++] = TARE_UNKNOWN_DIM;
            at++;
        } else {
            out->dims[out->rank++] = strtoll(at, &after, 10);
            if (after == at) return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no shape", text);
            at = after;
        }
        at = skip_space(at);
        if (*at == ',') at++;
    }
    *end = at + 1;
    return TARE_OK;
}

/* ---- elements ---- */

static int unescape(const char **at) {
    static const char from[] = "nrt0\"\\'", to[] = "\n\r\t\0\"\\'";
    const char c = *++*at;
    if (c == 'x') {
        char digits[3] = { (*at)[1], (*at)[1] ? (*at)[2] : '\0', '\0' };
        *at += 3;
        return (int)strtol(digits, NULL, 16);
    }
    const char *found = c ? strchr(from, c) : NULL;
    ++*at;
    return found ? to[found - from] : c;
}

static tare_status read_string(struct tare_tensor *tensor, int64_t i, const char **at) {
    struct tare_strbuf bytes = { 0 };
    const char *p = *at;
    if (*p++ != '"') return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no quoted string", *at);
    while (*p != '"' && *p != '\0')
        tare_strbuf_putc(&bytes, (char)(*p == '\\' ? unescape(&p) : (unsigned char)*p++));
    *at = *p == '"' ? p + 1 : p;
    tare_status status = tare_tensor_set_string(tensor, i, tare_strbuf_text(&bytes), bytes.size);
    tare_strbuf_free(&bytes);
    return status;
}

static tare_status read_complex(struct tare_tensor *tensor, int64_t i, const char **at) {
    char *end = NULL;
    double re, im = 0;
    const char *p = *at;
    const bool pair = *p == '(';
    re = strtod(p + pair, &end);
    if (end == p + pair) return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no complex number", p);
    if (pair) {
        if (*end++ != ',') return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no (real,imaginary)", p);
        im = strtod(end, &end);
        if (*end++ != ')') return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no (real,imaginary)", p);
    }
    *at = end;
    if (tensor->dtype == TARE_DT_COMPLEX64) {
        TARE_DATA(float, tensor)[2 * i] = (float)re;
        TARE_DATA(float, tensor)[2 * i + 1] = (float)im;
    } else {
        TARE_DATA(double, tensor)[2 * i] = re;
        TARE_DATA(double, tensor)[2 * i + 1] = im;
    }
    return TARE_OK;
}

static bool set_float(struct tare_tensor *tensor, int64_t i, const char *text, char **end) {
    switch (tensor->dtype) {
    case TARE_DT_FLOAT:
        TARE_DATA(float, tensor)[i] = strtof(text, end);
        return true;
    case TARE_DT_DOUBLE:
        TARE_DATA(double, tensor)[i] = strtod(text, end);
        return true;
    case TARE_DT_HALF:
        TARE_DATA(uint16_t, tensor)[i] = tare_half_from_float(strtof(text, end));
        return true;
    case TARE_DT_BFLOAT16:
        TARE_DATA(uint16_t, tensor)[i] = tare_bfloat16_from_float(strtof(text, end));
        return true;
    default:
        return false;
    }
}

static bool set_integer(struct tare_tensor *tensor, int64_t i, const char *text, char **end) {
    errno = 0;
    const uint64_t value = text[0] == '-' ? (uint64_t)strtoll(text, end, 0) : strtoull(text, end, 0);
    const size_t size = tare_dtype_size(tensor->dtype);
    if (errno != 0) return false;
    memcpy((char *)tensor->data + (size_t)i * size, &value, size); /* little-endian, two's complement */
    return true;
}

static tare_status read_element(struct tare_tensor *tensor, int64_t i, const char **at) {
    char *end = NULL;
    *at = skip_space(*at);
    if (tensor->dtype == TARE_DT_STRING) return read_string(tensor, i, at);
    if (tare_dtype_get(tensor->dtype)->class == TARE_CLASS_COMPLEX) return read_complex(tensor, i, at);
    if (tensor->dtype == TARE_DT_BOOL && (strncmp(*at, "true", 4) == 0 || strncmp(*at, "false", 5) == 0)) {
        TARE_DATA(bool, tensor)[i] = **at == 't';
        *at += **at == 't' ? 4 : 5;
        return TARE_OK;
    }
    if (tare_dtype_get(tensor->dtype)->class == TARE_CLASS_OBJECT)
        return TARE_FAIL(TARE_TYPE, "a %s tensor cannot be written as text", tare_dtype_name(tensor->dtype));
    const bool fits = set_float(tensor, i, *at, &end) || set_integer(tensor, i, *at, &end);
    if (!fits || end == *at)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "element %lld: '%.20s' is no %s", (long long)i, *at,
                         tare_dtype_name(tensor->dtype));
    *at = end;
    return TARE_OK;
}

static tare_status read_fill(struct tare_tensor *out, const char **at) {
    *at += 4;
    const char *value = *at;
    for (int64_t i = 0; i < out->elements; i++) {
        *at = value;
        TARE_TRY(read_element(out, i, at));
    }
    return TARE_OK;
}

static tare_status read_iota(struct tare_tensor *out, const char **at) {
    char *end = NULL;
    const double first = strtod(*at + 4, &end), step = strtod(end, &end);
    *at = end;
    for (int64_t i = 0; i < out->elements; i++) {
        char text[64];
        const char *p = text;
        const double value = first + step * (double)i;
        const bool whole = tare_dtype_is_integer(out->dtype);
        if (whole)
            snprintf(text, sizeof text, "%lld", (long long)value);
        else
            snprintf(text, sizeof text, "%.17g", value);
        TARE_TRY(read_element(out, i, &p));
    }
    return TARE_OK;
}

static tare_status read_elements(struct tare_tensor *out, const char **at) {
    *at = skip_space(*at);
    if (strncmp(*at, "fill", 4) == 0) return read_fill(out, at);
    if (strncmp(*at, "iota", 4) == 0) return read_iota(out, at);
    for (int64_t i = 0; i < out->elements; i++)
        TARE_TRY(read_element(out, i, at));
    return TARE_OK;
}

tare_status tensor_from_text(struct tare_tensor *out, const char *text) {
    struct tare_shape shape;
    const char *at = skip_space(text);
    const size_t size = strcspn(at, "[ ");
    const int dtype = tare_dtype_from_name(at, size);
    memset(out, 0, sizeof *out);
    if (dtype == TARE_DT_INVALID) return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' begins with no dtype", text);
    TARE_TRY(shape_from_text(&shape, at + size, &at));
    TARE_TRY(tare_tensor_new(out, dtype, &shape));
    tare_status status = read_elements(out, &at);
    if (status == TARE_OK && *skip_space(at) != '\0')
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' has more than %lld elements", text, (long long)out->elements);
    if (status != TARE_OK) tare_tensor_reset(out);
    return status;
}

/* ---- printing ---- */

void element_to_text(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t i) {
    switch (tensor->dtype) {
    case TARE_DT_STRING: {
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, tensor)[i];
        tare_strbuf_putc(out, '"');
        tare_strbuf_escape(out, text->data, text->size);
        tare_strbuf_putc(out, '"');
        return;
    }
    case TARE_DT_COMPLEX64:
        tare_strbuf_printf(out, "(%.9g,%.9g)", TARE_CONST_DATA(float, tensor)[2 * i],
                           TARE_CONST_DATA(float, tensor)[2 * i + 1]);
        return;
    case TARE_DT_COMPLEX128:
        tare_strbuf_printf(out, "(%.17g,%.17g)", TARE_CONST_DATA(double, tensor)[2 * i],
                           TARE_CONST_DATA(double, tensor)[2 * i + 1]);
        return;
    case TARE_DT_FLOAT:
        tare_strbuf_printf(out, "%.9g", TARE_CONST_DATA(float, tensor)[i]);
        return;
    case TARE_DT_DOUBLE:
        tare_strbuf_printf(out, "%.17g", TARE_CONST_DATA(double, tensor)[i]);
        return;
    case TARE_DT_HALF:
    case TARE_DT_BFLOAT16:
        tare_strbuf_printf(out, "%.9g", tare_tensor_get_f64(tensor, i));
        return;
    case TARE_DT_UINT64:
        tare_strbuf_printf(out, "%" PRIu64, TARE_CONST_DATA(uint64_t, tensor)[i]);
        return;
    default:
        break;
    }
    if (tare_dtype_is_integer(tensor->dtype) || tensor->dtype == TARE_DT_BOOL) {
        tare_strbuf_printf(out, "%" PRId64, tare_tensor_get_i64(tensor, i));
        return;
    }
    const size_t size = tare_dtype_size(tensor->dtype);
    for (size_t k = size; k-- > 0;)
        tare_strbuf_printf(out, "%s%02x", k + 1 == size ? "0x" : "",
                           ((const unsigned char *)tensor->data)[(size_t)i * size + k]);
}

void tensor_to_text(struct tare_strbuf *out, const struct tare_tensor *tensor, int64_t most) {
    char text[TARE_SHAPE_TEXT_SIZE];
    tare_strbuf_printf(out, "%s%s", tare_dtype_name(tensor->dtype), tare_shape_text(text, &tensor->shape));
    for (int64_t i = 0; i < tensor->elements && i < most; i++) {
        tare_strbuf_putc(out, ' ');
        element_to_text(out, tensor, i);
    }
    if (tensor->elements > most) tare_strbuf_puts(out, " …");
}

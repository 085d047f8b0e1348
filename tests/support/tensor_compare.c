#include "support/tensor_compare.h"

#include "support/tensor_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The rank of a number among all representable ones, so that a difference of ranks counts the values in between. */
static int64_t place_of(uint64_t bits, int width) {
    const uint64_t sign = UINT64_C(1) << (width - 1);
    return bits & sign ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;
}

static int64_t ulps_apart(int dtype, const void *a, const void *b) {
    uint64_t x = 0, y = 0;
    const size_t size = dtype == TARE_DT_COMPLEX64 ? 4 : dtype == TARE_DT_COMPLEX128 ? 8 : tare_dtype_size(dtype);
    memcpy(&x, a, size);
    memcpy(&y, b, size);
    int64_t distance;
    if (__builtin_sub_overflow(place_of(x, (int)size * 8), place_of(y, (int)size * 8), &distance)) return INT64_MAX;
    return distance < 0 ? -distance : distance;
}

static double real_part(const struct tare_tensor *tensor, int64_t i) {
    if (tensor->dtype == TARE_DT_COMPLEX64) return (double)TARE_CONST_DATA(float, tensor)[i];
    if (tensor->dtype == TARE_DT_COMPLEX128) return TARE_CONST_DATA(double, tensor)[i];
    return tare_tensor_get_f64(tensor, i);
}

/* Compares element i of a real tensor, or part i of a complex one. */
static bool number_fits(const struct tare_tensor *got, const struct tare_tensor *expected, int64_t i,
                        struct tolerance tolerance, size_t size) {
    const double g = real_part(got, i), w = real_part(expected, i);
    const char *a = (const char *)got->data + (size_t)i * size, *b = (const char *)expected->data + (size_t)i * size;
    if (memcmp(a, b, size) == 0 || (isnan(g) && isnan(w))) return true;
    if (isnan(g) || isnan(w)) return false;
    if (tolerance.ulps > 0 && ulps_apart(got->dtype, a, b) <= tolerance.ulps) return true;
    const double room = tolerance.absolute + tolerance.relative * fabs(w);
    return room > 0 && !isinf(g) && fabs(g - w) <= room;
}

static bool element_fits(const struct tare_tensor *got, const struct tare_tensor *expected, int64_t i,
                         struct tolerance tolerance) {
    const size_t size = tare_dtype_size(got->dtype);
    switch (tare_dtype_get(got->dtype)->class) {
    case TARE_CLASS_STRING: {
        const struct tare_str *g = &TARE_CONST_DATA(struct tare_str, got)[i];
        const struct tare_str *w = &TARE_CONST_DATA(struct tare_str, expected)[i];
        return g->size == w->size && (g->size == 0 || memcmp(g->data, w->data, g->size) == 0);
    }
    case TARE_CLASS_COMPLEX:
        return number_fits(got, expected, 2 * i, tolerance, size / 2) &&
               number_fits(got, expected, 2 * i + 1, tolerance, size / 2);
    case TARE_CLASS_FLOAT:
        if (size > 1) return number_fits(got, expected, i, tolerance, size);
        break;
    default:
        break;
    }
    return memcmp((const char *)got->data + (size_t)i * size, (const char *)expected->data + (size_t)i * size, size) ==
           0;
}

static void put_place(struct tare_strbuf *why, const struct tare_shape *shape, int64_t i) {
    int64_t at[TARE_MAX_RANK];
    for (int d = shape->rank; d-- > 0;) {
        at[d] = i % shape->dims[d];
        i /= shape->dims[d];
    }
    tare_strbuf_putc(why, '[');
    for (int d = 0; d < shape->rank; d++)
        tare_strbuf_printf(why, "%s%lld", d ? "," : "", (long long)at[d]);
    tare_strbuf_putc(why, ']');
}

bool tensors_agree(struct tare_strbuf *why, const struct tare_tensor *got, const struct tare_tensor *expected,
                   struct tolerance tolerance) {
    int64_t first = -1, count = 0;
    char a[TARE_SHAPE_TEXT_SIZE], b[TARE_SHAPE_TEXT_SIZE];
    if (got->dtype != expected->dtype || !tare_shape_equal(&got->shape, &expected->shape)) {
        tare_strbuf_printf(why, "got %s%s, expected %s%s", tare_dtype_name(got->dtype), tare_shape_text(a, &got->shape),
                           tare_dtype_name(expected->dtype), tare_shape_text(b, &expected->shape));
        return false;
    }
    for (int64_t i = 0; i < got->elements; i++) {
        if (element_fits(got, expected, i, tolerance)) continue;
        if (count++ == 0) first = i;
    }
    if (count == 0) return true;
    put_place(why, &got->shape, first);
    tare_strbuf_puts(why, " is ");
    element_to_text(why, got, first);
    tare_strbuf_puts(why, ", expected ");
    element_to_text(why, expected, first);
    tare_strbuf_printf(why, " (%lld of %lld elements differ)", (long long)count, (long long)got->elements);
    return false;
}

tare_status tolerance_from_text(struct tolerance *out, const char *text) {
    while (*text != '\0') {
        char word[8] = "";
        double value = 0;
        int used = 0;
        if (sscanf(text, "%7s %lf %n", word, &value, &used) < 2)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no tolerance", text);
        if (strcmp(word, "abs") == 0)
            out->absolute = value;
        else if (strcmp(word, "rel") == 0)
            out->relative = value;
        else if (strcmp(word, "ulp") == 0)
            out->ulps = (int64_t)value;
        else
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is no tolerance", text);
        text += used;
    }
    return TARE_OK;
}

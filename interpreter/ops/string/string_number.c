/* AsString, StringToNumber, hash buckets, DecodeRaw and Fingerprint: conversions between strings and numbers. */
#include "base/alloc.h"
#include "base/ascii.h"
#include "base/format.h"
#include "interpreter/ops/string/hash64.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- StringToNumber ---- */

static bool parse_integer(struct tare_tensor *out, int64_t i, const char *text) {
    char *end;
    bool negative = text[0] == '-';
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    bool is_unsigned = out->dtype == TARE_DT_UINT32 || out->dtype == TARE_DT_UINT64;
    uint64_t value;
    if (digits[0] < '0' || digits[0] > '9' || (is_unsigned && digits != text)) return false;
    errno = 0;
    value = strtoull(digits, &end, 10);
    if (*end || errno) return false;
    switch (out->dtype) {
    case TARE_DT_INT32:
        if (value > (negative ? 0x80000000u : 0x7fffffffu)) return false;
        TARE_DATA(int32_t, out)[i] = (int32_t)(negative ? -(int64_t)value : (int64_t)value);
        return true;
    case TARE_DT_INT64:
        if (value > (negative ? 0x8000000000000000u : 0x7fffffffffffffffu)) return false;
        TARE_DATA(int64_t, out)[i] = (int64_t)(negative ? -value : value);
        return true;
    case TARE_DT_UINT32:
        if (value > UINT32_MAX) return false;
        TARE_DATA(uint32_t, out)[i] = (uint32_t)value;
        return true;
    default:
        TARE_DATA(uint64_t, out)[i] = value;
        return true;
    }
}

/* Decimal numbers, inf, infinity, nan and nan(letters); overflow yields an infinity. */
static bool parse_real(struct tare_tensor *out, int64_t i, const char *text) {
    char *end;
    if (!text[0] || strchr("xX(", text[0])) return false;
    if (out->dtype == TARE_DT_FLOAT)
        TARE_DATA(float, out)[i] = tare_read_float(text, &end);
    else
        TARE_DATA(double, out)[i] = tare_read_double(text, &end);
    return end != text && *end == '\0';
}

static tare_status run_to_number(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int dtype = tare_node_type(kernel->node, "out_type", TARE_DT_FLOAT);
    struct tare_tensor *out = &kernel->outputs[0];
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &in->shape));
    for (int64_t i = 0; i < in->elements; i++) {
        struct tare_str text = tare_text_at(in, i);
        size_t first = 0, last = text.size;
        char plain[320];
        bool fits;
        while (first < last && tare_is_space(text.data[first]))
            first++;
        while (last > first && tare_is_space(text.data[last - 1]))
            last--;
        fits = last - first < sizeof plain && !memchr(text.data, 0, text.size);
        if (fits) {
            memcpy(plain, text.data + first, last - first);
            plain[last - first] = '\0';
        }
        if (!fits || !(tare_dtype_is_floating(dtype) ? parse_real(out, i, plain) : parse_integer(out, i, plain)))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "StringToNumberOp could not correctly convert string: %.*s",
                             (int)(text.size < 80 ? text.size : 80), text.data);
    }
    return TARE_OK;
}

/* ---- AsString ---- */

/* Builds a printf conversion from the attributes: "%5.2f". */
static tare_status number_format(char format[64], const struct tare_node *node, const char *conversion, bool real) {
    int64_t precision = tare_node_int(node, "precision", -1), width = tare_node_int(node, "width", -1);
    bool scientific = tare_node_bool(node, "scientific", false), shortest = tare_node_bool(node, "shortest", false);
    const char *fill = tare_node_string(node, "fill", "");
    size_t used = 1;
    if (!real && (scientific || shortest || precision >= 0))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s not supported for this datatype",
                         precision >= 0 ? "precision" : "scientific and shortest format");
    if (strlen(fill) > 1 || !strchr("0 +-#", fill[0]))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Fill string must be one or fewer characters of '0 +-' (got '%s')",
                         fill);
    if (scientific && shortest)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Cannot select both scientific and shortest notation");
    if (width > 10000 || precision > 10000)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "width and precision must be at most 10000");
    format[0] = '%';
    if (width > -1) used += (size_t)snprintf(format + used, 64 - used, "%s%lld", fill, (long long)width);
    if (precision > -1) used += (size_t)snprintf(format + used, 64 - used, ".%lld", (long long)precision);
    snprintf(format + used, 64 - used, "%s", real ? (shortest ? "g" : scientific ? "e" : "f") : conversion);
    return TARE_OK;
}

struct number_text {
    char format[64];
    const struct tare_tensor *in;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void append_number(struct tare_strbuf *out, const struct number_text *how, int64_t i) {
    const struct tare_tensor *in = how->in;
    switch (tare_dtype_get(in->dtype)->class) {
    case TARE_CLASS_BOOL:
        tare_strbuf_puts(out, TARE_CONST_DATA(uint8_t, in)[i] ? "true" : "false"); /* without width and fill */
        break;
    case TARE_CLASS_COMPLEX:
        for (int part = 0; part < 2; part++) {
            tare_strbuf_putc(out, part ? ',' : '(');
            tare_strbuf_printf(out, how->format,
                               in->dtype == TARE_DT_COMPLEX64 ? (double)TARE_CONST_DATA(float, in)[2 * i + part]
                                                              : TARE_CONST_DATA(double, in)[2 * i + part]);
        }
        tare_strbuf_putc(out, ')');
        break;
    case TARE_CLASS_FLOAT:
        tare_strbuf_printf(out, how->format, tare_tensor_get_f64(in, i));
        break;
    case TARE_CLASS_UNSIGNED:
        tare_strbuf_printf(out, how->format, (unsigned long long)tare_tensor_get_i64(in, i));
        break;
    default:
        tare_strbuf_printf(out, how->format, (long long)tare_tensor_get_i64(in, i));
        break;
    }
}
#pragma GCC diagnostic pop

static tare_status run_as_string(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    enum tare_dtype_class class = tare_dtype_get(in->dtype)->class;
    bool real = class == TARE_CLASS_FLOAT || class == TARE_CLASS_COMPLEX;
    struct number_text how = { .in = in };
    struct tare_strbuf buf = { 0 };
    tare_status status = TARE_OK;
    if (class == TARE_CLASS_STRING) return tare_kernel_forward(kernel, 0, 0);
    if (class == TARE_CLASS_OBJECT) return TARE_FAIL(TARE_TYPE, "a variant cannot be converted to a string");
    TARE_TRY(number_format(how.format, kernel->node, class == TARE_CLASS_UNSIGNED ? "llu" : "lld", real));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &in->shape));
    for (int64_t i = 0; status == TARE_OK && i < in->elements; i++) {
        append_number(&buf, &how, i);
        status = tare_text_store(&kernel->outputs[0], i, &buf);
    }
    tare_strbuf_free(&buf);
    return status;
}

/* ---- hash buckets ---- */

static tare_status run_hash_bucket(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int64_t buckets = tare_node_int(kernel->node, "num_buckets", 0);
    const struct tare_attr *key = tare_node_list(kernel->node, "key");
    bool strong = strcmp(kernel->node->op, "StringToHashBucketStrong") == 0;
    bool fast = strcmp(kernel->node->op, "StringToHashBucketFast") == 0;
    if (buckets < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "num_buckets is %lld (expected at least 1)", (long long)buckets);
    if (strong && (!key || key->count != 2))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Key must have 2 elements (got %zu)", key ? key->count : 0);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &in->shape));
    for (int64_t i = 0; i < in->elements; i++) {
        struct tare_str text = tare_text_at(in, i);
        uint64_t hash = fast ? tare_fingerprint64(text.data, text.size)
                        : strong
                            ? tare_siphash24(text.data, text.size, (uint64_t)key->items[0].i, (uint64_t)key->items[1].i)
                            : tare_murmur64(text.data, text.size);
        TARE_DATA(int64_t, &kernel->outputs[0])[i] = (int64_t)(hash % (uint64_t)buckets);
    }
    return TARE_OK;
}

/* ---- raw bytes ---- */

static tare_status infer_raw(struct tare_infer *infer) {
    struct tare_shape last = tare_operand_vector_shape(-1);
    if (infer->inputs[0].rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (infer->n_inputs > 1) {
        size_t size = tare_dtype_size(tare_node_type(infer->node, "out_type", TARE_DT_FLOAT));
        int64_t length;
        TARE_TRY(tare_operand_rank(infer, 1, "fixed_length", 0));
        if (tare_operand_scalar(infer, 1, &length)) {
            if (length <= 0 || length % (int64_t)size)
                return TARE_FAIL(TARE_INVALID_ARGUMENT,
                                 "fixed_length (%lld) must be greater than 0 and a multiple of the size of out_type "
                                 "(%zu)",
                                 (long long)length, size);
            last.dims[0] = length / (int64_t)size;
        }
    }
    infer->outputs[0] = infer->inputs[0];
    return tare_operand_append(&infer->outputs[0], &last, 0, 1);
}

static void swap_bytes(unsigned char *data, size_t bytes, size_t size) {
    for (size_t at = 0; at + size <= bytes; at += size)
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char byte = data[at + i];
            data[at + i] = data[at + size - 1 - i];
            data[at + size - 1 - i] = byte;
        }
}

/* Returns the bytes of each string along a new dimension. DecodeRaw requires strings of equal length;
 * DecodePaddedRaw truncates or pads with zeros. */
static tare_status run_raw(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    int dtype = tare_node_type(kernel->node, "out_type", TARE_DT_FLOAT);
    size_t size = tare_dtype_size(dtype), row = 0, number;
    struct tare_shape *shapes;
    unsigned char *to;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (kernel->n_inputs > 1)
        row = (size_t)shapes[0].dims[in->shape.rank] * size;
    else if (in->elements)
        row = tare_text_at(in, 0).size;
    for (int64_t i = 0; kernel->n_inputs == 1 && i < in->elements; i++)
        if (tare_text_at(in, i).size != row)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "DecodeRaw requires input strings to all be the same size, but element %lld has size %zu "
                             "!= %zu",
                             (long long)i, tare_text_at(in, i).size, row);
    if (row % size)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Input to DecodeRaw has length %zu that is not a multiple of %zu, the "
                         "size of %s",
                         row, size, tare_dtype_name(dtype));
    shapes[0].dims[in->shape.rank] = (int64_t)(row / size);
    TARE_TRY(tare_kernel_output(kernel, 0, dtype, &shapes[0]));
    to = kernel->outputs[0].data;
    for (int64_t i = 0; i < in->elements && row; i++, to += row) {
        struct tare_str text = tare_text_at(in, i);
        size_t taken = text.size < row ? text.size : row;
        memcpy(to, text.data, taken);
        memset(to + taken, 0, row - taken);
    }
    number = tare_dtype_get(dtype)->class == TARE_CLASS_COMPLEX ? size / 2 : size;
    if (!tare_node_bool(kernel->node, "little_endian", true) && kernel->outputs[0].elements)
        swap_bytes(kernel->outputs[0].data, tare_tensor_bytes(&kernel->outputs[0]), number);
    return TARE_OK;
}

/* ---- Fingerprint: 8 bytes per row ---- */

static tare_status infer_fingerprint(struct tare_infer *infer) {
    TARE_TRY(tare_operand_rank(infer, 1, "method", 0));
    infer->outputs[0] = tare_shape_make(2, -1, 8);
    if (infer->inputs[0].rank == 0) return TARE_FAIL(TARE_SHAPE, "`data` should have at least one dimension.");
    if (infer->inputs[0].rank > 0) infer->outputs[0].dims[0] = infer->inputs[0].dims[0];
    return TARE_OK;
}

/* Hashes the bytes of a row; for strings the fingerprint of the string, and for several strings that of their
 * fingerprints. */
static tare_status run_fingerprint(struct tare_kernel *kernel) {
    const struct tare_tensor *data = &kernel->inputs[0];
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    const struct tare_str method = tare_text_at(&kernel->inputs[1], 0);
    if (method.size != 10 || memcmp(method.data, "farmhash64", 10) != 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Unsupported method: %.*s", (int)method.size, method.data);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_UINT8, &shapes[0]));
    const int64_t rows = data->shape.dims[0], width = rows ? data->elements / rows : 0;
    const size_t size = tare_dtype_size(data->dtype);
    uint64_t *hashes = TARE_NEW_ARRAY(kernel->scratch, uint64_t, (size_t)width + 1);
    if (!hashes) return TARE_NO_MEMORY;
    for (int64_t row = 0; row < rows; row++) {
        uint64_t hash = 0;
        for (int64_t i = 0; data->dtype == TARE_DT_STRING && i < width; i++) {
            const struct tare_str text = tare_text_at(data, row * width + i);
            hashes[i] = hash = tare_fingerprint64(text.data, text.size);
        }
        if (data->dtype != TARE_DT_STRING)
            hash = tare_fingerprint64(width ? (const char *)data->data + (size_t)(row * width) * size : "",
                                      (size_t)width * size);
        else if (data->shape.rank > 1)
            hash = tare_fingerprint64(hashes, (size_t)width * sizeof *hashes);
        memcpy(TARE_DATA(uint8_t, &kernel->outputs[0]) + 8 * row, &hash, sizeof hash);
    }
    return TARE_OK;
}

const struct tare_op tare_ops_string_number[] = {
    { .name = "AsString", .infer = tare_infer_same, .run = run_as_string },
    { .name = "DecodePaddedRaw", .infer = infer_raw, .run = run_raw, .flags = TARE_OP_FLOAT32 },
    { .name = "DecodeRaw", .infer = infer_raw, .run = run_raw, .flags = TARE_OP_FLOAT32 },
    { .name = "StringToHashBucket", .infer = tare_infer_same, .run = run_hash_bucket },
    { .name = "StringToHashBucketFast", .infer = tare_infer_same, .run = run_hash_bucket },
    { .name = "StringToHashBucketStrong", .infer = tare_infer_same, .run = run_hash_bucket },
    { .name = "StringToNumber", .infer = tare_infer_same, .run = run_to_number },
    { .name = "Fingerprint", .infer = infer_fingerprint, .run = run_fingerprint },
    { 0 },
};

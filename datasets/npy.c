/* NumPy's .npy files. */
#include "datasets/npy.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "base/tensor/float8.h"
#include "base/tensor/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char MAGIC[] = "\x93NUMPY";

static const struct {
    const char *code;
    int dtype;
} codes[] = {
    { "b1", TARE_DT_BOOL },      { "i1", TARE_DT_INT8 },        { "i2", TARE_DT_INT16 },    { "i4", TARE_DT_INT32 },
    { "i8", TARE_DT_INT64 },     { "u1", TARE_DT_UINT8 },       { "u2", TARE_DT_UINT16 },   { "u4", TARE_DT_UINT32 },
    { "u8", TARE_DT_UINT64 },    { "f2", TARE_DT_HALF },        { "f4", TARE_DT_FLOAT },    { "f8", TARE_DT_DOUBLE },
    { "c8", TARE_DT_COMPLEX64 }, { "c16", TARE_DT_COMPLEX128 }, { "V2", TARE_DT_BFLOAT16 }, /* of ml_dtypes */
};

/* ---- the header ---- */

static const char *find_value(const char *text, const char *key) {
    const char *at = strstr(text, key);
    if (!at) return NULL;
    at = strchr(at + strlen(key), ':');
    if (!at) return NULL;
    at++;
    while (*at == ' ')
        at++;
    return at;
}

/* "S12" and "U12": so many bytes or characters. */
static bool parse_text_type(struct tare_npy_view *view, const char *code) {
    unsigned long length;
    char *end;
    if (*code != 'S' && *code != 'U') return false;
    length = strtoul(code + 1, &end, 10);
    if (end == code + 1 || *end != '\'' || length > INT32_MAX) return false;
    view->dtype = TARE_DT_STRING;
    view->wide = *code == 'U';
    view->item = length * (view->wide ? 4 : 1);
    return true;
}

static tare_status parse_descr(struct tare_npy_view *view, const char *text) {
    const char *at = find_value(text, "'descr'");
    char order;
    if (!at) return TARE_FAIL(TARE_CORRUPT, "the header has no 'descr'");
    if (*at == '[') return TARE_FAIL(TARE_UNSUPPORTED, "structured arrays are not supported");
    order = *at == '\'' ? at[1] : '\0';
    if (!order || !strchr("<>|=", order)) return TARE_FAIL(TARE_CORRUPT, "the header has an invalid 'descr'");
    view->swapped = order == '>';
    if (parse_text_type(view, at + 2)) return TARE_OK;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        size_t size = strlen(codes[i].code);
        if (strncmp(at + 2, codes[i].code, size) != 0 || at[2 + size] != '\'') continue;
        view->dtype = codes[i].dtype;
        view->item = tare_dtype_size(view->dtype);
        return TARE_OK;
    }
    return TARE_FAIL(
        TARE_UNSUPPORTED,
        "arrays of %.*s are not read (expected numbers, booleans or strings: array.astype('int8') for integers of "
        "ml_dtypes such as int4, otherwise array.astype('float32'))",
        (int)strcspn(at + 1, "'") + 2, at);
}

static tare_status parse_shape(struct tare_npy_view *view, const char *text) {
    const char *at = find_value(text, "'shape'");
    view->shape = tare_shape_scalar();
    if (!at || *at != '(') return TARE_FAIL(TARE_CORRUPT, "the header has no 'shape'");
    for (at++; *at && *at != ')';) {
        char *end;
        long long dim;
        errno = 0;
        dim = strtoll(at, &end, 10);
        if (end == at || dim < 0 || errno) return TARE_FAIL(TARE_CORRUPT, "the header's shape is not a tuple of sizes");
        if (view->shape.rank == TARE_MAX_RANK)
            return TARE_FAIL(TARE_UNSUPPORTED, "more than %d dimensions", TARE_MAX_RANK);
        view->shape.dims[view->shape.rank++] = dim;
        at = end;
        while (*at == ',' || *at == ' ' || *at == 'L')
            at++;
    }
    return TARE_OK;
}

static tare_status parse_header(struct tare_npy_view *view, size_t *data, const uint8_t *bytes, size_t size) {
    size_t length, start;
    char *text;
    const char *fortran;
    tare_status status;
    if (size < 12 || memcmp(bytes, MAGIC, 6) != 0) return TARE_FAIL(TARE_CORRUPT, "not a .npy file");
    if (bytes[6] < 1 || bytes[6] > 3)
        return TARE_FAIL(TARE_UNSUPPORTED, "format %d.%d is not supported (expected 1.0 to 3.0)", bytes[6], bytes[7]);
    start = bytes[6] == 1 ? 10 : 12;
    length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size - start) return TARE_FAIL(TARE_CORRUPT, "the header runs past the end of the file");
    text = tare_malloc(length + 1);
    if (!text) return TARE_NO_MEMORY;
    memcpy(text, bytes + start, length);
    text[length] = '\0';
    fortran = find_value(text, "'fortran_order'");
    view->fortran = fortran && strncmp(fortran, "True", 4) == 0;
    *data = start + length;
    status = parse_descr(view, text);
    if (status == TARE_OK) status = parse_shape(view, text);
    tare_free(text);
    return status;
}

/* An array without elements can claim any dimensions: its strides must not overflow, and its rows, which take no bytes,
 * are bounded by the size of the file. */
static tare_status check_empty(const struct tare_npy_view *view, size_t size) {
    int64_t row = (int64_t)(view->item ? view->item : 1);
    for (int d = 1; d < view->shape.rank; d++)
        if (!tare_mul_i64(&row, row, view->shape.dims[d]))
            return TARE_FAIL(TARE_CORRUPT, "the array's shape is too large");
    if (view->shape.rank > 0 && (uint64_t)view->shape.dims[0] > size)
        return TARE_FAIL(TARE_CORRUPT, "%lld rows without elements in a file of %zu bytes",
                         (long long)view->shape.dims[0], size);
    return TARE_OK;
}

tare_status tare_npy_view_open(struct tare_npy_view *out, const void *bytes, size_t size) {
    size_t data;
    int64_t count;
    memset(out, 0, sizeof *out);
    TARE_TRY(parse_header(out, &data, bytes, size));
    if (tare_shape_elements(&count, &out->shape) != TARE_OK)
        return TARE_FAIL(TARE_CORRUPT, "the array's shape is too large");
    if (!count) TARE_TRY(check_empty(out, size));
    out->data = (const uint8_t *)bytes + data;
    if (out->item && (size_t)count > (size - data) / out->item)
        return TARE_FAIL(TARE_CORRUPT, "the file ends before the array does (%zu bytes for %lld elements)", size - data,
                         (long long)count);
    if (!out->item && (size_t)count > size) /* empty strings have no bytes */
        return TARE_FAIL(TARE_CORRUPT, "%lld empty elements in a file of %zu bytes", (long long)count, size);
    return TARE_OK;
}

/* ---- elements ---- */

static void swap_bytes(uint8_t *data, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++, data += size)
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t t = data[k];
            data[k] = data[size - 1 - k];
            data[size - 1 - k] = t;
        }
}

static uint32_t load_character(const uint8_t *p, bool swapped) {
    if (swapped) return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_utf8(struct tare_strbuf *out, uint32_t c) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    if (c < 0x80) {
        tare_strbuf_putc(out, (char)c);
        return;
    }
    if (c >= 0x10000) tare_strbuf_putc(out, (char)(0xf0 | c >> 18));
    if (c >= 0x10000) tare_strbuf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
    if (c >= 0x800 && c < 0x10000) tare_strbuf_putc(out, (char)(0xe0 | c >> 12));
    if (c >= 0x800) tare_strbuf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
    if (c < 0x800) tare_strbuf_putc(out, (char)(0xc0 | c >> 6));
    tare_strbuf_putc(out, (char)(0x80 | (c & 0x3f)));
}

/* Trailing NUL bytes are NumPy's padding. */
static tare_status set_text(struct tare_tensor *out, int64_t i, const struct tare_npy_view *view, const uint8_t *item) {
    size_t unit = view->wide ? 4 : 1, length = view->item / unit;
    struct tare_strbuf text = { 0 };
    tare_status status;
    while (length && (view->wide ? load_character(item + 4 * (length - 1), false) : item[length - 1]) == 0)
        length--;
    if (!view->wide) return tare_tensor_set_string(out, i, item, length);
    for (size_t k = 0; k < length; k++)
        put_utf8(&text, load_character(item + 4 * k, view->swapped));
    status = text.failed ? TARE_NO_MEMORY : tare_tensor_set_string(out, i, tare_strbuf_text(&text), text.size);
    tare_strbuf_free(&text);
    return status;
}

static tare_status set_element(struct tare_tensor *out, int64_t i, const struct tare_npy_view *view,
                               const uint8_t *item) {
    if (view->dtype == TARE_DT_STRING) return set_text(out, i, view, item);
    memcpy((uint8_t *)out->data + (size_t)i * view->item, item, view->item);
    return TARE_OK;
}

/* Fortran order: the first index varies fastest. */
static tare_status copy_fortran(struct tare_tensor *out, const struct tare_npy_view *view, int64_t first) {
    const struct tare_shape *whole = &view->shape;
    int64_t index[TARE_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < out->elements; i++) {
        int64_t at = 0;
        for (int d = whole->rank - 1; d >= 0; d--)
            at = at * whole->dims[d] + index[d] + (d == 0 ? first : 0);
        TARE_TRY(set_element(out, i, view, view->data + (size_t)at * view->item));
        for (int d = whole->rank - 1; d >= 0 && ++index[d] == out->shape.dims[d]; d--)
            index[d] = 0;
    }
    return TARE_OK;
}

static tare_status copy_elements(struct tare_tensor *out, const struct tare_npy_view *view, int64_t first) {
    int64_t row = 1;
    const uint8_t *from;
    size_t part;
    if (view->fortran && view->shape.rank > 1) TARE_TRY(copy_fortran(out, view, first));
    for (int d = 1; d < view->shape.rank; d++)
        row *= view->shape.dims[d];
    from = view->data + (size_t)(first * row) * view->item;
    if (!(view->fortran && view->shape.rank > 1)) {
        if (view->dtype != TARE_DT_STRING && out->elements) memcpy(out->data, from, tare_tensor_bytes(out));
        for (int64_t i = 0; i < out->elements && view->dtype == TARE_DT_STRING; i++)
            TARE_TRY(set_text(out, i, view, from + (size_t)i * view->item));
    }
    if (!view->swapped || view->dtype == TARE_DT_STRING) return TARE_OK;
    part = tare_dtype_is_complex(view->dtype) ? view->item / 2 : view->item;
    swap_bytes(out->data, tare_tensor_bytes(out) / part, part);
    return TARE_OK;
}

static tare_status make_tensor(struct tare_tensor *out, const struct tare_npy_view *view,
                               const struct tare_shape *shape, int64_t first) {
    tare_status status;
    TARE_TRY(tare_tensor_new(out, view->dtype, shape));
    status = copy_elements(out, view, first);
    if (status != TARE_OK) tare_tensor_reset(out);
    return status;
}

tare_status tare_npy_view_rows(struct tare_tensor *out, const struct tare_npy_view *view, int64_t first,
                               int64_t count) {
    struct tare_shape shape = view->shape;
    memset(out, 0, sizeof *out);
    if (shape.rank < 1 || first < 0 || count < 0 || first > shape.dims[0] - count)
        return TARE_FAIL(TARE_SHAPE, "the array has no rows %lld to %lld", (long long)first,
                         (long long)(first + count));
    shape.dims[0] = count;
    return make_tensor(out, view, &shape, first);
}

tare_status tare_npy_read(struct tare_tensor *out, const char *path) {
    struct tare_mapping file;
    struct tare_npy_view view;
    tare_status status;
    memset(out, 0, sizeof *out);
    TARE_TRY(tare_file_map(&file, path));
    status = tare_npy_view_open(&view, file.data, file.size);
    if (status == TARE_OK) status = make_tensor(out, &view, &view.shape, 0);
    tare_error_prefix(status, "%s", path);
    tare_file_unmap(&file);
    return status;
}

/* ---- writing ---- */

enum { HEADER_SIZE = 256 }; /* the same size for any number of rows: the header is overwritten at the end */

struct tare_npy_writer {
    struct tare_output_file file;
    int dtype; /* of the tensors that are appended */
    struct tare_shape row;
    int64_t row_elements, rows;
    bool whole; /* the shape is the row's own, without an axis of rows */
};

/* Floats that NumPy lacks and float32 contains. */
static bool is_widened(int dtype) {
    return dtype == TARE_DT_BFLOAT16 || tare_float8_format(dtype);
}

static const char *code_of(int dtype) {
    if (is_widened(dtype)) return "f4";
    switch (dtype) {
    case TARE_DT_QINT8:
    case TARE_DT_INT4:
    case TARE_DT_INT2:
        return "i1";
    case TARE_DT_QUINT8:
    case TARE_DT_UINT4:
    case TARE_DT_UINT2:
        return "u1";
    case TARE_DT_QINT16:
        return "i2";
    case TARE_DT_QUINT16:
        return "u2";
    case TARE_DT_QINT32:
        return "i4";
    default:
        break;
    }
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].dtype == dtype) return codes[i].code;
    return NULL;
}

static tare_status make_header(char header[HEADER_SIZE], const struct tare_npy_writer *writer) {
    struct tare_strbuf text = { 0 };
    const char *code = code_of(writer->dtype);
    bool fits;
    tare_strbuf_printf(&text, "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                       code[1] == '1' && !code[2] ? "|" : "<", code);
    if (!writer->whole) tare_strbuf_printf(&text, "%lld,%s", (long long)writer->rows, writer->row.rank ? " " : "");
    for (int i = 0; i < writer->row.rank; i++)
        tare_strbuf_printf(&text, "%lld%s", (long long)writer->row.dims[i],
                           i + 1 < writer->row.rank                 ? ", "
                           : writer->row.rank == 1 && writer->whole ? ","
                                                                    : "");
    tare_strbuf_puts(&text, "), }");
    memset(header, ' ', HEADER_SIZE);
    memcpy(header, MAGIC, 6);
    header[6] = 1;
    header[7] = 0;
    header[8] = (char)(HEADER_SIZE - 10);
    header[9] = 0;
    header[HEADER_SIZE - 1] = '\n';
    fits = !text.failed && text.size < HEADER_SIZE - 11;
    if (fits) memcpy(header + 10, tare_strbuf_text(&text), text.size);
    tare_strbuf_free(&text);
    return fits ? TARE_OK : TARE_FAIL(TARE_INTERNAL, "the .npy header does not fit");
}

static tare_status create(struct tare_npy_writer **out, const char *path, int dtype, const struct tare_shape *row,
                          bool whole) {
    struct tare_npy_writer *writer;
    char header[HEADER_SIZE];
    tare_status status;
    *out = NULL;
    if (!code_of(dtype))
        return TARE_FAIL(TARE_UNSUPPORTED, "%s: a .npy file cannot store %s", path, tare_dtype_name(dtype));
    writer = tare_calloc(1, sizeof *writer);
    if (!writer) return TARE_NO_MEMORY;
    writer->dtype = dtype;
    writer->row = *row;
    writer->whole = whole;
    status = tare_shape_elements(&writer->row_elements, row);
    if (status == TARE_OK) status = tare_output_file_begin(&writer->file, path);
    if (status == TARE_OK) status = make_header(header, writer);
    if (status == TARE_OK) status = tare_output_file_write(&writer->file, header, HEADER_SIZE);
    if (status == TARE_OK)
        *out = writer;
    else
        tare_npy_abort(writer);
    return status;
}

tare_status tare_npy_create(struct tare_npy_writer **out, const char *path, int dtype, const struct tare_shape *row) {
    return create(out, path, dtype, row, false);
}

static tare_status append_widened(struct tare_npy_writer *writer, const struct tare_tensor *rows) {
    float chunk[256];
    for (int64_t i = 0; i < rows->elements;) {
        int64_t n = rows->elements - i < 256 ? rows->elements - i : 256;
        for (int64_t k = 0; k < n; k++)
            chunk[k] = (float)tare_tensor_get_f64(rows, i + k);
        TARE_TRY(tare_output_file_write(&writer->file, chunk, (size_t)n * sizeof *chunk));
        i += n;
    }
    return TARE_OK;
}

static tare_status append_splat(struct tare_npy_writer *writer, const struct tare_tensor *rows) {
    struct tare_tensor one = *rows; /* a view of the single element */
    one.splat = false;
    one.elements = 1;
    for (int64_t i = 0; i < rows->elements; i++) {
        if (is_widened(rows->dtype))
            TARE_TRY(append_widened(writer, &one));
        else
            TARE_TRY(tare_output_file_write(&writer->file, one.data, tare_dtype_size(one.dtype)));
    }
    return TARE_OK;
}

tare_status tare_npy_append(struct tare_npy_writer *writer, const struct tare_tensor *rows) {
    if (rows->dtype != writer->dtype)
        return TARE_FAIL(TARE_TYPE, "a row is %s (expected %s)", tare_dtype_name(rows->dtype),
                         tare_dtype_name(writer->dtype));
    if (writer->row_elements ? rows->elements % writer->row_elements != 0 : rows->elements != 0)
        return TARE_FAIL(TARE_SHAPE, "%lld elements are not a whole number of rows of %lld", (long long)rows->elements,
                         (long long)writer->row_elements);
    if (writer->row_elements)
        writer->rows += rows->elements / writer->row_elements;
    else
        writer->rows +=
            rows->shape.rank > writer->row.rank ? rows->shape.dims[0] : 1; /* rows without elements are counted */
    if (rows->splat) return append_splat(writer, rows);
    if (is_widened(rows->dtype)) return append_widened(writer, rows);
    return tare_output_file_write(&writer->file, rows->data, tare_tensor_bytes(rows));
}

tare_status tare_npy_commit(struct tare_npy_writer *writer) {
    char header[HEADER_SIZE];
    tare_status status = make_header(header, writer);
    if (status == TARE_OK) status = tare_output_file_patch(&writer->file, 0, header, HEADER_SIZE);
    if (status == TARE_OK) status = tare_output_file_commit(&writer->file);
    tare_npy_abort(writer);
    return status;
}

void tare_npy_abort(struct tare_npy_writer *writer) {
    if (!writer) return;
    tare_output_file_abort(&writer->file);
    tare_free(writer);
}

tare_status tare_npy_write(const char *path, const struct tare_tensor *tensor) {
    struct tare_npy_writer *writer;
    tare_status status;
    TARE_TRY(create(&writer, path, tensor->dtype, &tensor->shape, true));
    status = tare_npy_append(writer, tensor);
    if (status == TARE_OK) return tare_npy_commit(writer);
    tare_npy_abort(writer);
    return status;
}

/* ReadFile and DecodeCSV. */
#include "base/alloc.h"
#include "base/ascii.h"
#include "base/format.h"
#include "base/file.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static tare_status infer_read_file(struct tare_infer *infer) {
    TARE_TRY(tare_operand_rank(infer, 0, "filename", 0));
    infer->outputs[0] = tare_shape_scalar();
    return TARE_OK;
}

static tare_status run_read_file(struct tare_kernel *kernel) {
    struct tare_str name;
    struct tare_mapping file = { 0 };
    struct tare_shape *shapes;
    tare_status status;
    char *path;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &shapes[0]));
    name = tare_text_at(&kernel->inputs[0], 0);
    path = tare_arena_strndup(kernel->scratch, name.data, name.size);
    if (!path) return TARE_NO_MEMORY;
    if (strlen(path) != name.size) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a file name contains a NUL byte");
    TARE_TRY(tare_file_map(&file, path));
    status = tare_tensor_set_string(&kernel->outputs[0], 0, file.data, file.size);
    tare_file_unmap(&file);
    return status;
}

/* ---- DecodeCSV ---- */

struct csv {
    char delimiter;
    bool quotes;
    const char *na;
    const struct tare_attr *columns; /* columns to read, ascending; empty: all */
};

static tare_status csv_error(const char *what, struct tare_str record) {
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s in record: %.*s", what, (int)(record.size < 80 ? record.size : 80),
                     record.data);
}

static bool is_line_end(char c) {
    return c == '\n' || c == '\r';
}

/* Reads the field at *at into `out`; *at becomes the place after its delimiter. Quoted fields may contain delimiters,
 * line ends and doubled quotes. */
static tare_status read_field(struct tare_strbuf *out, size_t *at, const struct csv *csv, struct tare_str record) {
    size_t i = *at;
    if (csv->quotes && record.data[i] == '"') {
        for (i++; i + 1 < record.size && (record.data[i] != '"' || record.data[i + 1] != csv->delimiter); i++) {
            if (record.data[i] == '"' && record.data[++i] != '"')
                return csv_error("Quote inside a string has to be escaped by another quote", record);
            tare_strbuf_putc(out, record.data[i]);
        }
        if (i >= record.size || record.data[i] != '"')
            return csv_error("Quoted field has to end with quote followed by delim or end", record);
        i++;
    } else {
        for (; i < record.size && record.data[i] != csv->delimiter; i++) {
            if ((csv->quotes && record.data[i] == '"') || is_line_end(record.data[i]))
                return csv_error("Unquoted fields cannot have quotes/CRLFs inside", record);
            tare_strbuf_putc(out, record.data[i]);
        }
    }
    *at = i + 1;
    return tare_strbuf_status(out);
}

/* Whether spaces alone follow the number that ends at `end`; there is none if `end` is where the text begins. */
static bool ends(const char *text, const char *end) {
    if (end == text) return false;
    while (tare_is_space(*end))
        end++;
    return *end == '\0';
}

/* Spaces around the number are ignored. */
static bool store_number(struct tare_tensor *out, int64_t i, const char *text) {
    char *end;
    long long whole;
    errno = 0;
    switch (out->dtype) {
    case TARE_DT_FLOAT:
        TARE_DATA(float, out)[i] = tare_read_float(text, &end);
        return ends(text, end);
    case TARE_DT_DOUBLE:
        TARE_DATA(double, out)[i] = tare_read_double(text, &end);
        return ends(text, end);
    default:
        whole = strtoll(text, &end, 10);
        if (!ends(text, end) || errno || (out->dtype == TARE_DT_INT32 && (whole < INT32_MIN || whole > INT32_MAX)))
            return false;
        tare_text_set_index(out, i, whole);
        return true;
    }
}

static tare_status store_field(struct tare_kernel *kernel, size_t column, int64_t record,
                               const struct tare_strbuf *field, const char *na) {
    const struct tare_tensor *fallback = &kernel->inputs[column + 1];
    struct tare_tensor *out = &kernel->outputs[column];
    const char *text = tare_strbuf_text(field);
    bool missing = field->size == 0 || (strlen(na) == field->size && memcmp(text, na, field->size) == 0);
    if (missing && fallback->elements != 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Field %zu is required but missing in record %lld!", column,
                         (long long)record);
    if (out->dtype == TARE_DT_STRING) {
        struct tare_str value = missing ? tare_text_at(fallback, 0) : (struct tare_str){ text, field->size };
        return tare_tensor_set_string(out, record, value.data, value.size);
    }
    if (missing) {
        memcpy((char *)out->data + (size_t)record * tare_dtype_size(out->dtype), fallback->data,
               tare_dtype_size(out->dtype));
        return TARE_OK;
    }
    if (strlen(text) != field->size || !store_number(out, record, text))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Field %zu in record %lld is not a valid %s: %.80s", column,
                         (long long)record, tare_dtype_get(out->dtype)->spec_name, text);
    return TARE_OK;
}

/* Counts the selected fields, and stores them if there are as many as outputs (`store`). Line ends at the beginning of
 * a field are skipped, elsewhere they are errors. */
static tare_status read_fields(size_t *count, struct tare_kernel *kernel, const struct csv *csv, int64_t i,
                               struct tare_strbuf *field, bool store) {
    const struct tare_str record = tare_text_at(&kernel->inputs[0], i);
    const size_t selected = csv->columns ? csv->columns->count : 0;
    size_t at = 0, taken = 0;
    bool more = record.size > 0;
    for (size_t number = 0; more && (!selected || taken < selected); number++) {
        while (at < record.size && is_line_end(record.data[at]))
            at++;
        field->size = 0;
        more = at < record.size;
        if (more)
            TARE_TRY(read_field(field, &at, csv, record));
        else if (record.data[record.size - 1] != csv->delimiter)
            break;
        if (selected && csv->columns->items[taken].i != (int64_t)number) continue;
        if (store) TARE_TRY(store_field(kernel, taken, i, field, csv->na));
        taken++;
    }
    *count = taken;
    return TARE_OK;
}

static tare_status read_record(struct tare_kernel *kernel, const struct csv *csv, int64_t i,
                               struct tare_strbuf *field) {
    size_t count;
    TARE_TRY(read_fields(&count, kernel, csv, i, field, false));
    if (count != kernel->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expect %zu fields but have %zu in record %lld", kernel->n_outputs,
                         count, (long long)i);
    return read_fields(&count, kernel, csv, i, field, true);
}

static tare_status infer_csv(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++) {
        if (infer->inputs[i + 1].rank > 1)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "record_defaults[%zu] must be a scalar or a vector", i);
        infer->outputs[i] = infer->inputs[0];
    }
    return TARE_OK;
}

static tare_status run_csv(struct tare_kernel *kernel) {
    const char *delimiter = tare_node_string(kernel->node, "field_delim", ",");
    struct csv csv = { delimiter[0], tare_node_bool(kernel->node, "use_quote_delim", true),
                       tare_node_string(kernel->node, "na_value", ""), tare_node_list(kernel->node, "select_cols") };
    struct tare_strbuf field = { 0 };
    struct tare_shape *shapes;
    tare_status status = TARE_OK;
    if (strlen(delimiter) != 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "field_delim should be only 1 char");
    for (size_t i = 0; csv.columns && i < csv.columns->count; i++)
        if (csv.columns->count != kernel->n_outputs || csv.columns->items[i].i < 0 ||
            (i && csv.columns->items[i].i <= csv.columns->items[i - 1].i))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "select_cols should be strictly increasing indices, one for each output");
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    for (size_t i = 0; i < kernel->n_outputs; i++) {
        if (kernel->inputs[i + 1].elements > 1)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "There should only be 1 default per field but field %zu has %lld",
                             i, (long long)kernel->inputs[i + 1].elements);
        TARE_TRY(tare_kernel_output(kernel, i, kernel->inputs[i + 1].dtype, &shapes[i]));
    }
    for (int64_t i = 0; status == TARE_OK && i < kernel->inputs[0].elements; i++)
        status = read_record(kernel, &csv, i, &field);
    tare_strbuf_free(&field);
    return status;
}

const struct tare_op tare_ops_file[] = {
    { .name = "DecodeCSV", .infer = infer_csv, .run = run_csv },
    { .name = "ReadFile", .infer = infer_read_file, .run = run_read_file, .flags = TARE_OP_NO_FOLD },
    { 0 },
};

/* Sorts the weights that are arguments of main and writes their file of safetensors. */
#include "convert/stablehlo/emit/weights.h"

#include "base/output.h"
#include "base/strbuf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8 };

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct tare_emit_weight *)a)->name, ((const struct tare_emit_weight *)b)->name);
}

void tare_emit_sort_weights(struct tare_emit_weight *weights, size_t count) {
    if (count) qsort(weights, count, sizeof *weights, by_name);
}

static const char *dtype_name(int dtype) {
    static const struct {
        int dtype;
        const char *name;
    } names[] = { { TARE_DT_BOOL, "BOOL" },          { TARE_DT_INT8, "I8" },
                  { TARE_DT_QINT8, "I8" },           { TARE_DT_UINT8, "U8" },
                  { TARE_DT_INT16, "I16" },          { TARE_DT_UINT16, "U16" },
                  { TARE_DT_INT32, "I32" },          { TARE_DT_QINT32, "I32" },
                  { TARE_DT_UINT32, "U32" },         { TARE_DT_INT64, "I64" },
                  { TARE_DT_UINT64, "U64" },         { TARE_DT_HALF, "F16" },
                  { TARE_DT_BFLOAT16, "BF16" },      { TARE_DT_FLOAT, "F32" },
                  { TARE_DT_DOUBLE, "F64" },         { TARE_DT_FLOAT8_E4M3FN, "F8_E4M3" },
                  { TARE_DT_FLOAT8_E5M2, "F8_E5M2" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].dtype == dtype) return names[i].name;
    return NULL;
}

/* Names of nodes need no escapes: letters, digits and "_.-/>". */
static tare_status put_header(struct tare_strbuf *out, const struct tare_emit_weight *weights, size_t count) {
    uint64_t at = 0;
    tare_strbuf_puts(out, "{");
    for (size_t i = 0; i < count; i++) {
        const struct tare_tensor *tensor = weights[i].tensor;
        const uint64_t size = tare_tensor_bytes(tensor);
        if (!dtype_name(tensor->dtype))
            return TARE_FAIL(TARE_UNSUPPORTED, "%s: safetensors has no %s", weights[i].name,
                             tare_dtype_name(tensor->dtype));
        tare_strbuf_printf(out, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "", weights[i].name,
                           dtype_name(tensor->dtype));
        for (int d = 0; d < tensor->shape.rank; d++)
            tare_strbuf_printf(out, "%s%" PRId64, d ? "," : "", tensor->shape.dims[d]);
        tare_strbuf_printf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + size);
        at += size;
    }
    tare_strbuf_puts(out, "}");
    while (out->size % ALIGNMENT)
        tare_strbuf_putc(out, ' ');
    return tare_strbuf_status(out);
}

static tare_status put_file(struct tare_output_file *file, const struct tare_strbuf *header,
                            const struct tare_emit_weight *weights, size_t count) {
    uint8_t size[8];
    for (int i = 0; i < 8; i++)
        size[i] = (uint8_t)((uint64_t)header->size >> 8 * i);
    TARE_TRY(tare_output_file_write(file, size, sizeof size));
    TARE_TRY(tare_output_file_write(file, header->data, header->size));
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare_output_file_write(file, weights[i].tensor->data, tare_tensor_bytes(weights[i].tensor)));
    return TARE_OK;
}

tare_status tare_emit_write_weights(const char *path, const struct tare_emit_weight *weights, size_t count) {
    struct tare_strbuf header = { 0 };
    struct tare_output_file file;
    tare_status status = put_header(&header, weights, count);
    if (status == TARE_OK) status = tare_output_file_begin(&file, path);
    if (status == TARE_OK) {
        status = put_file(&file, &header, weights, count);
        if (status == TARE_OK)
            status = tare_output_file_commit(&file);
        else
            tare_output_file_abort(&file);
    }
    tare_strbuf_free(&header);
    return status;
}

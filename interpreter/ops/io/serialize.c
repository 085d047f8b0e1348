/* Tensors serialized as strings (ParseTensor, SerializeTensor) and DecodeCompressed. */
#include "base/alloc.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/string/text.h"
#include "proto/tensor_bytes.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

static tare_status infer_unknown(struct tare_infer *infer) {
    (void)infer; /* the shape is part of the serialized bytes */
    return TARE_OK;
}

static tare_status run_serialize(struct tare_kernel *kernel) {
    struct tare_shape scalar = tare_shape_scalar();
    uint8_t *data;
    size_t size;
    tare_status status;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &scalar));
    TARE_TRY(tare_tensor_to_bytes(&data, &size, &kernel->inputs[0]));
    status = tare_tensor_set_string(&kernel->outputs[0], 0, data, size);
    tare_free(data);
    return status;
}

static tare_status run_parse_tensor(struct tare_kernel *kernel) {
    const int expected = tare_node_type(kernel->node, "out_type", TARE_DT_INVALID);
    struct tare_tensor value;
    struct tare_str text;
    if (kernel->inputs[0].shape.rank != 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Expected `serialized` to be a scalar, got rank %d",
                         kernel->inputs[0].shape.rank);
    text = tare_text_at(&kernel->inputs[0], 0);
    TARE_TRY(tare_error_prefix(tare_tensor_from_bytes(&value, text.data, text.size),
                               "Could not parse `serialized` as TensorProto"));
    if (value.dtype != expected) {
        const int got = value.dtype;
        tare_tensor_reset(&value);
        return TARE_FAIL(TARE_TYPE, "Type mismatch between parsed tensor (%s) and dtype (%s)",
                         tare_dtype_get(got)->spec_name, tare_dtype_get(expected)->spec_name);
    }
    kernel->outputs[0] = value;
    return TARE_OK;
}

/* ---- DecodeCompressed ---- */

/* Limit of the decompressed size, which protects against decompression bombs. */
static const size_t most_inflated = (size_t)1 << 31;

static tare_status inflate_all(struct tare_strbuf *out, struct tare_str text, int window) {
    unsigned char piece[16384];
    z_stream stream = { .next_in = (unsigned char *)(uintptr_t)text.data, .avail_in = (unsigned)text.size };
    int end = Z_OK;
    if (text.size > UINT_MAX) return TARE_FAIL(TARE_UNSUPPORTED, "%zu compressed bytes", text.size);
    if (inflateInit2(&stream, window) != Z_OK) return TARE_FAIL(TARE_NO_MEMORY, "out of memory for inflating");
    while (end == Z_OK && out->size <= most_inflated) {
        stream.next_out = piece;
        stream.avail_out = sizeof piece;
        end = inflate(&stream, Z_NO_FLUSH);
        tare_strbuf_append(out, piece, sizeof piece - stream.avail_out);
        if (end == Z_STREAM_END && stream.avail_in && window > 15)
            end = inflateReset(&stream); /* concatenated gzip member */
    }
    inflateEnd(&stream);
    if (out->size > most_inflated) return TARE_FAIL(TARE_NO_MEMORY, "more than %zu bytes come out", most_inflated);
    return end == Z_STREAM_END ? TARE_OK : TARE_FAIL(TARE_CORRUPT, "damaged compressed data");
}

static tare_status decompress(struct tare_strbuf *out, struct tare_str text, const void *arg) {
    const char *type = arg;
    if (!*type) {
        tare_strbuf_append(out, text.data, text.size);
        return TARE_OK;
    }
    return inflate_all(out, text, strcmp(type, "GZIP") == 0 ? 31 : 15);
}

static tare_status run_decompress(struct tare_kernel *kernel) {
    const char *type = tare_node_string(kernel->node, "compression_type", "");
    if (*type && strcmp(type, "ZLIB") != 0 && strcmp(type, "GZIP") != 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Only ZLIB, GZIP or NONE are supported compressions (got '%s')", type);
    return tare_text_map(kernel, decompress, type);
}

const struct tare_op tare_ops_serialize[] = {
    { .name = "DecodeCompressed", .infer = tare_infer_same, .run = run_decompress },
    { .name = "ParseTensor", .infer = infer_unknown, .run = run_parse_tensor },
    { .name = "SerializeTensor", .infer = tare_infer_scalar, .run = run_serialize },
    { 0 },
};

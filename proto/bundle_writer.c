/* Writing checkpoints: one data shard as tensors come, the index at the end. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/output.h"
#include "proto/bundle.h"
#include "proto/crc32c.h"
#include "proto/message.h"
#include "proto/sorted_table.h"
#include "proto/tensor_message.h"
#include "proto/tensorflow/checkpoint.pb-c.h"

#include <stdlib.h>
#include <string.h>

struct tare_bundle_writer {
    struct tare_arena arena;
    char *index_path;
    struct tare_output_file data;
    struct tare_table_entry *entries;
    size_t count, capacity;
};

tare_status tare_bundle_writer_open(struct tare_bundle_writer **out, const char *prefix) {
    struct tare_bundle_writer *writer = tare_calloc(1, sizeof *writer);
    char *path;
    tare_status status = TARE_NO_MEMORY;
    *out = NULL;
    if (!writer) return status;
    writer->index_path = tare_arena_printf(&writer->arena, "%s.index", prefix);
    path = tare_arena_printf(&writer->arena, "%s.data-00000-of-00001", prefix);
    if (writer->index_path && path) status = tare_output_file_begin(&writer->data, path);
    if (status == TARE_OK)
        *out = writer;
    else
        tare_bundle_writer_abort(writer);
    return status;
}

static tare_status put(struct tare_bundle_writer *writer, const void *data, size_t size, uint32_t *crc) {
    if (crc) *crc = tare_crc32c_extend(*crc, data, size);
    return tare_output_file_write(&writer->data, data, size);
}

static size_t make_varint(uint8_t bytes[10], uint64_t value) {
    size_t size = 0;
    while (value >= 0x80) {
        bytes[size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[size++] = (uint8_t)value;
    return size;
}

static void store32(uint8_t bytes[8], uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

static tare_status write_strings(struct tare_bundle_writer *writer, const struct tare_tensor *tensor, uint32_t *crc) {
    const struct tare_str *strings = TARE_CONST_DATA(struct tare_str, tensor);
    uint8_t bytes[16];
    for (int64_t i = 0; i < tensor->elements; i++) {
        size_t length = strings[i].size, size = length > UINT32_MAX ? 8 : 4;
        store32(bytes, length, size);
        *crc = tare_crc32c_extend(*crc, bytes, size);
        size = make_varint(bytes, length);
        TARE_TRY(put(writer, bytes, size, NULL));
    }
    store32(bytes, tare_crc32c_mask(*crc), 4);
    TARE_TRY(put(writer, bytes, 4, crc));
    for (int64_t i = 0; i < tensor->elements; i++) TARE_TRY(put(writer, strings[i].data, strings[i].size, crc));
    return TARE_OK;
}

static tare_status write_elements(struct tare_bundle_writer *writer, const struct tare_tensor *tensor, uint32_t *crc) {
    size_t element = tare_dtype_size(tensor->dtype);
    if (tensor->dtype == TARE_DT_STRING) return write_strings(writer, tensor, crc);
    if (!tensor->splat) return put(writer, tensor->data, tare_tensor_bytes(tensor), crc);
    for (int64_t i = 0; i < tensor->elements; i++) TARE_TRY(put(writer, tensor->data, element, crc));
    return TARE_OK;
}

static tare_status add_entry(struct tare_bundle_writer *writer, const char *key, const ProtobufCMessage *message) {
    uint8_t *bytes, *kept;
    size_t size;
    TARE_TRY(tare_message_pack(&bytes, &size, message));
    kept = (uint8_t *)tare_arena_strndup(&writer->arena, (const char *)bytes, size);
    tare_free(bytes);
    if (!kept || !TARE_GROW(writer->entries, writer->count, writer->capacity)) return TARE_NO_MEMORY;
    key = tare_arena_strdup(&writer->arena, key);
    if (!key) return TARE_NO_MEMORY;
    writer->entries[writer->count++] = (struct tare_table_entry){ key, strlen(key), kept, size };
    return TARE_OK;
}

tare_status tare_bundle_writer_add(struct tare_bundle_writer *writer, const char *key,
                                   const struct tare_tensor *tensor) {
    Tensorflow__BundleEntryProto entry = TENSORFLOW__BUNDLE_ENTRY_PROTO__INIT;
    uint32_t crc = 0;
    entry.dtype = (Tensorflow__DataType)tensor->dtype;
    entry.offset = (int64_t)writer->data.offset;
    entry.shape = tare_shape_to_message(&writer->arena, &tensor->shape);
    if (!entry.shape) return TARE_NO_MEMORY;
    TARE_TRY(write_elements(writer, tensor, &crc));
    entry.size = (int64_t)writer->data.offset - entry.offset;
    entry.crc32c = tare_crc32c_mask(crc);
    return add_entry(writer, key, &entry.base);
}

static int by_key(const void *a, const void *b) {
    const struct tare_table_entry *x = a, *y = b;
    size_t size = x->key_size < y->key_size ? x->key_size : y->key_size;
    int order = memcmp(x->key, y->key, size);
    return order ? order : (x->key_size > y->key_size) - (x->key_size < y->key_size);
}

static tare_status write_index(struct tare_bundle_writer *writer) {
    Tensorflow__BundleHeaderProto header = TENSORFLOW__BUNDLE_HEADER_PROTO__INIT;
    Tensorflow__VersionDef version = TENSORFLOW__VERSION_DEF__INIT;
    uint8_t *bytes;
    size_t size;
    tare_status status;
    version.producer = 1;
    header.num_shards = 1;
    header.version = &version;
    TARE_TRY(add_entry(writer, "", &header.base));
    qsort(writer->entries, writer->count, sizeof *writer->entries, by_key);
    for (size_t i = 1; i < writer->count; i++)
        if (by_key(&writer->entries[i - 1], &writer->entries[i]) == 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "two tensors under the key %s", writer->entries[i].key);
    TARE_TRY(tare_table_write(&bytes, &size, writer->entries, writer->count));
    status = tare_file_write(writer->index_path, bytes, size);
    tare_free(bytes);
    return status;
}

tare_status tare_bundle_writer_close(struct tare_bundle_writer *writer) {
    tare_status status = tare_output_file_commit(&writer->data);
    if (status == TARE_OK) status = write_index(writer);
    tare_bundle_writer_abort(writer);
    return status;
}

void tare_bundle_writer_abort(struct tare_bundle_writer *writer) {
    if (!writer) return;
    tare_output_file_abort(&writer->data);
    tare_free(writer->entries);
    tare_arena_free(&writer->arena);
    tare_free(writer);
}

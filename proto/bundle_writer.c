/* Writing checkpoints: tensors are appended to the data files, the index is written at the end. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/tensor/spill.h"
#include "base/output.h"
#include "base/varint.h"
#include "proto/bundle.h"
#include "proto/crc32c.h"
#include "proto/message.h"
#include "proto/sorted_table.h"
#include "proto/tensor_message.h"
#include "proto/tensorflow/checkpoint.pb-c.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SHARDS = 99999 }; /* limit of the file names */

struct tare_bundle_writer {
    struct tare_arena arena;
    char *index_path;
    char **paths; /* paths of the data files */
    struct tare_output_file *files;
    int shards, shard; /* shard: the current one */
    struct tare_table_entry *entries;
    size_t count, capacity;
};

static tare_status open_files(struct tare_bundle_writer *writer, const char *prefix, int shards) {
    writer->index_path = tare_arena_printf(&writer->arena, "%s.index", prefix);
    writer->paths = TARE_NEW_ARRAY(&writer->arena, char *, (size_t)shards);
    writer->files = TARE_NEW_ARRAY(&writer->arena, struct tare_output_file, (size_t)shards);
    if (!writer->index_path || !writer->paths || !writer->files) return TARE_NO_MEMORY;
    for (; writer->shards < shards; writer->shards++) {
        char *path = tare_arena_printf(&writer->arena, "%s.data-%05d-of-%05d", prefix, writer->shards, shards);
        if (!path) return TARE_NO_MEMORY;
        writer->paths[writer->shards] = path;
        TARE_TRY(tare_output_file_begin(&writer->files[writer->shards], path));
    }
    return TARE_OK;
}

tare_status tare_bundle_writer_open_shards(struct tare_bundle_writer **out, const char *prefix, int shards) {
    struct tare_bundle_writer *writer;
    tare_status status;
    *out = NULL;
    if (shards < 1 || shards > MOST_SHARDS)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%d shards (expected 1 to %d)", shards, MOST_SHARDS);
    writer = tare_calloc(1, sizeof *writer);
    status = writer ? open_files(writer, prefix, shards) : TARE_NO_MEMORY;
    if (status == TARE_OK)
        *out = writer;
    else
        tare_bundle_writer_abort(writer);
    return status;
}

tare_status tare_bundle_writer_open(struct tare_bundle_writer **out, const char *prefix) {
    return tare_bundle_writer_open_shards(out, prefix, 1);
}

void tare_bundle_writer_use_shard(struct tare_bundle_writer *writer, int shard) {
    if (shard >= 0 && shard < writer->shards) writer->shard = shard;
}

static tare_status put(struct tare_bundle_writer *writer, const void *data, size_t size, uint32_t *crc) {
    if (crc) *crc = tare_crc32c_extend(*crc, data, size);
    return tare_output_file_write(&writer->files[writer->shard], data, size);
}

static void store32(uint8_t bytes[8], uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static tare_status write_strings(struct tare_bundle_writer *writer, const struct tare_tensor *tensor, uint32_t *crc) {
    const struct tare_str *strings = TARE_CONST_DATA(struct tare_str, tensor);
    uint8_t bytes[16];
    for (int64_t i = 0; i < tensor->elements; i++) {
        size_t length = strings[tensor->splat ? 0 : i].size, size = length > UINT32_MAX ? 8 : 4;
        store32(bytes, length, size);
        *crc = tare_crc32c_extend(*crc, bytes, size);
        size = tare_varint_write(bytes, length);
        TARE_TRY(put(writer, bytes, size, NULL));
    }
    store32(bytes, tare_crc32c_mask(*crc), 4);
    TARE_TRY(put(writer, bytes, 4, crc));
    for (int64_t i = 0; i < tensor->elements; i++) {
        const struct tare_str *string = &strings[tensor->splat ? 0 : i];
        TARE_TRY(put(writer, string->data, string->size, crc));
    }
    return TARE_OK;
}

/* Writes in pieces, and releases the pages of tensors that view another checkpoint. */
static tare_status write_large(struct tare_bundle_writer *writer, const struct tare_tensor *tensor, uint32_t *crc) {
    enum { PIECE = 8 << 20 };
    const char *data = tensor->data;
    size_t size = tare_tensor_bytes(tensor);
    bool forget = size > PIECE && (tare_bundle_is_view(tensor) || tare_tensor_is_spilled(tensor));
    for (size_t at = 0; at < size; at += PIECE) {
        size_t count = size - at < PIECE ? size - at : PIECE;
        TARE_TRY(put(writer, data + at, count, crc));
        if (forget) tare_file_forget(data + at, count);
    }
    return TARE_OK;
}

static tare_status write_elements(struct tare_bundle_writer *writer, const struct tare_tensor *tensor, uint32_t *crc) {
    size_t element = tare_dtype_size(tensor->dtype);
    if (tensor->dtype == TARE_DT_STRING) return write_strings(writer, tensor, crc);
    if (!tensor->splat) return write_large(writer, tensor, crc);
    for (int64_t i = 0; i < tensor->elements; i++)
        TARE_TRY(put(writer, tensor->data, element, crc));
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
    enum tare_dtype_class class =
        tare_dtype_get(tensor->dtype) ? tare_dtype_get(tensor->dtype)->class : TARE_CLASS_NONE;
    if (class == TARE_CLASS_NONE || class == TARE_CLASS_OBJECT)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s: %s tensors cannot be written to checkpoints", key,
                         tare_dtype_name(tensor->dtype));
    if (!*key) return TARE_FAIL(TARE_INVALID_ARGUMENT, "a tensor has an empty key");
    entry.shard_id = writer->shard;
    entry.dtype = (Tensorflow__DataType)tensor->dtype;
    entry.offset = (int64_t)writer->files[writer->shard].offset;
    entry.shape = tare_shape_to_message(&writer->arena, &tensor->shape);
    if (!entry.shape) return TARE_NO_MEMORY;
    TARE_TRY(write_elements(writer, tensor, &crc));
    entry.size = (int64_t)writer->files[writer->shard].offset - entry.offset;
    entry.crc32c = tare_crc32c_mask(crc);
    return add_entry(writer, key, &entry.base);
}

static int by_key(const void *a, const void *b) {
    const struct tare_table_entry *x = a, *y = b;
    size_t size = x->key_size < y->key_size ? x->key_size : y->key_size;
    int order = memcmp(x->key, y->key, size);
    return order ? order : (x->key_size > y->key_size) - (x->key_size < y->key_size);
}

static tare_status write_index(struct tare_bundle_writer *writer, struct tare_output_file *index) {
    Tensorflow__BundleHeaderProto header = TENSORFLOW__BUNDLE_HEADER_PROTO__INIT;
    Tensorflow__VersionDef version = TENSORFLOW__VERSION_DEF__INIT;
    uint8_t *bytes;
    size_t size;
    tare_status status;
    version.producer = 1;
    header.num_shards = writer->shards;
    header.version = &version;
    TARE_TRY(add_entry(writer, "", &header.base));
    qsort(writer->entries, writer->count, sizeof *writer->entries, by_key);
    for (size_t i = 1; i < writer->count; i++)
        if (by_key(&writer->entries[i - 1], &writer->entries[i]) == 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "duplicate key %s", writer->entries[i].key);
    TARE_TRY(tare_table_write(&bytes, &size, writer->entries, writer->count));
    status = tare_output_file_begin(index, writer->index_path);
    if (status == TARE_OK) status = tare_output_file_write(index, bytes, size);
    tare_free(bytes);
    return status;
}

/* The index is completed under its temporary name before the data files are renamed, and is renamed last: if an index
 * exists, so does its data. */
tare_status tare_bundle_writer_close(struct tare_bundle_writer *writer) {
    struct tare_output_file index = { .fd = -1 };
    tare_status status = write_index(writer, &index);
    int done = 0;
    for (; status == TARE_OK && done < writer->shards; done++)
        status = tare_output_file_commit(&writer->files[done]);
    if (status == TARE_OK) status = tare_output_file_commit(&index);
    if (status != TARE_OK) {
        tare_output_file_abort(&index);
        if (done) unlink(writer->index_path); /* an older index would refer to data that was replaced */
        while (done--)
            unlink(writer->paths[done]);
    }
    tare_bundle_writer_abort(writer);
    return status;
}

void tare_bundle_writer_abort(struct tare_bundle_writer *writer) {
    if (!writer) return;
    for (int i = 0; i < writer->shards; i++)
        tare_output_file_abort(&writer->files[i]);
    tare_free(writer->entries);
    tare_arena_free(&writer->arena);
    tare_free(writer);
}

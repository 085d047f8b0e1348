/* Reading checkpoints. */
#include "proto/bundle.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "proto/crc32c.h"
#include "proto/message.h"
#include "proto/sorted_table.h"
#include "proto/tensor_message.h"
#include "proto/tensorflow/checkpoint.pb-c.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A data file; tensors that view it keep it. */
struct shard {
    _Atomic int references;
    char *path;
    struct tare_mapping mapping;
    bool mapped;
};

struct tare_bundle {
    struct tare_arena arena;
    struct tare_mapping index;
    char *prefix;
    Tensorflow__BundleEntryProto **entries; /* without the header */
    const char **keys;
    size_t *key_sizes;
    size_t count;
    struct tare_map by_key;
    struct shard **shards;
    int32_t n_shards;
};

typedef Tensorflow__BundleEntryProto entry_message;

static void shard_unref(void *arg) {
    struct shard *shard = arg;
    if (!shard || atomic_fetch_sub(&shard->references, 1) != 1) return;
    tare_file_unmap(&shard->mapping);
    tare_free(shard->path);
    tare_free(shard);
}

/* ---- opening ---- */

static tare_status read_header(struct tare_bundle *bundle, const struct tare_table_entry *entry) {
    ProtobufCMessage *message;
    const Tensorflow__BundleHeaderProto *header;
    TARE_TRY(tare_message_unpack(&message, &tensorflow__bundle_header_proto__descriptor, &bundle->arena, entry->value,
                                 entry->value_size, "header"));
    header = (const Tensorflow__BundleHeaderProto *)message;
    if (header->endianness != 0)
        return TARE_FAIL(TARE_UNSUPPORTED, "the checkpoint is big-endian; save it again on a little-endian machine");
    if (header->num_shards < 1 || header->num_shards > 100000)
        return TARE_FAIL(TARE_CORRUPT, "the header says %d shards", header->num_shards);
    bundle->n_shards = header->num_shards;
    bundle->shards = TARE_NEW_ARRAY(&bundle->arena, struct shard *, (size_t)header->num_shards);
    return bundle->shards ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status read_entry(struct tare_bundle *bundle, const struct tare_table_entry *entry) {
    ProtobufCMessage *message;
    entry_message *parsed;
    TARE_TRY(tare_message_unpack(&message, &tensorflow__bundle_entry_proto__descriptor, &bundle->arena, entry->value,
                                 entry->value_size, entry->key));
    parsed = (entry_message *)message;
    if (parsed->shard_id < 0 || parsed->shard_id >= bundle->n_shards || parsed->offset < 0 || parsed->size < 0)
        return TARE_FAIL(TARE_CORRUPT, "%s: bad entry (shard %d, offset %lld, size %lld)", entry->key, parsed->shard_id,
                         (long long)parsed->offset, (long long)parsed->size);
    bundle->entries[bundle->count] = parsed;
    bundle->keys[bundle->count] = entry->key;
    bundle->key_sizes[bundle->count] = entry->key_size;
    bundle->count++;
    return tare_map_set_n(&bundle->by_key, entry->key, entry->key_size, parsed) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status read_index(struct tare_bundle *bundle) {
    struct tare_table_entry *entries;
    size_t count;
    TARE_TRY(tare_table_read(&entries, &count, &bundle->arena, bundle->index.data, bundle->index.size));
    if (!count || entries[0].key_size) return TARE_FAIL(TARE_CORRUPT, "the index has no header");
    TARE_TRY(read_header(bundle, &entries[0]));
    bundle->entries = TARE_NEW_ARRAY(&bundle->arena, entry_message *, count);
    bundle->keys = TARE_NEW_ARRAY(&bundle->arena, const char *, count);
    bundle->key_sizes = TARE_NEW_ARRAY(&bundle->arena, size_t, count);
    if (!bundle->entries || !bundle->keys || !bundle->key_sizes) return TARE_NO_MEMORY;
    for (size_t i = 1; i < count; i++) TARE_TRY(read_entry(bundle, &entries[i]));
    return TARE_OK;
}

static tare_status open_index(struct tare_bundle *bundle, const char *prefix) {
    char *path = tare_arena_printf(&bundle->arena, "%s.index", prefix);
    bundle->prefix = tare_arena_strdup(&bundle->arena, prefix);
    if (!path || !bundle->prefix) return TARE_NO_MEMORY;
    TARE_TRY(tare_file_map(&bundle->index, path));
    return tare_error_prefix(read_index(bundle), "%s", path);
}

tare_status tare_bundle_open(struct tare_bundle **out, const char *prefix) {
    struct tare_bundle *bundle = tare_calloc(1, sizeof *bundle);
    tare_status status = bundle ? open_index(bundle, prefix) : TARE_NO_MEMORY;
    *out = NULL;
    if (status == TARE_OK)
        *out = bundle;
    else
        tare_bundle_close(bundle);
    return status;
}

void tare_bundle_close(struct tare_bundle *bundle) {
    if (!bundle) return;
    for (int32_t i = 0; bundle->shards && i < bundle->n_shards; i++) shard_unref(bundle->shards[i]);
    tare_map_free(&bundle->by_key);
    tare_file_unmap(&bundle->index);
    tare_arena_free(&bundle->arena);
    tare_free(bundle);
}

size_t tare_bundle_count(const struct tare_bundle *bundle) { return bundle->count; }

size_t tare_bundle_bytes(const struct tare_bundle *bundle) {
    size_t total = 0;
    for (size_t i = 0; i < bundle->count; i++) total += (size_t)bundle->entries[i]->size;
    return total;
}

const char *tare_bundle_key(const struct tare_bundle *bundle, size_t i) { return bundle->keys[i]; }

bool tare_bundle_has(const struct tare_bundle *bundle, const char *key) {
    return bundle && tare_map_get(&bundle->by_key, key);
}

/* ---- tensors ---- */

static tare_status open_shard(struct shard **out, struct tare_bundle *bundle, int32_t id) {
    struct shard *shard = bundle->shards[id];
    tare_status status;
    char name[64];
    if (shard) return *out = shard, TARE_OK;
    shard = tare_calloc(1, sizeof *shard);
    if (!shard) return TARE_NO_MEMORY;
    atomic_init(&shard->references, 1);
    snprintf(name, sizeof name, ".data-%05d-of-%05d", id, bundle->n_shards);
    shard->path = tare_malloc(strlen(bundle->prefix) + strlen(name) + 1);
    status = shard->path ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) {
        strcpy(shard->path, bundle->prefix);
        strcat(shard->path, name);
        status = tare_file_map(&shard->mapping, shard->path);
    }
    if (status != TARE_OK) {
        shard_unref(shard);
        return status;
    }
    *out = bundle->shards[id] = shard;
    return TARE_OK;
}

static tare_status check_crc(const struct shard *shard, const entry_message *entry, uint32_t crc) {
    if (tare_crc32c_mask(crc) == entry->crc32c) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT,
                     "%s: byte %lld: Checksum does not match: stored %u vs. calculated on the restored bytes %u", shard->path,
                     (long long)entry->offset, tare_crc32c_unmask(entry->crc32c), crc);
}

static tare_status read_numbers(struct tare_tensor *out, struct shard *shard, const entry_message *entry,
                                const struct tare_shape *shape, const uint8_t *data) {
    size_t element = tare_dtype_size((int)entry->dtype);
    int64_t count;
    TARE_TRY(tare_shape_elements(&count, shape));
    if (!element || (uint64_t)count != (uint64_t)entry->size / element || (uint64_t)entry->size % element)
        return TARE_FAIL(TARE_CORRUPT, "Invalid size in bundle entry: stored size %lld; expected size %lld",
                         (long long)entry->size, (long long)count * (long long)element);
    TARE_TRY(check_crc(shard, entry, tare_crc32c(data, (size_t)entry->size)));
    if (((uintptr_t)data & (element > 8 ? 7 : element - 1)) != 0)
        return tare_tensor_from(out, (int)entry->dtype, shape, data);
    atomic_fetch_add(&shard->references, 1);
    tare_status status = tare_tensor_wrap(out, (int)entry->dtype, shape, data, shard_unref, shard);
    if (status != TARE_OK) shard_unref(shard);
    return status;
}

static bool read_varint(uint64_t *out, const uint8_t **at, const uint8_t *end) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return *out = value, true;
    }
    return false;
}

/* The checksum covers each length as a fixed 32-bit (from 4 GiB 64-bit) number, not the varint on disk. */
static uint32_t extend_by_length(uint32_t crc, uint64_t length) {
    uint8_t bytes[8];
    size_t size = length > UINT32_MAX ? 8 : 4;
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(length >> (8 * i));
    return tare_crc32c_extend(crc, bytes, size);
}

static tare_status cut_strings(void) {
    return TARE_FAIL(TARE_CORRUPT, "the string tensor runs past its entry");
}

/* All lengths, their masked checksum, then all bytes. */
static tare_status read_strings(struct tare_tensor *out, const struct shard *shard, const entry_message *entry,
                                const struct tare_shape *shape, const uint8_t *data) {
    const uint8_t *at = data, *end = data + entry->size, *lengths = data;
    int64_t count;
    uint32_t crc = 0;
    TARE_TRY(tare_shape_elements(&count, shape));
    if (count > entry->size) return cut_strings(); /* a length is a byte at least */
    for (int64_t i = 0; i < count; i++) {
        uint64_t length;
        if (!read_varint(&length, &at, end)) return cut_strings();
        crc = extend_by_length(crc, length);
    }
    if (count && end - at < 4) return cut_strings();
    TARE_TRY(tare_tensor_new(out, TARE_DT_STRING, shape));
    if (!count) return TARE_OK;
    crc = tare_crc32c_extend(crc, at, 4);
    at += 4;
    for (int64_t i = 0; i < count; i++) {
        uint64_t length = 0;
        read_varint(&length, &lengths, end);
        if (length > (uint64_t)(end - at)) return cut_strings();
        crc = tare_crc32c_extend(crc, at, (size_t)length);
        TARE_TRY(tare_tensor_set_string(out, i, at, (size_t)length));
        at += length;
    }
    return check_crc(shard, entry, crc);
}

static tare_status read_entry_tensor(struct tare_tensor *out, struct tare_bundle *bundle, const entry_message *entry) {
    struct tare_shape shape;
    struct shard *shard;
    tare_status status;
    if (entry->n_slices) return TARE_FAIL(TARE_UNSUPPORTED, "partitioned variables are not read in this version");
    TARE_TRY(tare_shape_from_message(&shape, entry->shape));
    TARE_TRY(open_shard(&shard, bundle, entry->shard_id));
    if ((uint64_t)entry->offset > shard->mapping.size || (uint64_t)entry->size > shard->mapping.size - (uint64_t)entry->offset)
        return TARE_FAIL(TARE_CORRUPT, "%s is truncated: bytes %lld to %lld are asked for, the file has %zu", shard->path,
                         (long long)entry->offset, (long long)(entry->offset + entry->size), shard->mapping.size);
    if ((int)entry->dtype == TARE_DT_VARIANT || (int)entry->dtype == TARE_DT_RESOURCE)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s tensors are not read", tare_dtype_name((int)entry->dtype));
    status = (int)entry->dtype == TARE_DT_STRING
                 ? read_strings(out, shard, entry, &shape, shard->mapping.data + entry->offset)
                 : read_numbers(out, shard, entry, &shape, shard->mapping.data + entry->offset);
    if (status != TARE_OK) tare_tensor_reset(out);
    return status;
}

tare_status tare_bundle_read(struct tare_tensor *out, struct tare_bundle *bundle, const char *key) {
    const entry_message *entry = bundle ? tare_map_get(&bundle->by_key, key) : NULL;
    memset(out, 0, sizeof *out);
    if (!entry) return TARE_FAIL(TARE_NOT_FOUND, "Key %s not found in checkpoint", key);
    return tare_error_prefix(read_entry_tensor(out, bundle, entry), "%s", key);
}

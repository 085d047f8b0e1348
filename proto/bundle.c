/* Reading checkpoints: the index is read whole, data files are mapped and shared by the tensors that view them. */
#include "proto/bundle.h"
#include "base/tensor/narrow.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "base/varint.h"
#include "proto/crc32c.h"
#include "proto/message.h"
#include "proto/ordered_code.h"
#include "proto/sorted_table.h"
#include "proto/tensor_message.h"
#include "proto/tensor_slice.h"
#include "proto/tensorflow/checkpoint.pb-c.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A data file, kept alive by the tensors that view it. */
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
    Tensorflow__BundleEntryProto **entries; /* excluding the header entry */
    const char **keys;
    size_t count;
    size_t bytes;
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
        return TARE_FAIL(TARE_UNSUPPORTED, "the checkpoint is big-endian (save it again on a little-endian machine)");
    if (header->num_shards < 1 || header->num_shards > 100000)
        return TARE_FAIL(TARE_CORRUPT, "invalid number of shards in the header (%d)", header->num_shards);
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
        return TARE_FAIL(TARE_CORRUPT, "%s: bad entry (shard %d of %d, offset %lld, size %lld)", entry->key,
                         parsed->shard_id, bundle->n_shards, (long long)parsed->offset, (long long)parsed->size);
    /* Keys of slices begin with NUL; slices are found through their tensor. */
    if (entry->key_size == strlen(entry->key)) {
        bundle->entries[bundle->count] = parsed;
        bundle->keys[bundle->count++] = entry->key;
    }
    bundle->bytes += (size_t)parsed->size;
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
    if (!bundle->entries || !bundle->keys) return TARE_NO_MEMORY;
    for (size_t i = 1; i < count; i++)
        TARE_TRY(read_entry(bundle, &entries[i]));
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
    for (int32_t i = 0; bundle->shards && i < bundle->n_shards; i++)
        shard_unref(bundle->shards[i]);
    tare_map_free(&bundle->by_key);
    tare_file_unmap(&bundle->index);
    tare_arena_free(&bundle->arena);
    tare_free(bundle);
}

size_t tare_bundle_count(const struct tare_bundle *bundle) {
    return bundle->count;
}

size_t tare_bundle_bytes(const struct tare_bundle *bundle) {
    return bundle->bytes;
}

const char *tare_bundle_key(const struct tare_bundle *bundle, size_t i) {
    return bundle->keys[i];
}

const char *tare_bundle_first(const struct tare_bundle *bundle, const char *key) {
    size_t low = 0, high = bundle->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(bundle->keys[middle], key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < bundle->count ? bundle->keys[low] : NULL;
}

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
                     "%s: byte %lld: Checksum does not match: stored %u vs. calculated on the restored bytes %u",
                     shard->path, (long long)entry->offset, tare_crc32c_unmask(entry->crc32c), crc);
}

/* The size of numeric tensors follows from dtype and shape. */
static tare_status check_size(const entry_message *entry, const struct tare_shape *shape, const char *key) {
    size_t element = tare_dtype_size((int)entry->dtype);
    int64_t count, bytes;
    TARE_TRY(tare_shape_elements(&count, shape));
    if ((int)entry->dtype == TARE_DT_STRING) {
        if (count <= entry->size) return TARE_OK; /* a length takes at least one byte */
        return TARE_FAIL(TARE_CORRUPT, "the string tensor exceeds its entry");
    }
    if (!element || tare_dtype_is_ref((int)entry->dtype))
        return TARE_FAIL(TARE_CORRUPT, "unexpected dtype %s in the entry", tare_dtype_name((int)entry->dtype));
    if (!tare_mul_i64(&bytes, count, (int64_t)element)) bytes = INT64_MAX;
    if (bytes == entry->size) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "Invalid size in bundle entry: key %s; stored size %lld; expected size %lld", key,
                     (long long)entry->size, (long long)bytes);
}

/* Computes the checksum in pieces and releases their pages: a large tensor need not stay in memory. */
static uint32_t crc_of_mapped(const uint8_t *data, size_t size) {
    enum { PIECE = 8 << 20 };
    uint32_t crc = 0;
    for (size_t at = 0; at < size; at += PIECE) {
        size_t count = size - at < PIECE ? size - at : PIECE;
        crc = tare_crc32c_extend(crc, data + at, count);
        if (size > PIECE) tare_file_forget(data + at, count);
    }
    return crc;
}

bool tare_bundle_is_view(const struct tare_tensor *tensor) {
    return tare_tensor_is_view_of(tensor, shard_unref);
}

static tare_status read_numbers(struct tare_tensor *out, struct shard *shard, const entry_message *entry,
                                const struct tare_shape *shape, const uint8_t *data, const char *key) {
    size_t element = tare_dtype_size((int)entry->dtype);
    tare_status status;
    TARE_TRY(check_size(entry, shape, key));
    TARE_TRY(check_crc(shard, entry, crc_of_mapped(data, (size_t)entry->size)));
    if (((uintptr_t)data & (element > 8 ? 7 : element - 1)) != 0 || tare_dtype_is_narrow((int)entry->dtype)) {
        TARE_TRY(tare_tensor_from(out, (int)entry->dtype, shape, data));
        tare_tensor_narrow(out);
        return TARE_OK;
    }
    atomic_fetch_add(&shard->references, 1);
    status = tare_tensor_wrap(out, (int)entry->dtype, shape, data, shard_unref, shard);
    if (status != TARE_OK) shard_unref(shard);
    return status;
}

/* The checksum covers each length as a fixed 32-bit (from 4 GiB: 64-bit) number, not as the varint in the file. */
static uint32_t extend_by_length(uint32_t crc, uint64_t length) {
    uint8_t bytes[8];
    size_t size = length > UINT32_MAX ? 8 : 4;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(length >> (8 * i));
    return tare_crc32c_extend(crc, bytes, size);
}

static tare_status cut_strings(void) {
    return TARE_FAIL(TARE_CORRUPT, "the string tensor exceeds its entry");
}

/* Layout: all lengths, their masked checksum, then all bytes. */
static tare_status read_strings(struct tare_tensor *out, const struct shard *shard, const entry_message *entry,
                                const struct tare_shape *shape, const uint8_t *data) {
    const uint8_t *at = data, *end = data + entry->size, *lengths = data;
    int64_t count;
    uint32_t crc = 0;
    TARE_TRY(tare_shape_elements(&count, shape));
    if (count > entry->size) return cut_strings(); /* a length is a byte at least */
    for (int64_t i = 0; i < count; i++) {
        uint64_t length;
        if (!tare_varint_next(&length, &at, end)) return cut_strings();
        crc = extend_by_length(crc, length);
    }
    if (count && end - at < 4) return cut_strings();
    TARE_TRY(tare_tensor_new(out, TARE_DT_STRING, shape));
    if (!count) return TARE_OK;
    if (tare_crc32c_mask(crc) != tare_load_u32(at))
        return TARE_FAIL(TARE_CORRUPT, "%s: byte %lld: The length checksum does not match: expected %u but got %u",
                         shard->path, (long long)(entry->offset + (at - data)), tare_crc32c_unmask(tare_load_u32(at)),
                         crc);
    crc = tare_crc32c_extend(crc, at, 4);
    at += 4;
    for (int64_t i = 0; i < count; i++) {
        uint64_t length = 0;
        tare_varint_next(&length, &lengths, end);
        if (length > (uint64_t)(end - at)) return cut_strings();
        crc = tare_crc32c_extend(crc, at, (size_t)length);
        TARE_TRY(tare_tensor_set_string(out, i, at, (size_t)length));
        at += length;
    }
    if (at != end)
        return TARE_FAIL(TARE_CORRUPT, "the string tensor ends %zu bytes before its entry", (size_t)(end - at));
    return check_crc(shard, entry, crc);
}

/* The bytes of an entry; *data is valid as long as the shard. */
static tare_status entry_bytes(const uint8_t **data, struct shard **shard, struct tare_bundle *bundle,
                               const entry_message *entry) {
    uint64_t offset = (uint64_t)entry->offset, size = (uint64_t)entry->size;
    TARE_TRY(open_shard(shard, bundle, entry->shard_id));
    if (offset > (*shard)->mapping.size || size > (*shard)->mapping.size - offset)
        return TARE_FAIL(TARE_CORRUPT, "%s is truncated: bytes %llu to %llu are asked for, the file has %zu",
                         (*shard)->path, (unsigned long long)offset, (unsigned long long)(offset + size),
                         (*shard)->mapping.size);
    *data = (*shard)->mapping.data + offset;
    return TARE_OK;
}

static tare_status read_whole(struct tare_tensor *out, struct tare_bundle *bundle, const entry_message *entry,
                              const struct tare_shape *shape, const char *key) {
    struct shard *shard;
    const uint8_t *data;
    TARE_TRY(entry_bytes(&data, &shard, bundle, entry));
    if ((int)entry->dtype == TARE_DT_STRING) return read_strings(out, shard, entry, shape, data);
    return read_numbers(out, shard, entry, shape, data, key);
}

/* ---- partitioned tensors ---- */

/* A stored slice of a tensor. */
struct part {
    const entry_message *entry; /* NULL: it does not overlap the box */
    struct tare_slice slice;
};

static tare_status part_key(struct tare_strbuf *text, struct part *out, const char *key, const struct tare_shape *whole,
                            const Tensorflow__TensorSliceProto *message) {
    if (message->n_extent != (size_t)whole->rank)
        return TARE_FAIL(TARE_CORRUPT, "a slice has rank %zu (expected %d)", message->n_extent, whole->rank);
    out->slice.shape.rank = whole->rank;
    tare_ordered_put_unsigned(text, 0);
    tare_ordered_put_string(text, key, strlen(key));
    tare_ordered_put_unsigned(text, message->n_extent);
    for (int d = 0; d < whole->rank; d++) {
        const Tensorflow__TensorSliceProto__Extent *extent = message->extent[d];
        bool full = extent->has_length_case != TENSORFLOW__TENSOR_SLICE_PROTO__EXTENT__HAS_LENGTH_LENGTH;
        out->slice.start[d] = extent->start;
        out->slice.shape.dims[d] = full ? whole->dims[d] : extent->length;
        tare_ordered_put_signed(text, extent->start);
        tare_ordered_put_signed(text, full ? -1 : extent->length);
    }
    return tare_slice_check(&out->slice, whole);
}

/* The position of a slice in the whole and, if it overlaps `box`, its entry, whose key is composed of tensor and slice.
 */
static tare_status find_part(struct part *out, struct tare_bundle *bundle, const char *key,
                             const struct tare_shape *whole, const struct tare_slice *box,
                             const Tensorflow__TensorSliceProto *message) {
    struct tare_strbuf text = { 0 };
    struct tare_slice shared;
    tare_status status = part_key(&text, out, key, whole, message);
    bool failed = text.failed, expected = status == TARE_OK && tare_slice_overlap(&shared, &out->slice, box);
    if (expected && !failed) out->entry = tare_map_get_n(&bundle->by_key, text.data, text.size);
    tare_strbuf_free(&text);
    TARE_TRY(status);
    if (failed) return TARE_NO_MEMORY;
    return out->entry || !expected ? TARE_OK
                                   : TARE_FAIL(TARE_CORRUPT, "one of its slices is missing in the checkpoint");
}

/* Number of elements of `box` in the part, after checking that its bytes exist. */
static tare_status check_part(int64_t *elements, struct tare_bundle *bundle, const entry_message *entry,
                              const struct part *part, const struct tare_slice *box, size_t number) {
    struct tare_slice shared;
    struct shard *shard;
    const uint8_t *data;
    int64_t count;
    *elements = 0;
    if (!part->entry || !tare_slice_overlap(&shared, &part->slice, box)) return TARE_OK;
    TARE_TRY(entry_bytes(&data, &shard, bundle, part->entry));
    TARE_TRY(tare_shape_elements(&count, &part->slice.shape));
    if (part->entry->dtype != entry->dtype || part->entry->n_slices || count > part->entry->size)
        return TARE_FAIL(TARE_CORRUPT, "slice %zu is outside of its tensor", number);
    return tare_shape_elements(elements, &shared.shape);
}

/* Checks, before allocating memory, that the bytes of the slices exist and cover the box. */
static tare_status find_parts(struct part *parts, struct tare_bundle *bundle, const entry_message *entry,
                              const struct tare_shape *whole, const struct tare_slice *box, const char *key) {
    int64_t expected, sum = 0, count;
    TARE_TRY(tare_shape_elements(&expected, whole)); /* the whole is countable, so its parts are */
    TARE_TRY(tare_shape_elements(&expected, &box->shape));
    for (size_t i = 0; i < entry->n_slices; i++) {
        TARE_TRY(find_part(&parts[i], bundle, key, whole, box, entry->slices[i]));
        TARE_TRY(check_part(&count, bundle, entry, &parts[i], box, i));
        if (!tare_add_i64(&sum, sum, count)) sum = INT64_MAX;
    }
    if (sum == expected) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "the slices hold %lld elements (expected %lld)", (long long)sum,
                     (long long)expected);
}

static bool same_box(const struct tare_slice *a, const struct tare_slice *b) {
    return tare_shape_equal(&a->shape, &b->shape) &&
           memcmp(a->start, b->start, (size_t)a->shape.rank * sizeof *a->start) == 0;
}

/* Reads `entry`, the slice `stored` of the whole, and copies its overlap with `box`. */
static tare_status copy_stored(struct tare_tensor *out, const struct tare_slice *box, struct tare_bundle *bundle,
                               const entry_message *entry, const struct tare_slice *stored, const char *key) {
    struct tare_tensor piece = { 0 };
    tare_status status = read_whole(&piece, bundle, entry, &stored->shape, key);
    if (status == TARE_OK) status = tare_slice_copy(out, box, &piece, stored);
    tare_tensor_reset(&piece);
    return status;
}

static tare_status new_box(struct tare_tensor *out, const entry_message *entry, const struct tare_slice *box) {
    TARE_TRY(tare_tensor_new(out, (int)entry->dtype, &box->shape));
    if (out->elements) memset(out->data, 0, tare_tensor_bytes(out));
    return TARE_OK;
}

static tare_status read_parts(struct tare_tensor *out, struct tare_bundle *bundle, const entry_message *entry,
                              const struct tare_shape *shape, const struct tare_slice *box, const char *key) {
    struct part *parts = tare_calloc(entry->n_slices, sizeof *parts);
    const struct part *only = NULL;
    tare_status status = parts ? find_parts(parts, bundle, entry, shape, box, key) : TARE_NO_MEMORY;
    for (size_t i = 0; i < entry->n_slices && status == TARE_OK; i++)
        if (parts[i].entry && same_box(&parts[i].slice, box)) only = &parts[i];
    if (only)
        status = read_whole(out, bundle, only->entry, &box->shape, key);
    else if (status == TARE_OK)
        status = new_box(out, entry, box);
    for (size_t i = 0; i < entry->n_slices && status == TARE_OK && !only; i++)
        if (parts[i].entry)
            status =
                tare_error_prefix(copy_stored(out, box, bundle, parts[i].entry, &parts[i].slice, key), "slice %zu", i);
    tare_free(parts);
    return status;
}

/* A slice of a tensor that is not partitioned. */
static tare_status cut_whole(struct tare_tensor *out, struct tare_bundle *bundle, const entry_message *entry,
                             const struct tare_shape *shape, const struct tare_slice *box, const char *key) {
    const struct tare_slice all = tare_slice_of_all(shape);
    struct shard *shard;
    const uint8_t *data;
    TARE_TRY(check_size(entry, shape, key));
    TARE_TRY(entry_bytes(&data, &shard, bundle, entry));
    if (same_box(box, &all)) return read_whole(out, bundle, entry, shape, key);
    TARE_TRY(new_box(out, entry, box));
    return copy_stored(out, box, bundle, entry, &all, key);
}

/* Parses the slice syntax of RestoreV2; NULL or "": the whole tensor. */
static tare_status wanted_box(struct tare_slice *box, const struct tare_shape *shape, const char *slice) {
    char asked[TARE_SHAPE_TEXT_SIZE], stored[TARE_SHAPE_TEXT_SIZE];
    struct tare_shape whole;
    *box = tare_slice_of_all(shape);
    if (!slice || !*slice) return TARE_OK;
    TARE_TRY(tare_slice_parse(box, &whole, slice));
    if (tare_shape_equal(&whole, shape)) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "slice '%s' is of a tensor of shape %s, the checkpoint has %s", slice,
                     tare_shape_text(asked, &whole), tare_shape_text(stored, shape));
}

static tare_status read_entry_tensor(struct tare_tensor *out, struct tare_bundle *bundle, const entry_message *entry,
                                     const char *key, const char *slice) {
    struct tare_shape shape;
    struct tare_slice box;
    tare_status status;
    if ((int)entry->dtype == TARE_DT_VARIANT || (int)entry->dtype == TARE_DT_RESOURCE)
        return TARE_FAIL(TARE_UNSUPPORTED, "%s tensors in checkpoints are not supported",
                         tare_dtype_name((int)entry->dtype));
    TARE_TRY(tare_shape_from_message(&shape, entry->shape));
    TARE_TRY(wanted_box(&box, &shape, slice));
    status = entry->n_slices ? read_parts(out, bundle, entry, &shape, &box, key)
                             : cut_whole(out, bundle, entry, &shape, &box, key);
    if (status != TARE_OK) tare_tensor_reset(out);
    return status;
}

bool tare_bundle_find(struct tare_bundle_entry *out, const struct tare_bundle *bundle, const char *key) {
    const entry_message *entry = bundle ? tare_map_get(&bundle->by_key, key) : NULL;
    if (!entry) return false;
    *out = (struct tare_bundle_entry){ .dtype = (int)entry->dtype,
                                       .shard = entry->shard_id,
                                       .offset = entry->offset,
                                       .size = entry->size,
                                       .crc32c = tare_crc32c_unmask(entry->crc32c),
                                       .slices = entry->n_slices };
    if (tare_shape_from_message(&out->shape, entry->shape) != TARE_OK) {
        tare_error_clear(); /* tare_bundle_read reports it */
        out->shape = tare_shape_unknown();
    }
    return true;
}

static tare_status check_entry(struct tare_bundle_entry *out, struct tare_bundle *bundle, const entry_message *entry,
                               const char *key, const char *slice) {
    struct tare_shape shape;
    struct tare_slice box;
    struct part *parts;
    struct shard *shard;
    const uint8_t *data;
    tare_status status;
    TARE_TRY(tare_shape_from_message(&shape, entry->shape));
    TARE_TRY(wanted_box(&box, &shape, slice));
    out->shape = box.shape;
    if (!entry->n_slices) {
        TARE_TRY(check_size(entry, &shape, key));
        return entry_bytes(&data, &shard, bundle, entry);
    }
    parts = tare_calloc(entry->n_slices, sizeof *parts);
    status = parts ? find_parts(parts, bundle, entry, &shape, &box, key) : TARE_NO_MEMORY;
    tare_free(parts);
    return status;
}

tare_status tare_bundle_check_slice(struct tare_bundle_entry *out, struct tare_bundle *bundle, const char *key,
                                    const char *slice) {
    if (!tare_bundle_find(out, bundle, key)) return TARE_FAIL(TARE_NOT_FOUND, "Key %s not found in checkpoint", key);
    return tare_error_prefix(check_entry(out, bundle, tare_map_get(&bundle->by_key, key), key, slice), "%s", key);
}

tare_status tare_bundle_check(struct tare_bundle_entry *out, struct tare_bundle *bundle, const char *key) {
    return tare_bundle_check_slice(out, bundle, key, NULL);
}

tare_status tare_bundle_read_slice(struct tare_tensor *out, struct tare_bundle *bundle, const char *key,
                                   const char *slice) {
    const entry_message *entry = bundle ? tare_map_get(&bundle->by_key, key) : NULL;
    memset(out, 0, sizeof *out);
    if (!entry) return TARE_FAIL(TARE_NOT_FOUND, "Key %s not found in checkpoint", key);
    return tare_error_prefix(read_entry_tensor(out, bundle, entry, key, slice), "%s", key);
}

tare_status tare_bundle_read(struct tare_tensor *out, struct tare_bundle *bundle, const char *key) {
    return tare_bundle_read_slice(out, bundle, key, NULL);
}

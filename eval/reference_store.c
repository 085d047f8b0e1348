/* Tensors in mapped chunks of temporary files. */
#include "eval/reference_store.h"
#include "base/alloc.h"
#include "eval/series.h"

#include <string.h>
#include <sys/mman.h>

enum { FIRST_CHUNK = 1 << 20, LAST_CHUNK = 2 << 20, ALIGNMENT = 64 };

/* Records one after another: the tensors of each, then their elements. At the end, growing down, the place of each. */
struct tare_store_chunk {
    char *data;
    size_t size, used;
    int64_t first, count; /* records */
};

static size_t aligned(size_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t *place_of(const struct tare_store_chunk *chunk, int64_t k) {
    return (size_t *)(void *)(chunk->data + chunk->size) - 1 - k;
}

/* Gives the pages back; their contents are in the file. */
static void forget(const struct tare_store_chunk *chunk) {
    madvise(chunk->data, chunk->size, MADV_DONTNEED);
}

static tare_status add_chunk(struct tare_reference_store *store, size_t size) {
    const struct tare_store_chunk *last = store->n_chunks ? &store->chunks[store->n_chunks - 1] : NULL;
    size_t chunk = last && last->size >= LAST_CHUNK / 2 ? LAST_CHUNK : last ? 2 * last->size : FIRST_CHUNK;
    if (!TARE_GROW(store->chunks, store->n_chunks, store->chunks_capacity)) return TARE_NO_MEMORY;
    if (store->n_chunks) forget(&store->chunks[store->n_chunks - 1]);
    if (chunk < size) chunk = size;
    struct tare_store_chunk *next = &store->chunks[store->n_chunks];
    *next = (struct tare_store_chunk){ .size = chunk, .first = store->count };
    TARE_TRY(tare_spill_map((void **)&next->data, chunk));
    store->n_chunks++;
    return TARE_OK;
}

/* Room for the next record. */
static tare_status take_room(char **out, struct tare_reference_store *store, size_t size) {
    struct tare_store_chunk *last = store->n_chunks ? &store->chunks[store->n_chunks - 1] : NULL;
    const size_t places = last ? (size_t)(last->count + 1) * sizeof(size_t) : 0;
    if (!last || size + places > last->size - last->used) {
        TARE_TRY(add_chunk(store, size + ALIGNMENT));
        last = &store->chunks[store->n_chunks - 1];
    }
    *place_of(last, last->count++) = last->used;
    *out = last->data + last->used;
    last->used += size;
    store->bytes += size + sizeof(size_t);
    store->count++;
    return TARE_OK;
}

static bool is_object(const struct tare_tensor *value) {
    return value->dtype == TARE_DT_RESOURCE || value->dtype == TARE_DT_VARIANT;
}

static size_t bytes_of(const struct tare_tensor *value) {
    size_t bytes = tare_tensor_bytes(value);
    for (int64_t i = 0; value->dtype == TARE_DT_STRING && i < value->elements; i++)
        bytes += TARE_CONST_DATA(struct tare_str, value)[i].size;
    return is_object(value) ? 0 : bytes;
}

/* The tensor at *out, whose elements follow at `room`; no buffer owns them. */
static void keep(struct tare_tensor *out, char *room, const struct tare_tensor *value) {
    char *text = room + tare_tensor_bytes(value);
    *out = *value;
    out->buffer = NULL;
    out->data = room;
    if (value->dtype != TARE_DT_STRING && value->elements) memcpy(room, value->data, tare_tensor_bytes(value));
    for (int64_t i = 0; value->dtype == TARE_DT_STRING && i < value->elements; i++) {
        const struct tare_str from = TARE_CONST_DATA(struct tare_str, value)[i];
        if (from.size) memcpy(text, from.data, from.size);
        TARE_DATA(struct tare_str, out)[i] = (struct tare_str){ text, from.size };
        text += from.size;
    }
}

static tare_status add(struct tare_reference_store *store, const struct tare_tensor *outputs) {
    size_t size = aligned(store->n_outputs * sizeof *outputs), at = size;
    char *room;
    for (size_t i = 0; i < store->n_outputs; i++)
        size += aligned(bytes_of(&outputs[i]));
    TARE_TRY(take_room(&room, store, size));
    struct tare_tensor *kept = (struct tare_tensor *)(void *)room;
    for (size_t i = 0; i < store->n_outputs; i++) {
        if (is_object(&outputs[i])) {
            tare_tensor_share(&kept[i], &outputs[i]);
            store->has_objects = true;
        } else {
            keep(&kept[i], room + at, &outputs[i]);
        }
        at += aligned(bytes_of(&outputs[i]));
    }
    return TARE_OK;
}

tare_status tare_reference_store_add(struct tare_reference_store *store, const struct tare_tensor *outputs) {
    struct tare_tensor *whole = tare_calloc(store->n_outputs + 1, sizeof *whole);
    tare_status status = whole ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < store->n_outputs && status == TARE_OK; i++) {
        if (outputs[i].splat)
            status = tare_tensor_copy(&whole[i], &outputs[i]);
        else
            tare_tensor_share(&whole[i], &outputs[i]);
    }
    if (status == TARE_OK) status = add(store, whole);
    for (size_t i = 0; whole && i < store->n_outputs; i++)
        tare_tensor_reset(&whole[i]);
    tare_free(whole);
    return status;
}

/* The last chunk that begins with `record` or before. */
static const struct tare_store_chunk *find_chunk(const struct tare_reference_store *store, int64_t record) {
    size_t low = 0, high = store->n_chunks;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(store->chunks[middle].first <= record ? &low : &high) = middle;
    }
    return &store->chunks[low];
}

const struct tare_tensor *tare_reference_store_get(const struct tare_reference_store *store, int64_t record) {
    if (record < 0 || record >= store->count) return NULL;
    const struct tare_store_chunk *chunk = find_chunk(store, record);
    if (record == chunk->first) forget(chunk == store->chunks ? &store->chunks[store->n_chunks - 1] : chunk - 1);
    return (const struct tare_tensor *)(const void *)(chunk->data + *place_of(chunk, record - chunk->first));
}

void tare_reference_store_free(struct tare_reference_store *store) {
    for (int64_t record = 0; store->has_objects && record < store->count; record++) {
        const struct tare_store_chunk *chunk = find_chunk(store, record);
        struct tare_tensor *kept = (void *)(chunk->data + *place_of(chunk, record - chunk->first));
        for (size_t i = 0; i < store->n_outputs; i++)
            tare_tensor_reset(&kept[i]);
    }
    for (size_t i = 0; i < store->n_chunks; i++)
        munmap(store->chunks[i].data, store->chunks[i].size);
    tare_free(store->chunks);
    *store = (struct tare_reference_store){ 0 };
}

/* Tensors in mapped chunks of temporary files. */
#include "eval/reference_store.h"
#include "base/alloc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIRST_CHUNK = 1 << 20, LAST_CHUNK = 64 << 20, ALIGNMENT = 64 };

struct tare_store_chunk {
    char *data;
    size_t size, used;
};

static tare_status map_file(struct tare_store_chunk *chunk, size_t size) {
    FILE *file = tmpfile(); /* unnamed; removed with its mapping */
    void *data = MAP_FAILED;
    int error = 0;
    if (!file) return TARE_FAIL(TARE_IO, "cannot create a temporary file for the outputs of the float model");
    /* Allocates all blocks now, so that a full disk is an error here and not a signal on writing. */
    error = posix_fallocate(fileno(file), 0, (off_t)size);
    if (error == 0) data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    fclose(file);
    if (data == MAP_FAILED)
        return TARE_FAIL(TARE_IO, "a temporary file for the outputs of the float model cannot hold %zu bytes: %s", size,
                         error ? strerror(error) : "no memory");
    *chunk = (struct tare_store_chunk){ data, size, 0 };
    return TARE_OK;
}

/* Allocates `size` bytes with a stable address. */
static tare_status take_room(void **out, struct tare_reference_store *store, size_t size) {
    struct tare_store_chunk *last = store->n_chunks ? &store->chunks[store->n_chunks - 1] : NULL;
    size_t chunk = last && last->size >= LAST_CHUNK / 2 ? LAST_CHUNK : last ? 2 * last->size : FIRST_CHUNK;
    if (!last || size > last->size - last->used) {
        if (!TARE_GROW(store->chunks, store->n_chunks, store->chunks_capacity)) return TARE_NO_MEMORY;
        last = &store->chunks[store->n_chunks];
        if (chunk < size) chunk = size;
        TARE_TRY(map_file(last, chunk));
        store->n_chunks++;
    }
    *out = last->data + last->used;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    last->used = size < last->size - last->used ? last->used + size : last->size;
    return TARE_OK;
}

static tare_status keep(struct tare_tensor *out, struct tare_reference_store *store, const struct tare_tensor *value) {
    void *room;
    bool plain = tare_dtype_size(value->dtype) && value->dtype != TARE_DT_STRING && value->dtype != TARE_DT_RESOURCE &&
                 value->dtype != TARE_DT_VARIANT;
    if (!plain || value->splat || value->elements == 0) return tare_tensor_copy(out, value);
    TARE_TRY(take_room(&room, store, tare_tensor_bytes(value)));
    memcpy(room, value->data, tare_tensor_bytes(value));
    return tare_tensor_wrap(out, value->dtype, &value->shape, room, NULL, NULL);
}

tare_status tare_reference_store_add(struct tare_reference_store *store, const struct tare_tensor *outputs) {
    for (size_t i = 0; i < store->n_outputs; i++) {
        if (!TARE_GROW(store->tensors, store->count, store->capacity)) return TARE_NO_MEMORY;
        memset(&store->tensors[store->count], 0, sizeof *store->tensors);
        TARE_TRY(keep(&store->tensors[store->count], store, &outputs[i]));
        store->count++;
    }
    return TARE_OK;
}

const struct tare_tensor *tare_reference_store_get(const struct tare_reference_store *store, int64_t record) {
    if (record < 0 || !store->n_outputs || (size_t)record >= store->count / store->n_outputs) return NULL;
    return &store->tensors[(size_t)record * store->n_outputs];
}

void tare_reference_store_free(struct tare_reference_store *store) {
    for (size_t i = 0; i < store->count; i++)
        tare_tensor_reset(&store->tensors[i]);
    for (size_t i = 0; i < store->n_chunks; i++)
        munmap(store->chunks[i].data, store->chunks[i].size);
    tare_free(store->tensors);
    tare_free(store->chunks);
    memset(store, 0, sizeof *store);
}

/* NPY and NPZ files as samples. */
#include "datasets/array_file.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "datasets/npy.h"
#include "datasets/zip.h"

#include <string.h>

struct array {
    const char *key;
    struct tare_npy_view view;
};

struct tare_array_file {
    struct tare_mapping mapping;
    uint8_t *owned;              /* the bytes of a file that is not mapped: `mapping` describes them */
    struct tare_mapping *joined; /* of further files */
    size_t n_joined;
    struct tare_arena arena;
    struct array *arrays;
    size_t count;
    struct tare_map by_key; /* the arrays */
    int64_t rows;
};

static size_t without(const char *name, size_t size, const char *ending) {
    size_t n = strlen(ending);
    return size > n && memcmp(name + size - n, ending, n) == 0 ? size - n : size;
}

/* The name without the ending. */
static const char *key_of(struct tare_arena *arena, const char *name) {
    size_t size = without(name, without(name, strlen(name), ".gz"), ".npy");
    return strcmp(name, "-") == 0 ? tare_arena_strdup(arena, "array") : tare_arena_strndup(arena, name, size);
}

static tare_status add_array(struct tare_array_file *file, const char *name, const uint8_t *bytes, size_t size) {
    struct array *array = &file->arrays[file->count];
    array->key = key_of(&file->arena, name);
    if (!array->key) return TARE_NO_MEMORY;
    if (tare_map_get(&file->by_key, array->key))
        return TARE_FAIL(TARE_CORRUPT, "two arrays are named '%s'", array->key);
    if (!tare_map_set(&file->by_key, array->key, array)) return TARE_NO_MEMORY;
    TARE_TRY(tare_error_prefix(tare_npy_view_open(&array->view, bytes, size), "array '%s'", array->key));
    if (array->view.shape.rank < 1)
        return TARE_FAIL(TARE_SHAPE, "array '%s' is a scalar (expected rows on its first axis)", array->key);
    if (file->count && array->view.shape.dims[0] != file->rows)
        return TARE_FAIL(TARE_SHAPE, "array '%s' has %lld rows (expected %lld as array '%s')", array->key,
                         (long long)array->view.shape.dims[0], (long long)file->rows, file->arrays[0].key);
    file->rows = array->view.shape.dims[0];
    file->count++;
    return TARE_OK;
}

static tare_status open_zip(struct tare_array_file *file) {
    struct tare_zip zip;
    TARE_TRY(tare_zip_open(&zip, &file->arena, file->mapping.data, file->mapping.size));
    file->arrays = TARE_NEW_ARRAY(&file->arena, struct array, zip.count + 1);
    if (!file->arrays) return TARE_NO_MEMORY;
    for (size_t i = 0; i < zip.count; i++) {
        const uint8_t *data;
        TARE_TRY(tare_zip_read(&data, &file->arena, &zip.members[i]));
        TARE_TRY(add_array(file, zip.members[i].name, data, zip.members[i].size));
    }
    return file->count ? TARE_OK : TARE_FAIL(TARE_CORRUPT, "the file contains no arrays");
}

static tare_status open_arrays(struct tare_array_file *file, const char *path) {
    if (file->mapping.size >= 2 && memcmp(file->mapping.data, "PK", 2) == 0)
        return tare_error_prefix(open_zip(file), "%s", path);
    file->arrays = TARE_NEW_ARRAY(&file->arena, struct array, 1);
    if (!file->arrays) return TARE_NO_MEMORY;
    return tare_error_prefix(add_array(file, tare_path_base(path), file->mapping.data, file->mapping.size), "%s", path);
}

static tare_status finish_open(struct tare_array_file **out, struct tare_array_file *file, tare_status status) {
    *out = status == TARE_OK ? file : NULL;
    if (status != TARE_OK) tare_array_file_close(file);
    return status;
}

tare_status tare_array_file_open(struct tare_array_file **out, const char *path) {
    struct tare_array_file *file = tare_calloc(1, sizeof *file);
    tare_status status;
    *out = NULL;
    if (!file) return TARE_NO_MEMORY;
    status = tare_file_map(&file->mapping, path);
    if (status == TARE_OK) status = open_arrays(file, path);
    return finish_open(out, file, status);
}

tare_status tare_array_file_open_bytes(struct tare_array_file **out, const char *path, uint8_t *bytes, size_t size) {
    struct tare_array_file *file = tare_calloc(1, sizeof *file);
    *out = NULL;
    if (!file) {
        tare_free(bytes);
        return TARE_NO_MEMORY;
    }
    file->owned = bytes;
    file->mapping = (struct tare_mapping){ bytes, size };
    return finish_open(out, file, open_arrays(file, path));
}

static tare_status join_arrays(struct tare_array_file *file, const char *const *names, const char *const *paths,
                               size_t count) {
    file->arrays = TARE_NEW_ARRAY(&file->arena, struct array, count + 1);
    file->joined = TARE_NEW_ARRAY(&file->arena, struct tare_mapping, count + 1);
    if (!file->arrays || !file->joined) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        struct tare_mapping *mapping = &file->joined[i];
        TARE_TRY(tare_file_map(mapping, paths[i]));
        file->n_joined++;
        TARE_TRY(tare_error_prefix(add_array(file, names[i], mapping->data, mapping->size), "%s", paths[i]));
    }
    return count ? TARE_OK : TARE_FAIL(TARE_INVALID_ARGUMENT, "no arrays");
}

tare_status tare_array_file_join(struct tare_array_file **out, const char *const *names, const char *const *paths,
                                 size_t count) {
    struct tare_array_file *file = tare_calloc(1, sizeof *file);
    tare_status status;
    *out = NULL;
    if (!file) return TARE_NO_MEMORY;
    status = join_arrays(file, names, paths, count);
    return finish_open(out, file, status);
}

void tare_array_file_close(struct tare_array_file *file) {
    if (!file) return;
    for (size_t i = 0; i < file->n_joined; i++)
        tare_file_unmap(&file->joined[i]);
    if (!file->owned) tare_file_unmap(&file->mapping);
    tare_free(file->owned);
    tare_map_free(&file->by_key);
    tare_arena_free(&file->arena);
    tare_free(file);
}

int64_t tare_array_file_rows(const struct tare_array_file *file) {
    return file->rows;
}

int64_t tare_array_file_offset(const struct tare_array_file *file, int64_t row) {
    const struct tare_npy_view *view = &file->arrays[0].view;
    const uint8_t *start = file->mapping.data;
    int64_t each = (int64_t)view->item;
    if (view->data < start || view->data > start + file->mapping.size) start = view->data;
    for (int d = 1; d < view->shape.rank; d++)
        each *= view->fortran ? 1 : view->shape.dims[d];
    return (int64_t)(view->data - start) + row * each;
}

tare_status tare_array_file_sample(struct tare_sample *out, const struct tare_array_file *file, int64_t row) {
    memset(out, 0, sizeof *out);
    out->keys = TARE_NEW_ARRAY(&out->arena, const char *, file->count);
    out->values = TARE_NEW_ARRAY(&out->arena, struct tare_tensor, file->count);
    if (!out->keys || !out->values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < file->count; i++) {
        out->keys[i] = tare_arena_strdup(&out->arena, file->arrays[i].key);
        if (!out->keys[i]) return TARE_NO_MEMORY;
        TARE_TRY(tare_error_prefix(tare_npy_view_rows(&out->values[i], &file->arrays[i].view, row, 1), "array '%s'",
                                   file->arrays[i].key));
        out->count++;
    }
    return TARE_OK;
}

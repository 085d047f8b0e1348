#include "support/golden.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "datasets/stream.h"

#include <stdio.h>
#include <string.h>

enum { GOLDEN_VERSION = 1 };
static const char golden_magic[8] = { 'T', 'A', 'R', 'E', 'G', 'L', 'D', '\n' };

struct golden_entry {
    const char *op;
    size_t offset; /* offset of the case's body after the op name */
};

struct golden_file {
    struct tare_arena arena;
    const char *path;
    unsigned char *bytes;
    size_t size;
    struct golden_entry *entries;
    size_t count;
};

struct cursor {
    const struct golden_file *file;
    size_t at;
};

static tare_status take(struct cursor *cursor, void *to, size_t size) {
    if (size > cursor->file->size - cursor->at)
        return TARE_FAIL(TARE_CORRUPT, "%s: offset %zu: the file ends (expected %zu more bytes)", cursor->file->path,
                         cursor->at, size);
    if (size > 0) memcpy(to, cursor->file->bytes + cursor->at, size);
    cursor->at += size;
    return TARE_OK;
}

/* Returns a NUL-terminated copy; NULL if the text is empty. */
static tare_status take_text(struct cursor *cursor, const char **out) {
    uint32_t size = 0;
    struct tare_arena *arena = &((struct golden_file *)cursor->file)->arena;
    TARE_TRY(take(cursor, &size, sizeof size));
    if (size > cursor->file->size - cursor->at)
        return TARE_FAIL(TARE_CORRUPT, "%s: offset %zu: a text of %u bytes", cursor->file->path, cursor->at, size);
    *out = size ? tare_arena_strndup(arena, (const char *)cursor->file->bytes + cursor->at, size) : NULL;
    cursor->at += size;
    return size && !*out ? TARE_NO_MEMORY : TARE_OK;
}

static tare_status take_tensor(struct cursor *cursor, struct tare_tensor *out) {
    int32_t head[2]; /* dtype, rank */
    int64_t dims[TARE_MAX_RANK];
    struct tare_shape shape;
    TARE_TRY(take(cursor, head, sizeof head));
    if (head[0] == TARE_DT_INVALID) return TARE_OK;
    if (head[1] < 0 || head[1] > TARE_MAX_RANK)
        return TARE_FAIL(TARE_CORRUPT, "%s: offset %zu: rank %d", cursor->file->path, cursor->at, (int)head[1]);
    TARE_TRY(take(cursor, dims, (size_t)head[1] * sizeof *dims));
    TARE_TRY(tare_shape_from_dims(&shape, head[1], dims));
    TARE_TRY(tare_tensor_new(out, head[0], &shape));
    if (head[0] != TARE_DT_STRING) return take(cursor, out->data, tare_tensor_bytes(out));
    for (int64_t i = 0; i < out->elements; i++) {
        uint32_t size = 0;
        TARE_TRY(take(cursor, &size, sizeof size));
        if (size > cursor->file->size - cursor->at) return TARE_FAIL(TARE_CORRUPT, "a string of %u bytes", size);
        TARE_TRY(tare_tensor_set_string(out, i, cursor->file->bytes + cursor->at, size));
        cursor->at += size;
    }
    return TARE_OK;
}

static tare_status take_tensors(struct cursor *cursor, struct tare_tensor *out, size_t *count) {
    uint32_t n = 0;
    TARE_TRY(take(cursor, &n, sizeof n));
    if (n > OP_CASE_MAX_TENSORS)
        return TARE_FAIL(TARE_CORRUPT, "%s: %u tensors (expected at most %d)", cursor->file->path, n,
                         OP_CASE_MAX_TENSORS);
    for (*count = 0; *count < n; ++*count)
        TARE_TRY(take_tensor(cursor, &out[*count]));
    return TARE_OK;
}

/* The files are GZIP streams. */
static tare_status read_whole(struct golden_file *file) {
    struct tare_stream *stream;
    TARE_TRY(tare_stream_open(&stream, file->path, NULL));
    const tare_status status = tare_stream_take_all(&file->bytes, &file->size, stream);
    tare_stream_close(stream);
    return status;
}

/* Builds the index: each case is preceded by its size. */
static tare_status read_index(struct golden_file *file) {
    struct cursor cursor = { file, 0 };
    char magic[sizeof golden_magic];
    uint32_t head[2]; /* version, cases */
    TARE_TRY(take(&cursor, magic, sizeof magic));
    TARE_TRY(take(&cursor, head, sizeof head));
    if (memcmp(magic, golden_magic, sizeof magic) != 0 || head[0] != GOLDEN_VERSION)
        return TARE_FAIL(TARE_CORRUPT, "%s: no golden file of version %d", file->path, GOLDEN_VERSION);
    if (head[1] > file->size) return TARE_FAIL(TARE_CORRUPT, "%s: %u cases", file->path, head[1]);
    file->entries = TARE_NEW_ARRAY(&file->arena, struct golden_entry, head[1]);
    if (!file->entries) return TARE_NO_MEMORY;
    for (uint32_t i = 0; i < head[1]; i++) {
        uint32_t size = 0;
        TARE_TRY(take(&cursor, &size, sizeof size));
        const size_t first = cursor.at;
        if (size > file->size - first)
            return TARE_FAIL(TARE_CORRUPT, "%s: offset %zu: a case of %u bytes", file->path, first, size);
        TARE_TRY(take_text(&cursor, &file->entries[i].op));
        file->entries[i].offset = cursor.at;
        cursor.at = first + size;
        file->count++;
    }
    return TARE_OK;
}

tare_status golden_open(struct golden_file **out, const char *path) {
    struct golden_file *file = tare_calloc(1, sizeof *file);
    if (!file) return TARE_NO_MEMORY;
    file->path = tare_arena_strdup(&file->arena, path);
    tare_status status = read_whole(file);
    if (status == TARE_OK) status = read_index(file);
    if (status != TARE_OK) golden_close(file);
    *out = status == TARE_OK ? file : NULL;
    return status;
}

void golden_close(struct golden_file *file) {
    if (!file) return;
    tare_free(file->bytes);
    tare_arena_free(&file->arena);
    tare_free(file);
}

size_t golden_count(const struct golden_file *file) {
    return file->count;
}
const char *golden_op(const struct golden_file *file, size_t i) {
    return file->entries[i].op;
}

tare_status golden_read(struct op_case *out, const struct golden_file *file, size_t i) {
    struct cursor cursor = { file, file->entries[i].offset };
    double tolerance[2];
    uint32_t flags;
    out->op = file->entries[i].op;
    TARE_TRY(take_text(&cursor, &out->attrs));
    TARE_TRY(take_text(&cursor, &out->error));
    TARE_TRY(take_text(&cursor, &out->infer));
    TARE_TRY(take(&cursor, tolerance, sizeof tolerance));
    TARE_TRY(take(&cursor, &out->tolerance.ulps, sizeof out->tolerance.ulps));
    TARE_TRY(take(&cursor, &flags, sizeof flags));
    out->tolerance.absolute = tolerance[0];
    out->tolerance.relative = tolerance[1];
    out->dynamic = flags & 1;
    TARE_TRY(take_tensors(&cursor, out->inputs, &out->n_inputs));
    TARE_TRY(take_tensors(&cursor, out->outputs, &out->n_outputs));
    out->where = tare_arena_printf(&((struct golden_file *)file)->arena, "%s case %zu", file->path, i);
    return out->where ? TARE_OK : TARE_NO_MEMORY;
}

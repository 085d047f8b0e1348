/* Arenas allocate from blocks of growing size. */
#include "base/arena.h"
#include "base/format.h"
#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct tare_arena_block {
    struct tare_arena_block *next;
    size_t size; /* bytes of data */
    size_t used;
    _Alignas(16) char data[];
};

enum { FIRST_BLOCK = 512, LARGEST_BLOCK = 1 << 20, LARGEST_ROOM = 8 << 20 };

static struct tare_arena_block *add_block(struct tare_arena *arena, size_t size) {
    size_t bytes;
    struct tare_arena_block *block;
    if (!tare_add_size(&bytes, size, sizeof *block)) return NULL;
    block = tare_malloc(bytes);
    if (!block) return NULL;
    block->next = arena->blocks;
    block->size = size;
    block->used = 0;
    arena->blocks = block;
    return block;
}

static size_t next_block_size(const struct tare_arena *arena, size_t expected) {
#ifdef TARE_ARENA_DEBUG
    (void)arena;
    return expected;
#else
    size_t size = arena->blocks ? arena->blocks->size * 2 : FIRST_BLOCK;
    if (size > LARGEST_BLOCK) size = LARGEST_BLOCK;
    if (!arena->blocks && size < arena->room) size = arena->room;
    return size < expected ? expected : size;
#endif
}

static void *allocate(struct tare_arena *arena, size_t size, size_t alignment) {
    struct tare_arena_block *block = arena->blocks;
    size_t start = block ? (block->used + alignment - 1) & ~(alignment - 1) : 0;

#ifdef TARE_ARENA_DEBUG
    block = NULL;
#endif
    if (!block || start > block->size || size > block->size - start) {
        block = add_block(arena, next_block_size(arena, size));
        if (!block) return NULL;
        start = 0;
    }
    block->used = start + size;
    arena->bytes += size;
    return block->data + start;
}

void *tare_arena_alloc(struct tare_arena *arena, size_t size) {
    return allocate(arena, size, 16);
}

void *tare_arena_calloc(struct tare_arena *arena, size_t count, size_t size) {
    size_t bytes;
    void *memory;
    if (!tare_mul_size(&bytes, count, size)) return tare_realloc(NULL, count, size); /* fails and sets the error text */
    memory = tare_arena_alloc(arena, bytes);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

char *tare_arena_strndup(struct tare_arena *arena, const char *text, size_t size) {
    char *copy = size == SIZE_MAX ? NULL : allocate(arena, size + 1, 1);
    if (!copy) return NULL;
    if (size) memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

char *tare_arena_strdup(struct tare_arena *arena, const char *text) {
    return tare_arena_strndup(arena, text, strlen(text));
}

char *tare_arena_printf(struct tare_arena *arena, const char *format, ...) {
    va_list args, again;
    char *text = NULL;
    int size;
    va_start(args, format);
    va_copy(again, args);
    size = tare_format_va(NULL, 0, format, args);
    if (size >= 0) text = allocate(arena, (size_t)size + 1, 1);
    if (text) tare_format_va(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

void *tare_arena_extend(struct tare_arena *arena, const void *items, size_t count, size_t extra, size_t item_size) {
    size_t total;
    char *copy = tare_add_size(&total, count, extra) ? tare_arena_calloc(arena, total, item_size) : NULL;
    if (copy && count) memcpy(copy, items, count * item_size);
    return copy;
}

static void free_blocks(struct tare_arena *arena) {
    while (arena->blocks) {
        struct tare_arena_block *next = arena->blocks->next;
        tare_free(arena->blocks);
        arena->blocks = next;
    }
}

/* Several blocks are replaced by one of their size, which the same allocations fit in: an arena that is filled and
 * reset over and over keeps its memory, instead of returning it to the operating system and getting it back as pages
 * that are mapped and cleared at their first use. */
void tare_arena_reset(struct tare_arena *arena) {
    struct tare_arena_block *kept = arena->blocks;
    if (kept && kept->next) {
        const size_t newest = kept->size;
        arena->room = 0;
        for (; kept; kept = kept->next)
            arena->room += kept->size;
        if (arena->room > LARGEST_ROOM) arena->room = LARGEST_ROOM;
        if (arena->room < newest) arena->room = newest;
        free_blocks(arena);
    }
    if (kept) kept->used = 0;
    arena->bytes = 0;
#ifdef TARE_ARENA_DEBUG
    tare_free(kept);
    arena->blocks = NULL;
#endif
}

void tare_arena_free(struct tare_arena *arena) {
    free_blocks(arena);
    arena->bytes = arena->room = 0;
}

/* The room of a list is the least power of two that is not below its length. */
void *tare_arena_append(struct tare_arena *arena, void *items, size_t count, size_t item_size) {
    if (count & (count - 1)) return items;
    return tare_arena_extend(arena, items, count, count ? count : 1, item_size);
}

/* Arena: many allocations with one lifetime. Addresses stay valid until the arena is reset.
 *
 * Built with TARE_ARENA_DEBUG each allocation is a malloc block of its own, so that ASan sees an overrun. */
#ifndef TARE_BASE_ARENA_H
#define TARE_BASE_ARENA_H

#include <stddef.h>

struct tare_arena_block;

struct tare_arena {
    struct tare_arena_block *blocks; /* newest first */
    size_t bytes;                    /* allocated since the last reset */
    size_t room;                     /* of the first block after a reset */
};

/* A zeroed arena is valid: struct tare_arena arena = { 0 }; */

/* Allocates uninitialised memory aligned to 16 bytes; NULL with the error text set if out of memory. */
void *tare_arena_alloc(struct tare_arena *arena, size_t size);
/* Allocates count * size zeroed bytes; NULL also if the product overflows. */
void *tare_arena_calloc(struct tare_arena *arena, size_t count, size_t size);
/* Copies `size` bytes and appends a NUL. */
char *tare_arena_strndup(struct tare_arena *arena, const char *text, size_t size);
char *tare_arena_strdup(struct tare_arena *arena, const char *text);
char *tare_arena_printf(struct tare_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Frees all allocations; the arena stays usable and keeps its block for reuse, or gets one block instead of several. */
void tare_arena_reset(struct tare_arena *arena);
/* Frees all allocations and all blocks. */
void tare_arena_free(struct tare_arena *arena);

#define TARE_NEW(arena, type) ((type *)tare_arena_calloc((arena), 1, sizeof(type)))
#define TARE_NEW_ARRAY(arena, type, count) ((type *)tare_arena_calloc((arena), (count), sizeof(type)))

/* Copies an array of `count` items into a new one with `extra` additional zeroed elements; NULL if out of memory. */
void *tare_arena_extend(struct tare_arena *arena, const void *items, size_t count, size_t extra, size_t item_size);

/* The array with room for one more item after `count`, zeroed; NULL if out of memory. For lists that only this function
 * grows, from NULL: the room doubles, so that a list takes memory in its length, not in its square. */
void *tare_arena_append(struct tare_arena *arena, void *items, size_t count, size_t item_size);

#endif

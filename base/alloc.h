/* Heap memory. Every allocation of the library is made through these functions, so that a test can make the n-th one
 * fail. */
#ifndef TARE_BASE_ALLOC_H
#define TARE_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Allocates `size` bytes (at least 1); NULL with the error text set if out of memory. Release with tare_free. */
void *tare_malloc(size_t size);
/* Allocates count * size zeroed bytes; NULL also if the product overflows. */
void *tare_calloc(size_t count, size_t size);
/* Resizes to an array of `count` elements; on failure returns NULL and the old block stays valid. */
void *tare_realloc(void *block, size_t count, size_t size);
/* Allocates `size` bytes aligned to 64 (a cache line, an AVX-512 vector). Release with tare_free. */
void *tare_malloc_aligned(size_t size);
char *tare_strdup(const char *text);
void tare_free(void *block);

/* Limits the heap memory of the process that is allocated here, from now on; 0: no limit. Set it before the first
 * allocation. A request beyond it fails like one that the system refuses. Mapped files are not counted. */
void tare_alloc_set_limit(size_t bytes);
/* The limit, and the bytes in use; both 0 without a limit. */
size_t tare_alloc_limit(void);
size_t tare_alloc_in_use(void);

/* For tests: makes the n-th allocation from now (1: the next) fail, once, in any thread; 0 disables it. */
void tare_alloc_fail_at(int64_t n);
/* Allocations since the last tare_alloc_fail_at. */
int64_t tare_alloc_count(void);
/* For tests of hostile files: the largest size requested by any thread since the previous call, allocated or not. */
size_t tare_alloc_largest(void);

/* *out = a * b (a + b); false on overflow. */
static inline bool tare_mul_size(size_t *out, size_t a, size_t b) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool tare_add_size(size_t *out, size_t a, size_t b) {
    return !__builtin_add_overflow(a, b, out);
}
static inline bool tare_mul_i64(int64_t *out, int64_t a, int64_t b) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool tare_add_i64(int64_t *out, int64_t a, int64_t b) {
    return !__builtin_add_overflow(a, b, out);
}

/* Reserves space for one more element in a growing array (items, count, capacity); false if out of memory. Usage: if
 * (!TARE_GROW(list->items, list->count, list->capacity)) fail; list->items[list->count++] = x. */
#define TARE_GROW(items, count, capacity)                                                                              \
    ((count) < (capacity) || tare_grow((void **)&(items), &(capacity), (count) + 1, sizeof *(items)))
bool tare_grow(void **items, size_t *capacity, size_t expected, size_t item_size);

#endif

/* Heap memory. Every allocation of the library goes through here, so that a test can make the n-th one fail. */
#ifndef TARE_BASE_ALLOC_H
#define TARE_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory for `size` bytes (at least 1), NULL with the error text set when there is none. Release with tare_free. */
void *tare_malloc(size_t size);
/* count * size zeroed bytes; NULL also when the product overflows. */
void *tare_calloc(size_t count, size_t size);
/* As realloc for an array of `count` elements; the old block stays valid when NULL comes back. */
void *tare_realloc(void *block, size_t count, size_t size);
/* `size` bytes aligned to 64 (a cache line, an AVX-512 vector). Release with tare_free. */
void *tare_malloc_aligned(size_t size);
char *tare_strdup(const char *text);
void tare_free(void *block);

/* Makes the n-th allocation from now (1 = the next) fail, once, in any thread; 0 turns it off. For tests. */
void tare_alloc_fail_at(int64_t n);
/* Allocations since the last tare_alloc_fail_at. */
int64_t tare_alloc_count(void);
/* The largest size asked for since the call before, by any thread, whether it was given or not. For tests of what a
 * hostile file can ask for. */
size_t tare_alloc_largest(void);

/* *out = a * b (a + b); false when it does not fit. */
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

/* Makes room for one more element in a growing array (elements, count, capacity); false when memory is out.
 * TARE_GROW(list->items, list->count, list->capacity) then list->items[list->count++] = x. */
#define TARE_GROW(items, count, capacity)                                                                              \
    ((count) < (capacity) || tare_grow((void **)&(items), &(capacity), (count) + 1, sizeof *(items)))
bool tare_grow(void **items, size_t *capacity, size_t expected, size_t item_size);

#endif

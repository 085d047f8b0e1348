/* Heap memory, with a limit, and with injection of allocation failures for tests. */
#include "base/alloc.h"
#include "base/control.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int64_t allocations;
static _Atomic int64_t failing; /* number of the allocation that fails, 0 for none */

void tare_alloc_fail_at(int64_t n) {
    atomic_store(&allocations, 0);
    atomic_store(&failing, n);
}

int64_t tare_alloc_count(void) {
    return atomic_load(&allocations);
}

static _Atomic size_t largest;

size_t tare_alloc_largest(void) {
    return atomic_exchange(&largest, 0);
}

static void note_size(size_t size) {
    size_t seen = atomic_load_explicit(&largest, memory_order_relaxed);
    while (size > seen && !atomic_compare_exchange_weak(&largest, &seen, size))
        continue;
}

static bool must_fail(size_t size) {
    int64_t number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    note_size(size);
    return number == atomic_load_explicit(&failing, memory_order_relaxed);
}

static void *out_of_memory(size_t size) {
    tare_control_note_failed_allocation(size);
    TARE_FAIL(TARE_NO_MEMORY, "out of memory (expected %zu bytes)", size);
    return NULL;
}

/* ---- the limit ---- */

static size_t limit; /* 0: nothing is counted */
static _Atomic size_t in_use;

void tare_alloc_set_limit(size_t bytes) {
    limit = bytes;
}

size_t tare_alloc_limit(void) {
    return limit;
}

size_t tare_alloc_in_use(void) {
    return atomic_load(&in_use);
}

/* Whether `size` bytes more are allowed, `freed` of those in use being replaced. */
static bool is_allowed(size_t size, size_t freed) {
    size_t used = atomic_load_explicit(&in_use, memory_order_relaxed) - freed;
    if (!limit || (used <= limit && size <= limit - used)) return true;
    tare_control_note_failed_allocation(size);
    TARE_FAIL(TARE_NO_MEMORY, "%zu bytes more than the memory limit allows (expected at most %zu, got %zu in use)",
              size, limit, used);
    return false;
}

static void *counted(void *block, size_t size) {
    if (!block) return out_of_memory(size);
    if (limit) atomic_fetch_add_explicit(&in_use, malloc_usable_size(block), memory_order_relaxed);
    return block;
}

/* ---- allocation ---- */

void *tare_malloc(size_t size) {
    if (!is_allowed(size, 0)) return NULL;
    return counted(must_fail(size) ? NULL : malloc(size ? size : 1), size);
}

void *tare_calloc(size_t count, size_t size) {
    size_t bytes;
    if (!tare_mul_size(&bytes, count, size)) bytes = SIZE_MAX;
    note_size(bytes);
    if (bytes == SIZE_MAX) return out_of_memory(bytes);
    if (!is_allowed(bytes, 0)) return NULL;
    return counted(must_fail(bytes) ? NULL : calloc(count ? count : 1, size ? size : 1), bytes);
}

void *tare_realloc(void *block, size_t count, size_t size) {
    const size_t before = limit && block ? malloc_usable_size(block) : 0;
    size_t bytes;
    void *grown = NULL;
    if (!tare_mul_size(&bytes, count, size)) return out_of_memory(SIZE_MAX);
    if (!is_allowed(bytes, before)) return NULL;
    if (!must_fail(bytes)) grown = realloc(block, bytes ? bytes : 1);
    if (grown && before) atomic_fetch_sub_explicit(&in_use, before, memory_order_relaxed);
    return counted(grown, bytes);
}

void *tare_malloc_aligned(size_t size) {
    void *block = NULL;
    if (!is_allowed(size, 0)) return NULL;
    if (must_fail(size) || size > SIZE_MAX - 64 || posix_memalign(&block, 64, size ? size : 1) != 0) block = NULL;
    return counted(block, size);
}

char *tare_strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = tare_malloc(size);
    if (copy) memcpy(copy, text, size);
    return copy;
}

void tare_free(void *block) {
    if (limit && block) atomic_fetch_sub_explicit(&in_use, malloc_usable_size(block), memory_order_relaxed);
    free(block);
}

bool tare_grow(void **items, size_t *capacity, size_t expected, size_t item_size) {
    size_t target = *capacity ? *capacity : 8;
    void *grown;
    while (target < expected) {
        if (!tare_mul_size(&target, target, 2)) return false;
    }
    grown = tare_realloc(*items, target, item_size);
    if (!grown) return false;
    *items = grown;
    *capacity = target;
    return true;
}

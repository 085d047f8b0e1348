/* Memory that must not be accessed although it is allocated, such as the rest of a recycled buffer after its present
 * elements. AddressSanitizer reports accesses to it; without the sanitizer these functions do nothing. */
#ifndef TARE_BASE_POISON_H
#define TARE_BASE_POISON_H

#include <stddef.h>

#if defined(__has_feature)
#define TARE_POISONS __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define TARE_POISONS 1
#else
#define TARE_POISONS 0
#endif

#if TARE_POISONS
#include <sanitizer/asan_interface.h>
#endif

/* `size` bytes from `from` on must not be accessed. Accesses are found to the byte where `from + size` is a multiple of
 * 8 or the end of the allocation. */
static inline void tare_poison(const void *from, size_t size) {
#if TARE_POISONS
    __asan_poison_memory_region(from, size);
#else
    (void)from, (void)size;
#endif
}

/* They may be accessed again. */
static inline void tare_unpoison(const void *from, size_t size) {
#if TARE_POISONS
    __asan_unpoison_memory_region(from, size);
#else
    (void)from, (void)size;
#endif
}

#endif

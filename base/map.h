/* Hash map from byte strings to pointers. Keys are borrowed and must outlive the map (an arena or a literal). */
#ifndef TARE_BASE_MAP_H
#define TARE_BASE_MAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

struct tare_map_slot;

struct tare_map {
    struct tare_map_slot *slots;
    size_t count, capacity;
    /* Nonzero: every value is a struct with its key, a const char *, at this offset; the table then stores only values
     * and takes a third of the memory. Set it while the map is empty. */
    size_t key_at;
};

/* Sets or replaces a value, which must not be NULL. False, with the map unchanged, if out of memory. A zeroed map is
 * empty.
 */
bool tare_map_set(struct tare_map *map, const char *key, void *value) TARE_WARN_UNUSED;
bool tare_map_set_n(struct tare_map *map, const char *key, size_t key_size, void *value) TARE_WARN_UNUSED;
/* Reserves space for `count` keys in total, so that adding them does not fail. False if out of memory. */
bool tare_map_reserve(struct tare_map *map, size_t count) TARE_WARN_UNUSED;
/* The value of a key; NULL if it is absent. */
void *tare_map_get(const struct tare_map *map, const char *key);
void *tare_map_get_n(const struct tare_map *map, const char *key, size_t key_size);
/* Makes the empty map `to` a copy of `from`, with the same keys and values. False, with `to` empty, if out of memory.
 */
bool tare_map_copy(struct tare_map *to, const struct tare_map *from) TARE_WARN_UNUSED;
void tare_map_free(struct tare_map *map);

#endif

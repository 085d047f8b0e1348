/* Hash map from a byte string to a pointer. Keys are borrowed: they must outlive the map (arena or literal). */
#ifndef TARE_BASE_MAP_H
#define TARE_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

struct tare_map_slot;

struct tare_map {
    struct tare_map_slot *slots;
    size_t count, capacity;
    /* Set it while the map is empty: every value is a struct that holds its key itself, a const char * at this offset
     * (not 0). Such a map takes a third of the memory. */
    size_t key_at;
};

/* Zero a map to start. Sets or replaces; false when memory is out. `value` must not be NULL. */
bool tare_map_set(struct tare_map *map, const char *key, void *value);
bool tare_map_set_n(struct tare_map *map, const char *key, size_t key_size, void *value);
/* Makes room for `count` keys at once: none of the next ones up to it moves the table. False when memory is out. */
bool tare_map_reserve(struct tare_map *map, size_t count);
/* The value, NULL when the key is absent. */
void *tare_map_get(const struct tare_map *map, const char *key);
void *tare_map_get_n(const struct tare_map *map, const char *key, size_t key_size);
void tare_map_free(struct tare_map *map);

#endif

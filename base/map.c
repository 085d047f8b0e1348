/* Open addressing with linear probing and FNV-1a hashes. Entries are never removed. */
#include "base/map.h"
#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

struct tare_map_slot {
    const char *key;
    void *value; /* NULL: free slot */
    uint32_t key_size, hash;
};

static uint32_t hash_bytes(const char *key, size_t size) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)key[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ (hash >> 32));
}

static struct tare_map_slot *find_slot(const struct tare_map *map, const char *key, size_t size, uint32_t hash) {
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct tare_map_slot *slot = &map->slots[i];
        if (!slot->value) return slot;
        if (slot->hash == hash && slot->key_size == size && memcmp(slot->key, key, size) == 0) return slot;
    }
}

/* ---- key_at: the table stores only values, which contain their keys ---- */

static const char *key_in(const struct tare_map *map, const void *value) {
    return *(const char *const *)((const char *)value + map->key_at);
}

static void **find_value(const struct tare_map *map, const char *key, size_t size, uint32_t hash) {
    void **values = (void **)map->slots;
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        const char *name = values[i] ? key_in(map, values[i]) : NULL;
        if (!name || (strlen(name) == size && memcmp(name, key, size) == 0)) return &values[i];
    }
}

static bool resize_values(struct tare_map *map, size_t capacity) {
    struct tare_map bigger = { .capacity = capacity, .count = map->count, .key_at = map->key_at };
    void *const *values = (void *const *)map->slots;
    bigger.slots = tare_calloc(bigger.capacity, sizeof *values);
    if (!bigger.slots) return false;
    for (size_t i = 0; i < map->capacity; i++) {
        const char *key = values[i] ? key_in(map, values[i]) : NULL;
        if (key) *find_value(&bigger, key, strlen(key), hash_bytes(key, strlen(key))) = values[i];
    }
    tare_free(map->slots);
    *map = bigger;
    return true;
}

static bool set_value(struct tare_map *map, const char *key, size_t size, void *value) {
    void **place = find_value(map, key, size, hash_bytes(key, size));
    if (!*place) map->count++;
    *place = value;
    return true;
}

/* ---- the table ---- */

static bool resize(struct tare_map *map, size_t capacity) {
    struct tare_map bigger = { .capacity = capacity, .count = map->count };
    if (map->key_at) return resize_values(map, capacity);
    bigger.slots = tare_calloc(bigger.capacity, sizeof *bigger.slots);
    if (!bigger.slots) return false;
    for (size_t i = 0; i < map->capacity; i++) {
        const struct tare_map_slot *slot = &map->slots[i];
        if (slot->value) *find_slot(&bigger, slot->key, slot->key_size, slot->hash) = *slot;
    }
    tare_free(map->slots);
    *map = bigger;
    return true;
}

/* The maximum load factor is 4/5. */
static bool is_full(const struct tare_map *map, size_t count) {
    return count >= map->capacity - map->capacity / 5;
}

bool tare_map_reserve(struct tare_map *map, size_t count) {
    struct tare_map expected = { .capacity = map->capacity ? map->capacity : 16 };
    if (!count) return true;
    while (is_full(&expected, count)) {
        if (expected.capacity > SIZE_MAX / 2) return false;
        expected.capacity *= 2;
    }
    return expected.capacity == map->capacity || resize(map, expected.capacity);
}

bool tare_map_set_n(struct tare_map *map, const char *key, size_t size, void *value) {
    uint32_t hash = hash_bytes(key, size);
    struct tare_map_slot *slot;
    if (size > UINT32_MAX || (is_full(map, map->count) && !resize(map, map->capacity ? map->capacity * 2 : 16)))
        return false;
    if (map->key_at) return set_value(map, key, size, value);
    slot = find_slot(map, key, size, hash);
    if (!slot->value) map->count++;
    *slot = (struct tare_map_slot){ key, value, (uint32_t)size, hash };
    return true;
}

bool tare_map_set(struct tare_map *map, const char *key, void *value) {
    return tare_map_set_n(map, key, strlen(key), value);
}

void *tare_map_get_n(const struct tare_map *map, const char *key, size_t size) {
    if (!map->count) return NULL;
    if (map->key_at) return *find_value(map, key, size, hash_bytes(key, size));
    return find_slot(map, key, size, hash_bytes(key, size))->value;
}

void *tare_map_get(const struct tare_map *map, const char *key) {
    return tare_map_get_n(map, key, strlen(key));
}

void tare_map_free(struct tare_map *map) {
    tare_free(map->slots);
    memset(map, 0, sizeof *map);
}

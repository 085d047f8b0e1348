/* Open addressing with linear probing. The table has 8 bytes a slot and refers to the entries, which are in the order
 * in which they were added: keys are mostly looked up in that order too, so that of a large map only the small table is
 * accessed at random. Entries are never removed. */
#include "base/map.h"
#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

struct tare_map_slot {
    uint32_t hash;
    uint32_t entry; /* its number + 1; 0: free slot */
};

struct entry {
    const char *key;
    void *value;
    uint32_t key_size;
};

/* Eight bytes at a time; the size tells keys apart that end with NULs. */
static uint32_t hash_bytes(const char *key, size_t size) {
    uint64_t hash = 0xcbf29ce484222325u ^ size, word;
    for (; size >= sizeof word; size -= sizeof word, key += sizeof word) {
        memcpy(&word, key, sizeof word);
        hash = (hash ^ word) * 0x9fb21c651e98df25u;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, key, size);
    hash = (hash ^ word) * 0x9fb21c651e98df25u;
    return (uint32_t)(hash ^ (hash >> 32));
}

/* The maximum load factor is 4/5. */
static size_t room_of(size_t capacity) {
    return capacity - capacity / 5;
}

static bool is_full(const struct tare_map *map, size_t count) {
    return count >= room_of(map->capacity);
}

/* The entries follow the table. */
static struct entry *entries_of(const struct tare_map *map) {
    return (struct entry *)(void *)(map->slots + map->capacity);
}

static struct tare_map_slot *find_slot(const struct tare_map *map, const char *key, size_t size, uint32_t hash) {
    const struct entry *entries = entries_of(map);
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct tare_map_slot *slot = &map->slots[i];
        if (!slot->entry) return slot;
        if (slot->hash != hash) continue;
        const struct entry *entry = &entries[slot->entry - 1];
        if (entry->key_size == size && memcmp(entry->key, key, size) == 0) return slot;
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

static void put_slot(const struct tare_map *map, struct tare_map_slot slot) {
    size_t mask = map->capacity - 1, i = slot.hash & mask;
    while (map->slots[i].entry)
        i = (i + 1) & mask;
    map->slots[i] = slot;
}

/* Of slots and entries; SIZE_MAX, which cannot be allocated, where entries could not be numbered. */
static size_t bytes_of(size_t capacity) {
    if (capacity > UINT32_MAX) return SIZE_MAX;
    return capacity * sizeof(struct tare_map_slot) + room_of(capacity) * sizeof(struct entry);
}

static bool resize(struct tare_map *map, size_t capacity) {
    struct tare_map bigger = { .capacity = capacity, .count = map->count };
    if (map->key_at) return resize_values(map, capacity);
    bigger.slots = tare_calloc(bytes_of(capacity), 1);
    if (!bigger.slots) return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].entry) put_slot(&bigger, map->slots[i]);
    if (map->count) memcpy(entries_of(&bigger), entries_of(map), map->count * sizeof(struct entry));
    tare_free(map->slots);
    *map = bigger;
    return true;
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
    if (!slot->entry) *slot = (struct tare_map_slot){ hash, (uint32_t)++map->count };
    entries_of(map)[slot->entry - 1] = (struct entry){ key, value, (uint32_t)size };
    return true;
}

bool tare_map_set(struct tare_map *map, const char *key, void *value) {
    return tare_map_set_n(map, key, strlen(key), value);
}

void *tare_map_get_n(const struct tare_map *map, const char *key, size_t size) {
    if (!map->count) return NULL;
    if (map->key_at) return *find_value(map, key, size, hash_bytes(key, size));
    const struct tare_map_slot *slot = find_slot(map, key, size, hash_bytes(key, size));
    return slot->entry ? entries_of(map)[slot->entry - 1].value : NULL;
}

void *tare_map_get(const struct tare_map *map, const char *key) {
    return tare_map_get_n(map, key, strlen(key));
}

bool tare_map_copy(struct tare_map *to, const struct tare_map *from) {
    const size_t bytes = from->key_at ? from->capacity * sizeof(void *) : bytes_of(from->capacity);
    *to = (struct tare_map){ .key_at = from->key_at };
    if (!from->count) return true;
    struct tare_map_slot *slots = tare_calloc(bytes, 1);
    if (!slots) return false;
    memcpy(slots, from->slots, bytes);
    *to = *from;
    to->slots = slots;
    return true;
}

void tare_map_free(struct tare_map *map) {
    tare_free(map->slots);
    memset(map, 0, sizeof *map);
}

/* The FlatBuffers form of jax.export (jax/_src/export/serialization.fbs): only the module and the platforms are read,
 * since main's types have the rest. A table begins with the distance back to its vtable, which contains its own size,
 * the table's size and one 16-bit offset for each field in the order of the schema (0: absent). Strings and vectors are
 * a 32-bit count and the items; references are 32-bit distances forward. */
#include "convert/stablehlo/exported.h"
#include "convert/stablehlo/module.h"

enum { FIELD_PLATFORMS = 9, FIELD_MODULE = 13 };

struct buffer {
    const uint8_t *data;
    size_t size;
};

static bool read16(uint32_t *value, const struct buffer *b, size_t at) {
    if (b->size < 2 || at > b->size - 2) return false;
    *value = (uint32_t)b->data[at] | (uint32_t)b->data[at + 1] << 8;
    return true;
}

static bool read32(uint32_t *value, const struct buffer *b, size_t at) {
    uint32_t low, high;
    if (!read16(&low, b, at) || !read16(&high, b, at + 2)) return false;
    *value = low | high << 16;
    return true;
}

/* The position that the reference at `at` points to. */
static bool follow(size_t *target, const struct buffer *b, size_t at) {
    uint32_t distance;
    if (!read32(&distance, b, at) || !distance || distance > b->size - at) return false;
    *target = at + distance;
    return true;
}

/* The position of a field of the table; false if it is absent. */
static bool find_field(size_t *at, const struct buffer *b, size_t table, unsigned field) {
    uint32_t back, size, offset;
    if (!read32(&back, b, table)) return false;
    const int64_t vtable = (int64_t)table - (int32_t)back;
    if (vtable < 0 || !read16(&size, b, (size_t)vtable) || size < 4 + 2 * (field + 1)) return false;
    if (!read16(&offset, b, (size_t)vtable + 4 + 2 * field) || !offset) return false;
    *at = table + offset;
    return *at < b->size;
}

/* The items of the vector or string that a field refers to; each has `width` bytes. */
static bool find_items(size_t *items, size_t *count, const struct buffer *b, size_t field_at, size_t width) {
    size_t vector;
    uint32_t n;
    if (!follow(&vector, b, field_at) || !read32(&n, b, vector)) return false;
    if (n > (b->size - vector - 4) / width) return false;
    *items = vector + 4;
    *count = n;
    return true;
}

static bool read_platforms(struct tare_shlo_exported *out, const struct buffer *b, size_t table) {
    size_t at, items, count;
    if (!find_field(&at, b, table, FIELD_PLATFORMS)) return true;
    if (!find_items(&items, &count, b, at, 4) || count > TARE_SHLO_MOST_PLATFORMS) return false;
    for (size_t i = 0; i < count; i++) {
        size_t text, size;
        if (!find_items(&text, &size, b, items + 4 * i, 1)) return false;
        out->platforms[out->n_platforms++] = (struct tare_shlo_span){ (const char *)b->data + text, size };
    }
    return true;
}

bool tare_shlo_exported_find(struct tare_shlo_exported *out, const uint8_t *data, size_t size) {
    const struct buffer b = { data, size };
    size_t table, at, items;
    *out = (struct tare_shlo_exported){ 0 };
    if (!follow(&table, &b, 0) || !find_field(&at, &b, table, FIELD_MODULE)) return false;
    if (!find_items(&items, &out->size, &b, at, 1)) return false;
    out->module = data + items;
    return tare_shlo_is_bytecode(out->module, out->size) && read_platforms(out, &b, table);
}

/* The FlatBuffers form of jax.export (jax/_src/export/serialization.fbs): only the module, the platforms and the tree
 * of the arguments are read, since main's types have the rest. A table begins with the distance back to its vtable,
 * which contains its own size, the table's size and one 16-bit offset for each field in the order of the schema (0:
 * absent). Strings and vectors are a 32-bit count and the items; references are 32-bit distances forward. */
#include "convert/stablehlo/exported.h"
#include "convert/stablehlo/module.h"

enum { FIELD_ARGUMENTS = 2, FIELD_PLATFORMS = 9, FIELD_MODULE = 13, FIELD_KEPT = 15 };
enum { TREE_KIND, TREE_CHILDREN, TREE_NAMES };                         /* fields of a tree */
enum { KIND_LEAF, KIND_NONE, KIND_TUPLE, KIND_LIST, KIND_DICTIONARY }; /* of trees; others are of the caller's types */
/* Trees that are deeper or have more nodes are not listed: a damaged file may name one node many times. */
enum { MOST_DEPTH = 64, MOST_NODES = 1 << 20 };

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

/* ---- arguments ---- */

struct leaves {
    struct tare_arena *arena;
    const struct buffer *b;
    struct tare_shlo_leaf *items;
    size_t count, n_nodes;
    bool is_damaged;
};

/* The path of child i, whose name is among `names` in a dictionary. NULL: out of memory, or the name is missing. */
static const char *child_path(const struct leaves *l, const char *path, size_t i, size_t names, size_t n_names) {
    size_t text, size;
    if (!names) return tare_arena_printf(l->arena, "%s[%zu]", path, i);
    if (i >= n_names || !find_items(&text, &size, l->b, names + 4 * i, 1)) return NULL;
    return tare_arena_printf(l->arena, "%s['%.*s']", path, (int)size, (const char *)l->b->data + text);
}

static tare_status add_leaf(struct leaves *l, const char *path) {
    struct tare_shlo_leaf *grown = tare_arena_append(l->arena, l->items, l->count, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    l->items = grown;
    l->items[l->count++] = (struct tare_shlo_leaf){ .path = path };
    return TARE_OK;
}

static tare_status add_tree(struct leaves *l, size_t table, const char *path, int depth) {
    size_t at, children = 0, count = 0, names = 0, n_names = 0;
    const int kind = find_field(&at, l->b, table, TREE_KIND) ? l->b->data[at] : KIND_LEAF;
    if (kind == KIND_LEAF) return add_leaf(l, path);
    if (kind == KIND_NONE || l->is_damaged) return TARE_OK;
    l->is_damaged = depth == MOST_DEPTH || ++l->n_nodes == MOST_NODES ||
                    (find_field(&at, l->b, table, TREE_CHILDREN) && !find_items(&children, &count, l->b, at, 4)) ||
                    (kind == KIND_DICTIONARY && find_field(&at, l->b, table, TREE_NAMES) &&
                     !find_items(&names, &n_names, l->b, at, 4));
    for (size_t i = 0; i < count && !l->is_damaged; i++) {
        size_t child;
        const char *name = child_path(l, path, i, names, n_names);
        l->is_damaged = !name || !follow(&child, l->b, children + 4 * i);
        if (!l->is_damaged) TARE_TRY(add_tree(l, child, name, depth + 1));
    }
    return TARE_OK;
}

/* The tree is a tuple of the positional arguments and a dictionary of the others. */
static tare_status add_arguments(struct leaves *l, size_t table) {
    static const char *const both[] = { "args", "kwargs" };
    size_t at, tree, children, count;
    l->is_damaged = !find_field(&at, l->b, table, FIELD_ARGUMENTS) || !follow(&tree, l->b, at) ||
                    !find_field(&at, l->b, tree, TREE_CHILDREN) || !find_items(&children, &count, l->b, at, 4) ||
                    count != 2;
    for (size_t i = 0; i < 2 && !l->is_damaged; i++) {
        l->is_damaged = !follow(&tree, l->b, children + 4 * i);
        if (!l->is_damaged) TARE_TRY(add_tree(l, tree, both[i], 0));
    }
    return TARE_OK;
}

static void mark_kept(struct leaves *l, size_t table) {
    size_t at, items, count;
    l->is_damaged =
        l->is_damaged || !find_field(&at, l->b, table, FIELD_KEPT) || !find_items(&items, &count, l->b, at, 2);
    for (size_t i = 0; !l->is_damaged && i < count; i++) {
        uint32_t index;
        l->is_damaged = !read16(&index, l->b, items + 2 * i) || index >= l->count;
        if (!l->is_damaged) l->items[index].is_kept = true;
    }
}

tare_status tare_shlo_exported_leaves(struct tare_shlo_leaf **out, size_t *count, struct tare_arena *arena,
                                      const uint8_t *data, size_t size) {
    const struct buffer b = { data, size };
    struct leaves l = { .arena = arena, .b = &b };
    size_t table;
    *out = NULL;
    *count = 0;
    if (tare_shlo_is_bytecode(data, size) || !follow(&table, &b, 0)) return TARE_OK;
    TARE_TRY(add_arguments(&l, table));
    mark_kept(&l, table);
    if (l.is_damaged) return TARE_OK;
    *out = l.items;
    *count = l.count;
    return TARE_OK;
}

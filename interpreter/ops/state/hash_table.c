/* Hash table of the lookup ops (hash_table.h): a map from key bytes to the row of the value. */
#include "interpreter/ops/state/hash_table.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/map.h"
#include "interpreter/execution/variable.h"
#include "interpreter/ops/support/move.h"

#include <string.h>

/* All values are stored in one growing tensor; an entry stores its row number. */
struct entry {
    struct tare_str key; /* the bytes of the string or of the number */
    int64_t row;
    bool gone;
};

struct tare_table {
    struct tare_object object;
    int key_dtype, value_dtype;
    struct tare_shape value_shape;
    int64_t value_elements;
    bool is_mutable, filled;
    struct tare_arena arena; /* memory of entries and keys */
    struct tare_map by_key;
    struct entry **entries;
    size_t n_entries, capacity;
    int64_t gone;
    struct tare_tensor values; /* capacity in rows; some at the end may be unused */
    int64_t room;
};

static void destroy(struct tare_object *object) {
    struct tare_table *table = (struct tare_table *)object;
    tare_map_free(&table->by_key);
    tare_arena_free(&table->arena);
    tare_free(table->entries);
    tare_tensor_reset(&table->values);
    tare_free(table);
}

static const struct tare_object_type table_type = { "lookup table", destroy };

struct tare_table *tare_table_new(int key_dtype, int value_dtype, const struct tare_shape *value_shape,
                                  bool is_mutable) {
    struct tare_table *table = tare_calloc(1, sizeof *table);
    if (!table) return NULL;
    tare_object_init(&table->object, &table_type);
    table->key_dtype = key_dtype;
    table->value_dtype = value_dtype;
    table->value_shape = *value_shape;
    table->is_mutable = is_mutable;
    table->value_elements = tare_move_product(value_shape, 0, value_shape->rank);
    return table;
}

struct tare_object *tare_table_object(struct tare_table *table) {
    return &table->object;
}

tare_status tare_table_from_handle(struct tare_table **out, const struct tare_tensor *handle) {
    struct tare_object *object = NULL;
    TARE_TRY(tare_handle_object(&object, handle, &table_type));
    *out = (struct tare_table *)object;
    return TARE_OK;
}

int tare_table_key_dtype(const struct tare_table *table) {
    return table->key_dtype;
}
int tare_table_value_dtype(const struct tare_table *table) {
    return table->value_dtype;
}
const struct tare_shape *tare_table_value_shape(const struct tare_table *table) {
    return &table->value_shape;
}
bool tare_table_is_mutable(const struct tare_table *table) {
    return table->is_mutable;
}
int64_t tare_table_size(const struct tare_table *table) {
    return (int64_t)table->n_entries - table->gone;
}
bool tare_table_is_filled(const struct tare_table *table) {
    return table->filled || table->is_mutable;
}
void tare_table_set_filled(struct tare_table *table) {
    table->filled = true;
}

static struct tare_str key_at(const struct tare_tensor *keys, int64_t i) {
    size_t size = tare_dtype_size(keys->dtype);
    struct tare_str key;
    if (keys->dtype != TARE_DT_STRING) return (struct tare_str){ (const char *)keys->data + (size_t)i * size, size };
    key = TARE_CONST_DATA(struct tare_str, keys)[i];
    if (!key.data) key.data = "";
    return key;
}

static struct entry *find(const struct tare_table *table, struct tare_str key) {
    return tare_map_get_n(&table->by_key, key.data, key.size);
}

static tare_status make_room(struct tare_table *table) {
    int64_t room = table->room ? 2 * table->room : 16;
    struct tare_shape shape = tare_shape_make(1, 0);
    struct tare_tensor grown;
    tare_status status = TARE_OK;
    if ((int64_t)table->n_entries < table->room) return TARE_OK;
    if (!tare_mul_i64(&shape.dims[0], room, table->value_elements))
        return TARE_FAIL(TARE_SHAPE, "the table is too large");
    TARE_TRY(tare_tensor_new(&grown, table->value_dtype, &shape));
    if (table->n_entries)
        status = tare_move_run(&grown, 0, &table->values, 0, (int64_t)table->n_entries * table->value_elements);
    if (status != TARE_OK) {
        tare_tensor_reset(&grown);
        return status;
    }
    tare_tensor_reset(&table->values);
    table->values = grown;
    table->room = room;
    return TARE_OK;
}

static tare_status add(struct tare_table *table, struct tare_str key, const struct tare_tensor *values, int64_t i) {
    struct entry *entry;
    TARE_TRY(make_room(table));
    if (!TARE_GROW(table->entries, table->n_entries, table->capacity)) return TARE_NO_MEMORY;
    entry = TARE_NEW(&table->arena, struct entry);
    if (!entry) return TARE_NO_MEMORY;
    entry->key = (struct tare_str){ tare_arena_strndup(&table->arena, key.data, key.size), key.size };
    entry->row = (int64_t)table->n_entries;
    if (!entry->key.data || !tare_map_set_n(&table->by_key, entry->key.data, entry->key.size, entry))
        return TARE_NO_MEMORY;
    table->entries[table->n_entries++] = entry;
    return tare_move_run(&table->values, entry->row * table->value_elements, values, i * table->value_elements,
                         table->value_elements);
}

static bool same_value(const struct tare_table *table, const struct entry *entry, const struct tare_tensor *values,
                       int64_t i) {
    size_t size = tare_dtype_size(table->value_dtype), n = (size_t)table->value_elements;
    const char *a = (const char *)table->values.data + (size_t)entry->row * n * size;
    const char *b = (const char *)values->data + (size_t)i * n * size;
    if (table->value_dtype != TARE_DT_STRING) return memcmp(a, b, n * size) == 0;
    for (size_t k = 0; k < n; k++) {
        const struct tare_str *s = &((const struct tare_str *)a)[k], *t = &((const struct tare_str *)b)[k];
        if (s->size != t->size || (s->size && memcmp(s->data, t->data, s->size) != 0)) return false;
    }
    return true;
}

static tare_status check(const struct tare_table *table, const struct tare_tensor *keys,
                         const struct tare_tensor *values) {
    if (keys->dtype != table->key_dtype)
        return TARE_FAIL(TARE_TYPE, "keys are %s (expected %s)", tare_dtype_name(keys->dtype),
                         tare_dtype_name(table->key_dtype));
    if (values && values->dtype != table->value_dtype)
        return TARE_FAIL(TARE_TYPE, "values are %s (expected %s)", tare_dtype_name(values->dtype),
                         tare_dtype_name(table->value_dtype));
    if (values && values->elements != keys->elements * table->value_elements)
        return TARE_FAIL(TARE_SHAPE, "%lld values for %lld keys (expected %lld)", (long long)values->elements,
                         (long long)keys->elements, (long long)(keys->elements * table->value_elements));
    return TARE_OK;
}

tare_status tare_table_insert(struct tare_table *table, const struct tare_tensor *keys,
                              const struct tare_tensor *values) {
    TARE_TRY(check(table, keys, values));
    for (int64_t i = 0; i < keys->elements; i++) {
        struct tare_str key = key_at(keys, i);
        struct entry *entry = find(table, key);
        if (!entry) {
            TARE_TRY(add(table, key, values, i));
            continue;
        }
        if (!table->is_mutable) {
            if (same_value(table, entry, values, i)) continue;
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "the table has another value for key %lld already", (long long)i);
        }
        table->gone -= entry->gone;
        entry->gone = false;
        TARE_TRY(tare_move_run(&table->values, entry->row * table->value_elements, values, i * table->value_elements,
                               table->value_elements));
    }
    return TARE_OK;
}

tare_status tare_table_find(const struct tare_table *table, const struct tare_tensor *keys,
                            const struct tare_tensor *fallback, struct tare_tensor *values) {
    const int64_t n = table->value_elements;
    TARE_TRY(check(table, keys, NULL));
    if (!tare_table_is_filled(table)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Table not initialized.");
    if (fallback->dtype != table->value_dtype)
        return TARE_FAIL(TARE_TYPE, "the default value is %s (expected %s)", tare_dtype_name(fallback->dtype),
                         tare_dtype_name(table->value_dtype));
    if (fallback->elements != n && fallback->elements != keys->elements * n)
        return TARE_FAIL(TARE_SHAPE, "the default value has %lld elements (expected %lld)",
                         (long long)fallback->elements, (long long)n);
    for (int64_t i = 0; i < keys->elements; i++) {
        const struct entry *entry = find(table, key_at(keys, i));
        if (entry && !entry->gone)
            TARE_TRY(tare_move_run(values, i * n, &table->values, entry->row * n, n));
        else
            TARE_TRY(tare_move_run(values, i * n, fallback, fallback->elements == n ? 0 : i * n, n));
    }
    return TARE_OK;
}

tare_status tare_table_remove(struct tare_table *table, const struct tare_tensor *keys) {
    TARE_TRY(check(table, keys, NULL));
    for (int64_t i = 0; i < keys->elements; i++) {
        struct entry *entry = find(table, key_at(keys, i));
        if (!entry || entry->gone) continue;
        entry->gone = true;
        table->gone++;
    }
    return TARE_OK;
}

void tare_table_clear(struct tare_table *table) {
    tare_map_free(&table->by_key);
    table->by_key = (struct tare_map){ 0 };
    tare_arena_reset(&table->arena);
    tare_tensor_reset(&table->values);
    table->n_entries = 0;
    table->gone = table->room = 0;
}

tare_status tare_table_export(const struct tare_table *table, struct tare_tensor *keys, struct tare_tensor *values) {
    const int64_t n = table->value_elements;
    int64_t at = 0;
    for (size_t i = 0; i < table->n_entries; i++) {
        const struct entry *entry = table->entries[i];
        if (entry->gone) continue;
        if (table->key_dtype == TARE_DT_STRING)
            TARE_TRY(tare_tensor_set_string(keys, at, entry->key.data, entry->key.size));
        else
            memcpy((char *)keys->data + (size_t)at * entry->key.size, entry->key.data, entry->key.size);
        TARE_TRY(tare_move_run(values, at++ * n, &table->values, entry->row * n, n));
    }
    return TARE_OK;
}

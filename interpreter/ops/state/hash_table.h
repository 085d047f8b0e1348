/* The hash table of the lookup ops: maps keys to values, with strings, integers, floats or bools on either side. */
#ifndef TARE_INTERPRETER_OPS_STATE_HASH_TABLE_H
#define TARE_INTERPRETER_OPS_STATE_HASH_TABLE_H

#include "base/tensor/tensor.h"

struct tare_table;

/* `value_shape` is fully known (scalar for plain tables). Returns NULL without memory. The caller owns the first
 * reference. */
struct tare_table *tare_table_new(int key_dtype, int value_dtype, const struct tare_shape *value_shape,
                                  bool is_mutable);
struct tare_object *tare_table_object(struct tare_table *table);
/* Returns the table of a handle. */
tare_status tare_table_from_handle(struct tare_table **out, const struct tare_tensor *handle);

int tare_table_key_dtype(const struct tare_table *table);
int tare_table_value_dtype(const struct tare_table *table);
const struct tare_shape *tare_table_value_shape(const struct tare_table *table);
bool tare_table_is_mutable(const struct tare_table *table);
int64_t tare_table_size(const struct tare_table *table);
/* Whether the table has been initialized; lookups in an uninitialized immutable table fail. */
bool tare_table_is_filled(const struct tare_table *table);
void tare_table_set_filled(struct tare_table *table);

/* Inserts keys[i] -> value i of `values` (shape: the keys' followed by the value shape). A mutable table replaces
 * existing values; an immutable one rejects a different value for an existing key. */
tare_status tare_table_insert(struct tare_table *table, const struct tare_tensor *keys,
                              const struct tare_tensor *values);
/* Sets values[i] to the value of keys[i], or to `fallback` (one value, or one per key). `values` must be allocated. */
tare_status tare_table_find(const struct tare_table *table, const struct tare_tensor *keys,
                            const struct tare_tensor *fallback, struct tare_tensor *values);
tare_status tare_table_remove(struct tare_table *table, const struct tare_tensor *keys);
void tare_table_clear(struct tare_table *table);
/* Copies keys and values in insertion order to tensors of tare_table_size rows. */
tare_status tare_table_export(const struct tare_table *table, struct tare_tensor *keys, struct tare_tensor *values);

#endif

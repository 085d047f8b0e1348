/* A table from keys to values, as lookup ops use it: strings, integers, floats or bools on either side. */
#ifndef TARE_INTERPRETER_OPS_STATE_HASH_TABLE_H
#define TARE_INTERPRETER_OPS_STATE_HASH_TABLE_H

#include "base/tensor/tensor.h"

struct tare_table;

/* `value_shape` is a known shape (scalar for plain tables). NULL: no memory. The object's first reference is the
 * caller's. */
struct tare_table *tare_table_new(int key_dtype, int value_dtype, const struct tare_shape *value_shape,
                                  bool is_mutable);
struct tare_object *tare_table_object(struct tare_table *table);
/* The table behind a handle. */
tare_status tare_table_from_handle(struct tare_table **out, const struct tare_tensor *handle);

int tare_table_key_dtype(const struct tare_table *table);
int tare_table_value_dtype(const struct tare_table *table);
const struct tare_shape *tare_table_value_shape(const struct tare_table *table);
bool tare_table_is_mutable(const struct tare_table *table);
int64_t tare_table_size(const struct tare_table *table);
/* Filled once: an immutable table that was not filled cannot be asked. */
bool tare_table_is_filled(const struct tare_table *table);
void tare_table_set_filled(struct tare_table *table);

/* keys[i] -> the i-th value in `values` (keys' shape and the value shape). A mutable table replaces; an immutable one
 * refuses another value for a key that it has. */
tare_status tare_table_insert(struct tare_table *table, const struct tare_tensor *keys,
                              const struct tare_tensor *values);
/* values[i] = what keys[i] leads to, else `fallback` (one value for all, or one a key). `values` was made. */
tare_status tare_table_find(const struct tare_table *table, const struct tare_tensor *keys,
                            const struct tare_tensor *fallback, struct tare_tensor *values);
tare_status tare_table_remove(struct tare_table *table, const struct tare_tensor *keys);
void tare_table_clear(struct tare_table *table);
/* Keys and values in the order of insertion into tensors of tare_table_size rows. */
tare_status tare_table_export(const struct tare_table *table, struct tare_tensor *keys, struct tare_tensor *values);

#endif

/* Deduplicates strings, shapes and attribute lists that many nodes of a graph share. Models that are loaded for
 * inspection are imported through a pool; models that passes change are not, because passes change attributes in place.
 * Private to convert. */
#ifndef TARE_CONVERT_ATTR_POOL_H
#define TARE_CONVERT_ATTR_POOL_H

#include "graph/model.h"
#include "proto/message.h"

struct tare_import_faults;

struct tare_attr_pool {
    struct tare_import_faults *faults; /* NULL: the first error ends the import (convert/import/import.h) */
    struct tare_arena *arena;          /* the model's: what is shared */
    struct tare_arena own;             /* the tables' */
    struct tare_map texts, shapes, lists, args;
    size_t hits;
};

/* Attributes of some node, by their bytes in the file. */
struct tare_shared_attrs {
    struct tare_attr *attrs;
    size_t n_attrs;
    const struct tare_op_def *def; /* an op whose outputs with these attributes are the following; NULL: none yet */
    int *output_dtypes;
    size_t n_outputs;
};

void tare_attr_pool_end(struct tare_attr_pool *pool);
/* The string in the arena; NULL if out of memory. */
const char *tare_attr_pool_text(struct tare_attr_pool *pool, const char *text);
const struct tare_shape *tare_attr_pool_shape(struct tare_attr_pool *pool, const struct tare_shape *shape);
/* Adds an argument to a function; its attributes are shared with the last one of the same dtype and index; NULL if out
 * of memory. */
struct tare_node *tare_attr_pool_arg(struct tare_attr_pool *pool, struct tare_graph *graph, const char *name,
                                     int dtype);
/* The entry of attributes with these bytes, which must outlive the pool: attrs NULL for a new one. NULL if out of
 * memory or if too few nodes share attributes for the pool to save memory (*status distinguishes the two). */
struct tare_shared_attrs *tare_attr_pool_list(struct tare_attr_pool *pool, struct tare_message_part bytes,
                                              tare_status *status);

#endif

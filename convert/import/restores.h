/* What the restore operation of a model restores: assignments of variables and imports of tables whose values come from
 * RestoreV2, in the main graph and in the functions that it calls. Private to convert. */
#ifndef TARE_CONVERT_RESTORES_H
#define TARE_CONVERT_RESTORES_H

#include "graph/model.h"
#include "proto/tensorflow/saved_model.pb-c.h"

/* The key of a stored tensor, and a slice of it in the syntax of RestoreV2 (NULL: the whole tensor). */
struct tare_restored {
    const char *key, *slice;
};

struct tare_restore {
    struct tare_node *target;   /* node of the main graph that creates the variable or table */
    struct tare_restored value; /* a variable's value, a table's values */
    struct tare_restored keys;  /* a table's keys; key is NULL for a variable */
};

struct tare_restores {
    struct tare_restore *items; /* arena memory */
    size_t count, capacity;
};

/* Lists what the operation that `saver` (may be NULL) names restores, then what any other node of the main graph
 * restores. Strings belong to the model. */
tare_status tare_restores_find(struct tare_restores *out, struct tare_arena *arena, struct tare_graph_model *model,
                               const Tensorflow__SaverDef *saver);

#endif

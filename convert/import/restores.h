/* What the restore operation of a model puts where: the assignments of variables and the imports of tables that are fed
 * from RestoreV2, in the main graph and in the functions that it calls. Private to convert. */
#ifndef TARE_CONVERT_RESTORES_H
#define TARE_CONVERT_RESTORES_H

#include "graph/model.h"
#include "proto/tensorflow/saved_model.pb-c.h"

/* Names of a stored tensor, and of the part of it in the words of RestoreV2; NULL: all of it. */
struct tare_restored {
    const char *key, *slice;
};

struct tare_restore {
    struct tare_node *target;   /* of the main graph: makes the variable or the table */
    struct tare_restored value; /* a variable's value, a table's values */
    struct tare_restored keys;  /* a table's keys; key NULL: a variable */
};

struct tare_restores {
    struct tare_restore *items; /* arena memory */
    size_t count, capacity;
};

/* Lists what the operation that `saver` (may be NULL) names does, then what any other node of the main graph does.
 * Texts are the model's. */
tare_status tare_restores_find(struct tare_restores *out, struct tare_arena *arena, struct tare_model *model,
                               const Tensorflow__SaverDef *saver);

#endif

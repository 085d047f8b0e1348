/* Variables by their id in the object graph. */
#ifndef TARE_GRAPH_OBJECT_INDEX_H
#define TARE_GRAPH_OBJECT_INDEX_H

#include "graph/model.h"

struct tare_object_variable {
    int id; /* of the object */
    struct tare_variable *variable;
    struct tare_object_variable *next; /* the next variable of the same object; NULL: none */
};

/* Adds the model's variables to an empty map, which tare_map_free frees; the entries are arena memory. TARE_NO_MEMORY.
 */
tare_status tare_model_index_objects(struct tare_map *out, struct tare_arena *arena,
                                     const struct tare_graph_model *model) TARE_WARN_UNUSED;
/* The first variable of an object, in the model's order; NULL: none. */
const struct tare_object_variable *tare_object_variables(const struct tare_map *index, int id);

#endif

/* Resources that a runtime takes for one. */
#ifndef TARE_GRAPH_SHARED_NAMES_H
#define TARE_GRAPH_SHARED_NAMES_H

#include "graph/model.h"

/* Two nodes whose resources have the same container and shared_name, and both of which signatures need: a runtime that
 * reads the graph alone, as a server does, makes one of them. */
struct tare_name_twins {
    const struct tare_node *first, *second;
    const char *name, *effect; /* what a server does then: "gives both variables …" */
};

/* The pairs of variables, and of BatchFunctions that call different functions; arena memory. TARE_NO_MEMORY, and errors
 * of a call that cannot be followed. */
tare_status tare_model_name_twins(struct tare_name_twins **out, size_t *count, struct tare_arena *arena,
                                  const struct tare_graph_model *model);

#endif

/* Variables that a runtime takes for one. */
#ifndef TARE_GRAPH_SHARED_NAMES_H
#define TARE_GRAPH_SHARED_NAMES_H

#include "graph/model.h"

/* Two variables of which signatures need both, and whose handles have the same container and shared_name: a runtime
 * that reads the graph alone, as a server does, gives both the value that is restored last. */
struct tare_name_twins {
    const struct tare_variable *first, *second;
};

/* The pairs, in the order of the model's variables; arena memory. TARE_NO_MEMORY, and errors of a call that cannot be
 * followed. */
tare_status tare_model_name_twins(struct tare_name_twins **out, size_t *count, struct tare_arena *arena,
                                  const struct tare_graph_model *model);

#endif

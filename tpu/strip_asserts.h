/* Removes assertions from TPU functions, as compilation would. */
#ifndef TARE_TPU_STRIP_ASSERTS_H
#define TARE_TPU_STRIP_ASSERTS_H

#include "graph/model.h"

struct tare_tpu_stripped {
    size_t assertions; /* Assert nodes; their messages are removed with them */
    size_t identities; /* Identity nodes over handles of lists */
    size_t copies;     /* functions that were copied, because the CPU calls them as well and keeps its assertions */
};

/* Removes from the functions to place, and from those that they call: assertions, which compilation drops and whose
 * messages are strings, which no TPU supports; and identities of list handles, which have no effect and a dtype that
 * TPUs have only at compile time. Values do not change. Arena memory is for scratch. */
tare_status tare_tpu_strip_asserts(struct tare_tpu_stripped *out, struct tare_arena *arena,
                                   struct tare_graph *const *functions, size_t count);

#endif

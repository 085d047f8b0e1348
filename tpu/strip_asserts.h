/* What a TPU's compiler leaves out, taken out beforehand. */
#ifndef TARE_TPU_STRIP_ASSERTS_H
#define TARE_TPU_STRIP_ASSERTS_H

#include "graph/model.h"

struct tare_tpu_stripped {
    size_t assertions; /* Assert nodes; their messages went with them */
    size_t identities; /* Identity nodes over handles of lists */
    size_t copies;     /* functions that had to be copied, because the CPU calls them, too, and keeps its assertions */
};

/* Removes from the functions that go to the TPU, and from what they call: assertions, which compilation turns into
 * nothing and whose text is made of strings that no TPU takes; and identities of list handles, which say nothing and
 * carry a dtype that TPUs have only at compile time. Values do not change. Arena memory is for scratch. */
tare_status tare_tpu_strip_asserts(struct tare_tpu_stripped *out, struct tare_arena *arena,
                                   struct tare_graph *const *functions, size_t count);

#endif

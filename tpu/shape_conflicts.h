/* Loops, conditionals and lists that XLA rejects: a loop variable keeps its shape, the branches of a conditional return
 * tensors of one rank, and a list has its final size from the beginning. */
#ifndef TARE_TPU_SHAPE_CONFLICTS_H
#define TARE_TPU_SHAPE_CONFLICTS_H

#include "graph/model.h"

/* The first conflict of a node. */
struct tare_tpu_conflict {
    const struct tare_node *node;
    size_t index;                    /* of the loop variable, or of the conditional's output */
    struct tare_shape first, second; /* before and after an iteration, or of two branches */
};

struct tare_tpu_conflicts {
    struct tare_map by_node;
    bool is_known;
};

/* Finds the conflicts of a function and of all functions that it calls. What the arguments leave open is tried with
 * several sizes, and a conflict is one with all of them. Conflicts are arena memory. */
tare_status tare_tpu_conflicts_find(struct tare_tpu_conflicts *out, struct tare_arena *arena,
                                    const struct tare_graph *function);
/* NULL: there is none. */
const struct tare_tpu_conflict *tare_tpu_conflict_of(const struct tare_tpu_conflicts *conflicts,
                                                     const struct tare_node *node);
/* One line: what, where, and the remedy. NULL: out of memory. */
const char *tare_tpu_conflict_text(struct tare_arena *arena, const struct tare_tpu_conflict *conflict);
/* Whether the node makes an empty list (TensorArray) that grows. */
bool tare_tpu_is_growing_list(const struct tare_node *node);
void tare_tpu_conflicts_free(struct tare_tpu_conflicts *conflicts);

#endif

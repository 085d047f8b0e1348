/* The functions that run on the TPU: those that were chosen and all that they call. */
#ifndef TARE_TPU_CLOSURE_H
#define TARE_TPU_CLOSURE_H

#include "graph/model.h"

struct tare_tpu_member {
    struct tare_graph *graph;
    bool is_entry; /* one of the chosen functions */
    bool changes;  /* what a pass does to it must not be seen by others */
};

struct tare_tpu_closure {
    struct tare_tpu_member *members; /* the entries first, callers before the functions that they alone call */
    size_t count;
};

/* Collects the functions below `entries`; arena memory. */
tare_status tare_tpu_closure(struct tare_tpu_closure *out, struct tare_arena *arena, struct tare_graph *const *entries,
                             size_t n_entries);
/* Gives the closure copies of its own of the members that a pass is about to change (`changes`) and that somebody else
 * calls, too, or that the model promises to whoever loads it under an alias or in its object graph. What calls a copied
 * function is copied as well where it is shared. Members are updated; *copies is the number made. */
tare_status tare_tpu_closure_own(struct tare_tpu_closure *closure, struct tare_arena *arena, size_t *copies);

#endif

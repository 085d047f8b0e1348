/* The functions below chosen ones, and their separation from those that others call, before a pass changes them. */
#ifndef TARE_TPU_CLOSURE_H
#define TARE_TPU_CLOSURE_H

#include "graph/graph_table.h"
#include "graph/model.h"

struct tare_tpu_member {
    struct tare_graph *graph;
    bool is_entry; /* chosen, or called in a way that the closure does not follow: it keeps its signature */
    bool changes;  /* a pass is about to change it: other callers must not see that */
};

/* How far a closure reaches, and how its copies are called. */
struct tare_tpu_closure_rules {
    /* Whether the function of a call changes together with its caller. The functions of other calls are entries; those
     * of ops whose calls are not understood (a dataset's) are left out. NULL: every call. */
    bool (*follows)(const struct tare_node *call);
    const char *suffix; /* of copies' names; NULL: "_on_tpu" */
    /* The caller keeps a wrapper under the name of every function that an alias or the object graph promises: these
     * are not copied for that reason alone, nor for callers that nothing reaches. */
    bool wraps_promised;
};

struct tare_tpu_closure {
    struct tare_tpu_member *members; /* the entries first, callers before the functions that they alone call */
    size_t count, capacity;
    struct tare_tpu_closure_rules rules;
};

/* Collects the functions below `entries`, one of which may be the main graph: of it, the nodes that signatures and
 * initialisers need; arena memory. */
tare_status tare_tpu_closure(struct tare_tpu_closure *out, struct tare_arena *arena, struct tare_graph *const *entries,
                             size_t n_entries);
/* The same with rules. */
tare_status tare_tpu_closure_by(struct tare_tpu_closure *out, struct tare_arena *arena,
                                struct tare_graph *const *entries, size_t n_entries,
                                const struct tare_tpu_closure_rules *rules);
/* Adds a function as an entry. */
tare_status tare_tpu_closure_add_entry(struct tare_tpu_closure *closure, struct tare_arena *arena,
                                       struct tare_graph *graph);
/* Copies the members that a pass is about to change (`changes`) and that are also called from outside or promised (see
 * rules). Shared callers of a copied function are copied as well. Members are updated, and call the copies; *copies is
 * their number. */
tare_status tare_tpu_closure_own(struct tare_tpu_closure *closure, struct tare_arena *arena, size_t *copies);
/* Members call the functions of `renamed` (name of a function -> struct tare_graph) instead of those with the names, in
 * the calls that the closure follows. */
tare_status tare_tpu_closure_redirect(const struct tare_tpu_closure *closure, const struct tare_map *renamed);

/* Adds the functions that a loader may call by name to an empty table: an alias or the object graph refers to them. */
tare_status tare_tpu_promised(struct tare_graph_table *out, const struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif

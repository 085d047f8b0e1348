/* Choosing the functions that run on the TPU. */
#ifndef TARE_TPU_FUNCTIONS_H
#define TARE_TPU_FUNCTIONS_H

#include "graph/model.h"

/* One `tpu_functions` entry of the converter options. */
struct tare_tpu_choice {
    enum tare_tpu_choice_kind {
        TARE_TPU_BY_ALIAS,     /* every concrete function of that alias */
        TARE_TPU_BY_CONCRETE,  /* the function of that name */
        TARE_TPU_BY_SIGNATURE, /* the function that a signature calls */
        TARE_TPU_BY_JIT,       /* every function traced with jit_compile=True */
    } kind;
    const char *name; /* NULL for TARE_TPU_BY_JIT */
    bool is_soft;     /* the runtime computes on the CPU what the TPU does not support */
};

/* A function chosen for the TPU and how the user named it. */
struct tare_tpu_function {
    struct tare_graph *graph;
    const struct tare_tpu_choice *choice;
    const char *label; /* for reports: alias, signature or function name */
};

/* Finds the functions; arena memory. Copies of a named function that passes made for its callers (copied_from) are
 * chosen with it, or in its place if nothing calls it any more. TARE_NOT_FOUND lists the known names,
 * TARE_INVALID_ARGUMENT when a function is named twice (and by which names) or when one TPU function calls another
 * through a function that stays on the CPU. */
tare_status tare_tpu_find_functions(struct tare_tpu_function **out, size_t *count, struct tare_arena *arena,
                                    const struct tare_graph_model *model, const struct tare_tpu_choice *choices,
                                    size_t n_choices);

/* The function that a signature's call node in the main graph runs; NULL when its outputs do not come from one call. */
struct tare_graph *tare_signature_function(const struct tare_signature *signature);

#endif

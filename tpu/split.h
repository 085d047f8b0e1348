/* Splitting of signatures' functions: the largest part that a TPU supports becomes a function of its own. */
#ifndef TARE_TPU_SPLIT_H
#define TARE_TPU_SPLIT_H

#include "tpu/functions.h"

struct tare_tpu_split {
    struct tare_tpu_choice *choices; /* the functions to place, as if the user had named them */
    size_t count;
    const char **notes; /* one line per signature */
    size_t n_notes;
};

/* For every signature: its function, where the TPU supports all of it. Otherwise calls of functions that the TPU does
 * not support are inlined into it, and of the nodes that neither lead to an unsupported one nor depend on one, the side
 * that computes more is outlined (graph/outline.h) for the TPU, if it does at least a tenth of the work; the other side
 * as well, if it does at least a quarter (three parts, with the unsupported nodes in the middle one). Sides that do
 * less stay on the CPU: a call costs a transfer each way. Arguments and returns of a part are dense numbers or handles
 * of variables; compile-time constants are computed inside the part; nodes that write variables are not included. Nodes
 * that depend on constants and shapes only (tpu/split_derived.h) are computed on the CPU for the CPU. Results are
 * bit-identical. Arena memory; TARE_UNSUPPORTED when no part of any signature can be placed. */
tare_status tare_tpu_split(struct tare_tpu_split *out, struct tare_arena *arena, struct tare_graph_model *model);
/* The same for those of the functions that the user named whose choice is_soft: their parts take their place. Every
 * function that stays whole is chosen by its name. Arena memory; TARE_UNSUPPORTED when nothing is left to place. */
tare_status tare_tpu_split_soft(struct tare_tpu_split *out, struct tare_arena *arena, struct tare_graph_model *model,
                                const struct tare_tpu_function *functions, size_t count);

#endif

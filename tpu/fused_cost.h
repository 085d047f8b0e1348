/* Least time of a signature on a TPU when its compiler fuses what it usually does: elementwise work goes with the op
 * before it, and only what another op reads goes through memory. Unlike tpu/cost.h, whose units count every op by
 * itself, this is for comparing models of one function: a quantized one has many more elementwise ops, which cost next
 * to nothing.
 *
 * The rules: an elementwise op belongs to the group of its latest input, identities and reshapes to that of their
 * input, every other op begins a group. A tensor is written where a user lies in another group or is not elementwise,
 * or it is a result, and read once by each such user; what is computed of constants alone costs the reading of these
 * constants. A group takes the longer of its arithmetic and its traffic (tpu/chips.h). Bodies of If and Case all count,
 * those of While once. */
#ifndef TARE_TPU_FUSED_COST_H
#define TARE_TPU_FUSED_COST_H

#include "graph/model.h"
#include "tpu/chips.h"

struct tare_fused_cost {
    double macs, integer_macs; /* those of products of 8 or 4 bit integers */
    double bytes;
    double seconds[TARE_TPU_CHIPS];
};

/* Adds up the groups. `each` (NULL: nobody) is told of every group with its first op. The model's calls are inlined
 * (graph/inline.h) and its signature's inputs have known shapes; open dimensions elsewhere count as one. Arena memory
 * is for scratch. */
tare_status tare_tpu_fused_cost(struct tare_fused_cost *out, struct tare_arena *arena, const struct tare_model *model,
                                const struct tare_signature *signature,
                                void (*each)(void *arg, const struct tare_node *first,
                                             const struct tare_fused_cost *group),
                                void *arg) TARE_WARN_UNUSED;

#endif

/* A signature's time on a TPU with the compiler's usual fusions: elementwise ops are fused into the op before them, and
 * only tensors that another op reads pass through memory. Unlike tpu/cost/cost.h, whose units count every op
 * separately, this is for comparing models of one function, and for the times of the Conversion Report.
 *
 * The rules: groups are those of tpu/cost/groups.h. A tensor is written where a user is in another group, or it is a
 * result, and read once by each such group; values computed only from constants cost the reading of these constants.
 * Bodies of If and Case all count, those of While as often as they run, where a counter tells (graph/trips.h). */
#ifndef TARE_TPU_FUSED_COST_H
#define TARE_TPU_FUSED_COST_H

#include "graph/bindings.h"
#include "graph/model.h"
#include "interpreter/inference/infer.h"
#include "tpu/cost/schedule.h"

/* Times that of the float model: an estimate of a quantized one that is less is right, as far as the compiler was asked
 * (docs/performance.md, "On the TPU"). */
#define TARE_TPU_CERTAIN 0.8

struct tare_fused_cost {
    double macs, integer_macs, float8_macs; /* those of products of 8 or 4 bit integers, and of eight-bit floats */
    double bytes;
    double work[2][TARE_TPU_WORKS]; /* of groups without and with products of 8 or 4 bit integers */
    double seconds[TARE_TPU_CHIPS]; /* estimated (tpu/cost/schedule.h) */
    double least[TARE_TPU_CHIPS];   /* lower bound: computing at peak, and moving all bytes */
};

/* Adds up the groups. `each` (may be NULL) is called with every group and its first op. Inline the model's calls first
 * (graph/inline.h), otherwise no op is fused with one in another function; open first dimensions count as `batch`,
 * others as one. TARE_UNSUPPORTED if all call paths together have more than 400,000 nodes. Arena memory is for scratch.
 */
tare_status
tare_tpu_fused_cost(struct tare_fused_cost *out, struct tare_arena *arena, const struct tare_graph_model *model,
                    const struct tare_signature *signature, int64_t batch,
                    void (*each)(void *arg, const struct tare_node *first, const struct tare_fused_cost *group),
                    void *arg) TARE_WARN_UNUSED;

/* The same for one graph with the functions that it calls, whose ops are not fused with its own. */
tare_status tare_tpu_fused_graph_cost(struct tare_fused_cost *out, struct tare_arena *arena,
                                      struct tare_bindings *bindings, struct tare_inference *inference,
                                      const struct tare_graph *graph, const struct tare_shape *args) TARE_WARN_UNUSED;

#endif

/* The cost model of the Conversion Report: work by op row, on shapes inferred with every unknown dimension as one
 * (the first one of an argument: as the batch asked for).
 *
 * One unit is a thousand operations: multiply-accumulates, or, for ops that compute no products, elements moved or
 * computed (a quarter of the bytes read and written). An op costs at least one unit, but constants, identities,
 * reshapes and placement nodes cost nothing. A loop's body counts once. docs/converter.md has the reasons. */
#ifndef TARE_TPU_COST_H
#define TARE_TPU_COST_H

#include "graph/model.h"
#include "tpu/chips.h"
#include "tpu/placement.h"

/* One function on the TPU. */
struct tare_cost_share {
    const char *label; /* alias, signature or function; "ALIAS (FUNCTION)" where an alias has several functions */
    const struct tare_graph *graph; /* the replicated function */
    int64_t cost;
    double macs, int8_macs;         /* int8_macs of macs are on 8-bit integers */
    double bytes;                   /* into and out of its ops */
    double host_in, host_out;       /* bytes that one call moves to and from the TPU */
    double seconds[TARE_TPU_CHIPS]; /* least time of one call (tpu/cost/fused.h); NaN: not known */
};

/* All nodes of one op. */
struct tare_cost_op {
    const char *op;
    bool on_tpu;
    int64_t nodes, cost;
    double macs, bytes;
};

struct tare_cost_report {
    int64_t batch; /* the value used for open first dimensions */
    int64_t total, cpu, tpu;
    struct tare_cost_share
        *functions; /* one per TPU function, in the order of placement; then those of earlier conversions */
    size_t n_functions;
    struct tare_cost_op *ops; /* dearest first */
    size_t n_ops;
};

/* Cost of the model's signatures after placement; arena memory. batch 0 is 1. */
tare_status tare_cost_report(struct tare_cost_report *out, struct tare_arena *arena,
                             const struct tare_graph_model *model, const struct tare_tpu_placed *placed,
                             size_t n_placed, int64_t batch);
/* The report's text in the converter's layout ("-------- Conversion Report --------" …). */
struct tare_strbuf;
void tare_cost_report_print(struct tare_strbuf *out, const struct tare_cost_report *report);

#endif

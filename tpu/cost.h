/* The cost model behind the Conversion Report: work by op row, on shapes inferred with every unknown dimension as one.
 *
 * One unit is a thousand operations: multiply-accumulates, or, for ops that compute no products, elements moved or
 * computed (a quarter of the bytes that go in and out). An op costs at least one unit, but constants, identities, reshapes and
 * placement nodes cost nothing. docs/architecture.md gives the reasons. */
#ifndef TARE_TPU_COST_H
#define TARE_TPU_COST_H

#include "graph/model.h"
#include "tpu/placement.h"

struct tare_cost_share {
    const char *label;
    int64_t cost;
};

struct tare_cost_report {
    int64_t total, cpu, tpu;
    struct tare_cost_share *functions; /* one a TPU function, in the order of placement */
    size_t n_functions;
};

/* Cost of the model's signatures after placement; arena memory. */
tare_status tare_cost_report(struct tare_cost_report *out, struct tare_arena *arena, const struct tare_model *model,
                             const struct tare_tpu_placed *placed, size_t n_placed);
/* The report's text in the converter's layout ("-------- Conversion Report --------" …). */
struct tare_strbuf;
void tare_cost_report_print(struct tare_strbuf *out, const struct tare_cost_report *report);

#endif

/* Networks of tests/tpu/compiler/networks.tsv (tests/judges/cost_networks.py describes them) as graphs, float
 * and quantized as the program does it, with what an estimate counts in them. */
#ifndef TARE_TESTS_SUPPORT_COSTED_NETWORKS_H
#define TARE_TESTS_SUPPORT_COSTED_NETWORKS_H

#include "tpu/cost/fused.h"

struct costed_row {
    char network[40], form[8], chip[8], layers[128];
    int64_t batch;
    double cycles;
};

enum { COSTED_MOST_ROWS = 4096 };

/* Rows of networks that are small enough to be calibrated. A sum with the argument is not judged: no network has one.
 */
size_t costed_read(struct costed_row *rows);

void costed_estimate(struct tare_fused_cost *cost, const char *layers, bool integer, int64_t batch);

#endif

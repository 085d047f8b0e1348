/* network_work: prints what an estimate counts (tpu/cost/schedule.h) in each network of
 * tests/tpu/compiler/networks.tsv, a line for each form and batch: layers, form, batch, and the amounts in groups
 * without and with products of integers. network_work MODEL BATCH: the amounts of a model as it is converted.
 * tests/judges/fit_costs.py reads them. */
#include "support/costed_networks.h"

#include "convert/prepared.h"
#include "workflow/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_work(double work[2][TARE_TPU_WORKS]) {
    for (int i = 0; i < 2; i++)
        for (int w = 0; w < TARE_TPU_WORKS; w++)
            printf("\t%.6g", work[i][w]);
    putchar('\n');
}

static void print_networks(void) {
    static struct costed_row rows[COSTED_MOST_ROWS];
    const size_t count = costed_read(rows);
    for (size_t i = 0; i < count; i++) {
        struct tare_fused_cost cost;
        size_t first = 0;
        while (strcmp(rows[first].layers, rows[i].layers) != 0 || strcmp(rows[first].form, rows[i].form) != 0 ||
               rows[first].batch != rows[i].batch)
            first++;
        if (first < i) continue;
        costed_estimate(&cost, rows[i].layers, strcmp(rows[i].form, "int8") == 0, rows[i].batch);
        printf("%s\t%s\t%ld", rows[i].layers, rows[i].form, (long)rows[i].batch);
        print_work(cost.work);
    }
}

static tare_status print_model(const char *path, int64_t batch) {
    const struct tare_check_request request = { .batch = batch, .estimate = true };
    struct tare_graph_model *model;
    struct tare_check check = { 0 };
    tare_status status;
    TARE_TRY(tare_load_prepared(&model, path));
    status = tare_workflow_check(&check, model, &request);
    for (size_t i = 0; status == TARE_OK && i < check.n_parts; i++)
        print_work(check.parts[i].work);
    tare_check_free(&check);
    tare_model_free(model);
    return status;
}

int main(int argc, char **argv) {
    if (argc == 1) {
        print_networks();
        return 0;
    }
    if (argc == 3 && print_model(argv[1], atol(argv[2])) == TARE_OK) return 0;
    fprintf(stderr, "network_work: %s\n", argc == 3 ? tare_error_text() : "MODEL BATCH, or nothing");
    return 1;
}

/* network_work MODEL BATCH: prints what an estimate counts (tpu/cost/schedule.h) in a model as it is converted, a line
 * for each function on the TPU: the amounts in groups without and with products of integers. tests/judges/fit_costs.py
 * reads them. */
#include "convert/prepared_model.h"
#include "workflow/check/check.h"

#include <stdio.h>
#include <stdlib.h>

static void print_work(double work[2][TARE_TPU_WORKS]) {
    for (int i = 0; i < 2; i++)
        for (int w = 0; w < TARE_TPU_WORKS; w++)
            printf("\t%.6g", work[i][w]);
    putchar('\n');
}

static tare_status print_model(const char *path, int64_t batch) {
    const struct tare_check_request request = { .batch = batch, .estimate = true };
    struct tare_graph_model *model;
    struct tare_check check = { 0 };
    tare_status status;
    TARE_TRY(tare_load_prepared(&model, path));
    status = tare_workflow_check(&check, model, &request, NULL);
    for (size_t i = 0; status == TARE_OK && i < check.n_parts; i++)
        print_work(check.parts[i].work);
    tare_check_free(&check);
    tare_model_free(model);
    return status;
}

int main(int argc, char **argv) {
    if (argc == 3 && print_model(argv[1], atol(argv[2])) == TARE_OK) return 0;
    fprintf(stderr, "network_work: %s\n", argc == 3 ? tare_error_text() : "MODEL BATCH");
    return 1;
}

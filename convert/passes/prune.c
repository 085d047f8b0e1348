/* Drops functions that no signature or alias reaches, and nodes without effect. */
#include "convert/pass.h"
#include "graph/calls.h"

static tare_status run(struct tare_model *model, size_t *changes) {
    struct tare_arena arena = { 0 };
    bool *live;
    size_t before = model->n_functions;
    tare_status status;
    *changes += tare_graph_remove_unreachable(model->main);
    TARE_CHECK(tare_model_reachable_functions(&live, &arena, model, true));
    tare_model_remove_functions(model, live);
    *changes += before - model->n_functions;
    for (size_t i = 0; i < model->n_functions; i++) *changes += tare_graph_remove_unreachable(model->functions[i]);
done:
    tare_arena_free(&arena);
    return status;
}

const struct tare_pass tare_pass_prune = {
    .name = "prune",
    .help = "drop functions that no signature or alias reaches, and nodes without effect",
    .run = run,
};

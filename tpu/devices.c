/* Removes devices from the functions to place. */
#include "tpu/devices.h"
#include "graph/devices.h"
#include "tpu/closure.h"

static bool has_work(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && tare_device_is_foreign(graph->nodes[i]->device)) return true;
    return false;
}

tare_status tare_tpu_clear_devices(size_t *cleared, struct tare_arena *arena, struct tare_graph *const *graphs,
                                   size_t count) {
    struct tare_tpu_closure closure = { 0 };
    size_t copies;
    TARE_TRY(tare_tpu_closure(&closure, arena, graphs, count));
    for (size_t m = 0; m < closure.count; m++)
        closure.members[m].changes = has_work(closure.members[m].graph);
    TARE_TRY(tare_tpu_closure_own(&closure, arena, &copies));
    for (size_t m = 0; m < closure.count; m++)
        for (size_t i = 0; i < closure.members[m].graph->n_nodes; i++) {
            struct tare_node *node = closure.members[m].graph->nodes[i];
            if (node->dead || !tare_device_is_foreign(node->device)) continue;
            node->device = "";
            ++*cleared;
        }
    return TARE_OK;
}

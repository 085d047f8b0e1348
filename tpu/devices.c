/* Removes devices from the functions to place. */
#include "tpu/devices.h"
#include "tpu/closure.h"

#include <string.h>

bool tare_tpu_is_foreign_device(const char *device) {
    static const char local[] = "/job:localhost";
    const char *job, *kind;
    if (!device || !device[0]) return false;
    job = strstr(device, "/job:");
    kind = strstr(device, "/device:");
    if (job && strncmp(job, local, strlen(local)) != 0) return true;
    return kind ? strncmp(kind, "/device:CPU", strlen("/device:CPU")) != 0
                : strstr(device, "gpu:") || strstr(device, "GPU:");
}

static bool has_work(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && tare_tpu_is_foreign_device(graph->nodes[i]->device)) return true;
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
            if (node->dead || !tare_tpu_is_foreign_device(node->device)) continue;
            node->device = "";
            ++*cleared;
        }
    return TARE_OK;
}

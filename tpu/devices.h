/* Devices of nodes: a TPU function runs where the runtime places its cluster. */
#ifndef TARE_TPU_DEVICES_H
#define TARE_TPU_DEVICES_H

#include "graph/model.h"

/* Removes foreign devices (graph/devices.h) from the nodes of the functions to place and of those that they call;
 * functions that others call as well are copied first. Adds the number of nodes to *cleared. */
tare_status tare_tpu_clear_devices(size_t *cleared, struct tare_arena *arena, struct tare_graph *const *graphs,
                                   size_t count);

#endif

/* Devices that nodes are assigned to. */
#ifndef TARE_GRAPH_DEVICES_H
#define TARE_GRAPH_DEVICES_H

#include <stdbool.h>

/* Whether a device string of a node names another device than the CPU of the process that runs the graph: a GPU, a TPU,
 * another job or task. "" and NULL: no. */
bool tare_device_is_foreign(const char *device);

#endif

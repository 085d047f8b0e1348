/* Checks of XLA sharding options: the topology, the device assignment, and how inputs are split. */
#ifndef TARE_TPU_TOPOLOGY_H
#define TARE_TPU_TOPOLOGY_H

#include "base/arena.h"
#include "tpu/placement.h"

/* The contents of a serialized TopologyProto. */
struct tare_tpu_topology {
    int64_t mesh[4];                   /* chips in x, y, z; cores a chip */
    int64_t n_tasks, devices_per_task; /* 0: not given */
    int64_t *coordinates;              /* n_devices times x, y, z, core */
    size_t n_devices;
};

/* Reads a TopologyProto; arena memory. TARE_CORRUPT for invalid bytes (with their offset), TARE_INVALID_ARGUMENT
 * for a mesh without four positive entries, or coordinates that are outside of it or duplicate. */
tare_status tare_tpu_topology_read(struct tare_tpu_topology *out, struct tare_arena *arena, const void *data,
                                   size_t size);

/* Checks the options as a whole: num_cores_per_replica is not negative; with more than one core a topology is required,
 * with that many devices; the device assignment is empty or names num_cores_per_replica different devices of the
 * topology.
 */
tare_status tare_tpu_sharding_check(const struct tare_tpu_sharding *sharding);

#endif

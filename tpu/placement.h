/* Placement of functions on the TPU: the body moves into a replicated function, a call stub keeps the old name. */
#ifndef TARE_TPU_PLACEMENT_H
#define TARE_TPU_PLACEMENT_H

#include "tpu/functions.h"

/* Attributes of TPUReplicateMetadata beyond the defaults. */
struct tare_tpu_sharding {
    int num_cores_per_replica;        /* 0 and 1: no sharding */
    const int64_t *device_assignment; /* flattened [x, y, z, core] */
    size_t n_device_assignment;
    const void *topology; /* serialized TopologyProto */
    size_t topology_size;
};

/* One placed function, for later passes and the report. */
struct tare_tpu_placed {
    struct tare_graph *stub;       /* keeps the old name: TPUOrdinalSelector and TPUPartitionedCall */
    struct tare_graph *replicated; /* the body with its cluster */
    const char *label;
    const char *cluster; /* the value of _tpu_replicate */
};

/* Places every function; arena memory. A TPU function that another one calls directly runs inside it, as a copy.
 * `quantized` is encoded in the replicated functions' names, from which the runtime derives the producer. */
tare_status tare_tpu_place(struct tare_tpu_placed **out, struct tare_arena *arena, struct tare_graph_model *model,
                           const struct tare_tpu_function *functions, size_t count,
                           const struct tare_tpu_sharding *sharding, bool quantized);

/* Names of the node attributes that mark a cluster. */
#define TARE_TPU_CLUSTER_ATTR "_tpu_replicate"

#endif

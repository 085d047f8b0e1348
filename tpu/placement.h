/* Placement of functions on the TPU: the body moves into a replicated function, a call stub keeps the old name. */
#ifndef TARE_TPU_PLACEMENT_H
#define TARE_TPU_PLACEMENT_H

#include "tpu/functions.h"

/* An argument of a function that is split between the cores along one dimension. */
struct tare_tpu_argument_split {
    const struct tare_tpu_choice *function;
    uint32_t argument, dimension, parts;
};

/* Attributes of TPUReplicateMetadata beyond the defaults. */
struct tare_tpu_sharding {
    int num_cores_per_replica;        /* 0 and 1: no sharding */
    const int64_t *device_assignment; /* flattened [x, y, z, core] */
    size_t n_device_assignment;
    const void *topology; /* serialized TopologyProto */
    size_t topology_size;
    bool uses_shardy;
    const struct tare_tpu_argument_split *splits;
    size_t n_splits;
};

struct tare_tpu_place_options {
    const struct tare_tpu_sharding *sharding; /* NULL: none */
    bool quantized;      /* in the replicated functions' names, from which the runtime derives the producer */
    bool shares_cluster; /* all functions have the cluster name "cluster", instead of one each */
};

/* One placed function, for later passes and the report. */
struct tare_tpu_placed {
    struct tare_graph *stub;       /* keeps the old name: TPUOrdinalSelector and TPUPartitionedCall */
    struct tare_graph *replicated; /* the body with its cluster */
    const char *label;
    const char *cluster; /* the value of _tpu_replicate */
};

/* Places every function; arena memory. A TPU function that another one calls directly runs inside it, as a copy. A
 * function whose choice is soft lets the runtime move ops that the TPU does not support to the CPU. */
tare_status tare_tpu_place(struct tare_tpu_placed **out, struct tare_arena *arena, struct tare_graph_model *model,
                           const struct tare_tpu_function *functions, size_t count,
                           const struct tare_tpu_place_options *options);

/* Names of the node attributes that mark a cluster. */
#define TARE_TPU_CLUSTER_ATTR "_tpu_replicate"

#endif

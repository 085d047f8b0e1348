/* Ops that place a computation on a TPU. The interpreter runs it once, on the CPU: core selectors return an unused
 * number, replicated tensors are identities, and compilation always succeeds. */
#include "interpreter/ops/families.h"
#include "interpreter/kernel.h"

static tare_status infer_nothing(struct tare_infer *infer) {
    (void)infer;
    return TARE_OK;
}

static tare_status run_nothing(struct tare_kernel *kernel) {
    (void)kernel;
    return TARE_OK;
}

/* The runtime's selectors leave the choice of the core to the call and return this value. */
static tare_status run_ordinal(struct tare_kernel *kernel) {
    enum { CHOSEN_BY_THE_CALL = -8193 };
    struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT32, &scalar));
    TARE_DATA(int32_t, &kernel->outputs[0])[0] = CHOSEN_BY_THE_CALL;
    return TARE_OK;
}

static tare_status run_forward(struct tare_kernel *kernel) {
    return tare_kernel_forward(kernel, 0, 0);
}

static tare_status run_copies(struct tare_kernel *kernel) {
    for (size_t i = 0; i < kernel->n_outputs; i++)
        TARE_TRY(tare_kernel_forward(kernel, i, 0));
    return TARE_OK;
}

/* An empty serialized result: no error. */
static tare_status run_compilation_result(struct tare_kernel *kernel) {
    struct tare_shape scalar = tare_shape_scalar();
    return tare_kernel_output(kernel, 0, TARE_DT_STRING, &scalar);
}

static tare_status infer_partition(struct tare_infer *infer) {
    if (infer->n_inputs == 1 && infer->n_outputs == 1) infer->outputs[0] = infer->inputs[0];
    return TARE_OK;
}

static tare_status run_partition(struct tare_kernel *kernel) {
    size_t parts = kernel->n_inputs > kernel->n_outputs ? kernel->n_inputs : kernel->n_outputs;
    if (parts > 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "a tensor in %zu parts is not supported (the interpreter uses one core)",
                         parts);
    return tare_kernel_forward(kernel, 0, 0);
}

/* Reduces over the replicas of a group. There is one replica, so groups with more members are rejected. */
static tare_status run_over_replicas(struct tare_kernel *kernel) {
    const struct tare_tensor *groups = &kernel->inputs[1];
    if (groups->shape.rank != 2)
        return TARE_FAIL(TARE_SHAPE, "group_assignment has rank %d (expected 2)", groups->shape.rank);
    if (groups->shape.dims[1] > 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "groups of %lld replicas are not supported (the interpreter runs one)",
                         (long long)groups->shape.dims[1]);
    return tare_kernel_forward(kernel, 0, 0);
}

#define PLACED(op, in, out, spec, shapes, kernel, extra)                                                               \
    {                                                                                                                  \
        .name = op, .inputs = in, .outputs = out, .attrs = spec, .infer = shapes, .run = kernel,                       \
        .flags = TARE_OP_NO_FOLD | TARE_OP_FLOAT32 | (extra), .quant = TARE_QUANT_PASS_THROUGH                         \
    }

const struct tare_op tare_ops_tpu[] = {
    { .name = "TPUOrdinalSelector",
      .outputs = "device_ordinals: int32",
      .infer = tare_infer_scalar,
      .run = run_ordinal,
      .flags = TARE_OP_STATEFUL | TARE_OP_FIXED },
    { .name = "TPURoundRobin",
      .outputs = "device_ordinal: int32",
      .infer = tare_infer_scalar,
      .run = run_ordinal,
      .flags = TARE_OP_STATEFUL | TARE_OP_FIXED },
    { .name = "TPUReplicateMetadata",
      .attrs =
          "num_replicas: int >= 0; num_cores_per_replica: int = 1; topology: string = ''; use_tpu: bool = true; "
          "device_assignment: list(int) = []; computation_shape: list(int) = []; host_compute_core: list(string) = []; "
          "padding_map: list(string) = []; step_marker_location: string = 'STEP_MARK_AT_ENTRY'; "
          "allow_soft_placement: bool = false; use_spmd_for_xla_partitioning: bool = false; "
          "use_shardy_partitioner: bool = false; tpu_compile_options_proto: string = ''",
      .infer = infer_nothing,
      .run = run_nothing,
      .flags = TARE_OP_FIXED },
    { .name = "TPUCompilationResult",
      .outputs = "output: string",
      .infer = tare_infer_scalar,
      .run = run_compilation_result,
      .flags = TARE_OP_NO_FOLD | TARE_OP_FIXED },
    PLACED("TPUReplicatedInput", "inputs: N * T", "output: T",
           "N: int >= 1; T: type; is_mirrored_variable: bool = false; index: int = -1; is_packed: bool = false",
           tare_infer_same, run_forward, 0),
    PLACED("TPUReplicatedOutput", "input: T", "outputs: num_replicas * T", "num_replicas: int >= 1; T: type",
           tare_infer_same, run_copies, 0),
    PLACED("TPUPartitionedInput", "inputs: N * T", "output: T", "N: int >= 1; T: type; partition_dim: int = 0",
           infer_partition, run_partition, 0),
    PLACED("TPUPartitionedInputV2", "inputs: N * T", "output: T",
           "N: int >= 1; T: type; partition_dims: list(int); is_packed: bool = false", infer_partition, run_partition,
           0),
    PLACED("TPUPartitionedOutput", "inputs: T", "output: num_splits * T",
           "T: type; num_splits: int >= 1; partition_dim: int = 0", infer_partition, run_partition, 0),
    PLACED("TPUPartitionedOutputV2", "inputs: T", "output: num_splits * T",
           "T: type; num_splits: int >= 1; partition_dims: list(int)", infer_partition, run_partition, 0),
    PLACED("XlaSharding", "input: T", "output: T", "T: type; sharding: string = ''; unspecified_dims: list(int) = []",
           tare_infer_same, run_forward, TARE_OP_MOVE),
    { .name = "CrossReplicaSum",
      .inputs = "input: T, group_assignment: int32",
      .outputs = "output: T",
      .attrs = "T: {half, bfloat16, float, double, int32, uint32}",
      .infer = tare_infer_same,
      .run = run_over_replicas,
      .flags = TARE_OP_STATEFUL },
    { .name = "XlaAllReduce",
      .inputs = "input: T, group_assignment: int32",
      .outputs = "output: T",
      .attrs = "T: {half, bfloat16, float, int32, uint32}; reduce_op: {'Min', 'Max', 'Mul', 'Add', 'Mean'}; mode: "
               "{'CrossReplica', 'CrossReplicaAndPartition'}",
      .infer = tare_infer_same,
      .run = run_over_replicas },
    { 0 },
};

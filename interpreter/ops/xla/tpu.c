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

#define PLACED(op, shapes, kernel, extra)                                                                              \
    {                                                                                                                  \
        .name = op, .infer = shapes, .run = kernel, .flags = TARE_OP_NO_FOLD | TARE_OP_FLOAT32 | (extra),              \
        .quant = TARE_QUANT_PASS_THROUGH                                                                               \
    }

const struct tare_op tare_ops_tpu[] = {
    { .name = "TPUOrdinalSelector",
      .infer = infer_nothing, /* TensorFlow infers a vector, and its kernel gives a scalar */
      .run = run_ordinal,
      .flags = TARE_OP_STATEFUL | TARE_OP_FIXED },
    { .name = "TPURoundRobin",
      .infer = tare_infer_scalar,
      .run = run_ordinal,
      .flags = TARE_OP_STATEFUL | TARE_OP_FIXED },
    { .name = "TPUReplicateMetadata", .infer = infer_nothing, .run = run_nothing, .flags = TARE_OP_FIXED },
    { .name = "TPUCompilationResult",
      .infer = tare_infer_scalar,
      .run = run_compilation_result,
      .flags = TARE_OP_NO_FOLD | TARE_OP_FIXED },
    PLACED("TPUReplicatedInput", tare_infer_same, run_forward, 0),
    PLACED("TPUReplicatedOutput", tare_infer_same, run_copies, 0),
    PLACED("TPUPartitionedInput", infer_partition, run_partition, 0),
    PLACED("TPUPartitionedInputV2", infer_partition, run_partition, 0),
    PLACED("TPUPartitionedOutput", infer_partition, run_partition, 0),
    PLACED("TPUPartitionedOutputV2", infer_partition, run_partition, 0),
    PLACED("XlaSharding", tare_infer_same, run_forward, TARE_OP_MOVE),
    { .name = "CrossReplicaSum", .infer = tare_infer_same, .run = run_over_replicas, .flags = TARE_OP_STATEFUL },
    { .name = "XlaAllReduce", .infer = tare_infer_same, .run = run_over_replicas },
    { 0 },
};

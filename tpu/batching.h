/* Batching inside the graph: BatchFunction ops that gather requests before a function. */
#ifndef TARE_TPU_BATCHING_H
#define TARE_TPU_BATCHING_H

#include "tpu/functions.h"

/* The queue of requests of low priority; max_batch_size 0: there is none. */
struct tare_low_priority {
    int max_batch_size, batch_timeout_micros;
    int max_enqueued_batches; /* 0: 10 */
    const int64_t *allowed_batch_sizes;
    size_t n_allowed;
    const char *policy; /* mixed_priority_policy of the op; NULL: its default */
};

/* One BatchOptions message: the batcher's numbers, and the functions to which they apply. */
struct tare_batch_options {
    int num_batch_threads, max_batch_size, batch_timeout_micros;
    int max_enqueued_batches; /* 0: 10, the default of the op */
    const int64_t *allowed_batch_sizes;
    size_t n_allowed;
    bool disable_large_batch_splitting;
    enum tare_batch_component { TARE_BATCH_TPU, TARE_BATCH_ALIAS, TARE_BATCH_CONCRETE, TARE_BATCH_SIGNATURE } component;
    const char *name; /* NULL for TARE_BATCH_TPU */
    struct tare_low_priority low_priority;
};

struct tare_batching_result {
    size_t inserted, updated; /* BatchFunction nodes */
    const char **notes;       /* shapes that only requests will show: one line each */
    size_t n_notes;
    const char **warnings; /* requests that depend on others, or fail */
    size_t n_warnings;
    const char *mixing; /* the first node that mixes the rows of a batch, and its function; NULL: none is known */
};

/* Text NULL: out of memory. */
tare_status tare_batch_add_warning(struct tare_batching_result *out, struct tare_arena *arena, const char *text);

/* Applies every entry of `options`, after placement. A function F that is batched keeps its name and signature; its
 * body moves to F_with_batch, which one BatchFunction in F calls. Resources and captured constants are passed on as
 * captured_tensors, everything else is batched. TARE_BATCH_TPU batches every placed function, and functions that called
 * the TPU before, unless a batcher is already before them; batchers of the input model get the new numbers.
 *
 * The op's four requirements on shapes are checked as far as shapes are known, outputs by trying two batch sizes:
 * TARE_SHAPE with the runtime's message, the tensor and the remedy. Dimensions beyond the first that are open are
 * noted. TARE_INVALID_ARGUMENT when a function would be batched twice or inside another batch, or is called on the TPU;
 * TARE_NOT_FOUND when a name is unknown or there is nothing to batch. */
tare_status tare_tpu_batch(struct tare_batching_result *out, struct tare_arena *arena, struct tare_graph_model *model,
                           const struct tare_batch_options *options, size_t n_options);

/* Before placement: checks that no function that the options batch is called inside one of `placed`, because batching
 * cannot run on the TPU. Unknown names are errors as well. */
tare_status tare_tpu_batch_check(struct tare_arena *arena, struct tare_graph_model *model,
                                 struct tare_graph *const *placed, size_t n_placed,
                                 const struct tare_batch_options *options, size_t n_options);

#endif

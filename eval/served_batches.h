/* Runs records through the BatchFunction ops of a signature as a server does: records are requests that arrive
 * together, a batcher joins their rows up to the maximum batch size, pads each batch to an allowed size, splits large
 * requests, and gives each request its rows. The composition of the batches depends only on the records and their
 * order.
 *
 * The calls of the model are inlined, so that the inputs and outputs of every batcher are edges of the main graph. The
 * requests run up to the first batcher one by one; its batches run; from its outputs they run up to the next one. */
#ifndef TARE_EVAL_SERVED_BATCHES_H
#define TARE_EVAL_SERVED_BATCHES_H

#include "eval/record_batch.h"
#include "eval/runner.h"

/* Batches of one size. */
struct tare_served_size {
    int64_t size, batches;
};

/* What ran through one BatchFunction. */
struct tare_served_batcher {
    const char *name; /* of the node; its callers' names precede it: C/N */
    int64_t requests, rows, batches;
    int64_t padding; /* rows that were added; rows + padding rows were computed */
    int64_t split;   /* requests whose rows ran in several batches */
    const struct tare_served_size *sizes;
    size_t n_sizes; /* ascending by size */
};

struct tare_served_batches;

/* Changes the model for the run: it may then only be run, and only by tare_served_batches_run. TARE_UNSUPPORTED when
 * the signature reaches no BatchFunction, or one inside a branch, a loop or another function that cannot be inlined, or
 * keeps state. `signature` and the model must outlive the result. */
tare_status tare_served_batches_new(struct tare_served_batches **out, struct tare_graph_model *model,
                                    const struct tare_signature *signature) TARE_WARN_UNUSED;
void tare_served_batches_free(struct tare_served_batches *batches); /* NULL is fine */

/* The signature to make a session's outputs from: that of the constructor on the changed model. */
const struct tare_signature *tare_served_batches_signature(const struct tare_served_batches *batches);

/* Runs requests that arrive together through all batchers and sets their outputs. `edges`: of the signature above. */
tare_status tare_served_batches_run_group(struct tare_served_batches *batches, struct tare_session *session,
                                          const struct tare_signature_edges *edges, struct tare_bound_record *records,
                                          size_t count) TARE_WARN_UNUSED;
/* As tare_run_records; options->batch is ignored. Requests arrive in groups that fill the queue (max_enqueued_batches
 * batches of the largest size); the last batch of a group is executed though it may be incomplete, as at a timeout.
 * Errors of a batch have TensorFlow's texts. */
tare_status tare_served_batches_run(struct tare_served_batches *batches, struct tare_session *session,
                                    const struct tare_runner_options *options, tare_record_fn fn,
                                    void *arg) TARE_WARN_UNUSED;
/* The batchers in the order in which requests reach them; borrowed. */
const struct tare_served_batcher *tare_served_batches_list(size_t *count, const struct tare_served_batches *batches);

#endif

/* The parts of a run of models that share values. Used by eval/prefix_cache/ only. */
#ifndef TARE_EVAL_PREFIX_CACHE_PREFIX_CACHE_RUN_H
#define TARE_EVAL_PREFIX_CACHE_PREFIX_CACHE_RUN_H

#include "eval/prefix_cache/prefix_cache.h"
#include "eval/prefix_cache/prefix_cache_plan.h"
#include "eval/record_store.h"

#include <pthread.h>

/* A model of the task with its calls inlined. */
struct tare_prefix_cache_model {
    struct tare_graph_model *model;
    const struct tare_signature *signature;
    struct tare_record_edges edges;
};

struct tare_cached_run {
    const struct tare_prefix_cache_task *task;
    struct tare_prefix_cache_report *report;
    struct tare_prefix_cache_plan plan;
    struct tare_prefix_cache_model *kept; /* by model; the models that fit into memory */
    int64_t models_bytes;                 /* of kept models */
    struct tare_record_reader reader;
    struct tare_record_edges binding;     /* of the first model, whose signature binds the records */
    struct tare_prefix_cache_model first; /* the model that `binding` refers to */
    struct tare_bound_record *records;    /* records of this part */
    size_t count, capacity, part;         /* part: most records of a part */
    size_t batch;                         /* batch size */
    bool at_end;
    int64_t bytes;        /* of kept values, now */
    pthread_mutex_t lock; /* guards `bytes` and the kept values while batches run */
};

/* Builds model `number`; report->unsuited: its calls cannot be inlined, and *out is empty. */
tare_status tare_prefix_cache_make(struct tare_prefix_cache_model *out, struct tare_cached_run *r, size_t number);
void tare_prefix_cache_unmake(struct tare_prefix_cache_model *made);
void tare_prefix_cache_reset_outputs(struct tare_cached_run *r);

/* ---- how many records run together: prefix_cache_batch.c ---- */

/* Sets *batch to 1 if the outputs of a model for a record depend on the other records of a batch. */
tare_status tare_prefix_cache_check_batch(struct tare_cached_run *r, size_t *batch);
/* Sets r->batch to `expected`, or to 1 for records of different shapes. */
tare_status tare_prefix_cache_choose_batch(struct tare_cached_run *r, size_t expected);

/* ---- one model over the records of a part: prefix_cache_step.c runs one batch of it ---- */

struct tare_prefix_cache_step {
    struct tare_cached_run *r;
    const struct tare_prefix_cache_model *made;
    const struct tare_prefix_cache_route *route;
    struct tare_session **sessions;
    int threads;
    size_t n_batches;
};

/* Feeds the kept values and the inputs, keeps the values that later models need, and stores the outputs with the
 * records. Sets report->unsuited if the outputs cannot be split by records. */
tare_status tare_prefix_cache_run_batch(struct tare_prefix_cache_step *step, struct tare_session *session,
                                        size_t batch);

#endif

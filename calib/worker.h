/* State of one calibration thread: a session, and the statistics of its records. */
#ifndef TARE_CALIB_WORKER_H
#define TARE_CALIB_WORKER_H

#include "calib/batch.h"
#include "calib/hessian.h"
#include "calib/observed.h"
#include "calib/statistics.h"
#include "interpreter/feedback.h"
#include "interpreter/session.h"
#include "interpreter/signature_edges.h"

struct tare_shape_probe; /* calib/shape_probe.h */

/* What all workers of a run share; constant while they run. */
struct tare_worker_plan {
    const struct tare_graph_model *model;
    const struct tare_observed *observed;
    struct tare_signature_edges edges;
    bool channels;
    struct tare_feedback_loop *loop; /* state between records; NULL: none. Only for a single worker */
    struct tare_hessians *hessians;  /* counted instead of statistics; NULL: statistics */
    const int32_t *inputs;           /* source file -> input of the calibration */
    /* By slot: the statistics that all workers count into, each with its lock. */
    struct tare_statistics **statistics;
    pthread_mutex_t *locks;
    int64_t most_elements;           /* of an observed tensor, for one record; 0: not known */
    enum tare_batch_layout *layouts; /* by slot, for more than one record; NULL: records run one by one */
};

struct tare_worker {
    const struct tare_worker_plan *plan;
    struct tare_session *session;
    struct tare_tally *tally;
    struct tare_statistics *own; /* by slot; NULL: it counts into the plan's */
    int64_t *reached;            /* by function: records that entered it */
    int64_t *runs;               /* by function: the session's count, as of the last run */
    int64_t *sides, *side_runs;  /* the same for the sides of plan->observed->choices, one after the other */
    struct tare_tensor *joined, *results;
    struct tare_buffer_pool *pool; /* of the joined ones */
    struct tare_place *places;     /* of the current records */
    int64_t *numbers;              /* by slot and term of its counter: the current value; below 0: none */
    size_t room, count;
    struct tare_shape_probe *probe; /* receives the shapes of observed tensors during a batch check; NULL otherwise */
};

/* `room`: maximum number of records in one run. `alone`: the worker has its own statistics. Free with
 * tare_worker_free, also after a failure. */
tare_status tare_worker_init(struct tare_worker *worker, const struct tare_worker_plan *plan, size_t room,
                             bool alone) TARE_WARN_UNUSED;
void tare_worker_free(struct tare_worker *worker);
/* Runs the batch and adds the observed tensors to the statistics. After a failure they contain part of the batch. */
tare_status tare_worker_run(struct tare_worker *worker, const struct tare_batch *batch) TARE_WARN_UNUSED;
/* Runs one sample without adding to the statistics, to find the one that makes a batch fail. */
tare_status tare_worker_try(struct tare_worker *worker, const struct tare_batch_sample *sample) TARE_WARN_UNUSED;

void tare_worker_plan_free(struct tare_worker_plan *plan);

#endif

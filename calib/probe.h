/* Finds out whether records may run together: two records alone and the same two as a batch must give the same
 * statistics to the last bit, and every observed tensor must have the records on axis 0 or not depend on them. */
#ifndef TARE_CALIB_PROBE_H
#define TARE_CALIB_PROBE_H

#include "calib/worker.h"

struct tare_probe {
    struct tare_shape *alone; /* by slot; rank unknown: not seen */
    enum tare_batch_layout *layouts;
    int64_t most_elements; /* of the shapes alone */
    bool irregular;        /* some tensor's shape does not follow the batch */
};

/* Tries two samples that fit (the same one twice will do). *may: they may run together, and plan->layouts is filled.
 * A model that fails on two records but not on one may not. */
tare_status tare_probe_run(bool *may, struct tare_worker_plan *plan,
                           const struct tare_batch_sample *const samples[2]) TARE_WARN_UNUSED;

/* ---- for the worker ---- */
void tare_probe_shape(struct tare_probe *probe, size_t slot, const struct tare_shape *shape);
/* Decides the slot's layout by its shape in the batch; false when it has none. */
bool tare_probe_layout(struct tare_probe *probe, size_t slot, const struct tare_shape *shape);

#endif

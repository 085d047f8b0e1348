/* Calibration's part of the batch check (interpreter/batch_check.h): two records alone and as one batch must give the
 * same statistics to the last bit, and every observed tensor must have the records on axis 0 or not depend on them. */
#ifndef TARE_CALIB_PROBE_H
#define TARE_CALIB_PROBE_H

#include "calib/worker.h"
#include "interpreter/batch_check.h"

struct tare_probe {
    struct tare_shape *alone; /* by slot; rank unknown: not seen */
    enum tare_batch_layout *layouts;
    int64_t most_elements; /* of the shapes alone */
    bool irregular;        /* some tensor's shape does not follow the batch */
};

/* Checks two samples (the same one twice is TARE_BATCH_UNDECIDED). TARE_BATCH_INDEPENDENT: records may run together,
 * and plan->layouts is set. A record that fails alone is TARE_BATCH_DEPENDENT. */
tare_status tare_probe_run(enum tare_batch_verdict *verdict, struct tare_worker_plan *plan,
                           const struct tare_batch_sample *const samples[2]) TARE_WARN_UNUSED;

/* ---- for the worker ---- */
void tare_probe_shape(struct tare_probe *probe, size_t slot, const struct tare_shape *shape);
/* Decides the slot's layout by its shape in the batch; false when it has none. */
bool tare_probe_layout(struct tare_probe *probe, size_t slot, const struct tare_shape *shape);

#endif

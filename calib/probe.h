/* Calibration's part of the batch check (interpreter/batch_check.h): two records run separately and as one batch must
 * yield bit-identical statistics, and every observed tensor must have the records on axis 0 or not depend on them. */
#ifndef TARE_CALIB_PROBE_H
#define TARE_CALIB_PROBE_H

#include "calib/worker.h"
#include "interpreter/batch_check.h"

/* Checks two samples (the same one twice is TARE_BATCH_UNDECIDED). TARE_BATCH_INDEPENDENT: records may run together,
 * and plan->layouts is set. A record that fails alone is TARE_BATCH_DEPENDENT. */
tare_status tare_probe_run(enum tare_batch_verdict *verdict, struct tare_worker_plan *plan,
                           const struct tare_batch_sample *const samples[2]) TARE_WARN_UNUSED;

#endif

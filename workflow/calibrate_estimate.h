/* Estimates time and memory of a calibration by running its first records. */
#ifndef TARE_WORKFLOW_CALIBRATE_ESTIMATE_H
#define TARE_WORKFLOW_CALIBRATE_ESTIMATE_H

#include "workflow/calibrate.h"

struct tare_calibrate_estimate {
    double seconds;     /* of the whole run */
    int64_t measured;   /* records run for the estimate; 0: none, because the samples can be read only once */
    int threads;        /* used for them */
    int64_t peak_bytes; /* peak resident set of the process; independent of the number of records */
};

/* `calibration` contains the number of records (tare_workflow_calibrate_read_only). Runs the first records of each
 * signature until that takes half a second, or all of them. */
tare_status tare_workflow_calibrate_estimate(struct tare_calibrate_estimate *out,
                                             const struct tare_calibration *calibration,
                                             const struct tare_calibrate_job *job) TARE_WARN_UNUSED;

#endif

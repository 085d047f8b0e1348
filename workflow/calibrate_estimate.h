/* How long a run will take, and how much memory, from running its first records. */
#ifndef TARE_WORKFLOW_CALIBRATE_ESTIMATE_H
#define TARE_WORKFLOW_CALIBRATE_ESTIMATE_H

#include "workflow/calibrate.h"

struct tare_calibrate_estimate {
    double seconds;   /* of the whole run */
    int64_t measured; /* records that were run to know; 0: none, the samples can be read only once */
    int threads;      /* that ran them */
    int64_t
        peak_bytes; /* the process's largest resident set up to now; a run of any number of records takes the same */
};

/* `calibration` says how many records there are (tare_workflow_calibrate_read_only). Runs the first records of each
 * signature, more until that takes half a second, or all. */
tare_status tare_workflow_calibrate_estimate(struct tare_calibrate_estimate *out,
                                             const struct tare_calibration *calibration,
                                             const struct tare_calibrate_job *job) TARE_WARN_UNUSED;

#endif

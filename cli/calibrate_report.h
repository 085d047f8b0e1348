/* What tare calibrate says before and after a run. */
#ifndef TARE_CLI_CALIBRATE_REPORT_H
#define TARE_CLI_CALIBRATE_REPORT_H

#include "base/log.h"
#include "cli/team.h"
#include "workflow/calibrate.h"
#include "workflow/calibrate_estimate.h"

/* The memory that statistics take at most. */
void tare_calibrate_print_size(const struct tare_log *log, const struct tare_calibrate_size *size,
                               const struct tare_team *team);
/* Warnings: the records that were passed over, of each file from the `first` on (the calibration's own warnings name
 * the one before that). */
void tare_calibrate_print_bad(const struct tare_log *log, const struct tare_calibration *calibration, size_t first);

/* Time and memory of the run that a dry run stands for. */
void tare_calibrate_print_estimate(const struct tare_log *log, const struct tare_calibrate_estimate *estimate);

struct tare_calibrate_summary {
    const char *model, *output; /* output NULL: a dry run */
    const struct tare_calibration *calibration;
    const struct tare_calibrate_size *size;
    const struct tare_calibrate_outcome *outcome;
    const struct tare_calibrate_estimate *estimate; /* of a dry run */
    int ranks;
    int64_t resumed; /* records that a saved state had already */
};
/* One JSON object on standard output. */
tare_status tare_calibrate_print_json(const struct tare_calibrate_summary *summary) TARE_WARN_UNUSED;

#endif

/* Messages and the JSON summary of tare calibrate. */
#ifndef TARE_CLI_CALIBRATE_REPORT_H
#define TARE_CLI_CALIBRATE_REPORT_H

#include "base/log.h"
#include "cli/team.h"
#include "workflow/calibrate.h"
#include "workflow/calibrate_estimate.h"

/* Prints the maximum memory of the statistics. */
void tare_calibrate_print_size(const struct tare_log *log, const struct tare_calibrate_size *size,
                               const struct tare_team *team);
/* Warns about skipped records: how many of each file, and the first (`counted`: the warnings of the calibration have
 * said so). The others are details. */
void tare_calibrate_print_bad(const struct tare_log *log, const struct tare_calibration *calibration, bool counted);

/* Prints the estimated time and memory of a full run. */
void tare_calibrate_print_estimate(const struct tare_log *log, const struct tare_calibrate_estimate *estimate);

struct tare_calibrate_summary {
    const char *model, *output; /* output NULL: --dry-run */
    const struct tare_calibration *calibration;
    const struct tare_calibrate_size *size;
    const struct tare_calibrate_outcome *outcome;
    const struct tare_calibrate_estimate *estimate; /* for --dry-run */
    int ranks;
    int64_t resumed; /* records in the saved state that was resumed */
};
/* Prints one JSON object to standard output. */
tare_status tare_calibrate_print_json(const struct tare_calibrate_summary *summary) TARE_WARN_UNUSED;

#endif

/* Estimates the time of a calibration by running its first records. */
#include "workflow/calibrate_estimate.h"
#include "calib/calibration.h"
#include "datasets/data_file.h"

#include <sys/resource.h>

/* The first runs include setup time; enough records are run for it to become negligible, or all of them. */
static const double ENOUGH_SECONDS = 0.5;
enum { FIRST_RECORDS = 16, GROWTH = 4 };

/* Runs the first `limit` records of one signature into a temporary calibration. */
static tare_status run_some(struct tare_calibrate_outcome *outcome, const struct tare_calibrate_job *c, size_t group,
                            int64_t limit) {
    struct tare_calibrate_options options = *c->options;
    struct tare_calibrate_job some = *c;
    struct tare_calibration *scratch = NULL;
    tare_status status;
    options.limit = options.limit > 0 && options.limit < limit ? options.limit : limit;
    options.state_path = NULL;
    options.progress = false;
    some.options = &options;
    some.groups.items += group;
    some.groups.count = 1;
    TARE_TRY(tare_workflow_calibrate_start(&scratch, &some));
    status = tare_workflow_calibrate_run(scratch, outcome, &some);
    tare_calibration_free(scratch);
    return status;
}

static tare_status estimate_group(struct tare_calibrate_estimate *out, const struct tare_calibrate_job *c, size_t group,
                                  int64_t records) {
    struct tare_calibrate_outcome outcome = { 0 };
    const int64_t shards = c->options->shards > 1 ? c->options->shards : 1;
    for (int64_t limit = FIRST_RECORDS * shards;; limit *= GROWTH) {
        TARE_TRY(run_some(&outcome, c, group, limit));
        if (outcome.records >= records || outcome.seconds >= ENOUGH_SECONDS) break;
        if (limit > INT64_MAX / GROWTH) break;
    }
    out->measured += outcome.records;
    if (outcome.records > 0) out->seconds += outcome.seconds * (double)records / (double)outcome.records;
    if (outcome.threads > out->threads) out->threads = outcome.threads;
    return TARE_OK;
}

tare_status tare_workflow_calibrate_estimate(struct tare_calibrate_estimate *out,
                                             const struct tare_calibration *calibration,
                                             const struct tare_calibrate_job *c) {
    struct rusage usage;
    *out = (struct tare_calibrate_estimate){ 0 };
    for (size_t i = 0; i < c->groups.count; i++) {
        const struct tare_file_list *files = &c->groups.items[i].files;
        if (tare_data_read_once((const char *const *)files->names, files->count)) return TARE_OK;
    }
    for (size_t i = 0; i < c->groups.count; i++) {
        const int64_t records = tare_calibration_signature_records(calibration, c->groups.items[i].signature->key);
        if (records > 0) TARE_TRY(estimate_group(out, c, i, records));
    }
    if (getrusage(RUSAGE_SELF, &usage) == 0) out->peak_bytes = (int64_t)usage.ru_maxrss * 1024;
    return TARE_OK;
}

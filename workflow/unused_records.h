/* The records of the data that a calibration has not used, to evaluate with (compare --rest). */
#ifndef TARE_WORKFLOW_UNUSED_RECORDS_H
#define TARE_WORKFLOW_UNUSED_RECORDS_H

#include "base/record.h"
#include "calib/calibration.h"

struct tare_unused_records {
    const struct tare_calibration *calibration;
    struct tare_calibration *owned; /* NULL: the caller's */
    const char *signature;          /* of the calibration's inputs */
};

/* Loads the calibration file, unless `calibration` is given. `signature` NULL: serving_default, or the only one.
 * TARE_INVALID_ARGUMENT if the calibration used none of the files, which are known by their names. Release with
 * tare_unused_records_close, also after a failure. */
tare_status tare_unused_records_open(struct tare_unused_records *out, const struct tare_calibration *calibration,
                                     const char *calibration_file, const char *signature, const char *const *data,
                                     size_t n_data) TARE_WARN_UNUSED;
void tare_unused_records_close(struct tare_unused_records *unused);
/* Whether the calibration has not used the record; for tare_source_options.takes, with `arg` a struct
 * tare_unused_records. */
bool tare_unused_records_take(void *arg, const char *file, const struct tare_record *where);

#endif

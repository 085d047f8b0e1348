/* Provides the records of files to the calibration engine, bound to the inputs of a signature. */
#ifndef TARE_WORKFLOW_SAMPLE_FEED_H
#define TARE_WORKFLOW_SAMPLE_FEED_H

#include "calib/calibration.h"
#include "calib/source.h"
#include "datasets/source.h"
#include "graph/model.h"
#include "interpreter/feedback.h"

struct tare_sample_feed {
    struct tare_sample_source source; /* pass this to the engine */
    const struct tare_signature *signature;
    const struct tare_feedback *feedback; /* whose inputs records may lack; NULL: none */
    struct tare_source *records;
};

/* Opens the files for samples of `signature`, whose rows are those of options->rows, or else as many as it takes at a
 * time. A sample whose keys, dtypes or shapes do not match the signature counts
 * as an invalid record (datasets/source.h). `feedback`: inputs that records may lack; NULL: none. The feed must not be
 * moved. Release with tare_sample_feed_close, also after a failure. */
tare_status tare_sample_feed_open(struct tare_sample_feed *out, const struct tare_signature *signature,
                                  const char *const *paths, size_t n_paths, const struct tare_source_options *options,
                                  const struct tare_feedback *feedback) TARE_WARN_UNUSED;
void tare_sample_feed_close(struct tare_sample_feed *feed);
/* Adds the records skipped so far to the calibration. */
tare_status tare_sample_feed_note_bad(struct tare_calibration *calibration,
                                      const struct tare_sample_feed *feed) TARE_WARN_UNUSED;

#endif

/* Records of files as the calibration engine wants its samples: bound to the inputs of a signature. */
#ifndef TARE_WORKFLOW_SAMPLE_FEED_H
#define TARE_WORKFLOW_SAMPLE_FEED_H

#include "calib/calibration.h"
#include "calib/source.h"
#include "datasets/source.h"
#include "graph/model.h"

struct tare_sample_feed {
    struct tare_sample_source source; /* give this to the engine */
    const struct tare_signature *signature;
    struct tare_source *records;
};

/* Opens the files for samples of `signature`. A sample whose keys, dtypes or shapes do not fit the signature counts as
 * a bad record (datasets/source.h). The feed must stay where it is. End with tare_sample_feed_close, also after a
 * failure. */
tare_status tare_sample_feed_open(struct tare_sample_feed *out, const struct tare_signature *signature,
                                  const char *const *paths, size_t n_paths,
                                  const struct tare_source_options *options) TARE_WARN_UNUSED;
void tare_sample_feed_close(struct tare_sample_feed *feed);
/* Writes the bad records that were passed over so far into the calibration. */
tare_status tare_sample_feed_note_bad(struct tare_calibration *calibration,
                                      const struct tare_sample_feed *feed) TARE_WARN_UNUSED;

#endif

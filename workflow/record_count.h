/* Counts the records of files on a separate thread during a run, so that progress can show the time left. */
#ifndef TARE_WORKFLOW_RECORD_COUNT_H
#define TARE_WORKFLOW_RECORD_COUNT_H

#include "base/progress.h"
#include "datasets/source.h"

struct tare_record_counter;

/* Counts the records, without decoding them, and sets the total of `progress`. Returns NULL, which is allowed
 * everywhere, if there is no progress, or if the files include standard input or a pipe, which can be read only once.
 * Paths and progress must outlive the counter. */
struct tare_record_counter *tare_record_counter_start(const char *const *paths, size_t n_paths,
                                                      const struct tare_source_options *options,
                                                      struct tare_progress *progress);
/* Ends the count, finished or not. NULL is allowed. */
void tare_record_counter_end(struct tare_record_counter *counter);

#endif

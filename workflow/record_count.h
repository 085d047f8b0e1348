/* Counts the records of files on a thread beside the run that reads them, so that progress knows the time left. */
#ifndef TARE_WORKFLOW_RECORD_COUNT_H
#define TARE_WORKFLOW_RECORD_COUNT_H

#include "base/progress.h"
#include "datasets/source.h"

struct tare_record_counter;

/* Tells `progress` how many records the options give (nothing is decoded). NULL, which is fine, when
 * there is no progress to tell, or when standard input or a pipe, which can be read only once, is among the files.
 * Paths and progress must outlive the counter. */
struct tare_record_counter *tare_record_counter_start(const char *const *paths, size_t n_paths,
                                                      const struct tare_source_options *options,
                                                      struct tare_progress *progress);
/* Ends the count, done or not. NULL is fine. */
void tare_record_counter_end(struct tare_record_counter *counter);

#endif

/* The page of a job: the model that it made, compared with its input. */
#ifndef TARE_CLI_BATCH_PAGE_H
#define TARE_CLI_BATCH_PAGE_H

#include "convert/jobs.h"

/* Writes the page of the model in `folder`, which the page calls `name`, to `path`, whose folder is made. Without the
 * page if the input is so large that comparing it takes long. */
tare_status tare_batch_page_write(const struct tare_job *job, const char *folder, const char *name,
                                  const char *path) TARE_WARN_UNUSED;

#endif

/* Paths in converter options. */
#ifndef TARE_WORKFLOW_DATASET_PATH_H
#define TARE_WORKFLOW_DATASET_PATH_H

#include "base/status.h"
#include "base/strbuf.h"

/* Appends `path` with every "${NAME}" replaced by the environment variable: the options' text is usually single-quoted
 * in the shell. TARE_INVALID_ARGUMENT when a variable is not set. */
tare_status tare_workflow_dataset_path(struct tare_strbuf *out, const char *path);

#endif

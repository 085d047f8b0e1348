/* Drafts of DatasetSpecs for the inputs of a model. */
#ifndef TARE_WORKFLOW_SPEC_DRAFT_H
#define TARE_WORKFLOW_SPEC_DRAFT_H

#include "datasets/spec_draft.h"

/* Appends the draft for a signature (NULL: serving_default, or the only one) of the model at `path`. Free
 * found->summary also after a failure. */
tare_status tare_workflow_draft_spec(struct tare_strbuf *out, struct tare_spec_draft_found *found,
                                     const struct tare_survey *survey, const char *path, const char *signature,
                                     const struct tare_spec_draft_options *options) TARE_WARN_UNUSED;

#endif

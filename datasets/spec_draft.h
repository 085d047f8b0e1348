/* A first DatasetSpec for a data set that was looked through. */
#ifndef TARE_DATASETS_SPEC_DRAFT_H
#define TARE_DATASETS_SPEC_DRAFT_H

#include "base/strbuf.h"
#include "datasets/survey.h"

/* Appends a spec, with comments, that takes every record of the survey (made without a spec), but for feature lists
 * whose steps differ in length: features become inputs of their own names and shapes, pictures inputs of 224 x 224, one
 * feature that looks like it the label. The user changes names and numbers to those of the model. */
void tare_dataset_spec_draft(struct tare_strbuf *out, const struct tare_survey *survey);

#endif

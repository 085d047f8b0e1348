/* Drafts of DatasetSpecs from a survey of a data set. */
#ifndef TARE_DATASETS_SPEC_DRAFT_H
#define TARE_DATASETS_SPEC_DRAFT_H

#include "base/strbuf.h"
#include "datasets/survey.h"

/* An input of the model: its first dimension is the axis of samples. */
struct tare_spec_draft_input {
    const char *name;
    int dtype;
    struct tare_shape shape; /* may be partially known or of unknown rank */
};

/* Appends a spec, with comments, for the model's inputs from the features of a survey that was made without a spec. An
 * input takes the feature of its name; otherwise the first unused one that fits: images for [?, height, width,
 * channels], strings for strings, numbers with as many elements, or all scalar numbers together. The spec converts to
 * the input's shape and dtype. Inputs without a feature, and features without an input, are listed in comments. Returns
 * the number of inputs without a feature. */
size_t tare_dataset_spec_draft_for(struct tare_strbuf *out, const struct tare_survey *survey,
                                   const struct tare_spec_draft_input *inputs, size_t n_inputs);
/* The same without a model: features become inputs of their own names and shapes, images inputs of 224 x 224, and a
 * feature named like one the label. The user edits names and numbers to match the model. */
void tare_dataset_spec_draft(struct tare_strbuf *out, const struct tare_survey *survey);

#endif

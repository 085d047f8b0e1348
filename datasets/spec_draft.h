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

/* How the pixels of image files, 0 … 255, become floating-point inputs. */
enum tare_spec_draft_scale {
    TARE_SPEC_SCALE_OPEN, /* comments show the others */
    TARE_SPEC_SCALE_NONE,
    TARE_SPEC_SCALE_ONE,    /* 0 … 1 */
    TARE_SPEC_SCALE_SIGNED, /* -1 … 1 */
    TARE_SPEC_SCALES
};
/* "0 … 255", "0 … 1", "-1 … 1". */
extern const char *const tare_spec_draft_scale_texts[TARE_SPEC_SCALES];

/* What is known besides the records. */
struct tare_spec_draft_options {
    const char *label;  /* feature with the label; NULL: one that is named as labels are */
    const char *target; /* feature with expected values, which becomes an input of its name; NULL: none */
    enum tare_spec_draft_scale scale;
    bool decides; /* class names of a label of texts are numbered in byte order; otherwise comments ask for the order */
};

struct tare_spec_draft_found {
    size_t missing;             /* inputs without a feature */
    size_t named;               /* inputs with the feature of their name */
    size_t images;              /* floating-point inputs from image files */
    struct tare_strbuf summary; /* which feature became which input, and the label; the caller frees it */
};

/* Appends a spec, with comments, for the model's inputs from the features of a survey that was made without a spec. An
 * input takes the feature of its name; otherwise the first unused one that fits: images for [?, height, width,
 * channels], strings for strings, numbers with as many elements, or all scalar numbers together. The spec converts to
 * the input's shape and dtype. Inputs without a feature, and features without an input, are listed in comments. */
void tare_dataset_spec_draft_for(struct tare_strbuf *out, struct tare_spec_draft_found *found,
                                 const struct tare_survey *survey, const struct tare_spec_draft_input *inputs,
                                 size_t n_inputs, const struct tare_spec_draft_options *options);
/* The same without a model: features become inputs of their own names and shapes, images inputs of 224 x 224, and a
 * feature named like one the label. The user edits names and numbers to match the model. */
void tare_dataset_spec_draft(struct tare_strbuf *out, const struct tare_survey *survey);

#endif

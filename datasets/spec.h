/* DatasetSpec: maps features of a record to inputs of a model. The fields are in proto/tare/dataset_spec.proto and
 * explained in docs/dataset-spec.md. */
#ifndef TARE_DATASETS_SPEC_H
#define TARE_DATASETS_SPEC_H

#include "datasets/features.h"
#include "datasets/sample.h"

struct tare_dataset_spec;

/* Parses and checks the text format. TARE_INVALID_ARGUMENT with line, column and the nearest name for invalid text, and
 * with the name of the input for fields that conflict. */
tare_status tare_dataset_spec_load(struct tare_dataset_spec **out, const char *path) TARE_WARN_UNUSED;
tare_status tare_dataset_spec_parse(struct tare_dataset_spec **out, const char *text, size_t size,
                                    const char *what) TARE_WARN_UNUSED;
/* The name of a dtype in specs ("FLOAT32"); NULL if specs have none. */
const char *tare_dataset_spec_type_name(int dtype);
/* Whether an input is made from the feature of this name. */
bool tare_dataset_spec_reads(const struct tare_dataset_spec *spec, const char *feature);
/* Samples also get the feature `name` (NULL: none) under its name: what a command compares the outputs with, unless an
 * input or the label of the spec has that name. Records without it, or whose feature is not numeric, do without. For a
 * spec that no thread uses yet. */
tare_status tare_dataset_spec_keep(struct tare_dataset_spec *spec, const char *name) TARE_WARN_UNUSED;
/* Whether an image that was decoded so far has an EXIF orientation other than 1, which decoding ignores. NULL: none. */
bool tare_dataset_spec_met_rotated(const struct tare_dataset_spec *spec);
void tare_dataset_spec_free(struct tare_dataset_spec *spec);

/* Converts features to a sample; reset *out also after a failure. Thread-safe for a shared spec. Errors name the input
 * and the feature, with the expected and actual value. */
tare_status tare_dataset_spec_apply(struct tare_sample *out, const struct tare_dataset_spec *spec,
                                    const struct tare_features *features) TARE_WARN_UNUSED;
/* The same for a record: a tf.Example, tf.SequenceExample or RepresentativeDataSample, detected from its structure. */
tare_status tare_dataset_spec_decode(struct tare_sample *out, const struct tare_dataset_spec *spec, const void *data,
                                     size_t size) TARE_WARN_UNUSED;

#endif

/* DatasetSpec: which feature of a record becomes which input of a model, and how. proto/tare/dataset_spec.proto has the
 * fields, docs/dataset-spec.md explains them. */
#ifndef TARE_DATASETS_SPEC_H
#define TARE_DATASETS_SPEC_H

#include "datasets/features.h"
#include "datasets/sample.h"

struct tare_dataset_spec;

/* Reads the text form and checks it. TARE_INVALID_ARGUMENT with line and column for what is no spec (and the nearest
 * name), with the input's name for fields that do not go together. */
tare_status tare_dataset_spec_load(struct tare_dataset_spec **out, const char *path) TARE_WARN_UNUSED;
tare_status tare_dataset_spec_parse(struct tare_dataset_spec **out, const char *text, size_t size,
                                    const char *what) TARE_WARN_UNUSED;
void tare_dataset_spec_free(struct tare_dataset_spec *spec);

/* Makes a sample of features; *out is the caller's to reset, also after a failure. Any number of threads may use one
 * spec. Errors name input and feature, with what was got and expected. */
tare_status tare_dataset_spec_apply(struct tare_sample *out, const struct tare_dataset_spec *spec,
                                    const struct tare_features *features) TARE_WARN_UNUSED;
/* The same for a record: a tf.Example, tf.SequenceExample or RepresentativeDataSample, told by its structure. */
tare_status tare_dataset_spec_decode(struct tare_sample *out, const struct tare_dataset_spec *spec, const void *data,
                                     size_t size) TARE_WARN_UNUSED;

#endif

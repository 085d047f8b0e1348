/* Labels: an additional key of a sample, which is not an input of the model, with the correct class. */
#ifndef TARE_DATASETS_LABEL_H
#define TARE_DATASETS_LABEL_H

#include "datasets/sample.h"

/* Whether records elsewhere have their labels under this key, which may have a path: "image/class". */
bool tare_label_is_name(const char *key);
/* Number of elements of the tensor of `key`. TARE_NOT_FOUND if the sample has no such key, TARE_TYPE if it is not
 * numeric. */
tare_status tare_label_count(int64_t *out, const struct tare_sample *sample, const char *key) TARE_WARN_UNUSED;
/* The class index of example `row` of `rows`. The label has one class index per example, or a one-hot row per example
 * (numbers of which one is 1 and the others are 0: its position is the index). TARE_SHAPE if it has neither's number of
 * elements, TARE_TYPE for a value that is not an integer >= 0 or a row that is not one-hot. */
tare_status tare_label_class(int64_t *out, const struct tare_sample *sample, const char *key, int64_t row,
                             int64_t rows) TARE_WARN_UNUSED;
/* Element `row` as a class index. TARE_SHAPE if there are fewer, TARE_TYPE if it is not an integer >= 0. */
tare_status tare_label_get(int64_t *out, const struct tare_sample *sample, const char *key,
                           int64_t row) TARE_WARN_UNUSED;

#endif

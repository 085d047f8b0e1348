/* Labels: a sample's extra key that is no model input and says which class is right. */
#ifndef TARE_DATASETS_LABEL_H
#define TARE_DATASETS_LABEL_H

#include "datasets/sample.h"

/* Labels that the tensor of `key` holds: its elements (a sample of several rows has one a row). TARE_NOT_FOUND when the
 * sample has no such key, TARE_TYPE when it is no number. */
tare_status tare_label_count(int64_t *out, const struct tare_sample *sample, const char *key) TARE_WARN_UNUSED;
/* The class index of row `row`. TARE_SHAPE when there are fewer rows, TARE_TYPE when it is no whole number from 0 on.
 */
tare_status tare_label_get(int64_t *out, const struct tare_sample *sample, const char *key,
                           int64_t row) TARE_WARN_UNUSED;

#endif

/* Several samples as one: the rows of an input with a fixed number of them. */
#ifndef TARE_DATASETS_JOINED_SAMPLE_H
#define TARE_DATASETS_JOINED_SAMPLE_H

#include "datasets/sample.h"

/* Joins the values of each key on axis 0, a scalar as one row; the samples stay the caller's. TARE_SHAPE if they have
 * other keys, dtypes or shapes than the first one. */
tare_status tare_sample_join(struct tare_sample *out, const struct tare_sample *samples, size_t count) TARE_WARN_UNUSED;

#endif

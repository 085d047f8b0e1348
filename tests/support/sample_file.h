/* Records of TFRecord files for tests. */
#ifndef TARE_TESTS_SUPPORT_SAMPLE_FILE_H
#define TARE_TESTS_SUPPORT_SAMPLE_FILE_H

#include "datasets/tfrecord.h"

struct tare_shape;

/* Writes a tf.train.Example with one float tensor, `x` of this shape. Fails the test if it cannot. */
void write_float_sample(struct tare_tfrecord_writer *writer, const char *key, const struct tare_shape *shape,
                        const float *x);

#endif

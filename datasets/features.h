/* What a record holds before it is a sample: named features. tf.Example and tf.SequenceExample hold lists of bytes,
 * floats or integers; samples and arrays hold tensors. */
#ifndef TARE_DATASETS_FEATURES_H
#define TARE_DATASETS_FEATURES_H

#include "base/arena.h"
#include "datasets/sample.h"

struct tare_feature {
    const char *key;
    struct tare_tensor values; /* of an example: strings, float32 or int64 of rank 1; of a sample: its tensor */
    bool from_example;         /* the shape says nothing but the count */
    bool is_list;              /* a feature list: `steps` features one after the other */
    const int64_t *lengths;    /* values of each step */
    size_t steps;
};

struct tare_features {
    struct tare_arena arena; /* holds everything, the elements of examples too */
    struct tare_feature *items;
    size_t count;
};

/* Decodes a tf.Example or tf.SequenceExample; *out is the caller's to reset, also after a failure. Features without a
 * list count as absent; of two of one key the later one counts; a feature list hides a context feature of its name.
 * TARE_CORRUPT with the byte; TARE_TYPE for a feature list whose steps are of different types. `data` may go away. */
tare_status tare_features_decode(struct tare_features *out, const void *data, size_t size) TARE_WARN_UNUSED;
/* Shares a sample's tensors; keys are copied. */
tare_status tare_features_of_sample(struct tare_features *out, const struct tare_sample *sample) TARE_WARN_UNUSED;
/* One string feature or one number more (of files that are no records). */
tare_status tare_features_add_bytes(struct tare_features *features, const char *key, const void *data,
                                    size_t size) TARE_WARN_UNUSED;
tare_status tare_features_add_int(struct tare_features *features, const char *key, int64_t value) TARE_WARN_UNUSED;
void tare_features_reset(struct tare_features *features);
const struct tare_feature *tare_features_find(const struct tare_features *features, const char *key);
/* The features as a sample, for looking at: lists whose steps are equally long become [steps, length], others stay one
 * long list. Elements are copied. */
tare_status tare_features_to_sample(struct tare_sample *out, const struct tare_features *features) TARE_WARN_UNUSED;

#endif

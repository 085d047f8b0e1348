/* Features: the named values of a record before conversion to a sample. Features of tf.Example and tf.SequenceExample
 * are lists of bytes, floats or integers; features of samples and arrays are tensors. */
#ifndef TARE_DATASETS_FEATURES_H
#define TARE_DATASETS_FEATURES_H

#include "base/arena.h"
#include "datasets/sample.h"

struct tare_feature {
    const char *key;
    struct tare_tensor values; /* from an example: strings, float32 or int64 of rank 1; from a sample: its tensor */
    bool from_example;         /* the shape is only the number of values */
    bool is_list;              /* a feature list: the values of `steps` features, concatenated */
    const int64_t *lengths;    /* number of values of each step */
    size_t steps;
    int absent; /* without values: the dtype that they have in other records; TARE_DT_INVALID: not known */
    /* A value of a CSV file with its place: one that float32 does not hold, which is not among the values, or the one
     * because of which a column is text. NULL: none. */
    const char *reason;
};

struct tare_features {
    struct tare_arena arena; /* owns everything, including the elements of examples */
    struct tare_feature *items;
    size_t count;
    struct tare_str record; /* the bytes of a TFRecord, borrowed; NULL data: another kind of file */
};

/* Decodes a tf.Example or tf.SequenceExample; reset *out also after a failure. Features without a list are absent; of
 * duplicate keys the last one is used; a feature list hides a context feature of the same name. TARE_CORRUPT with the
 * byte offset; TARE_TYPE for a feature list whose steps have different types. `data` is not used after the call. */
tare_status tare_features_decode(struct tare_features *out, const void *data, size_t size) TARE_WARN_UNUSED;
/* The values of a sample as features; shares its tensors and copies its keys. */
tare_status tare_features_of_sample(struct tare_features *out, const struct tare_sample *sample) TARE_WARN_UNUSED;
/* Adds a feature with one value; for files other than TFRecords. */
tare_status tare_features_add_bytes(struct tare_features *features, const char *key, const void *data,
                                    size_t size) TARE_WARN_UNUSED;
tare_status tare_features_add_int(struct tare_features *features, const char *key, int64_t value) TARE_WARN_UNUSED;
tare_status tare_features_add_float(struct tare_features *features, const char *key, float value) TARE_WARN_UNUSED;
/* Adds a feature without a value in this record, of known dtype: it cannot be found. */
tare_status tare_features_add_absent(struct tare_features *features, const char *key, int dtype) TARE_WARN_UNUSED;
/* Adds a feature with a number that float32 does not hold: it cannot be found, and is an error where it is searched.
 * `reason`, the number with its place, is borrowed (NULL: out of memory). */
tare_status tare_features_add_invalid(struct tare_features *features, const char *key,
                                      const char *reason) TARE_WARN_UNUSED;
/* Adds a text of a column that is text because of the value that `reason` (borrowed) names. */
tare_status tare_features_add_text(struct tare_features *features, const char *key, const void *data, size_t size,
                                   const char *reason) TARE_WARN_UNUSED;
/* The dtype of a feature's values, also of an absent one; TARE_DT_INVALID: not known. */
int tare_features_dtype(const struct tare_features *features, const char *key);
void tare_features_reset(struct tare_features *features);
const struct tare_feature *tare_features_find(const struct tare_features *features, const char *key);
/* TARE_TYPE if the feature is invalid. */
tare_status tare_features_check(const struct tare_features *features, const char *key) TARE_WARN_UNUSED;
/* The features as a sample, for display: lists whose steps have equal lengths become [steps, length], others stay one
 * list. Elements are copied. TARE_TYPE if a feature is invalid. */
tare_status tare_features_to_sample(struct tare_sample *out, const struct tare_features *features) TARE_WARN_UNUSED;

#endif

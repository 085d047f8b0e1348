/* Reads serialized tf.Example messages directly from their bytes, as name -> list of values, without building
 * message objects.
 *
 *   Example { Features features = 1; }
 *   Features { map<string, Feature> feature = 1; }
 *   Feature { oneof { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
 *   each list { repeated value = 1; }, packed or not
 *
 * Independent of ops. Every function is total: malformed input returns false. */
#ifndef TARE_INTERPRETER_OPS_IO_EXAMPLE_WIRE_H
#define TARE_INTERPRETER_OPS_IO_EXAMPLE_WIRE_H

#include "base/tensor/tensor.h"

/* The values of one feature: dtype STRING, FLOAT or INT64 and the bytes of its list; dtype INVALID: no list. */
struct tare_feature {
    int dtype;
    struct tare_str list;
};

/* Calls fn for each entry of the map in file order (a later entry with the same name replaces an earlier one). */
bool tare_example_each(struct tare_str example,
                       void (*fn)(void *arg, struct tare_str name, struct tare_feature feature), void *arg);
/* The same for a SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }: calls `context` for each
 * feature and `list` for each FeatureList { repeated Feature feature = 1; }, whose bytes tare_feature_list_each
 * reads. */
bool tare_sequence_each(struct tare_str sequence,
                        void (*context)(void *arg, struct tare_str name, struct tare_feature feature),
                        void (*list)(void *arg, struct tare_str name, struct tare_str bytes), void *arg);
/* Calls fn for each feature of a list (fn NULL: only counts them); *count receives their number. */
bool tare_feature_list_each(int64_t *count, struct tare_str bytes, void (*fn)(void *arg, struct tare_feature feature),
                            void *arg);
/* Counts the values of a feature. */
bool tare_feature_count(int64_t *count, const struct tare_feature *feature);
/* Writes all values to `to` from element `at` on; `to` must have the feature's dtype and enough elements. *malformed
 * is set for malformed bytes; the only failure status is TARE_NO_MEMORY. */
tare_status tare_feature_read(struct tare_tensor *to, int64_t at, const struct tare_feature *feature, bool *malformed);

#endif

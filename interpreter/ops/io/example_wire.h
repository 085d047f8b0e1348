/* Reading serialized tf.Example messages straight from their bytes: name -> list of values, without building messages.
 *   Example { Features features = 1; }  Features { map<string, Feature> feature = 1; }
 *   Feature { oneof { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; } }
 *   each list { repeated value = 1; } packed or not
 * Knows nothing of ops. Every function is total: malformed bytes give false. */
#ifndef TARE_INTERPRETER_OPS_IO_EXAMPLE_WIRE_H
#define TARE_INTERPRETER_OPS_IO_EXAMPLE_WIRE_H

#include "base/tensor/tensor.h"

/* The values of one feature: dtype STRING, FLOAT or INT64 and the bytes of its list; dtype INVALID: none. */
struct tare_feature {
    int dtype;
    struct tare_str list;
};

/* Calls fn for each entry of the map, in the order of the file (a later entry of a name replaces an earlier one). */
bool tare_example_each(struct tare_str example,
                       void (*fn)(void *arg, struct tare_str name, struct tare_feature feature), void *arg);
/* The same for a SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }: `context` for each feature,
 * `list` for each FeatureList { repeated Feature feature = 1; }, whose bytes tare_feature_list_each reads. */
bool tare_sequence_each(struct tare_str sequence,
                        void (*context)(void *arg, struct tare_str name, struct tare_feature feature),
                        void (*list)(void *arg, struct tare_str name, struct tare_str bytes), void *arg);
/* Calls fn (NULL: only counts) for each feature of a list; *count is their number. */
bool tare_feature_list_each(int64_t *count, struct tare_str bytes, void (*fn)(void *arg, struct tare_feature feature),
                            void *arg);
/* Number of values. */
bool tare_feature_count(int64_t *count, const struct tare_feature *feature);
/* Writes all of them to `to` from element `at` on; `to` has the feature's dtype and room. *faulty is set for malformed
 * bytes; a failure is TARE_NO_MEMORY. */
tare_status tare_feature_read(struct tare_tensor *to, int64_t at, const struct tare_feature *feature, bool *faulty);

#endif

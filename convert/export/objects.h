/* The object graphs of a TF2 SavedModel: the saved one, which loaders rebuild objects from, and the trackable one,
 * which is stored in the checkpoint. Private to convert. */
#ifndef TARE_CONVERT_OBJECTS_H
#define TARE_CONVERT_OBJECTS_H

#include "graph/model.h"
#include "proto/tensorflow/saved_model.pb-c.h"

struct tare_objects {
    Tensorflow__SavedObjectGraph *saved;
    Tensorflow__TrackableObjectGraph *trackable;
};

/* The file's graphs without the functions and variables that were removed. Object ids do not change; removed objects
 * become plain ones. Arena memory that borrows from the origins. */
tare_status tare_objects_prune(struct tare_objects *out, struct tare_arena *arena, const struct tare_graph_model *model,
                               const Tensorflow__SavedObjectGraph *saved,
                               const Tensorflow__TrackableObjectGraph *trackable);
/* Object graphs for a model that was built in memory: variables by the path of their keys, aliased functions, and
 * the signatures. Sets the variables' object ids and the functions' bound objects. */
tare_status tare_objects_build(struct tare_objects *out, struct tare_arena *arena, struct tare_graph_model *model);

/* Whether variables of the dtype have a gradient. Loaders list trainable variables for optimizers, which quantized
 * weights are not for. */
bool tare_is_trainable_dtype(int dtype);

#endif

/* The part of a model that saves and restores its variables: functions (TF2) or nodes of the main graph (TF1, where
 * variables are references), generated for every written model. */
#ifndef TARE_CONVERT_SAVER_H
#define TARE_CONVERT_SAVER_H

#include "graph/model.h"

/* The names in saver_def. */
struct tare_saver {
    const char *filename_tensor; /* "saver_filename:0" */
    const char *save_tensor;     /* "StatefulPartitionedCall_1:0" */
    const char *restore_op;      /* "StatefulPartitionedCall_2" */
};

/* Builds saving and restoring of every variable that is not frozen and has a checkpoint key, and of the contents of
 * tables. `object_graph`: the serialized TrackableObjectGraph to save with them (size 0: a model without objects). The
 * saver's nodes become part of the main graph; nothing else in the model needs them. */
tare_status tare_saver_build(struct tare_saver *out, struct tare_graph_model *model, const void *object_graph,
                             size_t size);

#endif

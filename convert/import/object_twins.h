/* The two object graphs of a SavedModel, which have the same shape but need not have the same numbers. */
#ifndef TARE_CONVERT_OBJECT_TWINS_H
#define TARE_CONVERT_OBJECT_TWINS_H

#include "base/arena.h"
#include "base/status.h"
#include "proto/tensorflow/saved_model.pb-c.h"

#include <stdbool.h>

/* For each object of the saved graph its number in the checkpoint's graph, found along equal names of children from the
 * root, as loaders restore values; -1: it is not reached. Arena memory. TARE_CORRUPT for a child that the saved graph
 * does not have; with `tolerant`, such a child is skipped. */
tare_status tare_object_twins(int **out, struct tare_arena *arena, const Tensorflow__SavedObjectGraph *saved,
                              const Tensorflow__TrackableObjectGraph *trackable, bool tolerant);
/* The concrete functions of the object with this number: none if it is not a function, or does not exist. */
size_t tare_object_functions(char *const **names, const Tensorflow__SavedObjectGraph *saved, int id);
/* The attribute with the value of a variable; NULL: the object stores none. */
const Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *
tare_object_value(const Tensorflow__TrackableObjectGraph__TrackableObject *object);
/* Whether the attribute's key is that of a stored tensor, or the beginning of it: an object that saves itself, as a
 * table does, adds the name of each part ("-keys", "-values"). */
bool tare_object_stores(const Tensorflow__TrackableObjectGraph__TrackableObject__SerializedTensor *attribute,
                        const char *key);

#endif

/* The model that a written model was made from: recorded next to the written one, so that a later command compares with
 * the float model and not with the quantized one. */
#ifndef TARE_CONVERT_ORIGIN_H
#define TARE_CONVERT_ORIGIN_H

#include "base/status.h"

/* The path of the model that the SavedModel at `path` was made from, the first of a sequence of steps; NULL if none is
 * recorded, or if that place has no model any more. Release with tare_free. Fails only without memory and on
 * cancellation. */
tare_status tare_origin_of(char **out, const char *path) TARE_WARN_UNUSED;
/* Records in `folder`, which will become the SavedModel `out`, that it was made from `source`: the origin of that
 * model, if it has one, relative to `out`, so that both may be moved together. */
tare_status tare_origin_write(const char *folder, const char *out, const char *source) TARE_WARN_UNUSED;

#endif

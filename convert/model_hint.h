/* Explains why a path is not a SavedModel: recognizes other kinds of models and neighboring paths by their content. */
#ifndef TARE_CONVERT_MODEL_HINT_H
#define TARE_CONVERT_MODEL_HINT_H

#include "base/status.h"

#include <stdbool.h>

/* True for a folder with a file of a SavedModel; nothing is read. */
bool tare_is_saved_model_folder(const char *path);

/* Called when no SavedModel could be opened at `path`. Always fails: TARE_NOT_FOUND or TARE_UNSUPPORTED, with the
 * reason and the remedy, without the path. */
tare_status tare_model_hint(const char *path) TARE_WARN_UNUSED;

#endif

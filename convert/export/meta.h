/* The MetaGraphDef around an exported graph. Private to convert. */
#ifndef TARE_CONVERT_EXPORT_META_H
#define TARE_CONVERT_EXPORT_META_H

#include "convert/export/export.h"
#include "convert/export/objects.h"
#include "convert/export/saver.h"

/* Signatures, tags, aliases, saver, assets, and the parts of `origin` (NULL: none) that are still valid. The graph_def
 * and the object graph are set by the caller. */
tare_status tare_export_meta(Tensorflow__MetaGraphDef **out, struct tare_arena *arena,
                             const struct tare_graph_model *model, const Tensorflow__MetaGraphDef *origin,
                             const struct tare_saver *saver);

#endif

/* Methods of the loaded object that Python can no longer call. */
#ifndef TARE_CONVERT_LOST_METHODS_H
#define TARE_CONVERT_LOST_METHODS_H

#include "graph/model.h"

/* The names of the root object's methods in the model's file whose functions the model no longer has, as "decode,
 * score" and with a number for those after the fifth; NULL: none. In the arena. */
tare_status tare_lost_methods(const char **out, struct tare_arena *arena,
                              const struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif

/* What Python can no longer do with the loaded object. */
#ifndef TARE_CONVERT_LOST_PARTS_H
#define TARE_CONVERT_LOST_PARTS_H

#include "graph/model.h"

struct tare_lost_parts {
    /* The names of the root object's methods in the model's file whose functions the model no longer has, as "decode,
     * score" and with a number for those after the fifth; NULL: none. */
    const char *methods;
    /* Registered custom gradients of the file, if variables stay, which users may train. No pass keeps their IdentityN
     * nodes; where everything is frozen, a gradient has no use. */
    size_t gradients;
};

/* Texts are in the arena. */
tare_status tare_lost_parts_find(struct tare_lost_parts *out, struct tare_arena *arena,
                                 const struct tare_graph_model *model) TARE_WARN_UNUSED;

#endif

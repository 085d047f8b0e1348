/* Replaces the bodies of composite functions by fused ones, before variables are frozen and constants folded. */
#include "convert/composites/composites.h"
#include "convert/pass.h"

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    struct tare_composites composites;
    TARE_TRY(tare_composites_fuse(&composites, model));
    *changes += composites.fused;
    return TARE_OK;
}

const struct tare_pass tare_pass_fuse_composites = {
    .name = "fuse_composites",
    .help = "replace the bodies of functions that say what they implement by the fused form",
    .run = run,
};

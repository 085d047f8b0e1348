/* Derives the layout of each slot from the shapes of one record and of two. */
#include "calib/shape_probe.h"

void tare_shape_probe_note(struct tare_shape_probe *probe, size_t slot, const struct tare_shape *shape) {
    if (probe->alone[slot].rank != TARE_UNKNOWN_RANK && !tare_shape_equal(&probe->alone[slot], shape))
        probe->irregular = true;
    probe->alone[slot] = *shape;
    int64_t elements;
    if (tare_shape_elements(&elements, shape) == TARE_OK && elements > probe->most_elements)
        probe->most_elements = elements;
}

bool tare_shape_probe_layout(struct tare_shape_probe *probe, size_t slot, const struct tare_shape *shape) {
    struct tare_shape doubled = probe->alone[slot];
    if (tare_shape_equal(&doubled, shape)) {
        probe->layouts[slot] = TARE_BATCH_SHARED;
        return true;
    }
    if (doubled.rank >= 1) doubled.dims[0] *= 2;
    if (tare_shape_equal(&doubled, shape)) {
        probe->layouts[slot] = TARE_BATCH_SPLIT;
        return true;
    }
    probe->irregular = true;
    return false;
}

/* The shapes of observed tensors while the batch check runs (calib/probe.h): of records alone, and of two as one batch.
 * A worker reports each observed shape here; the layouts of the slots follow from the comparison. */
#ifndef TARE_CALIB_SHAPE_PROBE_H
#define TARE_CALIB_SHAPE_PROBE_H

#include "base/tensor/shape.h"
#include "calib/statistics.h"

struct tare_shape_probe {
    struct tare_shape *alone;        /* by slot, of one record; rank unknown: not observed */
    enum tare_batch_layout *layouts; /* by slot, of a batch */
    int64_t most_elements;           /* largest element count in `alone` */
    bool irregular;                  /* some tensor's shape does not follow the batch size */
};

/* Stores the shape of a slot for one record; another record with another shape makes the probe irregular. */
void tare_shape_probe_note(struct tare_shape_probe *probe, size_t slot, const struct tare_shape *shape);
/* Sets the layout of a slot from its shape in a batch of two: TARE_BATCH_SHARED when equal to that of one record,
 * TARE_BATCH_SPLIT when axis 0 has doubled. False, and the probe is irregular, for any other shape. */
bool tare_shape_probe_layout(struct tare_shape_probe *probe, size_t slot, const struct tare_shape *shape);

#endif

/* Ranges of activations by iteration: calibration keeps the iterations of a loop apart, and a layer of its body
 * quantizes its activation with the scale of the current one. */
#ifndef TARE_QUANT_ENTRIES_H
#define TARE_QUANT_ENTRIES_H

#include "graph/emit.h"
#include "quant/layer.h"

struct tare_quant_entries {
    struct tare_quant_selection *by; /* the layer's `loop` */
    int64_t count;
    struct tare_qparams *left, *right; /* by entry; right NULL: a weight */
    bool *own; /* entries that the layer chooses; the others are those of other layers in an iteration. NULL: all */
};

/* Sets layer->entries, if the plan allows it and the ranges of its activations differ between iterations. */
tare_status tare_quant_find_entries(const struct tare_quant_work *work,
                                    struct tare_quant_layer *layer) TARE_WARN_UNUSED;
/* The same after the channels of its activation were divided (layer->input_scale). */
tare_status tare_quant_scale_entries(const struct tare_quant_work *work,
                                     struct tare_quant_layer *layer) TARE_WARN_UNUSED;
/* What chooses the values of a layer's channels; NULL: there is one value for each. */
struct tare_quant_selection *tare_quant_chooser(const struct tare_quant_layer *layer);
bool tare_quant_same_entries(const struct tare_quant_entries *a, const struct tare_quant_entries *b);

/* One float or int32 per entry: the current one, as a scalar. */
struct tare_edge tare_emit_entry_floats(struct tare_emit *emit, const char *name,
                                        const struct tare_quant_entries *entries, const double *values);
/* Scales and zero points of an activation (as float32), chosen. */
struct tare_edge tare_emit_entry_scale(struct tare_emit *emit, const char *name,
                                       const struct tare_quant_entries *entries, const struct tare_qparams *params);
struct tare_edge tare_emit_entry_zero_point(struct tare_emit *emit, const char *name,
                                            const struct tare_quant_entries *entries,
                                            const struct tare_qparams *params);
/* Whether a zero point is not 0. */
bool tare_quant_has_zero_point(const struct tare_quant_entries *entries, const struct tare_qparams *params);

#endif

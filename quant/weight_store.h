/* Integer weights that several quantizations of one model share, such as the variants of a comparison: most of them
 * differ in activation ranges only. A weight is known by its constant (the memory of its values), its arrangement and
 * the settings that affect its integers; weights of variables, and those that an accuracy pass changes, are not stored.
 */
#ifndef TARE_QUANT_WEIGHT_STORE_H
#define TARE_QUANT_WEIGHT_STORE_H

#include "base/map.h"
#include "quant/layer.h"

enum { TARE_WEIGHT_STORE_BYTES = 256 << 20 };

/* Initialise with zeros. Used by one thread at a time. */
struct tare_quant_weight_store {
    struct tare_arena arena;
    struct tare_map by_key;
    struct tare_stored_weight *last; /* linked, for their release */
    size_t bytes;                    /* of the stored integers, at most TARE_WEIGHT_STORE_BYTES */
    size_t found;                    /* weights that were taken from the store */
    struct tare_map squares;
    struct tare_stored_squares *last_squares; /* linked, for their release */
};

/* Sets the layer's scales and integers, and what its outcome reports of them (weight_sqnr_db, channel_spread). False
 * when they are not stored, and for a layer whose bias needs larger scales than the stored ones. `store` may be NULL.
 */
tare_status tare_quant_weight_store_find(bool *found, struct tare_quant_weight_store *store, struct tare_arena *arena,
                                         struct tare_quant_layer *layer) TARE_WARN_UNUSED;
/* Stores a layer's integers, computed from the unchanged constant, and these two figures, if there is room. */
tare_status tare_quant_weight_store_add(struct tare_quant_weight_store *store,
                                        struct tare_quant_layer *layer) TARE_WARN_UNUSED;
/* The sum of the squares of a constant's elements, computed once. `store` may be NULL. */
tare_status tare_quant_weight_store_squares(double *out, struct tare_quant_weight_store *store,
                                            const struct tare_tensor *weight) TARE_WARN_UNUSED;
void tare_quant_weight_store_free(struct tare_quant_weight_store *store);

#endif

/* Ranges of activations that were chosen while a model is quantized. An edge is the output of one layer and the input
 * of others, and an algorithm may search thousands of ranges: each range is chosen once. */
#ifndef TARE_QUANT_RANGE_CACHE_H
#define TARE_QUANT_RANGE_CACHE_H

#include "base/map.h"
#include "quant/quantize.h"

struct tare_quant_range_cache {
    struct tare_arena *arena;
    struct tare_map ranges; /* edge and setting -> what was found */
    size_t searches;        /* calls of the source of ranges */
    tare_status status;     /* the first failure of a predicate of quant/same_scale.c; its public functions return it */
};

/* As ranges->find, whose first result for an edge, algorithm and scheme is stored. Not found also without a source. */
tare_status tare_quant_find_range(bool *found, double *low, double *high, struct tare_quant_range_cache *cache,
                                  const struct tare_quant_ranges *ranges, struct tare_edge edge,
                                  const struct tare_quant_setting *setting) TARE_WARN_UNUSED;
/* The same for one entry of the edge's counter; below 0: all. */
tare_status tare_quant_find_entry_range(bool *found, double *low, double *high, struct tare_quant_range_cache *cache,
                                        const struct tare_quant_ranges *ranges, struct tare_edge edge, int64_t entry,
                                        const struct tare_quant_setting *setting) TARE_WARN_UNUSED;
void tare_quant_range_cache_close(struct tare_quant_range_cache *cache);

#endif

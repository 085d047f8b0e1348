/* The passes of the TPU half of a conversion. Each works on one shared state and reports what it changed under the
 * names in its row; the order is the array in tpu_passes.c. */
#ifndef TARE_CONVERT_TPU_PASSES_H
#define TARE_CONVERT_TPU_PASSES_H

#include "convert/pipeline.h"

enum { TARE_PLACE_COUNTS = 3 };

/* State of one conversion. */
struct tare_place {
    struct tare_conversion *out;
    struct tare_arena *arena;
    struct tare_graph_model *model;
    const struct tare_converter_options *options;
    struct tare_tpu_function *functions; /* to be placed; set by the pass find_functions */
    struct tare_graph **graphs;          /* theirs, with room for one more */
    size_t n_functions;
    const struct tare_tpu_memory *before; /* NULL: the pass measure_memory measures it */
};

struct tare_place_pass {
    const char *name;
    const char *counts[TARE_PLACE_COUNTS]; /* names of the numbers of changes, as the report shows them; NULL: none */
    bool (*applies)(const struct tare_converter_options *options); /* NULL: always */
    /* Adds the number of changes to changes[i], which belongs to counts[i]. */
    tare_status (*run)(struct tare_place *place, size_t *changes);
};

#endif

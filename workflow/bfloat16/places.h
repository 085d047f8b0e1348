/* The values of nodes and outputs of two forms of a model, compared by what varies between records. */
#ifndef TARE_WORKFLOW_BFLOAT16_PLACES_H
#define TARE_WORKFLOW_BFLOAT16_PLACES_H

#include "base/map.h"
#include "graph/model.h"

enum { TARE_BF16_RECORDS = 32 }; /* of a signature that are run */

/* One node's first float output, or an output of the signature. */
struct tare_bf16_place {
    const char *function, *name;
    const struct tare_node *node; /* of the float form; NULL: an output */
    struct tare_tensor values[TARE_BF16_RECORDS];
    double noise;
    int count, compared;
    bool forced;
};

/* Zero at first; tare_bf16_places_free releases the values, not the places, which are arena memory. */
struct tare_bf16_places {
    struct tare_arena *arena;
    struct tare_bf16_place *items;
    size_t count;
    struct tare_map by_name; /* "function/node" -> index + 1 */
    int64_t bytes;
};

/* The place of a node, by the function that has it in the float form; NULL if there is none and `adds` is false, or
 * without memory. */
struct tare_bf16_place *tare_bf16_place_of(struct tare_bf16_places *places, const char *function, const char *name,
                                           bool adds);
/* Stores the value of the float form in record `record`. Loops run a node several times: the first counts. */
tare_status tare_bf16_place_store(struct tare_bf16_places *places, struct tare_bf16_place *place, int record,
                                  const struct tare_tensor *value);
/* Compares the value of the converted form with it. */
void tare_bf16_place_compare(struct tare_bf16_place *place, int record, const struct tare_tensor *value);
/* dB. 999: no error, not compared, or a value that is the same in all records, of which nothing varies. */
double tare_bf16_place_sqnr(const struct tare_bf16_place *place);
void tare_bf16_places_free(struct tare_bf16_places *places);

#endif

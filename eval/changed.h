/* The examples for which a model predicts another class than the float model, with a small picture where the input is
 * an image. For report pages. */
#ifndef TARE_EVAL_CHANGED_H
#define TARE_EVAL_CHANGED_H

#include "base/arena.h"
#include "datasets/sample.h"

enum { TARE_CHANGED_KEPT = 24 }; /* examples of a model */

struct tare_changed_example {
    int64_t record, row;        /* numbers from 0: of the record, and of the example in it */
    int64_t label;              /* below 0: none */
    int64_t from, to;           /* the class of the float model, and of this one */
    double from_margin, margin; /* by which each leads the next class, in the output's unit */
    const char *picture;        /* the input as a PNG in base64; NULL: no input is an image */
    int picture_height, picture_width;
};

/* Initialise with zeros. The examples that the float model decided most clearly are kept: those say most of what is
 * wrong with a model, while any change turns a tie. */
struct tare_changed {
    struct tare_changed_example *examples; /* the clearest first; arena memory */
    size_t count;
    int64_t total; /* of which so many changed */
};

/* Compares one output of a record with the float model's; `labels` by example, NULL: none. */
tare_status tare_changed_add(struct tare_changed *changed, struct tare_arena *arena, const struct tare_sample *sample,
                             const struct tare_tensor *output, const struct tare_tensor *reference, int64_t examples,
                             const int64_t *labels, int64_t record) TARE_WARN_UNUSED;

#endif

/* Labels per position: of every pixel of a mask, or every token of a sequence. Counts right positions, wholly right
 * examples, and intersections and unions by class. */
#ifndef TARE_EVAL_POSITIONS_H
#define TARE_EVAL_POSITIONS_H

#include "base/tensor/tensor.h"
#include "eval/series.h"

#include <stdbool.h>

enum { TARE_POSITION_CLASSES = 256 }; /* with more classes, IoU is not known */

/* At one threshold. */
struct tare_position_counts {
    int64_t count, right;    /* positions with a label */
    int64_t examples, whole; /* of these, all positions right */
    int64_t gained, lost;    /* wholly right in this model only, in the reference only */
    int64_t both[TARE_POSITION_CLASSES], either[TARE_POSITION_CLASSES]; /* intersections and unions by class */
    int64_t labels[TARE_POSITION_CLASSES];                              /* positions by class of the label */
    struct tare_series shares, ious; /* by example: share of right positions; mean IoU of the classes that occur */
};

/* Initialise with zeros; release with tare_positions_reset. */
struct tare_positions {
    struct tare_position_counts at_half, at_zero; /* thresholds of probabilities and logits; equal without scores */
    int classes;       /* 1: one score per position, 2 and more: scores by class, 0: class numbers */
    bool known;        /* `classes` is set */
    bool mask;         /* positions have two or more axes: pixels; otherwise a sequence */
    bool outside_unit; /* a score is below 0 or above 1: the scores are logits */
    bool uncounted;    /* there is a class beyond TARE_POSITION_CLASSES */
};

/* Whether `labels` has one label per position of `value`, whose first axis has `rows` examples; *classes as above. A
 * single label per example, and one-hot rows of a single class output, are not positions. */
bool tare_positions_fit(int *classes, const struct tare_tensor *value, const struct tare_tensor *labels, int64_t rows);
/* Adds the examples of a record. A label that is negative, or not below the number of classes, is not counted; with one
 * score per position every label above 0 is positive. `reference` is the float model's output, NULL for its own. */
tare_status tare_positions_add(struct tare_positions *p, const struct tare_tensor *value,
                               const struct tare_tensor *reference, const struct tare_tensor *labels,
                               int64_t rows) TARE_WARN_UNUSED;
void tare_positions_reset(struct tare_positions *p);

/* The counts at the threshold that the scores call for. */
const struct tare_position_counts *tare_positions_counts(const struct tare_positions *p);
/* Mean over the classes that occur, 0 … 1 (of the positive class with one score per position); NaN without any. */
double tare_positions_iou(const struct tare_positions *p);
/* What one class at all positions reaches, the best one for it: the share of right positions, and the IoU. */
void tare_positions_constant(double *right, double *iou, const struct tare_positions *p);

#endif

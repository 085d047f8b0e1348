/* Batches of models that compute with the range of a whole tensor, as dynamic quantization does: scale and zero point
 * of an activation follow from its minimum and maximum over all elements, so the outputs for a record depend on the
 * other records of a batch. Here the model is changed so that each record of a batch has its own range: Min and Max
 * over all elements become Min and Max over all axes but the first, and what is computed from them has one element per
 * record instead of one. The outputs of a record have the same bits as those of its own run with the original model;
 * eval/joined_run.h checks that before any batch counts.
 *
 * The changed model runs batches of one size, since the number of records is part of its constants: a tensor whose
 * first axis does not have one row per record makes the run fail instead of computing ranges of something else. */
#ifndef TARE_EVAL_RECORD_RANGES_H
#define TARE_EVAL_RECORD_RANGES_H

#include "eval/records.h"
#include "interpreter/session.h"

struct tare_record_ranges {
    struct tare_graph_model *model;
    struct tare_session *session;
    struct tare_record_edges edges; /* of `model` */
    size_t batch;                   /* records of each run */
};

/* *out is NULL if the model computes no such range, or uses one in a way that allows only one element (the padding
 * value of a convolution). `model` must outlive *out and must not change. */
tare_status tare_record_ranges_new(struct tare_record_ranges **out, const struct tare_graph_model *model,
                                   const struct tare_signature *signature, size_t batch) TARE_WARN_UNUSED;
void tare_record_ranges_free(struct tare_record_ranges *ranges); /* NULL is fine */

/* Runs 1 to `batch` records of one row each, of equal shapes, in one run. Fewer records are filled up with copies of
 * the last one. Sets *done to false, without outputs, if the records or the model do not fit. */
tare_status tare_record_ranges_run(bool *done, const struct tare_record_ranges *ranges,
                                   struct tare_bound_record *records, size_t count) TARE_WARN_UNUSED;

#endif

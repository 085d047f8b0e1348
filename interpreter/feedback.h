/* State between calls: outputs of one run of a signature that are inputs of the next one, as streaming models, decoders
 * with caches and RNN cells have them. Used by calibration (calib/engine.c) and by evaluation (eval/runner.c), which
 * run the records of a sequence in their order, one at a time. */
#ifndef TARE_INTERPRETER_FEEDBACK_H
#define TARE_INTERPRETER_FEEDBACK_H

#include "base/option.h"
#include "base/record.h"
#include "graph/model.h"

/* What the user requests. Without pairs there is no feedback. */
struct tare_feedback {
    struct tare_option_list pairs; /* "OUTPUT=INPUT" */
    const char *sequence; /* record key: where its value changes, a sequence begins (datasets/sequence.h). NULL:
                             each file is one sequence */
};

/* NULL: no feedback. */
bool tare_feedback_is_given(const struct tare_feedback *feedback);
/* Appends the options, " --feedback OUTPUT=INPUT". */
struct tare_strbuf;
void tare_feedback_put(struct tare_strbuf *out, const struct tare_feedback *feedback);
/* Whether the input is fed back, so that records need not have it. */
bool tare_feedback_feeds(const struct tare_feedback *feedback, const char *input);
/* Whether the output is fed back. */
bool tare_feedback_reads(const struct tare_feedback *feedback, const char *output);
/* Before there is a signature: TARE_USAGE for a pair that is not OUTPUT=INPUT, and for an input of two pairs. */
tare_status tare_feedback_open(const struct tare_feedback *feedback) TARE_WARN_UNUSED;
/* The same, then TARE_NOT_FOUND, TARE_TYPE or TARE_SHAPE for a pair that does not fit the signature. */
tare_status tare_feedback_check(const struct tare_feedback *feedback,
                                const struct tare_signature *signature) TARE_WARN_UNUSED;

/* The state of one run over records. */
struct tare_feedback_loop;

/* Checks the pairs. Free *out with tare_feedback_loop_free. `feedback` and `signature` must outlive it. */
tare_status tare_feedback_loop_new(struct tare_feedback_loop **out, const struct tare_feedback *feedback,
                                   const struct tare_signature *signature) TARE_WARN_UNUSED;
void tare_feedback_loop_free(struct tare_feedback_loop *loop); /* NULL is fine */
/* Replaces the fed back inputs among `values`, one for each input of the signature, by the outputs of the previous run.
 * In the first record of a sequence, those of the record stay, and those that it lacks are zeros, or what the graph
 * computes for an input with a default. TARE_SHAPE if the size of the zeros is not known, or if an output does not fit.
 */
tare_status tare_feedback_feed(struct tare_feedback_loop *loop, struct tare_tensor *values,
                               const struct tare_record *where) TARE_WARN_UNUSED;
/* Copies the outputs of the run, of one tensor for each output of the signature, for the next record. */
tare_status tare_feedback_take(struct tare_feedback_loop *loop, const struct tare_tensor *outputs) TARE_WARN_UNUSED;

#endif

/* Accuracy of one output of one model: against labels, expected values, and the output of a reference model.
 *
 * Sums are in double, in the order in which records are added; callers add records in the order of the data, so that
 * figures do not depend on threads or batches. */
#ifndef TARE_EVAL_METRICS_H
#define TARE_EVAL_METRICS_H

#include "eval/auc.h"
#include "eval/image_quality.h"
#include "eval/positions.h"
#include "eval/series.h"
#include "base/spread.h"
#include "base/tensor/tensor.h"

/* Initialise with zeros; release with tare_metrics_reset. A row is one example: a record, or, if the signature leaves
 * the first dimension open, one index of it. */
struct tare_metrics {
    int64_t rows;
    int64_t labelled, top1, top5; /* rows with a label that the output can express; of these, correct ones */
    int64_t unlabelled;           /* rows with a label that it cannot: no class index, or not 0 or 1 of one score */
    int64_t largest_label;        /* of these */
    int64_t classes;              /* of the rows with a label: elements per row */
    int64_t gained, lost;         /* labelled rows that only this model, or only the reference, has right */
    struct tare_judged {          /* the rows with a label, in their order */
        struct tare_judgement {
            int64_t label;
            bool right, right_at_zero; /* of one score: at the thresholds 0.5 and 0 */
        } * rows;
        int64_t *sorted; /* room for the labels, so that tare_metrics_finish needs no memory */
        size_t count, capacity, sorted_capacity;
        size_t of_majority; /* rows with the most frequent label, by tare_metrics_finish */
    } judged;
    int64_t ranked, agree; /* rows that predict a class (below); of these, equal to the reference's */
    double signal, noise;  /* sums of squares of the reference, and of the difference */
    double dot, self;      /* sums for the cosine: reference * value, value * value */
    double absolute_error, absolute_reference; /* sums of |difference| and |reference| */
    int64_t elements;                          /* elements that are finite in both: the sums are over these */
    double max_abs_error;
    int64_t max_abs_record;       /* number of its record */
    struct tare_series row_noise; /* per row: sum of squares of the difference, finite elements */
    int64_t not_finite;           /* elements that are NaN or infinite here but not in the reference */
    int64_t undefined;            /* elements that are NaN in the reference */
    int64_t unlike;               /* rows whose output has another number of elements than the reference's, or
                                     strings instead of numbers: they agree with nothing, and are noise */
    struct tare_auc auc;          /* rows labelled 0 or 1 of an output with one or two elements per row */
    struct tare_spread expected;  /* the expected values */
    struct tare_example_errors {  /* per row: means of |value - expected| and of its square; NaN: no finite element */
        struct tare_series absolute, squared;
    } errors;
    bool floating; /* the output has a floating-point or complex dtype */
    bool varies;   /* in the float model, the output differs between records */
    bool binary;   /* one real score per row, labels 0 and 1: top1 counts scores on the label's side of the threshold */
    struct tare_binary_counts {
        int64_t count, correct, gained, lost, true_positives, false_positives, false_negatives;
    } at_half, at_zero;                            /* thresholds of probabilities and of logits */
    bool outside_unit;                             /* a score is below 0 or above 1: the scores are logits */
    double expected_error, expected_squared_error; /* sums of |value - expected| and its square */
    struct tare_positions positions;               /* with labels per pixel or token */
    struct tare_image_quality images;              /* with expected images */
    bool has_custom;                               /* `custom` is set */
    double custom;                                 /* value of the caller's metric (eval/comparison.h) */
};

/* One record's output and what it is compared with. */
struct tare_measured {
    const struct tare_tensor *value;
    const struct tare_tensor *reference; /* NULL: the value is the reference itself */
    int64_t rows;                        /* examples on axis 0; 1: the whole tensor is one */
    const int64_t *labels;               /* class index by row, NULL: none; < 0: none for that row */
    const struct tare_tensor *positions; /* labels per position (eval/positions.h); NULL: none */
    const struct tare_tensor *expected;  /* NULL: none; ignored when it has another number of elements */
    int64_t record;                      /* number of the record in the data, for max_abs_record */
};

/* Adds one record. A row predicts a class when it has one dimension of classes (others may be 1): the index of its
 * largest element, the first on a tie; an integer output with one element per row is the class itself. A single real
 * score, and a row with more dimensions, such as an image, predict none. Strings are compared as a whole, numbers also
 * with those of other dtypes. An output of another size than the reference's counts as rows that do not agree. */
tare_status tare_metrics_add(struct tare_metrics *metrics, const struct tare_measured *measured) TARE_WARN_UNUSED;
void tare_metrics_reset(struct tare_metrics *metrics);
/* After the last record: ranks scores and labels, so that all figures below only read (several threads may print a
 * comparison), chooses the threshold of a single score, 0.5 for probabilities and 0 for logits, by the
 * reference's scores (NULL: these metrics are the reference's), and sets labelled, top1, gained and lost by it. */
void tare_metrics_finish(struct tare_metrics *metrics, const struct tare_metrics *reference);

/* The class that example `row` of an output predicts, as above, and by how much its score leads the next one (NaN of an
 * integer class). False if it predicts none. */
bool tare_metrics_prediction(int64_t *class, double *margin, const struct tare_tensor *output, int64_t rows,
                             int64_t row) TARE_WARN_UNUSED;

/* part / whole; 0 of an empty whole. */
double tare_metrics_share(int64_t part, int64_t whole);
/* Whether labelled row i is right, after tare_metrics_finish. */
bool tare_metrics_is_right(const struct tare_metrics *metrics, size_t i);
/* Share of the labelled rows that have the most frequent label, what always giving it gets right, after
 * tare_metrics_finish; NaN without labels. */
double tare_metrics_majority(const struct tare_metrics *metrics);
/* F1 of the positive class of a single score after tare_metrics_finish; NaN otherwise. */
double tare_metrics_f1(const struct tare_metrics *metrics);
/* Variance of the expected values; NaN without them. */
double tare_metrics_variance(const struct tare_metrics *metrics);
/* Coefficient of determination against the expected values; NaN without them or when they are constant. */
double tare_metrics_r2(const struct tare_metrics *metrics);
/* 10 log10(signal / noise); +infinity without noise, -infinity if an element is NaN or infinite that is finite in the
 * reference, NaN if there is nothing to compare: strings, no elements, or no finite ones. */
double tare_metrics_sqnr_db(const struct tare_metrics *metrics);
/* Cosine of reference and value over all elements; 1 when both are zero. */
double tare_metrics_cosine(const struct tare_metrics *metrics);
/* Mean |difference|, and the same relative to the mean |reference|. */
double tare_metrics_mean_error(const struct tare_metrics *metrics);
double tare_metrics_relative_error(const struct tare_metrics *metrics);

#endif

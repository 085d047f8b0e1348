/* What a comparison supports: which model is recommended, and why, or why none is. */
#ifndef TARE_EVAL_VERDICT_H
#define TARE_EVAL_VERDICT_H

#include "eval/measure.h"

enum tare_verdict_reason {
    TARE_VERDICT_RECOMMENDED,
    TARE_VERDICT_TARGET,       /* the comparison has a target, which chooses a mix of precisions */
    TARE_VERDICT_GUESS,        /* float is no better than guessing (tare_measure_is_guess) */
    TARE_VERDICT_UNBALANCED,   /* likewise, as nearly all labels are of one class; but by AUC it is */
    TARE_VERDICT_CONSTANT,     /* the outputs of float are the same for all of several records */
    TARE_VERDICT_NONE_SMALLER, /* no model is smaller than float … */
    TARE_VERDICT_BROKEN,       /* … or its outputs cannot be compared */
    TARE_VERDICT_SLOWER,       /* a comparison by time: all that keep up take longer than float on the chip */
    TARE_VERDICT_WORSE,        /* all smaller ones lose more than the margin */
    TARE_VERDICT_UNDECIDED     /* the records do not show that one loses at most the margin */
};

struct tare_verdict {
    enum tare_verdict_reason reason;
    const struct tare_comparison_row *row; /* recommended; NULL: none */
    size_t compared;                       /* smaller models whose outputs can be compared with float's */
    size_t candidates;                     /* of these, models that keep up with float */
    bool fastest;                          /* chosen by time: in a comparison by time, or of about the smallest size */
    bool better;                           /* chosen because it is better than a smaller one */
    bool tested;                           /* by the measure; otherwise by an SQNR of TARE_VERDICT_DB */
};
enum { TARE_VERDICT_DB = 20 };
/* The default margin in points: MLPerf Inference asks of quantized models 99 % of the accuracy of float. */
#define TARE_MARGIN 1

/* Recommends a model.
 *
 * Candidates are models that are smaller than float and lose at most the margin of the comparison: the upper limit of
 * their loss, in the paired comparison with float at 95 % for all smaller models together, is not above it. Without an
 * interval for the measure, their SQNR is at least TARE_VERDICT_DB at every output. No output may have another size, or
 * NaN or infinity in place of numbers. The smallest candidate is recommended, unless another one of at most 125 % of
 * its size is better in the paired comparison of both. Of candidates of about the same size (5 %) the fastest wins, of
 * those of about the same time (1 %) the one with the better measure, then with the better SQNR.
 *
 * In a comparison by time, candidates are also not slower than float on the chip: by the compiler's cycles, without
 * them by an estimate that is 20 % less. The fastest is recommended, of those of about the same time the smallest.
 */
struct tare_verdict tare_verdict_of(const struct tare_comparison *comparison);
/* The margin of the comparison, in points (tare_measure_point). */
double tare_verdict_margin(const struct tare_comparison *comparison);
/* Whether a model is recommended or every given model (row->path) keeps up with float. */
bool tare_verdict_is_good(const struct tare_comparison *comparison);
/* What to do where no model is recommended and there is no target: a phrase. */
const char *tare_verdict_remedy(const struct tare_verdict *verdict);
/* The outcome for each given model, then the recommendation with its reason, as sentences without a line break and
 * without the last full stop. */
void tare_verdict_put(struct tare_strbuf *out, const struct tare_comparison *comparison);

#endif

/* Parts of the comparison reports that the page and the text share: the measure of accuracy, the verdict, tables and
 * plots. Used by eval/report/comparison_*.c only. */
#ifndef TARE_EVAL_REPORT_COMPARISON_PAGE_H
#define TARE_EVAL_REPORT_COMPARISON_PAGE_H

#include "eval/comparison.h"
#include "eval/report/report_table.h"

/* One figure for all models: top-1 where there are labels, else agreement with float, else SQNR. */
struct tare_comparison_measure {
    const char *name, *title, *unit;
    enum { TARE_BY_TOP1, TARE_BY_AGREEMENT, TARE_BY_SQNR } kind;
};
struct tare_comparison_measure tare_comparison_measure_of(const struct tare_comparison *comparison);
/* Percent or dB; an exact model's SQNR is drawn at 100 dB. */
double tare_comparison_value(const struct tare_comparison_measure *measure, const struct tare_comparison_row *row);

/* What accuracy is bought with. */
enum tare_comparison_axis { TARE_AGAINST_SIZE, TARE_AGAINST_TIME };
/* No other model is at least as good for at most as much, and better in one of both. */
bool tare_comparison_on_front(const struct tare_comparison *comparison, enum tare_comparison_axis axis, size_t row);
/* True when the estimated time of every model is known. */
bool tare_comparison_has_times(const struct tare_comparison *comparison);

/* Colour and marker of a method, by its first row. */
int tare_comparison_series(const struct tare_comparison *comparison, size_t row);
/* "static mse per_tensor" */
void tare_comparison_put_name(struct tare_strbuf *out, const struct tare_comparison_row *row);
/* Accuracy against size, and against time where that is known, each with its front. */
void tare_comparison_draw(struct tare_strbuf *out, const struct tare_comparison *comparison);

/* Accuracy of every model at one output; what the models take. */
void tare_comparison_models(struct tare_strbuf *out, enum tare_report_form form,
                            const struct tare_comparison *comparison, size_t output);
void tare_comparison_costs(struct tare_strbuf *out, enum tare_report_form form,
                           const struct tare_comparison *comparison);

#endif

/* Parts of the comparison reports that the page and the text share. Used by eval/report/comparison_*.c only. */
#ifndef TARE_EVAL_REPORT_COMPARISON_PAGE_H
#define TARE_EVAL_REPORT_COMPARISON_PAGE_H

#include "eval/comparison.h"

/* The cost axis of a plot. */
enum tare_comparison_axis { TARE_AGAINST_SIZE, TARE_AGAINST_TIME };
/* Pareto-optimal: no other model is at least as accurate at no higher cost and better in one of both. */
bool tare_comparison_on_front(const struct tare_comparison *comparison, enum tare_comparison_axis axis, size_t row);
/* True when the estimated time of every model is known. */
bool tare_comparison_has_times(const struct tare_comparison *comparison);

/* Colour and marker of a method, by its first row. */
int tare_comparison_series(const struct tare_comparison *comparison, size_t row);
/* Scatter plots of the measure against size, and against time when that is known, each with its Pareto front. */
void tare_comparison_draw(struct tare_strbuf *out, const struct tare_comparison *comparison);

/* The layers of the first quantizing method in the order of execution, with the connections between them. Nothing if
 * the comparison has no network. */
void tare_comparison_network(struct tare_strbuf *out, const struct tare_comparison *comparison);

#endif

/* Ranges that algorithms have found for the statistics of one tensor. A search compares hundreds or thousands of
 * ranges, and many callers ask for the same one: every variant of a comparison, the warnings about a model, its
 * explanation. Each range is therefore computed once per algorithm, scheme and number of samples. */
#ifndef TARE_CALIB_RANGE_MEMO_H
#define TARE_CALIB_RANGE_MEMO_H

#include "calib/algorithm.h"
#include "calib/statistics.h"

/* The range found earlier for these statistics; false if there is none. Any thread. */
bool tare_range_memo_get(struct tare_range *out, const struct tare_statistics *statistics,
                         const struct tare_algorithm_choice *choice, const struct tare_qscheme *scheme);
/* Stores a range with the statistics. Without memory nothing is stored, which only means another search. Any thread. */
void tare_range_memo_set(const struct tare_statistics *statistics, const struct tare_algorithm_choice *choice,
                         const struct tare_qscheme *scheme, const struct tare_range *range);
/* Frees the list of a tensor's statistics; NULL is fine. */
void tare_range_memo_free(struct tare_range_memo *list);

#endif

/* A list per tensor, since a tensor has a few combinations of algorithm and scheme. Statistics are const for the
 * callers of algorithms; the list is the only part that changes, and one lock guards all lists. */
#include "calib/range_memo.h"
#include "base/alloc.h"
#include "base/control.h"

#include <pthread.h>

struct tare_range_memo {
    struct tare_range_memo *next;
    int64_t samples; /* statistics with more samples have other ranges */
    struct tare_algorithm_choice choice;
    struct tare_qscheme scheme;
    struct tare_range range;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_of(const struct tare_range_memo *memo, const struct tare_statistics *statistics,
                  const struct tare_algorithm_choice *choice, const struct tare_qscheme *scheme) {
    return memo->samples == statistics->samples && tare_algorithm_equal(&memo->choice, choice) &&
           memo->scheme.bits == scheme->bits && memo->scheme.symmetric == scheme->symmetric &&
           memo->scheme.narrow == scheme->narrow;
}

bool tare_range_memo_get(struct tare_range *out, const struct tare_statistics *statistics,
                         const struct tare_algorithm_choice *choice, const struct tare_qscheme *scheme) {
    const struct tare_range_memo *memo;
    pthread_mutex_lock(&lock);
    memo = statistics->ranges;
    while (memo && !is_of(memo, statistics, choice, scheme))
        memo = memo->next;
    pthread_mutex_unlock(&lock);
    if (memo) *out = memo->range; /* entries never change and live as long as the statistics */
    return memo != NULL;
}

void tare_range_memo_set(const struct tare_statistics *statistics, const struct tare_algorithm_choice *choice,
                         const struct tare_qscheme *scheme, const struct tare_range *range) {
    struct tare_statistics *owner = (struct tare_statistics *)(uintptr_t)statistics;
    const int64_t mark = tare_control_failures();
    struct tare_range_memo *memo = tare_calloc(1, sizeof *memo);
    if (!memo) { /* the range is searched again where it is needed */
        tare_error_clear();
        tare_control_forgive(mark);
        return;
    }
    *memo = (struct tare_range_memo){
        .samples = statistics->samples, .choice = *choice, .scheme = *scheme, .range = *range
    };
    pthread_mutex_lock(&lock);
    memo->next = owner->ranges;
    owner->ranges = memo;
    pthread_mutex_unlock(&lock);
}

void tare_range_memo_free(struct tare_range_memo *list) {
    while (list) {
        struct tare_range_memo *next = list->next;
        tare_free(list);
        list = next;
    }
}

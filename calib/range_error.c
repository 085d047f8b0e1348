/* Errors stored with statistics; see the header. Statistics are const for the callers; the list is the only part that
 * changes, and one lock guards all lists. */
#include "calib/range_error.h"
#include "base/alloc.h"
#include "base/control.h"

#include <pthread.h>

struct stored_error {
    struct tare_stored_result list;
    int64_t samples; /* statistics with more samples have other errors */
    struct tare_qparams params;
    struct tare_range_error error;
};

static pthread_mutex_t stored_errors_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_of(const struct stored_error *stored, const struct tare_qparams *params,
                  const struct tare_statistics *statistics) {
    return stored->samples == statistics->samples && stored->params.scale == params->scale &&
           stored->params.zero_point == params->zero_point && stored->params.qmin == params->qmin &&
           stored->params.qmax == params->qmax;
}

bool tare_range_error_find(struct tare_range_error *out, const struct tare_qparams *params,
                           const struct tare_statistics *statistics) {
    const struct tare_stored_result *at;
    pthread_mutex_lock(&stored_errors_lock);
    at = statistics->errors;
    while (at && !is_of((const struct stored_error *)at, params, statistics))
        at = at->next;
    pthread_mutex_unlock(&stored_errors_lock);
    if (at) *out = ((const struct stored_error *)at)->error;
    return at != NULL;
}

static void store(const struct tare_range_error *error, const struct tare_qparams *params,
                  const struct tare_statistics *statistics) {
    struct tare_statistics *owner = (struct tare_statistics *)(uintptr_t)statistics;
    const int64_t mark = tare_control_failures();
    struct stored_error *stored = tare_calloc(1, sizeof *stored);
    if (!stored) {
        tare_error_clear();
        tare_control_forgive(mark);
        return;
    }
    *stored = (struct stored_error){ .samples = statistics->samples, .params = *params, .error = *error };
    pthread_mutex_lock(&stored_errors_lock);
    stored->list.next = owner->errors;
    owner->errors = &stored->list;
    pthread_mutex_unlock(&stored_errors_lock);
}

struct tare_range_error tare_range_error_of(const struct tare_qparams *params, const struct tare_statistics *statistics,
                                            const struct tare_bins *bins) {
    const struct tare_range_error error = { .error = tare_quantization_error_of(params, bins),
                                            .count = tare_bins_total(bins),
                                            .squares = bins->squares[bins->count] };
    store(&error, params, statistics);
    return error;
}

/* The rules by which records may run as one batch; see the header. */
#include "interpreter/batch_check.h"
#include "base/alloc.h"
#include "graph/data_dependence.h"

tare_status tare_batch_check_graph(const char **reason, const struct tare_graph_model *model,
                                   const struct tare_signature *signature) {
    bool stateful, dependent = false;
    *reason = NULL;
    TARE_TRY(tare_session_state_ops(&stateful, model, signature, NULL));
    if (stateful) {
        *reason = "the model keeps state from record to record";
    } else if (!tare_signature_batches(signature, true)) {
        *reason = "the signature does not leave the first dimension of every input open";
    } else {
        TARE_TRY(tare_signature_is_data_dependent(&dependent, signature));
        if (dependent) *reason = "the model has branches or loops that may run differently for each record";
    }
    return TARE_OK;
}

const char *tare_batch_check_reason(enum tare_batch_verdict verdict) {
    switch (verdict) {
    case TARE_BATCH_UNDECIDED:
        return "the first two records have an equal input or different shapes, which does not show whether a batch "
               "changes results";
    case TARE_BATCH_DEPENDENT:
        return "two records give other numbers as a batch than alone";
    default:
        return NULL;
    }
}

/* Whether every input differs. A model may mix records by one input only, such as a mask, and equal values of it would
 * not show that. */
static bool all_feeds_differ(const struct tare_tensor *const pair[2], size_t n_feeds) {
    for (size_t i = 0; i < n_feeds; i++)
        if (pair[0][i].dtype != TARE_DT_INVALID && tare_tensor_same_bits(&pair[0][i], &pair[1][i])) return false;
    return true;
}

static tare_status contrast_feed(struct tare_tensor *out, const struct tare_tensor *feed) {
    if (!tare_dtype_is_floating(feed->dtype)) {
        tare_tensor_share(out, feed);
        return TARE_OK;
    }
    TARE_TRY(tare_tensor_copy(out, feed));
    for (int64_t i = 0; i < out->elements; i++)
        tare_tensor_set_f64(out, i, -16 * tare_tensor_get_f64(feed, i));
    return TARE_OK;
}

static tare_status try_contrast(enum tare_batch_verdict *verdict, const struct tare_tensor *const pair[2],
                                size_t n_feeds, tare_batch_trial_fn trial, void *arg) {
    struct tare_tensor *contrast = tare_calloc(n_feeds + 1, sizeof *contrast);
    const struct tare_tensor *const changed[2] = { pair[0], contrast };
    tare_status status = contrast ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < n_feeds && status == TARE_OK; i++)
        status = contrast_feed(&contrast[i], &pair[1][i]);
    if (status == TARE_OK) {
        status = trial(arg, verdict, changed);
        if (status != TARE_OK) *verdict = TARE_BATCH_INDEPENDENT;
        status = tare_error_dismiss(status);
    }
    for (size_t i = 0; contrast && i < n_feeds; i++)
        tare_tensor_reset(&contrast[i]);
    tare_free(contrast);
    return status;
}

tare_status tare_batch_check_pair(enum tare_batch_verdict *verdict, const struct tare_tensor *const pair[2],
                                  size_t n_feeds, tare_batch_trial_fn trial, void *arg) {
    *verdict = TARE_BATCH_UNDECIDED;
    if (!all_feeds_differ(pair, n_feeds)) return TARE_OK;
    TARE_TRY(trial(arg, verdict, pair));
    return *verdict == TARE_BATCH_INDEPENDENT ? try_contrast(verdict, pair, n_feeds, trial, arg) : TARE_OK;
}

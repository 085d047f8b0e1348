/* Samples in the order of the source; what does not fit a batch is held for the next one. */
#include "calib/feed.h"

#include "base/alloc.h"

void tare_feeder_begin(struct tare_feeder *feeder) {
    feeder->left = -1;
    if (feeder->limit <= 0) return;
    feeder->left = feeder->limit;
    for (size_t i = 0; i < feeder->source->n_files; i++)
        feeder->left -= tare_record_set_size(&feeder->calibration->inputs[feeder->inputs[i]].records);
    if (feeder->left < 0) feeder->left = 0;
}

void tare_feeder_end(struct tare_feeder *feeder) {
    for (int i = 0; i < feeder->n_held; i++)
        tare_batch_drop(&feeder->held[i], feeder->n_feeds);
    feeder->n_held = 0;
}

tare_status tare_feeder_name(const struct tare_feeder *feeder, tare_status status, const struct tare_record *record) {
    return tare_error_prefix(status, "%s: record %lld", feeder->source->files[record->file], (long long)record->number);
}

static bool is_wanted(void *arg, const struct tare_record *record) {
    const struct tare_feeder *feeder = arg;
    return !tare_record_set_has(&feeder->calibration->inputs[feeder->inputs[record->file]].records, record->number);
}

static tare_status check_record(const struct tare_feeder *feeder, const struct tare_record *record) {
    if (record->file < 0 || (size_t)record->file >= feeder->source->n_files || record->number < 0 || record->index < 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "a sample without a place (file %d, record %lld)", (int)record->file,
                         (long long)record->number);
    return TARE_OK;
}

/* The next sample; feeds stay NULL at the end. */
static tare_status take(struct tare_feeder *feeder, struct tare_batch_sample *out, int64_t *index) {
    *out = (struct tare_batch_sample){ 0 };
    *index = INT64_MAX;
    if (feeder->n_held > 0) {
        *out = feeder->held[0];
        feeder->held[0] = feeder->held[1];
        feeder->n_held--;
        return TARE_OK;
    }
    bool end = false;
    if (feeder->ended || feeder->left == 0) return TARE_OK;
    out->feeds = tare_calloc(feeder->n_feeds + 1, sizeof *out->feeds);
    if (!out->feeds) return TARE_NO_MEMORY;
    out->record = (struct tare_record){ .number = -1 };
    tare_status status = feeder->source->next(feeder->source->arg, out->feeds, &out->record, &end, is_wanted, feeder);
    if (status == TARE_OK && !end) status = check_record(feeder, &out->record);
    if (status != TARE_OK && out->record.number >= 0) *index = out->record.index;
    if (status != TARE_OK || end) {
        feeder->ended = true;
        tare_batch_drop(out, feeder->n_feeds);
        return status;
    }
    if (feeder->left > 0) feeder->left--;
    return TARE_OK;
}

static void hold(struct tare_feeder *feeder, const struct tare_batch_sample *sample) {
    feeder->held[feeder->n_held++] = *sample;
}

tare_status tare_feeder_fill(struct tare_feeder *feeder, struct tare_batch *batch, size_t room, int64_t *index) {
    while (batch->count < room) {
        struct tare_batch_sample sample;
        TARE_TRY(take(feeder, &sample, index));
        if (!sample.feeds) return TARE_OK;
        if (batch->count > 0 && !tare_batch_fits(&batch->samples[0], &sample, feeder->n_feeds)) {
            /* It came from the front of the queue: what is held comes after it. */
            feeder->held[1] = feeder->held[0];
            feeder->held[0] = sample;
            feeder->n_held++;
            return TARE_OK;
        }
        batch->samples[batch->count++] = sample;
    }
    return TARE_OK;
}

tare_status tare_feeder_peek(struct tare_feeder *feeder, const struct tare_batch_sample *samples[2]) {
    int64_t index;
    samples[0] = samples[1] = NULL;
    struct tare_batch_sample taken[2] = { { 0 } };
    for (int i = 0; i < 2; i++) {
        tare_status status = take(feeder, &taken[i], &index);
        if (status != TARE_OK) {
            for (int k = 0; k < i; k++)
                tare_batch_drop(&taken[k], feeder->n_feeds);
            return status;
        }
        if (!taken[i].feeds) break;
    }
    for (int i = 0; i < 2 && taken[i].feeds; i++)
        hold(feeder, &taken[i]);
    if (feeder->n_held == 0) return TARE_OK;
    samples[0] = &feeder->held[0];
    bool pair = feeder->n_held == 2 && tare_batch_fits(&feeder->held[0], &feeder->held[1], feeder->n_feeds);
    samples[1] = &feeder->held[pair ? 1 : 0];
    return TARE_OK;
}

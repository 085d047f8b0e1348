/* Binds the records of a source to the inputs, and refuses those that do not fit. */
#include "workflow/sample_feed.h"
#include "eval/model_inputs.h"

#include <string.h>

static tare_status next(void *arg, struct tare_tensor *inputs, struct tare_record *record, bool *end,
                        bool (*wanted)(void *wanted_arg, const struct tare_record *record), void *wanted_arg) {
    const struct tare_sample_feed *feed = arg;
    for (;;) {
        struct tare_sample sample;
        struct tare_record where;
        TARE_TRY(tare_source_next(&sample, &where, end, feed->records, wanted, wanted_arg));
        if (*end) return TARE_OK;
        *record = where;
        tare_status status = tare_bind_record(inputs, feed->signature, &sample, feed->feedback);
        tare_sample_reset(&sample); /* the inputs borrow its tensors */
        if (status == TARE_OK || status == TARE_NO_MEMORY) return status;
        TARE_TRY(tare_source_refuse(feed->records, &where, status));
    }
}

tare_status tare_sample_feed_open(struct tare_sample_feed *out, const struct tare_signature *signature,
                                  const char *const *paths, size_t n_paths, const struct tare_source_options *options,
                                  const struct tare_feedback *feedback) {
    struct tare_source_options reading = *options;
    *out = (struct tare_sample_feed){ .signature = signature, .feedback = feedback };
    if (feedback) reading.sequence = feedback->sequence;
    if (!reading.rows) TARE_TRY(tare_rows_at_a_time(&reading.rows, signature, paths, n_paths, reading.spec));
    TARE_TRY(tare_source_new(&out->records, paths, n_paths, &reading));
    out->source = (struct tare_sample_source){ .arg = out, .remaining = -1, .next = next };
    out->source.files = tare_source_files(out->records, &out->source.n_files);
    return TARE_OK;
}

void tare_sample_feed_close(struct tare_sample_feed *feed) {
    tare_source_free(feed->records);
    *feed = (struct tare_sample_feed){ 0 };
}

/* The calibration stores the file name separately, so it is removed from the text. */
static const char *without_file(const char *text, const char *file) {
    const size_t size = strlen(file);
    return strncmp(text, file, size) == 0 && strncmp(text + size, ": ", 2) == 0 ? text + size + 2 : text;
}

tare_status tare_sample_feed_note_bad(struct tare_calibration *calibration, const struct tare_sample_feed *feed) {
    size_t count;
    const struct tare_bad_record *bad = tare_source_bad_records(feed->records, &count);
    for (size_t i = 0; i < count; i++) {
        const char *file = feed->source.files[bad[i].where.file];
        const struct tare_calibration_bad note = {
            .record = bad[i].where.number,
            .offset = bad[i].where.offset,
            .reason = (char *)(uintptr_t)tare_bad_reason_name(bad[i].reason),
            .text = (char *)(uintptr_t)without_file(bad[i].text, file),
        };
        int32_t input;
        TARE_TRY(tare_calibration_add_input(calibration, feed->signature->key, file, &input));
        TARE_TRY(tare_calibration_add_bad(calibration, input, &note));
    }
    return TARE_OK;
}

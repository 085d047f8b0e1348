/* Numbers the sequences of a data set. */
#include "datasets/sequence.h"
#include "base/strbuf.h"

void tare_sequences_free(struct tare_sequences *sequences) {
    tare_tensor_reset(&sequences->value);
    *sequences = (struct tare_sequences){ 0 };
}

static tare_status no_key(const struct tare_sample *sample, const char *key) {
    struct tare_strbuf keys = { 0 };
    for (size_t i = 0; i < sample->count; i++)
        tare_strbuf_printf(&keys, "%s%s", i ? ", " : "", sample->keys[i]);
    const tare_status status = TARE_FAIL(TARE_NOT_FOUND, "--sequence %s: the record has no such key (it has %s)", key,
                                         sample->count ? tare_strbuf_text(&keys) : "none");
    tare_strbuf_free(&keys);
    return status;
}

tare_status tare_sequences_number(struct tare_record *where, struct tare_sequences *sequences,
                                  const struct tare_sample *sample, const char *key) {
    const struct tare_tensor *value = tare_sample_find(sample, key);
    if (!value) return no_key(sample, key);
    if (!sequences->value.dtype || where->file != sequences->file || !tare_tensor_same_bits(&sequences->value, value)) {
        struct tare_tensor kept;
        TARE_TRY(tare_tensor_copy(&kept, value));
        tare_tensor_reset(&sequences->value);
        sequences->value = kept;
        sequences->number++;
    }
    sequences->file = where->file;
    where->sequence = sequences->number;
    return TARE_OK;
}

/* Sequences of records: which records follow each other, by the value of a key. */
#ifndef TARE_DATASETS_SEQUENCE_H
#define TARE_DATASETS_SEQUENCE_H

#include "base/record.h"
#include "datasets/sample.h"

/* Initialise with zeros. */
struct tare_sequences {
    struct tare_tensor value; /* of the last record; dtype 0: none */
    int32_t file;
    int64_t number;
};

void tare_sequences_free(struct tare_sequences *sequences);
/* Sets where->sequence to the number of the record's sequence: it increases where the value of `key` is another one
 * than in the previous record, or the file is. TARE_NOT_FOUND, with the keys of the record, if it has no such value. */
tare_status tare_sequences_number(struct tare_record *where, struct tare_sequences *sequences,
                                  const struct tare_sample *sample, const char *key) TARE_WARN_UNUSED;

#endif

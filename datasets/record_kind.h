/* The kind of a record, detected from its structure: TFRecord files do not contain it. */
#ifndef TARE_DATASETS_RECORD_KIND_H
#define TARE_DATASETS_RECORD_KIND_H

#include <stddef.h>

enum tare_record_kind {
    TARE_RECORD_OTHER, /* none of those below; also the empty record, which could be any */
    TARE_RECORD_SAMPLE,
    TARE_RECORD_EXAMPLE,
    TARE_RECORD_SEQUENCE_EXAMPLE,
};

/* All fields must match the kind. Reads lengths and keys, not values. */
enum tare_record_kind tare_record_kind_of(const void *data, size_t size);
/* "RepresentativeDataSample", "tf.Example", "tf.SequenceExample", "unknown". */
const char *tare_record_kind_name(enum tare_record_kind kind);

#endif

/* What a record's bytes are: told by their structure alone, since TFRecord files do not say. */
#ifndef TARE_DATASETS_RECORD_KIND_H
#define TARE_DATASETS_RECORD_KIND_H

#include <stddef.h>

enum tare_record_kind {
    TARE_RECORD_OTHER, /* none of those below; also the empty record, which fits all of them */
    TARE_RECORD_SAMPLE,
    TARE_RECORD_EXAMPLE,
    TARE_RECORD_SEQUENCE_EXAMPLE,
};

/* Every field must fit the kind. Looks at each byte of lengths and keys, not at values. */
enum tare_record_kind tare_record_kind_of(const void *data, size_t size);
/* "RepresentativeDataSample", "tf.Example", "tf.SequenceExample", "unknown". */
const char *tare_record_kind_name(enum tare_record_kind kind);

#endif

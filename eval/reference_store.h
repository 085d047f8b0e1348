/* Stores the tensors of many records, such as the float model's outputs, which later models are measured against, in
 * mapped temporary files of 16 MiB, or of one record. Of records that are read in their order, two files are in memory.
 */
#ifndef TARE_EVAL_REFERENCE_STORE_H
#define TARE_EVAL_REFERENCE_STORE_H

#include "base/tensor/tensor.h"

#include <stdbool.h>

/* Initialise with zeros. */
struct tare_reference_store {
    size_t n_outputs; /* tensors of the records that are added; constant if has_objects */
    int64_t count;    /* records */
    size_t bytes;     /* of all records in the files */
    bool has_objects; /* which have references to release */
    struct tare_store_chunk *chunks;
    size_t n_chunks, chunks_capacity;
};

/* Copies one record's outputs. */
tare_status tare_reference_store_add(struct tare_reference_store *store,
                                     const struct tare_tensor *outputs) TARE_WARN_UNUSED;
/* The outputs of record number `record`, counted in the order of adding; NULL when there are fewer records. No buffer
 * owns them: they are valid until the store is freed. */
const struct tare_tensor *tare_reference_store_get(const struct tare_reference_store *store, int64_t record);
void tare_reference_store_free(struct tare_reference_store *store);

#endif

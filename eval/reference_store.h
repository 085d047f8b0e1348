/* Stores the float model's outputs, which later models are measured against, in mapped temporary files: the kernel can
 * evict their pages, so an evaluation of any number of records fits into memory. */
#ifndef TARE_EVAL_REFERENCE_STORE_H
#define TARE_EVAL_REFERENCE_STORE_H

#include "base/tensor/tensor.h"

/* Initialise with zeros. */
struct tare_reference_store {
    size_t n_outputs;            /* tensors per record; set before the first record is added */
    struct tare_tensor *tensors; /* record by record */
    size_t count, capacity;      /* tensors */
    struct tare_store_chunk *chunks;
    size_t n_chunks, chunks_capacity;
};

/* Copies one record's outputs. */
tare_status tare_reference_store_add(struct tare_reference_store *store,
                                     const struct tare_tensor *outputs) TARE_WARN_UNUSED;
/* The outputs of record number `record`, counted in the order of adding; NULL when there are fewer records. */
const struct tare_tensor *tare_reference_store_get(const struct tare_reference_store *store, int64_t record);
void tare_reference_store_free(struct tare_reference_store *store);

#endif

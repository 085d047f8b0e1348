/* The float answers that later models are measured against, kept in a temporary file that is mapped: the kernel may
 * take the memory back, so that an evaluation over any number of records fits. */
#ifndef TARE_EVAL_REFERENCE_STORE_H
#define TARE_EVAL_REFERENCE_STORE_H

#include "base/tensor/tensor.h"

/* Zero it to start. */
struct tare_reference_store {
    size_t n_outputs;            /* tensors a record; set before the first is added */
    struct tare_tensor *tensors; /* record by record */
    size_t count, capacity;      /* tensors */
    struct tare_store_chunk *chunks;
    size_t n_chunks, chunks_capacity;
};

/* Copies one record's outputs. */
tare_status tare_reference_store_add(struct tare_reference_store *store,
                                     const struct tare_tensor *outputs) TARE_WARN_UNUSED;
/* The outputs of record `record`, in order of adding; NULL when there are not so many. */
const struct tare_tensor *tare_reference_store_get(const struct tare_reference_store *store, int64_t record);
void tare_reference_store_free(struct tare_reference_store *store);

#endif

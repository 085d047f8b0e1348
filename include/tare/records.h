/* Records from the caller's memory: a callback instead of data files. */
#ifndef TARE_RECORDS_H
#define TARE_RECORDS_H

#include "array.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Supplies records one at a time, from first to last, once. */
typedef struct tare_records {
    size_t struct_size; /* sizeof(tare_records) */
    const char *name;   /* name of the records in reports and calibrations; NULL: "memory" */
    void *arg;          /* first argument of `next` */
    /* Sets *arrays to the *count tensors of the next record, valid until the next call, or to NULL after the last
     * record. Called on the thread that called the library. Another status than TARE_OK ends the call with that
     * status. */
    tare_status (*next)(void *arg, const tare_array **arrays, size_t *count);
    uint64_t reserved[4]; /* zero. For members of later versions */
} tare_records;

#ifdef __cplusplus
}
#endif

#endif

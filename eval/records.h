/* Records that run through a signature: bound to its feeds, joined on axis 0, with the outputs split again. */
#ifndef TARE_EVAL_RECORDS_H
#define TARE_EVAL_RECORDS_H

#include "datasets/source.h"
#include "interpreter/signature_edges.h"

struct tare_bound_record {
    struct tare_sample sample;
    struct tare_record where;
    struct tare_tensor *values;  /* by feed */
    struct tare_tensor *outputs; /* by output, after the run; in the same block */
};

/* Takes ownership of the sample, also on failure. */
tare_status tare_record_take(struct tare_bound_record *out, const struct tare_signature_edges *edges,
                             struct tare_sample *sample, const struct tare_record *where) TARE_WARN_UNUSED;
void tare_record_reset(struct tare_bound_record *record, const struct tare_signature_edges *edges);
/* Joins the records' values into one tensor per feed with *rows on axis 0. Sets *fits to false when their shapes
 * differ; `joined` (one per feed, zeroed by the caller) may then be partly set. The caller resets it in any case. */
tare_status tare_records_join(struct tare_tensor *joined, int64_t *rows, bool *fits,
                              const struct tare_bound_record *records, size_t count,
                              const struct tare_signature_edges *edges) TARE_WARN_UNUSED;
/* True when every output has `rows` on axis 0. */
bool tare_records_can_split(const struct tare_tensor *outputs, int64_t rows, const struct tare_signature_edges *edges);
/* Sets each record's outputs to its rows of the joined outputs, without copying. */
tare_status tare_records_split(struct tare_bound_record *records, size_t count, const struct tare_tensor *outputs,
                               const struct tare_signature_edges *edges) TARE_WARN_UNUSED;
void tare_tensors_reset(struct tare_tensor *tensors, size_t count); /* NULL is fine */
/* Prefixes the text of a failure with file and record numbers. */
tare_status tare_records_locate(tare_status status, const char *const *files, const struct tare_record *first,
                                const struct tare_record *last);

#endif

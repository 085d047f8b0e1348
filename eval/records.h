/* Records on their way through a signature: bound to its feeds, put together on axis 0, and their outputs apart again.
 * Shared by the runner and by re-runs. */
#ifndef TARE_EVAL_RECORDS_H
#define TARE_EVAL_RECORDS_H

#include "datasets/source.h"
#include "graph/model.h"

/* Where a signature's values go in and come out. */
struct tare_record_edges {
    const struct tare_signature *signature;
    struct tare_edge *feeds, *fetches; /* one block, from base/alloc.h */
    size_t n_feeds, n_outputs;
};

/* TARE_UNSUPPORTED names an input that cannot be fed, or an output that cannot be fetched. End with
 * tare_record_edges_free, also after a failure. */
tare_status tare_record_edges_of(struct tare_record_edges *out,
                                 const struct tare_signature *signature) TARE_WARN_UNUSED;
void tare_record_edges_free(struct tare_record_edges *edges);

struct tare_bound_record {
    struct tare_sample sample;
    struct tare_provenance where;
    struct tare_tensor *values;  /* by feed */
    struct tare_tensor *outputs; /* by output, once it ran; the same block */
};

/* Takes the sample over, also on failure. */
tare_status tare_record_take(struct tare_bound_record *out, const struct tare_record_edges *edges,
                             struct tare_sample *sample, const struct tare_provenance *where) TARE_WARN_UNUSED;
void tare_record_reset(struct tare_bound_record *record, const struct tare_record_edges *edges);
/* Puts the records' values together, one tensor a feed, *rows on axis 0. *fits is false when they cannot be: `joined`
 * (zeroed, one a feed) may then hold a part, the caller's to reset as always. */
tare_status tare_records_join(struct tare_tensor *joined, int64_t *rows, bool *fits,
                              const struct tare_bound_record *records, size_t count,
                              const struct tare_record_edges *edges) TARE_WARN_UNUSED;
/* Whether every output has `rows` on axis 0. */
bool tare_records_can_split(const struct tare_tensor *outputs, int64_t rows, const struct tare_record_edges *edges);
/* Shares of such outputs, by the records' own rows. */
tare_status tare_records_split(struct tare_bound_record *records, size_t count, const struct tare_tensor *outputs,
                               const struct tare_record_edges *edges) TARE_WARN_UNUSED;
void tare_tensors_reset(struct tare_tensor *tensors, size_t count); /* NULL is fine */
/* Puts files and record numbers in front of a failure's text. */
tare_status tare_records_locate(tare_status status, const char *const *files, const struct tare_provenance *first,
                                const struct tare_provenance *last);

#endif

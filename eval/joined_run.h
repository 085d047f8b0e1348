/* Runs one record, or several as one batch: joined on axis 0, and the outputs split again. Whether that may be done is
 * decided by interpreter/batch_check.h, and how many records a batch contains by the memory of their activations. */
#ifndef TARE_EVAL_JOINED_RUN_H
#define TARE_EVAL_JOINED_RUN_H

#include "eval/records.h"
#include "interpreter/batch_check.h"

tare_status tare_record_run(struct tare_session *session, const struct tare_signature_edges *edges,
                            struct tare_bound_record *record) TARE_WARN_UNUSED;

/* Runs `count` records as one batch. *verdict is TARE_BATCH_INDEPENDENT when the records' outputs are set;
 * TARE_BATCH_UNDECIDED when the values cannot be joined and TARE_BATCH_DEPENDENT when the outputs cannot be split, and
 * no outputs are set then. */
tare_status tare_records_run_joined(enum tare_batch_verdict *verdict, struct tare_session *session,
                                    const struct tare_signature_edges *edges, struct tare_bound_record *records,
                                    size_t count) TARE_WARN_UNUSED;

enum { TARE_BATCH_BYTES = 1 << 20 }; /* of the activations of a batch; half of a common second-level cache */

/* The batch size, at most `most`, with which the activations of a batch take TARE_BATCH_BYTES: with more, they no
 * longer fit into the cache, which costs more time than a batch saves. Runs `two` records one by one through `session`,
 * and sets their outputs. */
tare_status tare_records_choose_batch(size_t *batch, size_t most, struct tare_session *session,
                                      const struct tare_signature_edges *edges,
                                      struct tare_bound_record *two) TARE_WARN_UNUSED;

/* Whether records may run together, from two of them, by their outputs alone and as one batch through `session`.
 * Their own `outputs` are not changed. Returns an error when a record fails alone. */
tare_status tare_records_check_pair(enum tare_batch_verdict *verdict, struct tare_session *session,
                                    const struct tare_signature_edges *edges,
                                    const struct tare_bound_record *two) TARE_WARN_UNUSED;

#endif

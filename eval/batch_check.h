/* Whether records may run as one batch: what each gets must not depend on the others. */
#ifndef TARE_EVAL_BATCH_CHECK_H
#define TARE_EVAL_BATCH_CHECK_H

#include "eval/records.h"
#include "interpreter/session.h"

/* What the graph says: the signature leaves axis 0 of its inputs open, keeps no state from record to record, and no
 * branch or loop goes by the values of a record. */
tare_status tare_records_may_join(bool *may, const struct tare_record_edges *edges) TARE_WARN_UNUSED;

enum tare_together {
    TARE_TOGETHER_UNKNOWN, /* two like records, or records that do not fit, show nothing */
    TARE_TOGETHER_SAME,
    TARE_TOGETHER_DIFFERS, /* other bits than alone, outputs that cannot be split by records, or a failure */
};
/* What two records say: alone and as one batch through `session` (a model may normalise over its batch). Their own
 * `outputs` are not touched. A record that fails alone is an error. */
tare_status tare_records_try(enum tare_together *found, struct tare_session *session,
                             const struct tare_record_edges *edges,
                             const struct tare_bound_record *two) TARE_WARN_UNUSED;

/* Runs records as one batch and splits what comes out. *done is false, and nothing is given out, when the records do
 * not fit (*found is then TARE_TOGETHER_UNKNOWN) or the outputs cannot be split (TARE_TOGETHER_DIFFERS). */
tare_status tare_records_run_together(bool *done, enum tare_together *found, struct tare_session *session,
                                      const struct tare_record_edges *edges, struct tare_bound_record *records,
                                      size_t count) TARE_WARN_UNUSED;
tare_status tare_record_run(struct tare_session *session, const struct tare_record_edges *edges,
                            struct tare_bound_record *record) TARE_WARN_UNUSED;

#endif

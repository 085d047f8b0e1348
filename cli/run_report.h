/* The profile and the JSON summary of tare run. */
#ifndef TARE_CLI_RUN_REPORT_H
#define TARE_CLI_RUN_REPORT_H

#include "cli/run_outputs.h"
#include "eval/served_batches.h"
#include "interpreter/session.h"

struct tare_run_summary {
    const char *model, *signature;
    int64_t records;
    int threads, batch;
    bool stateful;
    double seconds;
    size_t n_outputs;
    const struct tare_served_batches *batches; /* NULL: without --batching */
};

/* Time by op type and by node over all sessions, slowest first. */
struct tare_run_profile {
    struct tare_profile_row *nodes, *ops; /* of an op type: `node` is one of its nodes */
    size_t n_nodes, n_ops;
    int64_t nanoseconds;
};
/* Arena memory. */
tare_status tare_run_profile_make(struct tare_run_profile *out, struct tare_arena *arena,
                                  struct tare_session *const *sessions, int count);
/* Prints two tables to standard error. */
void tare_run_profile_print(const struct tare_run_profile *profile);
/* Prints a line for each batcher to standard error: requests, batches by size, padding. */
void tare_run_batching_print(const struct tare_served_batches *batches);
/* Prints one JSON object to standard output; `profile` may be NULL. */
tare_status tare_run_summary_print(const struct tare_run_summary *summary, const struct tare_run_outputs *outputs,
                                   const struct tare_run_profile *profile);

#endif

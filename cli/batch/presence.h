/* How the ranks of a batch find each other, and their signs of life, in files ".rank-N" of the folder of the state, one
 * for each rank other than 0. Launchers differ in what identifies a run, and in whether they end the others when one
 * has died.
 *
 * The ranks join first, so that nothing of an earlier run counts: rank 0 empties the files and names the run at random;
 * each other rank writes a random id to its file, which rank 0 answers with the name of the run. */
#ifndef TARE_CLI_BATCH_PRESENCE_H
#define TARE_CLI_BATCH_PRESENCE_H

#include "base/arena.h"
#include "base/status.h"
#include "cli/ranks.h"

#include <stdbool.h>
#include <stddef.h>

enum { TARE_BATCH_RUN_SIZE = 33 }; /* 32 hexadecimal digits */

/* Of this rank. */
struct tare_batch_presence {
    const char *state; /* folder; NULL: has not joined, or has ended */
    struct tare_ranks ranks;
    char run[TARE_BATCH_RUN_SIZE]; /* the name of the run; "" with a single rank */
    struct tare_batch_peer *peers; /* on rank 0: by rank */
    long long beats;
    double told; /* time of the last sign */
};

/* What rank 0 knows of another rank. */
struct tare_batch_peer {
    char last[64]; /* its last sign */
    double heard;  /* time of the last new sign or of the first look; 0: not looked at since it joined */
};

/* Waits until all ranks have joined, at most 120 seconds: then rank 0 continues, and the missing ranks are lost;
 * another rank that rank 0 has not answered fails. On rank 0, the state must be locked. */
tare_status tare_batch_presence_join(struct tare_batch_presence *own, struct tare_arena *arena, const char *state,
                                     const struct tare_ranks *ranks) TARE_WARN_UNUSED;
/* Call it several times a second; the file is written once a second. Does nothing on rank 0, as the next. A sign that
 * cannot be written is missed by rank 0, so errors are not reported. */
void tare_batch_presence_tell(struct tare_batch_presence *own);
/* This rank ends, with the error text unless the status is TARE_OK. */
void tare_batch_presence_end(struct tare_batch_presence *own, tare_status status);

/* On rank 0: looks at the sign of `rank`. *reason becomes why the rank is lost: it has ended with an error, or has
 * given no sign for too long; NULL: it is not. Removes the file of a lost rank. */
tare_status tare_batch_presence_look(const char **reason, struct tare_arena *arena,
                                     const struct tare_batch_presence *own, int rank) TARE_WARN_UNUSED;

#endif

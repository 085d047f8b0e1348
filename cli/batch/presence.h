/* Signs of life of the ranks of a batch. Each rank other than 0 writes a file ".rank-N" in the folder of the state once
 * a second, and rank 0 looks whether it still changes: launchers differ in whether they end the others when one has
 * died. */
#ifndef TARE_CLI_BATCH_PRESENCE_H
#define TARE_CLI_BATCH_PRESENCE_H

#include "base/arena.h"
#include "base/status.h"
#include "cli/ranks.h"

#include <stdbool.h>
#include <stddef.h>

/* Of this rank. */
struct tare_batch_presence {
    const char *state; /* folder; NULL: not begun */
    struct tare_ranks ranks;
    long long beats;
    double told; /* time of the last sign */
};

/* Gives the first sign. Does nothing on rank 0, as all of these. A sign that cannot be written is missed by rank 0, so
 * errors are not reported. */
void tare_batch_presence_begin(struct tare_batch_presence *own, const char *state, const struct tare_ranks *ranks);
/* Call it several times a second; the files are written once a second. */
void tare_batch_presence_tell(struct tare_batch_presence *own);
/* This rank ends, with the error text unless the status is TARE_OK. */
void tare_batch_presence_end(struct tare_batch_presence *own, tare_status status);

/* What rank 0 knows of another rank. Zero-initialized. */
struct tare_batch_peer {
    char last[64]; /* its last sign */
    double heard;  /* time of the first look, then of the last new sign */
};

/* Looks at the sign of `rank`. *reason becomes why the rank is lost: it has ended with an error, or has given no sign
 * for too long; NULL: it is not. Removes the file of a lost rank. */
tare_status tare_batch_presence_look(const char **reason, struct tare_arena *arena, struct tare_batch_peer *peer,
                                     const char *state, const struct tare_ranks *ranks, int rank) TARE_WARN_UNUSED;

#endif

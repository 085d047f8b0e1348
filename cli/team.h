/* The processes started by mpirun, and the calibration they compute together. */
#ifndef TARE_CLI_TEAM_H
#define TARE_CLI_TEAM_H

#include "calib/calibration.h"

struct tare_team_backend;

/* Zero-initialized: a single process. */
struct tare_team {
    int rank, size; /* size 0 or 1: a single process */
    const struct tare_team_backend *backend;
};

/* Detects whether mpirun started this process among others, and joins them. TARE_UNSUPPORTED if so and tare was built
 * without MPI, or with a different MPI than that of mpirun. End with tare_team_end, also after a failure. */
tare_status tare_team_begin(struct tare_team *out) TARE_WARN_UNUSED;
void tare_team_end(struct tare_team *team);
static inline bool tare_team_alone(const struct tare_team *team) {
    return team->size < 2;
}

/* Whether another rank has failed, was interrupted or gives no sign of life, so that this one should stop. One thread
 * at a time. */
bool tare_team_stopped(const struct tare_team *team);
/* Merges the calibrations of all ranks into that of rank 0. Every rank must call this, with the status of its own part
 * (`calibration` may be NULL after a failure). Rank 0 returns the first failure of any rank, with the rank's number,
 * and an interruption only if nothing else failed; the other ranks return TARE_OK once rank 0 has received their
 * status. */
tare_status tare_team_reduce(struct tare_calibration *calibration, const struct tare_team *team,
                             tare_status status) TARE_WARN_UNUSED;
/* Broadcasts from rank 0 whether the run succeeded. Every rank must call this; `good` is used on rank 0 only. */
bool tare_team_verdict(const struct tare_team *team, bool good);

#endif

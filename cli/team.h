/* The processes that mpirun started, and a calibration that they make together. */
#ifndef TARE_CLI_TEAM_H
#define TARE_CLI_TEAM_H

#include "calib/calibration.h"

struct tare_team_backend;

/* Zeroed: this process alone. */
struct tare_team {
    int rank, size; /* size 0 or 1: alone */
    const struct tare_team_backend *backend;
};

/* Finds out whether mpirun started this process among others, and joins them. TARE_UNSUPPORTED when it did and tare was
 * built without MPI, or with another one than mpirun's. End with tare_team_end, also after a failure. */
tare_status tare_team_begin(struct tare_team *out) TARE_WARN_UNUSED;
void tare_team_end(struct tare_team *team);
static inline bool tare_team_alone(const struct tare_team *team) {
    return team->size < 2;
}

/* True when another rank has failed or was interrupted: there is no use in going on. One thread at a time. */
bool tare_team_stopped(const struct tare_team *team);
/* Adds up the calibrations of all ranks in rank 0's. Every rank must come here, with the status of its own part
 * (`calibration` may be NULL when that is a failure). Rank 0 gets the first failure of all, which names the rank, an
 * interruption only when nothing else failed; the others give back TARE_OK when rank 0 was told. */
tare_status tare_team_reduce(struct tare_calibration *calibration, const struct tare_team *team,
                             tare_status status) TARE_WARN_UNUSED;
/* Rank 0's word whether all ended well, to all. Every rank must come here; `good` counts on rank 0 only. */
bool tare_team_verdict(const struct tare_team *team, bool good);

#endif

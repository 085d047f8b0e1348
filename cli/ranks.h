/* Which of the processes of an mpirun this one is, by the environment that Open MPI, MPICH and Slurm set: batch jobs
 * need no messages, only a share. */
#ifndef TARE_CLI_RANKS_H
#define TARE_CLI_RANKS_H

struct tare_ranks {
    int rank, count; /* 0 of 1 outside of mpirun */
    const char *run; /* tells runs apart; "" outside */
};

struct tare_ranks tare_ranks_of_environment(void);
/* Makes this process, and what it starts, one by itself: for a job's process, whose commands must not join the others.
 */
void tare_ranks_leave(void);

#endif

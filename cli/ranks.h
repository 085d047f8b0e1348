/* Rank and number of processes under mpirun, from the environment variables of Open MPI, MPICH and Slurm. Batch jobs
 * exchange no messages; they only need their share of the work. */
#ifndef TARE_CLI_RANKS_H
#define TARE_CLI_RANKS_H

struct tare_ranks {
    int rank, count; /* 0 of 1 outside of mpirun */
};

struct tare_ranks tare_ranks_of_environment(void);
/* Removes the variables, so that this process and its children run as a single process. Used in the process of a job,
 * whose commands must not join the other ranks. */
void tare_ranks_leave(void);

#endif

/* Which of the processes of an mpirun this one is, by the environment that Open MPI, MPICH and Slurm set: batch jobs need
 * no messages, only a share. */
#ifndef TARE_CLI_RANKS_H
#define TARE_CLI_RANKS_H

struct tare_ranks {
    int rank, count; /* 0 of 1 outside of mpirun */
    const char *run; /* tells runs apart; "" outside */
};

struct tare_ranks tare_ranks_of_environment(void);

#endif

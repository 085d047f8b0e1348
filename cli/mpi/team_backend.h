/* Interface of the MPI library tare-mpi.so, which the program loads only under mpirun, so that the program itself does
 * not depend on MPI. Both are built from the same tree; the interface has no version. */
#ifndef TARE_CLI_MPI_TEAM_BACKEND_H
#define TARE_CLI_MPI_TEAM_BACKEND_H

#include <stddef.h>

/* Seconds without a sign of life after which a rank counts as lost. */
#define TARE_TEAM_SILENCE 15
/* What `send`, `receive` and `hear_verdict` return then. */
#define TARE_TEAM_SILENT 2

/* Functions return 0 on success, except `heard`. One thread at a time may call them. */
struct tare_team_backend {
    int (*begin)(int *rank, int *size);
    void (*end)(void);
    /* From a rank to rank 0, which calls `receive` and passes *data to `release`. */
    int (*send)(const void *data, size_t size);
    int (*receive)(void **data, size_t *size, int from);
    void (*release)(void *data);
    /* Announces to all other ranks that this one stops early; nonzero if another rank has announced it or is silent.
     * Do not block. */
    int (*announce)(void);
    int (*heard)(void);
    /* All ranks wait for the value of rank 0. */
    int (*hear_verdict)(int *good);
};

/* The only exported symbol of the library. */
#define TARE_TEAM_BACKEND_SYMBOL "tare_team_backend"

#endif

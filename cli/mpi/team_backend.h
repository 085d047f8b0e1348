/* What the program asks of the library that talks MPI. That library is loaded only under mpirun, so that the program
 * itself needs no MPI to start and none to be installed. Both are built from one tree: there is no version. */
#ifndef TARE_CLI_MPI_TEAM_BACKEND_H
#define TARE_CLI_MPI_TEAM_BACKEND_H

#include <stddef.h>

/* Functions give 0 on success, but for `heard`. One thread at a time calls them. */
struct tare_team_backend {
    int (*begin)(int *rank, int *size);
    void (*end)(void);
    /* From a rank to rank 0; `receive` is rank 0's. *data is to be given to `release`. */
    int (*send)(const void *data, size_t size);
    int (*receive)(void **data, size_t *size, int from);
    void (*release)(void *data);
    /* Tells all others that this rank stops early; nonzero when another one has told so. Neither waits. */
    int (*announce)(void);
    int (*heard)(void);
    /* All ranks wait for rank 0's word. */
    int (*hear_verdict)(int *good);
};

/* The one symbol of the library. */
#define TARE_TEAM_BACKEND_SYMBOL "tare_team_backend"

#endif

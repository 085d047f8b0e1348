/* The MPI backend: a separate library loaded at run time, which links MPI and nothing of tare. */
#include "cli/mpi/team_backend.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

enum { TAG_SIZE = 1, TAG_DATA, TAG_STOP };
static const size_t PART = (size_t)1 << 30; /* MPI counts are int */

static int own_rank, ranks;
static bool stop_announced; /* another rank stops early */

static int begin(int *rank, int *size) {
    int level;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) return 1;
    if (level < MPI_THREAD_SERIALIZED) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    *rank = own_rank;
    *size = ranks;
    return 0;
}

static int heard(void) {
    int there = 1;
    while (there) {
        MPI_Status from;
        if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_STOP, MPI_COMM_WORLD, &there, &from) != MPI_SUCCESS || !there) break;
        MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, TAG_STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        stop_announced = true;
    }
    return stop_announced;
}

static void end(void) {
    heard(); /* receive pending messages before finalizing */
    MPI_Finalize();
}

static int announce(void) {
    int failed = 0;
    for (int to = 0; to < ranks; to++)
        if (to != own_rank) failed |= MPI_Send(NULL, 0, MPI_BYTE, to, TAG_STOP, MPI_COMM_WORLD) != MPI_SUCCESS;
    return failed;
}

static int part_of(size_t left) {
    return (int)(left < PART ? left : PART);
}

static int send(const void *data, size_t size) {
    unsigned long long whole = size;
    if (MPI_Send(&whole, 1, MPI_UNSIGNED_LONG_LONG, 0, TAG_SIZE, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
    for (size_t done = 0; done < size; done += (size_t)part_of(size - done))
        if (MPI_Send((const char *)data + done, part_of(size - done), MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD) !=
            MPI_SUCCESS)
            return 1;
    return 0;
}

static int receive(void **data, size_t *size, int from) {
    unsigned long long whole;
    *data = NULL;
    if (MPI_Recv(&whole, 1, MPI_UNSIGNED_LONG_LONG, from, TAG_SIZE, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return 1;
    *size = (size_t)whole;
    *data = malloc(*size + 1);
    if (!*data) return 1;
    for (size_t done = 0; done < *size; done += (size_t)part_of(*size - done))
        if (MPI_Recv((char *)*data + done, part_of(*size - done), MPI_BYTE, from, TAG_DATA, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return 1;
    return 0;
}

static int hear_verdict(int *good) {
    return MPI_Bcast(good, 1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
}

extern const struct tare_team_backend tare_team_backend;
__attribute__((visibility("default"))) const struct tare_team_backend tare_team_backend = {
    .begin = begin,
    .end = end,
    .send = send,
    .receive = receive,
    .release = free,
    .announce = announce,
    .heard = heard,
    .hear_verdict = hear_verdict,
};

/* The MPI backend: a separate library loaded at run time, which links MPI and nothing of tare.
 *
 * MPI reports no process that hangs, and not every launcher ends the others when one has died. Each rank therefore has
 * a thread that sends an empty message once a second, to rank 0, and from there to all, and no call waits for a rank
 * that has been silent for TARE_TEAM_SILENCE seconds. All calls of MPI hold one lock. */
#include "cli/mpi/team_backend.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { TAG_SIZE = 1, TAG_DATA, TAG_STOP, TAG_ALIVE };
static const size_t PART = (size_t)1 << 30; /* MPI counts are int */
static const double BEAT_SECONDS = 1;

struct peer {
    double heard;       /* time of its last sign of life */
    MPI_Request beat;   /* of ours to it; MPI_REQUEST_NULL: received */
    atomic_bool silent; /* for too long */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int own_rank, ranks;
static struct peer *peers;
static bool stop_announced;        /* another rank stops early */
static atomic_bool ending;         /* the thread stops */
static atomic_bool some_is_silent; /* one of the peers that this rank listens to */
static pthread_t thread;
static bool thread_runs;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void nap(long milliseconds) {
    nanosleep(&(struct timespec){ .tv_nsec = milliseconds * 1000000 }, NULL);
}

/* ---- signs of life ---- */

static bool is_partner(int rank) {
    return rank != own_rank && (own_rank == 0 || rank == 0);
}

/* A message that has not been received is not followed by another one, so that they do not pile up. */
static void show_life(void) {
    for (int to = 0; to < ranks; to++) {
        int received = 1;
        if (!is_partner(to)) continue;
        if (peers[to].beat != MPI_REQUEST_NULL) MPI_Test(&peers[to].beat, &received, MPI_STATUS_IGNORE);
        if (received) MPI_Isend(NULL, 0, MPI_BYTE, to, TAG_ALIVE, MPI_COMM_WORLD, &peers[to].beat);
    }
}

static void hear_life(double now) {
    for (;;) {
        MPI_Status from;
        int there = 0;
        if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_ALIVE, MPI_COMM_WORLD, &there, &from) != MPI_SUCCESS || !there) return;
        MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, TAG_ALIVE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        peers[from.MPI_SOURCE].heard = now;
    }
}

/* After a pause of this process itself, the others have the whole time again. */
static void judge(double now, bool paused) {
    for (int rank = 0; rank < ranks; rank++) {
        if (paused) peers[rank].heard = now;
        if (!is_partner(rank) || now < peers[rank].heard + TARE_TEAM_SILENCE) continue;
        peers[rank].silent = true;
        some_is_silent = true;
    }
}

static void *live(void *arg) {
    double last = seconds();
    (void)arg;
    while (!ending) {
        const double now = seconds();
        nap(50);
        if (now < last + BEAT_SECONDS) continue;
        pthread_mutex_lock(&lock);
        show_life();
        hear_life(now);
        judge(now, now > last + TARE_TEAM_SILENCE / 2.0);
        pthread_mutex_unlock(&lock);
        last = now;
    }
    return NULL;
}

static int start_thread(void) {
    peers = calloc((size_t)ranks, sizeof *peers);
    if (!peers) return 1;
    for (int rank = 0; rank < ranks; rank++) {
        peers[rank].heard = seconds();
        peers[rank].beat = MPI_REQUEST_NULL;
    }
    thread_runs = pthread_create(&thread, NULL, live, NULL) == 0;
    return !thread_runs;
}

/* ---- the interface ---- */

static int begin(int *rank, int *size) {
    int level;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) return 1;
    if (level < MPI_THREAD_SERIALIZED) return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    *rank = own_rank;
    *size = ranks;
    return start_thread();
}

static int heard(void) {
    int there = 1;
    pthread_mutex_lock(&lock);
    while (there) {
        MPI_Status from;
        if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_STOP, MPI_COMM_WORLD, &there, &from) != MPI_SUCCESS || !there) break;
        MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, TAG_STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        stop_announced = true;
    }
    pthread_mutex_unlock(&lock);
    return stop_announced || some_is_silent;
}

/* MPI_Finalize would wait for a silent rank. A launcher ends the others when this process ends without it. */
static void end(void) {
    ending = true;
    if (thread_runs) pthread_join(thread, NULL);
    thread_runs = false;
    heard(); /* receive pending messages before finalizing */
    if (some_is_silent) return;
    hear_life(0);
    for (int rank = 0; rank < ranks; rank++)
        if (peers && peers[rank].beat != MPI_REQUEST_NULL) MPI_Request_free(&peers[rank].beat);
    MPI_Finalize();
    free(peers);
    peers = NULL;
}

/* Waits for a request that `flag` may make hopeless. */
static int finish(MPI_Request *request, int begun, const atomic_bool *flag) {
    while (begun == MPI_SUCCESS) {
        int done = 0;
        pthread_mutex_lock(&lock);
        begun = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&lock);
        if (done) return begun != MPI_SUCCESS;
        if (*flag) return TARE_TEAM_SILENT;
        nap(1);
    }
    return 1;
}

static int announce(void) {
    int failed = 0;
    for (int to = 0; to < ranks; to++) {
        MPI_Request request;
        if (to == own_rank) continue;
        pthread_mutex_lock(&lock);
        const int begun = MPI_Isend(NULL, 0, MPI_BYTE, to, TAG_STOP, MPI_COMM_WORLD, &request);
        pthread_mutex_unlock(&lock);
        failed |= finish(&request, begun, &peers[to].silent);
    }
    return failed;
}

static int part_of(size_t left) {
    return (int)(left < PART ? left : PART);
}

static int send_part(const void *data, int count, MPI_Datatype type, int tag) {
    MPI_Request request;
    pthread_mutex_lock(&lock);
    const int begun = MPI_Isend(data, count, type, 0, tag, MPI_COMM_WORLD, &request);
    pthread_mutex_unlock(&lock);
    return finish(&request, begun, &peers[0].silent);
}

static int receive_part(void *data, int count, MPI_Datatype type, int from, int tag) {
    MPI_Request request;
    pthread_mutex_lock(&lock);
    const int begun = MPI_Irecv(data, count, type, from, tag, MPI_COMM_WORLD, &request);
    pthread_mutex_unlock(&lock);
    return finish(&request, begun, &peers[from].silent);
}

static int send(const void *data, size_t size) {
    unsigned long long whole = size;
    int failed = send_part(&whole, 1, MPI_UNSIGNED_LONG_LONG, TAG_SIZE);
    for (size_t done = 0; !failed && done < size; done += (size_t)part_of(size - done))
        failed = send_part((const char *)data + done, part_of(size - done), MPI_BYTE, TAG_DATA);
    return failed;
}

static int receive(void **data, size_t *size, int from) {
    static unsigned long long whole; /* a receive that is given up may still write here */
    *data = NULL;
    int failed = receive_part(&whole, 1, MPI_UNSIGNED_LONG_LONG, from, TAG_SIZE);
    if (failed) return failed;
    *size = (size_t)whole;
    char *bytes = malloc(*size + 1);
    if (!bytes) return 1;
    for (size_t done = 0; !failed && done < *size; done += (size_t)part_of(*size - done))
        failed = receive_part(bytes + done, part_of(*size - done), MPI_BYTE, from, TAG_DATA);
    if (!failed) *data = bytes; /* otherwise the receive may still write there */
    return failed;
}

static int hear_verdict(int *good) {
    static int verdict; /* likewise */
    MPI_Request request;
    verdict = *good;
    pthread_mutex_lock(&lock);
    const int begun = MPI_Ibcast(&verdict, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    pthread_mutex_unlock(&lock);
    const int failed = finish(&request, begun, &some_is_silent);
    *good = verdict;
    return failed;
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

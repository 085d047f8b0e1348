/* Files of signs of life: "RUN", a line of its own, then the number of the sign or "ended: REASON". Before its rank has
 * joined, RUN is empty and the id follows; in the answer of rank 0, the id follows RUN.
 *
 * They are written in place: on network file systems, an opened file is up to date, but a file that was created or
 * renamed may be seen late. */
#include "cli/batch/presence.h"
#include "base/clock.h"
#include "base/control.h"
#include "base/file.h"
#include "base/format.h"
#include "cli/interrupted.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BEAT_SECONDS = 1, SILENCE_SECONDS = 15, START_SECONDS = 120, MOST_BYTES = 4096 };
static const char ENDED[] = "ended: ";
#define SILENT                                                                                                         \
    "rank %d: no sign of life for %d seconds: its process has ended or is stopped, or its machine cannot be reached "  \
    "(continue with --resume)"

/* ---- files ---- */

/* "" and "" if there is no complete sign. */
struct sign {
    char bytes[MOST_BYTES];
    const char *run, *text;
};

static int open_file(const char *state, int rank, int flags) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/.rank-%d", state, rank) < PATH_MAX)
        return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0666);
    errno = ENAMETOOLONG;
    return -1;
}

static void remove_file(const char *state, int rank) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/.rank-%d", state, rank) < PATH_MAX) unlink(path);
}

static bool write_sign(const char *state, int rank, const char *run, const char *text) {
    char sign[MOST_BYTES];
    const int size = snprintf(sign, sizeof sign, "%s\n%.*s\n", run, MOST_BYTES - TARE_BATCH_RUN_SIZE - 2, text);
    const int fd = open_file(state, rank, O_CREAT);
    const bool written = fd >= 0 && pwrite(fd, sign, (size_t)size, 0) == size && ftruncate(fd, size) == 0;
    if (fd >= 0) close(fd);
    return written;
}

static void read_sign(struct sign *out, const char *state, int rank, int flags) {
    const int fd = open_file(state, rank, flags);
    const ssize_t size = fd >= 0 ? pread(fd, out->bytes, sizeof out->bytes - 1, 0) : -1;
    if (fd >= 0) close(fd);
    out->bytes[size > 0 ? size : 0] = '\0';
    char *line = strchr(out->bytes, '\n'), *end = line ? strchr(line + 1, '\n') : NULL;
    out->run = end ? out->bytes : "";
    out->text = end ? line + 1 : "";
    if (end) *line = *end = '\0';
}

/* ---- joining ---- */

static tare_status draw_id(char out[TARE_BATCH_RUN_SIZE]) {
    uint64_t words[2];
    if (getentropy(words, sizeof words) != 0)
        return TARE_FAIL(TARE_INTERNAL, "no random numbers: %s", tare_system_error(errno));
    snprintf(out, TARE_BATCH_RUN_SIZE, "%016" PRIx64 "%016" PRIx64, words[0], words[1]);
    return TARE_OK;
}

static tare_status wait_a_moment(void) {
    const struct timespec nap = { .tv_nsec = 20000000 };
    if (tare_interrupted) return TARE_FAIL(TARE_INTERRUPTED, "%s (continue with --resume)", tare_control_reason());
    nanosleep(&nap, NULL);
    return TARE_OK;
}

/* Whether the rank has written its id since its file was emptied; it is answered then. */
static bool answer(const struct tare_batch_presence *own, const char *state, int rank) {
    struct sign sign;
    read_sign(&sign, state, rank, O_CREAT);
    return !*sign.run && *sign.text && write_sign(state, rank, own->run, sign.text);
}

static tare_status admit_others(struct tare_batch_presence *own, struct tare_arena *arena, const char *state) {
    const double start = tare_clock_seconds();
    const int count = own->ranks.count;
    int missing = count - 1;
    own->peers = TARE_NEW_ARRAY(arena, struct tare_batch_peer, (size_t)count);
    if (!own->peers) return TARE_NO_MEMORY;
    TARE_TRY(draw_id(own->run));
    for (int rank = 1; rank < count; rank++) {
        const int fd = open_file(state, rank, O_CREAT | O_TRUNC);
        if (fd < 0) return tare_file_error("cannot write to", state);
        close(fd);
        own->peers[rank].heard = start;
    }
    while (missing && tare_clock_seconds() < start + START_SECONDS) {
        for (int rank = 1; rank < count; rank++)
            if (own->peers[rank].heard && answer(own, state, rank)) own->peers[rank].heard = 0, missing--;
        if (missing) TARE_TRY(wait_a_moment());
    }
    return TARE_OK;
}

static tare_status enter(struct tare_batch_presence *own, const char *state) {
    const double start = tare_clock_seconds();
    const int rank = own->ranks.rank;
    char id[TARE_BATCH_RUN_SIZE];
    TARE_TRY(draw_id(id));
    while (tare_clock_seconds() < start + START_SECONDS) {
        struct sign sign;
        read_sign(&sign, state, rank, O_CREAT);
        const bool is_ours = strcmp(sign.text, id) == 0;
        if (is_ours && *sign.run) {
            snprintf(own->run, sizeof own->run, "%s", sign.run);
            write_sign(state, rank, own->run, "0");
            return TARE_OK;
        }
        if (!is_ours && !write_sign(state, rank, "", id)) return tare_file_error("cannot write to", state);
        TARE_TRY(wait_a_moment());
    }
    remove_file(state, rank);
    return TARE_FAIL(TARE_IO, SILENT, 0, START_SECONDS);
}

tare_status tare_batch_presence_join(struct tare_batch_presence *own, struct tare_arena *arena, const char *state,
                                     const struct tare_ranks *ranks) {
    *own = (struct tare_batch_presence){ .ranks = *ranks };
    TARE_TRY(ranks->rank == 0 ? admit_others(own, arena, state) : enter(own, state));
    own->state = state;
    return TARE_OK;
}

/* ---- signs ---- */

void tare_batch_presence_tell(struct tare_batch_presence *own) {
    const double now = tare_clock_seconds();
    char number[24];
    if (!own->state || own->ranks.rank == 0 || now < own->told + BEAT_SECONDS) return;
    own->told = now;
    snprintf(number, sizeof number, "%lld", ++own->beats);
    write_sign(own->state, own->ranks.rank, own->run, number);
}

void tare_batch_presence_end(struct tare_batch_presence *own, tare_status status) {
    char text[MOST_BYTES];
    if (!own->state || own->ranks.rank == 0) return;
    const char *reason = *tare_error_text() ? tare_error_text() : tare_status_name(status);
    snprintf(text, sizeof text, "%s%s", ENDED, reason);
    if (status != TARE_OK)
        write_sign(own->state, own->ranks.rank, own->run, text);
    else
        remove_file(own->state, own->ranks.rank);
    own->state = NULL;
}

tare_status tare_batch_presence_look(const char **reason, struct tare_arena *arena,
                                     const struct tare_batch_presence *own, int rank) {
    struct tare_batch_peer *peer = &own->peers[rank];
    struct sign sign;
    char known[sizeof peer->last];
    const double now = tare_clock_seconds();
    *reason = NULL;
    read_sign(&sign, own->state, rank, 0);
    if (strcmp(sign.run, own->run) != 0) sign.text = "";
    snprintf(known, sizeof known, "%.*s", (int)sizeof known - 1, sign.text);
    const bool runs = *sign.text && strcmp(sign.text, "0") != 0; /* otherwise it still reads its jobs */
    const int patience = runs ? SILENCE_SECONDS : START_SECONDS;
    if (!peer->heard || strcmp(known, peer->last) != 0) {
        peer->heard = now;
        memcpy(peer->last, known, sizeof known);
    }
    if (strncmp(sign.text, ENDED, sizeof ENDED - 1) == 0)
        *reason = tare_arena_printf(arena, "rank %d ended: %s", rank, sign.text + sizeof ENDED - 1);
    else if (now > peer->heard + patience)
        *reason = tare_arena_printf(arena, SILENT, rank, patience);
    else
        return TARE_OK;
    remove_file(own->state, rank);
    return *reason ? TARE_OK : TARE_NO_MEMORY;
}

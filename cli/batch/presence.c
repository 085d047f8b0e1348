/* Files of signs of life. They are written in place: on network file systems, an opened file is up to date, but a file
 * that was renamed may be seen late. */
#include "cli/batch/presence.h"
#include "base/clock.h"
#include "base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BEAT_SECONDS = 1, SILENCE_SECONDS = 15, START_SECONDS = 120, MOST_BYTES = 4096 };
static const char ENDED[] = "ended: ";

static bool name_file(char path[PATH_MAX], const char *state, int rank) {
    return snprintf(path, PATH_MAX, "%s/.rank-%d", state, rank) < PATH_MAX;
}

/* "RUN", a line of its own, then the number of the sign or "ended: REASON". */
static void write_sign(const struct tare_batch_presence *own, const char *text) {
    char path[PATH_MAX], sign[MOST_BYTES];
    if (!name_file(path, own->state, own->ranks.rank)) return;
    int size = snprintf(sign, sizeof sign, "%s\n%s\n", own->ranks.run, text);
    if (size >= MOST_BYTES) size = MOST_BYTES - 1;
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return;
    if (pwrite(fd, sign, (size_t)size, 0) == size) (void)!ftruncate(fd, size);
    close(fd);
}

void tare_batch_presence_begin(struct tare_batch_presence *own, const char *state, const struct tare_ranks *ranks) {
    *own = (struct tare_batch_presence){ .ranks = *ranks };
    if (ranks->rank == 0) return;
    own->state = state;
    write_sign(own, "0");
}

void tare_batch_presence_tell(struct tare_batch_presence *own) {
    const double now = tare_clock_seconds();
    char number[24];
    if (!own->state || now < own->told + BEAT_SECONDS) return;
    own->told = now;
    snprintf(number, sizeof number, "%lld", ++own->beats);
    write_sign(own, number);
}

void tare_batch_presence_end(struct tare_batch_presence *own, tare_status status) {
    char text[MOST_BYTES], path[PATH_MAX];
    if (!own->state) return;
    const char *reason = *tare_error_text() ? tare_error_text() : tare_status_name(status);
    snprintf(text, sizeof text, "%s%s", ENDED, reason);
    if (status != TARE_OK)
        write_sign(own, text);
    else if (name_file(path, own->state, own->ranks.rank))
        unlink(path);
    own->state = NULL;
}

/* The sign of this run after its first line; "" if there is none. */
static void read_sign(char sign[MOST_BYTES], const char *path, const char *run) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const ssize_t size = fd >= 0 ? pread(fd, sign, MOST_BYTES - 1, 0) : -1;
    if (fd >= 0) close(fd);
    sign[size > 0 ? size : 0] = '\0';
    char *line = strchr(sign, '\n');
    const bool is_ours = line && strlen(run) == (size_t)(line - sign) && memcmp(sign, run, (size_t)(line - sign)) == 0;
    if (is_ours) memmove(sign, line + 1, strlen(line + 1) + 1);
    sign[is_ours ? strcspn(sign, "\n") : 0] = '\0';
}

tare_status tare_batch_presence_look(const char **reason, struct tare_arena *arena, struct tare_batch_peer *peer,
                                     const char *state, const struct tare_ranks *ranks, int rank) {
    char path[PATH_MAX], sign[MOST_BYTES], known[sizeof peer->last];
    const double now = tare_clock_seconds();
    *reason = NULL;
    if (!name_file(path, state, rank)) return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: the name is too long", state);
    read_sign(sign, path, ranks->run);
    snprintf(known, sizeof known, "%.*s", (int)sizeof known - 1, sign);
    const bool runs = *sign && strcmp(sign, "0") != 0; /* otherwise it has not begun, or still reads its jobs */
    const int patience = runs ? SILENCE_SECONDS : START_SECONDS;
    if (!peer->heard || strcmp(known, peer->last) != 0) {
        peer->heard = now;
        memcpy(peer->last, known, sizeof known);
    }
    if (strncmp(sign, ENDED, sizeof ENDED - 1) == 0)
        *reason = tare_arena_printf(arena, "rank %d ended: %s", rank, sign + sizeof ENDED - 1);
    else if (now > peer->heard + patience)
        *reason = tare_arena_printf(arena,
                                    "rank %d: no sign of life for %d seconds: its process has ended or is stopped, or "
                                    "its machine cannot be reached (continue with --resume)",
                                    rank, patience);
    else
        return TARE_OK;
    unlink(path);
    return *reason ? TARE_OK : TARE_NO_MEMORY;
}

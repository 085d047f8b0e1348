/* Damaged StableHLO modules: each module below the given folders is changed in single bytes, in runs of bytes and cut
 * short, one change at a time, and read, summarized, printed and imported. Whatever the reader answers, it must not
 * crash, must not allocate much more than the file's size asks for, and must be quick; built with sanitizers, nothing
 * may be reported. All in one process: a failure prints the file and the number of the change before it ends.
 *
 *   fuzz_modules [--rounds N] [--seed N] [--every N] FOLDER…     of a folder every N-th file */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "convert/stablehlo/artifact.h"
#include "fuzz/target.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SKIPPED = 77, MAX_SECONDS = 5, LARGEST_FILE = 1 << 20 };

struct fuzz {
    int rounds;
    uint64_t seed, state;
    char path[1024]; /* of the file at work */
    int change;
    size_t files, changes, read, imported;
    double longest;
};

static uint64_t draw(struct fuzz *f) {
    uint64_t x = f->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Every change follows from the seed, the name of the file and its number. */
static void start_change(struct fuzz *f, const char *name, int number) {
    f->state = f->seed * 0x100000001b3u + (uint64_t)number;
    for (; *name; name++)
        f->state = (f->state ^ (uint8_t)*name) * 0x100000001b3u;
    f->change = number;
}

static size_t damage(struct fuzz *f, uint8_t *data, size_t size) {
    static const uint8_t special[] = { 0, 1, 0x7f, 0x80, 0xff, 0xfe };
    const size_t at = draw(f) % size;
    switch (draw(f) % 5) {
    case 0:
        return at; /* cut short */
    case 1:
        data[at] = (uint8_t)draw(f);
        return size;
    case 2:
        data[at] = special[draw(f) % sizeof special];
        return size;
    case 3:
        data[at] ^= (uint8_t)(1 << draw(f) % 8);
        return size;
    default: /* a piece of the file in another place */
        for (size_t i = 0, from = draw(f) % size, count = 1 + draw(f) % 16; i < count; i++)
            if (at + i < size && from + i < size) data[at + i] = data[from + i];
        return size;
    }
}

/* Limits are processor time, because other programs may stop this one for longer. */
static void set_alarm(int seconds) {
    const struct itimerval timer = { .it_value = { .tv_sec = seconds } };
    setitimer(ITIMER_PROF, &timer, NULL);
}

static void run_change(struct fuzz *f, const uint8_t *original, size_t size) {
    uint8_t *data = tare_malloc(size + 1);
    enum fuzz_depth depth;
    const double began = tare_clock_cpu_seconds();
    set_alarm(2 * MAX_SECONDS);
    if (!data) abort();
    memcpy(data, original, size);
    if (f->change) size = damage(f, data, size);
    depth = fuzz_module(data, size);
    f->read += depth != FUZZ_REFUSED;
    f->imported += depth == FUZZ_USED;
    tare_free(data);
    f->changes++;
    const double seconds = tare_clock_cpu_seconds() - began;
    if (seconds > f->longest) f->longest = seconds;
    if (seconds > MAX_SECONDS) {
        printf("%s: change %d takes %.1f s\n", f->path, f->change, seconds);
        exit(1);
    }
}

static void run_file(struct fuzz *f, const char *name) {
    struct tare_shlo_artifact artifact;
    if (tare_file_kind_of(f->path) != TARE_FILE_REGULAR) return;
    if (tare_shlo_artifact_open(&artifact, f->path) != TARE_OK) {
        tare_error_clear();
        return;
    }
    if (artifact.file.size <= LARGEST_FILE) {
        f->files++;
        for (int i = 0; i <= f->rounds; i++) { /* change 0: none */
            start_change(f, name, i);
            run_change(f, artifact.file.data, artifact.file.size);
        }
    }
    tare_shlo_artifact_close(&artifact);
}

/* A crash, or a change that does not end, prints a line from which the change can be repeated. */
static struct fuzz running = { .rounds = 200, .seed = 1 };

static void tell(int number) {
    char line[1200];
    const int size = snprintf(line, sizeof line, "signal %d in %s, change %d of seed %llu\n", number, running.path,
                              running.change, (unsigned long long)running.seed);
    if (write(STDOUT_FILENO, line, (size_t)size) < 0) _exit(2);
    _exit(1);
}

static void catch_signals(void) {
    signal(SIGPROF, tell);
#if !defined(__SANITIZE_ADDRESS__) /* which reports more */
    signal(SIGSEGV, tell);
    signal(SIGBUS, tell);
    signal(SIGFPE, tell);
    signal(SIGABRT, tell);
#endif
}

static void run_folder(struct fuzz *f, const char *folder, size_t every) {
    struct tare_file_list list = { 0 };
    if (tare_file_list(&list, folder) != TARE_OK) tare_error_clear();
    for (size_t i = 0; i < list.count; i += every) {
        snprintf(f->path, sizeof f->path, "%s/%s", folder, list.names[i]);
        run_file(f, list.names[i]);
    }
    tare_file_list_free(&list);
}

int main(int argc, char **argv) {
    struct fuzz *f = &running;
    size_t every = 1;
    catch_signals();
    fuzz_begin();
    atexit(fuzz_end);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            f->rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            f->seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--every") == 0 && i + 1 < argc)
            every = strtoul(argv[++i], NULL, 10);
        else
            run_folder(f, argv[i], every ? every : 1);
    }
    f->path[0] = '\0';
    printf("%zu files, %zu changes: %zu read, %zu imported; longest %.2f s\n", f->files, f->changes, f->read,
           f->imported, f->longest);
    return f->files ? 0 : SKIPPED;
}

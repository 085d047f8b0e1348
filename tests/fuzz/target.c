/* What targets share: scratch files, and inputs of several files. */
#include "fuzz/target.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/varint.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATHS = 9, MEMORY_LIMIT = 512 << 20 };

static char folder[128];

void fuzz_begin(void) {
    const char *base = getenv("TARE_FUZZ_SCRATCH");
    if (!base) base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    tare_alloc_set_limit(MEMORY_LIMIT);
    snprintf(folder, sizeof folder, "%s/tare-fuzz-XXXXXX", base);
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(2);
    }
}

void fuzz_end(void) {
    if (*folder && tare_file_remove_tree(folder) != TARE_OK) fprintf(stderr, "%s\n", tare_error_text());
    *folder = '\0';
}

const struct fuzz_target *fuzz_target_find(const char *name) {
    for (const struct fuzz_target *target = fuzz_targets; name && target->name; target++)
        if (strcmp(target->name, name) == 0) return target;
    return NULL;
}

const char *fuzz_path(const char *name) {
    static char paths[PATHS][256];
    static int next;
    char *path = paths[next++ % PATHS];
    snprintf(path, sizeof *paths, "%s/%s", folder, name);
    return path;
}

/* Without tare_file_write, which syncs and renames. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t size) {
    const char *path = fuzz_path(name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    size_t done = 0;
    while (fd >= 0 && done < size) {
        const ssize_t written = write(fd, data + done, size - done);
        if (written <= 0) break;
        done += (size_t)written;
    }
    if (fd < 0 || done < size || ftruncate(fd, (off_t)size) != 0) {
        perror(path);
        exit(2);
    }
    close(fd);
    return path;
}

struct fuzz_part fuzz_part(const uint8_t *data, size_t size, uint32_t number) {
    const uint8_t *at = data, *end = data + size;
    struct fuzz_part part = { (const uint8_t *)"", 0 };
    uint64_t tag, length;
    while (at < end && tare_varint_next(&tag, &at, end) && (tag & 7) == 2 && tare_varint_next(&length, &at, end) &&
           length <= (uint64_t)(end - at)) {
        if (tag >> 3 == number) part = (struct fuzz_part){ at, (size_t)length };
        at += length;
    }
    return part;
}

/* A file that becomes shorter while it is read, preloaded into the program: the file named by TARE_SHRINK is truncated
 * to TARE_SHRINK_TO bytes after it was mapped, or after the first read from it if TARE_SHRINK_READ is set. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void shrink(int fd) {
    const char *path = getenv("TARE_SHRINK"), *size = getenv("TARE_SHRINK_TO");
    char link[64], target[PATH_MAX];
    ssize_t length;
    if (!path || fd < 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, target, sizeof target - 1);
    if (length < 0) return;
    target[length] = '\0';
    if (strcmp(target, path) == 0 && truncate(path, size ? atol(size) : 0) != 0) abort();
}

EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    void *data = (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
    shrink(fd);
    return data;
}

EXPORT ssize_t read(int fd, void *data, size_t size) {
    const ssize_t got = syscall(SYS_read, fd, data, getenv("TARE_SHRINK_READ") && size > 4096 ? 4096 : size);
    if (getenv("TARE_SHRINK_READ")) shrink(fd);
    return got;
}

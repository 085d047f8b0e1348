/* /proc/self/cgroup has a line "NUMBER:CONTROLLERS:PATH" for each hierarchy: "0::/system.slice/job" of version 2, which
 * limits memory in the file memory.max of each group on the path ("max": no limit), and "9:memory:/docker/4f2a" of
 * version 1, with memory.limit_in_bytes. In a container the group of the container is often mounted as the root of the
 * hierarchy, and the path is not found below it: the root is read as well. */
#include "base/memory_size.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lowers *bytes to the limit in a file. */
static void take_limit(size_t *bytes, const char *path) {
    char text[64] = "", *end;
    FILE *file = fopen(path, "re");
    if (!file) return;
    if (fgets(text, sizeof text, file)) {
        errno = 0;
        const unsigned long long limit = strtoull(text, &end, 10);
        if (end > text && !errno && limit > 0 && limit < *bytes) *bytes = (size_t)limit;
    }
    fclose(file);
}

/* The limits of a group and of those that contain it, up to the root of the hierarchy. `group` is shortened. */
static void take_groups(size_t *bytes, const char *root, const char *hierarchy, char *group, const char *name) {
    char path[PATH_MAX];
    for (char *slash = group;; *slash = '\0') {
        if (snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%s/%s", root, hierarchy, group, name) < (int)sizeof path)
            take_limit(bytes, path);
        slash = strrchr(group, '/');
        if (!slash) return;
    }
}

static void take_line(size_t *bytes, const char *root, char *line) {
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (strcmp(group, "/") == 0) *group = '\0';
    if (!controllers[1])
        take_groups(bytes, root, "", group, "memory.max");
    else if (strstr(controllers, "memory"))
        take_groups(bytes, root, "/memory", group, "memory.limit_in_bytes");
}

size_t tare_memory_bytes_at(const char *root) {
    size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    char line[PATH_MAX + 64];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "re");
    if (!file) return bytes;
    while (fgets(line, sizeof line, file))
        take_line(&bytes, root, line);
    fclose(file);
    return bytes;
}

size_t tare_memory_bytes(void) {
    return tare_memory_bytes_at("");
}

static size_t given_cache_bytes;

void tare_cache_set_bytes(size_t bytes) {
    given_cache_bytes = bytes;
}

size_t tare_cache_bytes(void) {
    enum { COMMON = 2 << 20 };
    long bytes = 0;
    if (given_cache_bytes) return given_cache_bytes;
#ifdef _SC_LEVEL2_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return bytes > 0 ? (size_t)bytes : COMMON;
}

/* Temporary names next to an output, and what killed runs left under such names.
 *
 * A leftover is removed only if its process no longer exists, it belongs to this user, and it is not locked: a process
 * id alone is not conclusive when containers share a folder. */
#include "base/output_sibling.h"
#include "base/alloc.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_SIBLINGS = 1000,
    MOST_ENTRIES = 512 /* entries of a folder that are read for leftovers of a file: a folder may get 100,000 files */
};

static const char MARK[] = ".tmp-";

/* ".BASE.tmp-"; a long name is cut, so that the temporary one fits into a file name. */
static void prefix_of(char *out, size_t size, const char *base) {
    snprintf(out, size, ".%.*s%s", NAME_MAX - 47, base, MARK);
}

bool tare_sibling_is_temporary(const char *name, const char *base) {
    char prefix[NAME_MAX + 1];
    const char *rest = base ? NULL : strstr(name, MARK);
    char *end;
    if (*name != '.') return false;
    if (base) {
        prefix_of(prefix, sizeof prefix, base);
        if (strncmp(name, prefix, strlen(prefix)) == 0) rest = name + strlen(prefix);
    } else if (rest) {
        rest += strlen(MARK);
    }
    if (!rest || *rest < '0' || *rest > '9') return false;
    strtol(rest, &end, 10);
    return *end == '-' && end[1] >= '0' && end[1] <= '9';
}

/* "folder/.name.tmp-PID-n" for `path`; NULL when memory is out. */
static char *sibling(const char *path, int number) {
    char *folder = tare_path_folder(path), *joined = NULL;
    char prefix[NAME_MAX + 1], name[NAME_MAX + 64];
    if (!folder) return NULL;
    prefix_of(prefix, sizeof prefix, tare_path_base(path));
    snprintf(name, sizeof name, "%s%ld-%d", prefix, (long)getpid(), number);
    joined = strchr(path, '/') ? tare_path_join(folder, name) : tare_strdup(name);
    tare_free(folder);
    return joined;
}

/* ---- leftovers ---- */

static bool process_is_gone(const char *name) {
    const char *mark = strstr(name, MARK), *next;
    long pid;
    while (mark && (next = strstr(mark + 1, MARK)))
        mark = next;
    pid = mark ? strtol(mark + strlen(MARK), NULL, 10) : 0;
    return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static void remove_leftover(const char *folder, const char *name) {
    char *path = tare_path_join(folder, name);
    struct stat info;
    int fd = -1;
    if (path && lstat(path, &info) == 0 && info.st_uid == geteuid() &&
        (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode))) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            if (tare_file_remove_tree(path) != TARE_OK) tare_error_clear(); /* the output does not depend on it */
    }
    if (fd >= 0) close(fd);
    tare_free(path);
}

static void remove_leftovers(const char *path, size_t most) {
    char *folder = tare_path_folder(path);
    DIR *entries = folder ? opendir(folder) : NULL;
    const struct dirent *entry;
    for (size_t i = 0; entries && i < most && (entry = readdir(entries)); i++)
        if (tare_sibling_is_temporary(entry->d_name, tare_path_base(path)) && process_is_gone(entry->d_name))
            remove_leftover(folder, entry->d_name);
    if (entries) closedir(entries);
    tare_free(folder);
}

/* ---- new names ---- */

static tare_status make_sibling(char **out, int *fd, const char *path) {
    *out = NULL;
    for (int number = 0; number < MOST_SIBLINGS; number++) {
        char *name = sibling(path, number);
        int result = -1;
        if (!name) return TARE_NO_MEMORY;
        if (!tare_file_must_fail())
            result = fd ? open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : mkdir(name, 0777);
        if (result >= 0) {
            *out = name;
            if (fd) *fd = result;
            return TARE_OK;
        }
        if (errno != EEXIST) {
            tare_status status = tare_file_error("cannot create", name);
            tare_free(name);
            return status;
        }
        tare_free(name);
    }
    return TARE_FAIL(TARE_IO, "cannot create a temporary name next to '%s': all %d names exist", path, MOST_SIBLINGS);
}

tare_status tare_sibling_make_file(char **out, int *fd, const char *path) {
    remove_leftovers(path, MOST_ENTRIES);
    TARE_TRY(make_sibling(out, fd, path));
    (void)flock(*fd, LOCK_EX | LOCK_NB); /* a file system without locks has none */
    return TARE_OK;
}

tare_status tare_sibling_make_folder(char **out, const char *path) {
    remove_leftovers(path, SIZE_MAX);
    return make_sibling(out, NULL, path);
}

tare_status tare_sync_folder_of(const char *path) {
    char folder[PATH_MAX]; /* no allocation: the output is in its place already */
    const char *slash = strrchr(path, '/');
    const size_t length = slash ? (size_t)(slash - path) : 0;
    tare_status status;
    if (length >= sizeof folder) return TARE_FAIL(TARE_IO, "'%s' is complete, but its name is too long to sync", path);
    snprintf(folder, sizeof folder, "%.*s", (int)length, path);
    status = tare_file_sync_folder(!slash ? "." : length ? folder : "/");
    if (status != TARE_OK) status = TARE_FAIL(status, "'%s' is complete, but %s", path, tare_error_text());
    return status;
}

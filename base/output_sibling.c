/* Temporary names next to an output, and what killed runs left under such names: ".NAME.tmp-PID-n" is new and not
 * complete, ".NAME.old-PID-n" is what a new output replaces where the two cannot be exchanged in one step.
 *
 * A leftover is removed only if its process no longer exists, it belongs to this user, and it is not locked: a process
 * id alone is not conclusive when containers share a folder. */
#include "base/output_sibling.h"
#include "base/alloc.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
    MOST_NAME = NAME_MAX - 47, /* bytes of an output's name in a name next to it */
    MOST_ENTRIES = 512 /* entries of a folder that are read for leftovers of a file: a folder may get 100,000 files */
};

/* Equally long. */
static const char NEW[] = ".tmp-", OLD[] = ".old-";

/* FNV-1a. */
static uint64_t hash_of(const char *text) {
    uint64_t hash = 0xcbf29ce484222325;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

void tare_sibling_name(char *out, size_t size, const char *name, const char *ending) {
    if (strlen(name) <= MOST_NAME)
        snprintf(out, size, ".%s%s", name, ending);
    else
        snprintf(out, size, ".%.*s-%016" PRIx64 "%s", MOST_NAME - 17, name, hash_of(name), ending);
}

/* "PID-n" at the end of a temporary name with this mark, of the output with this name (NULL: of any); NULL: it is none.
 */
static const char *process_in(const char *name, const char *base, const char *mark) {
    char prefix[NAME_MAX + 1], *end;
    const char *rest = NULL;
    if (*name != '.') return NULL;
    if (base) {
        tare_sibling_name(prefix, sizeof prefix, base, mark);
        if (strncmp(name, prefix, strlen(prefix)) == 0) rest = name + strlen(prefix);
    } else {
        for (const char *at = name; (at = strstr(at, mark)); rest = at)
            at += strlen(mark);
    }
    if (!rest || *rest < '0' || *rest > '9') return NULL;
    strtol(rest, &end, 10);
    return *end == '-' && end[1] >= '0' && end[1] <= '9' ? rest : NULL;
}

bool tare_sibling_is_temporary(const char *name, const char *base) {
    return process_in(name, base, NEW) || process_in(name, base, OLD);
}

/* "folder/.name.tmp-PID-n" for `path`; NULL when memory is out. */
static char *sibling(const char *path, const char *mark, int number) {
    char *folder = tare_path_folder(path), *joined = NULL;
    char prefix[NAME_MAX + 1], name[NAME_MAX + 64];
    if (!folder) return NULL;
    tare_sibling_name(prefix, sizeof prefix, tare_path_base(path), mark);
    snprintf(name, sizeof name, "%s%ld-%d", prefix, (long)getpid(), number);
    joined = strchr(path, '/') ? tare_path_join(folder, name) : tare_strdup(name);
    tare_free(folder);
    return joined;
}

/* ---- leftovers ---- */

static bool process_is_gone(const char *process) {
    const long pid = strtol(process, NULL, 10);
    return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Whether it belongs to this user and no process has locked it. *fd holds the lock, -1 without one. */
static bool is_free(int *fd, const char *path) {
    struct stat info;
    *fd = -1;
    if (lstat(path, &info) != 0 || info.st_uid != geteuid() || !(S_ISDIR(info.st_mode) || S_ISREG(info.st_mode)))
        return false;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return *fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* The output does not depend on what fails here. */
static void remove_leftover(const char *leftover, const char *path) {
    int fd;
    (void)path;
    if (is_free(&fd, leftover) && tare_file_remove_tree(leftover) != TARE_OK) tare_error_clear();
    if (fd >= 0) close(fd);
}

/* Calls `work` for what dead processes left next to `path` under names with the mark, of its own output or of any.
 * `most`: entries of the folder that are read. */
static void each_leftover(const char *folder, const char *path, const char *mark, size_t most,
                          void (*work)(const char *leftover, const char *path)) {
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    for (size_t i = 0; entries && i < most && (entry = readdir(entries)); i++) {
        const char *process = process_in(entry->d_name, path ? tare_path_base(path) : NULL, mark);
        char *leftover = process && process_is_gone(process) ? tare_path_join(folder, entry->d_name) : NULL;
        if (leftover) work(leftover, path);
        tare_free(leftover);
    }
    if (entries) closedir(entries);
}

static void remove_leftovers(const char *path, const char *mark, size_t most) {
    char *folder = tare_path_folder(path);
    if (folder) each_leftover(folder, path, mark, most, remove_leftover);
    tare_free(folder);
}

void tare_sibling_sweep(const char *folder) {
    each_leftover(folder, NULL, NEW, SIZE_MAX, remove_leftover);
}

void tare_sibling_remove_old(const char *path) {
    remove_leftovers(path, OLD, SIZE_MAX);
}

/* rmdir fails for a folder with contents: those are the old output. */
static void restore_aside(const char *aside, const char *path) {
    int fd;
    if (is_free(&fd, aside) && rmdir(aside) != 0 && tare_file_kind_of(path) == TARE_FILE_NONE)
        (void)!rename(aside, path);
    if (fd >= 0) close(fd);
}

tare_status tare_sibling_restore(const char *path) {
    char *folder = tare_path_folder(path);
    if (!folder) return TARE_NO_MEMORY;
    each_leftover(folder, path, OLD, SIZE_MAX, restore_aside);
    tare_free(folder);
    tare_sibling_remove_old(path); /* of an output that is complete */
    return TARE_OK;
}

/* ---- new names ---- */

static tare_status make_sibling(char **out, int *fd, const char *path, const char *mark) {
    *out = NULL;
    for (int number = 0; number < MOST_SIBLINGS; number++) {
        char *name = sibling(path, mark, number);
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
    remove_leftovers(path, NEW, MOST_ENTRIES);
    TARE_TRY(make_sibling(out, fd, path, NEW));
    (void)flock(*fd, LOCK_EX | LOCK_NB); /* a file system without locks has none */
    return TARE_OK;
}

tare_status tare_sibling_make_folder(char **out, const char *path) {
    remove_leftovers(path, NEW, SIZE_MAX);
    return make_sibling(out, NULL, path, NEW);
}

tare_status tare_sibling_make_aside(char **out, const char *path) {
    return make_sibling(out, NULL, path, OLD);
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

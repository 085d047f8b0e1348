/* Lock files next to outputs.
 *
 * The holder removes the file while it has the lock. A process that opened it before then has locked a file without a
 * name, so the inode is compared after locking, and the attempt is repeated. */
#include "base/output_lock.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/output_sibling.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_NS = 2000000000, PAUSE_NS = 20000000 };

static const char ENDING[] = ".lock";

bool tare_output_is_lock(const char *name, const char *output) {
    char lock[NAME_MAX + 1];
    tare_sibling_name(lock, sizeof lock, output, ENDING);
    return strcmp(name, lock) == 0;
}

/* The process id in the lock file, 0 if there is none. */
static long holder_of(int fd) {
    char text[24] = "";
    const ssize_t size = pread(fd, text, sizeof text - 1, 0);
    text[size > 0 ? size : 0] = '\0';
    return strtol(text, NULL, 10);
}

static tare_status report_holder(long holder, const char *output) {
    char process[40] = "another process";
    if (holder > 0) snprintf(process, sizeof process, "process %ld", holder);
    return TARE_FAIL(TARE_IO, "output '%s' is being written by %s (wait for it, or choose another output)", output,
                     process);
}

/* A lock file of another user cannot be written, but locked. */
static int open_lock(const char *path) {
    const int flags = O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    int fd = tare_file_must_fail() ? -1 : open(path, O_RDWR | flags, 0666);
    if (fd < 0 && errno == EACCES) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT) errno = EACCES; /* the folder cannot be written */
    }
    return fd;
}

/* Whether the lock is free; if not, whether to try again. */
static tare_status try_lock(bool *again, const struct tare_output_lock *lock, int64_t deadline, const char *output) {
    struct stat held, named;
    long holder;
    *again = true;
    if (flock(lock->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        const struct timespec pause = { .tv_nsec = PAUSE_NS };
        holder = holder_of(lock->fd);
        /* 0: the holder has not written its id yet */
        const bool is_alive = holder > 0 && (kill((pid_t)holder, 0) == 0 || errno != ESRCH);
        if (is_alive || tare_clock_ns() > deadline) return report_holder(holder, output);
        nanosleep(&pause, NULL);
        return TARE_OK;
    }
    *again = fstat(lock->fd, &held) == 0 && (stat(lock->path, &named) != 0 || held.st_ino != named.st_ino);
    return TARE_OK;
}

/* The user knows the output, not its lock. */
static tare_status cannot_create(const char *lock, const char *output) {
    const int code = errno;
    char *folder = tare_path_folder(lock);
    const bool is_missing = folder && code == ENOENT && tare_file_kind_of(folder) == TARE_FILE_NONE;
    errno = code;
    const tare_status status =
        !folder      ? TARE_NO_MEMORY
        : is_missing ? TARE_FAIL(TARE_NOT_FOUND, "cannot create '%s': folder '%s' does not exist", output, folder)
                     : tare_file_error("cannot create", output);
    tare_free(folder);
    return status;
}

static tare_status take(struct tare_output_lock *lock, const char *output) {
    const int64_t deadline = tare_clock_ns() + PATIENCE_NS;
    bool again = true;
    while (again) {
        if (lock->fd >= 0) close(lock->fd);
        lock->fd = open_lock(lock->path);
        if (lock->fd < 0) return cannot_create(lock->path, output);
        TARE_TRY(try_lock(&again, lock, deadline, output));
    }
    /* Only the message of another process needs the id. */
    if (ftruncate(lock->fd, 0) == 0) (void)!dprintf(lock->fd, "%ld\n", (long)getpid());
    return TARE_OK;
}

tare_status tare_output_lock_in(struct tare_output_lock *lock, const char *folder, const char *name,
                                const char *output) {
    char file[NAME_MAX + 1];
    tare_status status;
    tare_sibling_name(file, sizeof file, name, ENDING);
    *lock = (struct tare_output_lock){ .path = tare_path_join(folder, file), .fd = -1 };
    status = lock->path ? take(lock, output) : TARE_NO_MEMORY;
    if (status == TARE_OK) return TARE_OK;
    if (lock->fd >= 0) close(lock->fd);
    tare_free(lock->path);
    *lock = (struct tare_output_lock){ .fd = -1 };
    return status;
}

tare_status tare_output_lock(struct tare_output_lock *lock, const char *path) {
    char *folder, *name, *end;
    tare_status status;
    *lock = (struct tare_output_lock){ .fd = -1 };
    if (!path || strcmp(path, "-") == 0) return TARE_OK;
    name = tare_strdup(path);
    for (end = name ? name + strlen(name) : NULL; end && end > name + 1 && end[-1] == '/'; end--)
        end[-1] = '\0';
    folder = name ? tare_path_folder(name) : NULL;
    status = folder ? tare_output_lock_in(lock, folder, tare_path_base(name), path) : TARE_NO_MEMORY;
    tare_free(folder);
    tare_free(name);
    return status;
}

void tare_output_unlock(struct tare_output_lock *lock) {
    if (lock->path) {
        unlink(lock->path);
        close(lock->fd);
    }
    tare_free(lock->path);
    *lock = (struct tare_output_lock){ .fd = -1 };
}

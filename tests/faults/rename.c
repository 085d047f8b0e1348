/* A file system without RENAME_EXCHANGE, preloaded into the program: renameat2 fails with EINVAL for it, as on NFS.
 * With TARE_KILL_BEFORE_RENAME=n the process is killed before the n-th rename of a folder. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void count(const char *path) {
    static _Atomic int renames;
    const char *at = getenv("TARE_KILL_BEFORE_RENAME");
    struct stat info;
    if (!at || lstat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return;
    if (atomic_fetch_add(&renames, 1) + 1 == atoi(at)) kill(getpid(), SIGKILL);
}

EXPORT int rename(const char *from, const char *to) {
    count(from);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

EXPORT int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    if (flags & RENAME_EXCHANGE) {
        errno = EINVAL;
        return -1;
    }
    count(from);
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

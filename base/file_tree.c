/* Operations on directory trees, by recursion: the maximum length of a path bounds the depth. */
#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COPY_BLOCK = 1 << 18 };

static tare_status write_all(int fd, const char *data, size_t size, const char *path) {
    while (size) {
        ssize_t done = tare_file_must_fail() ? -1 : write(fd, data, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return tare_file_error("cannot write", path);
        data += done;
        size -= (size_t)done;
    }
    return TARE_OK;
}

static tare_status copy_file(const char *from, const char *to) {
    char *block = tare_malloc(COPY_BLOCK);
    int in = -1, out = -1;
    size_t got = 1;
    tare_status status = block ? tare_file_open(&in, from) : TARE_NO_MEMORY;

    if (status == TARE_OK) {
        out = tare_file_must_fail() ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out < 0) status = tare_file_error("cannot create", to);
    }
    while (status == TARE_OK && got) {
        status = tare_file_read_some(&got, in, block, COPY_BLOCK, from);
        if (status == TARE_OK) status = write_all(out, block, got, to);
    }
    if (out >= 0 && close(out) != 0 && status == TARE_OK) status = tare_file_error("cannot write", to);
    tare_file_close(in);
    tare_free(block);
    return status;
}

/* ---- copying what is inside a folder ---- */

struct copying {
    const char *root; /* absolute, links resolved */
    bool linked;      /* the folder was reached by a link: links to folders could multiply without end */
};

static bool is_inside(const char *real, const char *root) {
    const size_t size = strlen(root);
    return strncmp(real, root, size) == 0 && (real[size] == '/' || real[size] == '\0' || strcmp(root, "/") == 0);
}

/* The kind of `path`, links that stay below the root followed. */
static tare_status check_entry(enum tare_file_kind *kind, bool *is_link, const char *root, const char *path) {
    struct stat info;
    char room[PATH_MAX];
    const char *real;
    bool inside;
    *kind = TARE_FILE_NONE;
    *is_link = false;
    if (lstat(path, &info) != 0) return errno == ENOENT ? TARE_OK : tare_file_error("cannot open", path);
    *is_link = S_ISLNK(info.st_mode);
    if (*is_link) {
        real = realpath(path, room);
        if (!real) return tare_file_error("cannot follow the link", path);
        inside = is_inside(real, root);
        if (!inside)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "'%s' is a link that leaves the folder '%s' (copy the folder with `cp -rL` first)", path,
                             root);
    }
    *kind = tare_file_kind_of(path);
    if (*kind != TARE_FILE_OTHER) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is neither a regular file nor a folder", path);
}

tare_status tare_file_check_inside(const char *root, const char *path) {
    char room[PATH_MAX];
    const char *real = realpath(root, room);
    enum tare_file_kind kind;
    bool is_link;
    return real ? check_entry(&kind, &is_link, real, path) : TARE_OK; /* without a folder there is nothing in it */
}

static tare_status copy_entry(const struct copying *copying, const char *from, const char *to);

static tare_status copy_folder(const struct copying *copying, const char *from, const char *to) {
    struct tare_file_list list;
    tare_status status;
    if (tare_file_must_fail() || mkdir(to, 0777) != 0) return tare_file_error("cannot make folder", to);
    TARE_TRY(tare_file_list(&list, from));
    status = TARE_OK;
    for (size_t i = 0; status == TARE_OK && i < list.count; i++) {
        char *path = tare_path_join(from, list.names[i]), *twin = tare_path_join(to, list.names[i]);
        status = path && twin ? copy_entry(copying, path, twin) : TARE_NO_MEMORY;
        tare_free(path);
        tare_free(twin);
    }
    tare_file_list_free(&list);
    return status;
}

static tare_status copy_entry(const struct copying *copying, const char *from, const char *to) {
    struct copying inner = *copying;
    enum tare_file_kind kind;
    bool is_link;
    TARE_TRY(check_entry(&kind, &is_link, copying->root, from));
    if (kind != TARE_FILE_DIRECTORY) return copy_file(from, to);
    if (is_link && copying->linked)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "'%s' is a link to a folder, inside a folder reached by a link", from);
    inner.linked |= is_link;
    return copy_folder(&inner, from, to);
}

tare_status tare_file_copy_tree(const char *root, const char *from, const char *to) {
    char room[PATH_MAX];
    const struct copying copying = { .root = realpath(root, room) };
    return copying.root ? copy_entry(&copying, from, to) : tare_file_error("cannot open", root);
}

/* ---- removing, syncing ---- */

/* Calls visit for each entry of a folder with its path. */
static tare_status each_entry(const char *folder, tare_status (*visit)(const char *path)) {
    struct tare_file_list list;
    tare_status status;

    TARE_TRY(tare_file_list(&list, folder));
    status = TARE_OK;
    for (size_t i = 0; status == TARE_OK && i < list.count; i++) {
        char *path = tare_path_join(folder, list.names[i]);
        status = path ? visit(path) : TARE_NO_MEMORY;
        tare_free(path);
    }
    tare_file_list_free(&list);
    return status;
}

/* An entry of a folder as the system call returns it. readdir would allocate, and what is left of a command that ran
 * out of memory must be removed without any. */
struct entry {
    uint64_t inode, offset;
    uint16_t size;
    uint8_t type;
    char name[];
};

static bool remove_at(int folder, const char *name);

/* Entries removed while a folder is read may hide others: reads it again until nothing can be removed. */
static bool empty_folder(int fd) {
    _Alignas(struct entry) char buffer[2048];
    bool removed = true, good = true;
    while (removed && good) {
        long size;
        removed = false;
        if (lseek(fd, 0, SEEK_SET) != 0) return false;
        while (good && (size = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
            for (long at = 0; at < size && good; at += ((const struct entry *)(buffer + at))->size) {
                const char *name = ((const struct entry *)(buffer + at))->name;
                if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
                good = remove_at(fd, name);
                removed = true;
            }
        if (size < 0) return false;
    }
    return good;
}

/* False with errno set. What another process has removed meanwhile is no failure. */
static bool remove_at(int folder, const char *name) {
    struct stat info;
    bool good;
    int fd;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    if (!S_ISDIR(info.st_mode)) return unlinkat(folder, name, 0) == 0 || errno == ENOENT;
    fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT;
    good = empty_folder(fd);
    close(fd);
    return good && (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT);
}

tare_status tare_file_remove_tree(const char *path) {
    return remove_at(AT_FDCWD, path) ? TARE_OK : tare_file_error("cannot remove", path);
}

bool tare_file_sync(int fd) {
    int result;
    do {
        result = tare_file_must_fail() ? -1 : fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL; /* a pipe, or a file system that cannot sync a folder */
}

/* One file or folder, without what is in it. */
static tare_status sync_path(const char *path) {
    tare_status status = TARE_OK;
    int fd = tare_file_must_fail() ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tare_file_error("cannot open", path);
    if (!tare_file_sync(fd)) status = tare_file_error("cannot sync", path);
    close(fd);
    return status;
}

tare_status tare_file_sync_folder(const char *folder) {
    return sync_path(folder);
}

tare_status tare_file_sync_tree(const char *path) {
    if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY) TARE_TRY(each_entry(path, tare_file_sync_tree));
    return sync_path(path);
}

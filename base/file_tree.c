/* Operations on whole trees. Folders are walked by recursion: the system bounds the depth by the length of a path. */
#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* Calls visit for each entry of a folder with its path, and the path of the same entry under `other` (may be NULL). */
static tare_status each_entry(const char *folder, const char *other,
                              tare_status (*visit)(const char *path, const char *other)) {
    struct tare_file_list list;
    tare_status status;

    TARE_TRY(tare_file_list(&list, folder));
    status = TARE_OK;
    for (size_t i = 0; status == TARE_OK && i < list.count; i++) {
        char *path = tare_path_join(folder, list.names[i]);
        char *twin = other ? tare_path_join(other, list.names[i]) : NULL;
        status = path && (twin || !other) ? visit(path, twin) : TARE_NO_MEMORY;
        tare_free(path);
        tare_free(twin);
    }
    tare_file_list_free(&list);
    return status;
}

tare_status tare_file_copy_tree(const char *from, const char *to) {
    if (tare_file_kind_of(from) != TARE_FILE_DIRECTORY) return copy_file(from, to);
    if (tare_file_must_fail() || mkdir(to, 0777) != 0) return tare_file_error("cannot make folder", to);
    return each_entry(from, to, tare_file_copy_tree);
}

static tare_status remove_entry(const char *path, const char *unused) {
    (void)unused;
    return tare_file_remove_tree(path);
}

tare_status tare_file_remove_tree(const char *path) {
    struct stat info;
    bool folder;
    if (lstat(path, &info) != 0) return errno == ENOENT ? TARE_OK : tare_file_error("cannot look at", path);
    folder = S_ISDIR(info.st_mode);
    if (folder) TARE_TRY(each_entry(path, NULL, remove_entry));
    if ((folder ? rmdir(path) : unlink(path)) != 0 && errno != ENOENT) return tare_file_error("cannot remove", path);
    return TARE_OK;
}

static tare_status sync_entry(const char *path, const char *unused) {
    (void)unused;
    return tare_file_sync_tree(path);
}

tare_status tare_file_sync_tree(const char *path) {
    tare_status status = TARE_OK;
    int fd;
    if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY) TARE_TRY(each_entry(path, NULL, sync_entry));
    fd = tare_file_must_fail() ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return tare_file_error("cannot open", path);
    /* A file system that cannot sync a folder says EINVAL: there is nothing more to do for it. */
    if (tare_file_must_fail() || (fsync(fd) != 0 && errno != EINVAL)) status = tare_file_error("cannot sync", path);
    close(fd);
    return status;
}

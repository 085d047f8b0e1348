/* Reading files and folders. Paths are in path.c, mapping is in file_map.c, tree operations are in file_tree.c. */
#include "base/file.h"
#include "base/alloc.h"
#include "base/control.h"
#include "base/format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 100 };

static _Atomic int64_t operations;
static _Atomic int64_t failing; /* number of the operation that fails, 0 for none */

void tare_file_fail_at(int64_t n) {
    atomic_store(&operations, 0);
    atomic_store(&failing, n);
}

bool tare_file_must_fail(void) {
    int64_t number = atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed) + 1;
    if (number != atomic_load_explicit(&failing, memory_order_relaxed)) return false;
    errno = EIO;
    return true;
}

tare_status tare_file_error(const char *what, const char *path) {
    int reason = errno;
    if (reason == ENOMEM) {
        tare_control_note_failed_allocation(0); /* one of libc's */
        return TARE_FAIL(TARE_NO_MEMORY, "%s '%s': out of memory", what, path);
    }
    if (reason == EINTR) TARE_TRY(tare_control_check()); /* opening a pipe waits for its other end */
    return TARE_FAIL(reason == ENOENT || reason == ENOTDIR ? TARE_NOT_FOUND : TARE_IO, "%s '%s': %s", what, path,
                     tare_system_error(reason));
}

size_t tare_file_mark_size(const void *text, size_t size) {
    return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

tare_status tare_file_open(int *fd, const char *path) {
    *fd = -1;
    if (strcmp(path, "-") == 0) {
        *fd = STDIN_FILENO;
        return TARE_OK;
    }
    *fd = tare_file_must_fail() ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    return *fd < 0 ? tare_file_error("cannot open", path) : TARE_OK;
}

/* Waits for the data of a pipe. A signal may have been delivered to another thread, so time passes as well. */
static tare_status wait_for_data(int fd) {
    struct pollfd input = { .fd = fd, .events = POLLIN };
    int ready;
    while ((ready = poll(&input, 1, PATIENCE_MS)) == 0 || (ready < 0 && errno == EINTR))
        TARE_TRY(tare_control_check());
    return TARE_OK;
}

tare_status tare_file_read_some(size_t *got, int fd, void *data, size_t size, const char *path) {
    ssize_t done;
    *got = 0;
    TARE_TRY(wait_for_data(fd));
    do {
        done = tare_file_must_fail() ? -1 : read(fd, data, size);
    } while (done < 0 && errno == EINTR);
    if (done < 0) return tare_file_error("cannot read", path);
    *got = (size_t)done;
    return TARE_OK;
}

void tare_file_close(int fd) {
    if (fd > STDIN_FILENO) close(fd);
}

tare_status tare_file_read(char **data, size_t *size, const char *path) {
    size_t capacity = 0, used = 0, got = 1;
    char *text = NULL;
    struct stat info;
    tare_status status;
    int fd;

    *data = NULL;
    *size = 0;
    TARE_TRY(tare_file_open(&fd, path));
    /* The size is only a hint: a pipe has none and a file may grow. */
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        capacity = (size_t)info.st_size + 2;
    else
        capacity = 1 << 16;
    text = tare_malloc(capacity);
    status = text ? TARE_OK : TARE_NO_MEMORY;
    while (status == TARE_OK && got) {
        if (used + 1 >= capacity && !tare_grow((void **)&text, &capacity, used + 2, 1)) {
            status = TARE_NO_MEMORY;
            break;
        }
        status = tare_file_read_some(&got, fd, text + used, capacity - used - 1, path);
        used += got;
    }
    tare_file_close(fd);
    if (status != TARE_OK) {
        tare_free(text);
        return status;
    }
    text[used] = '\0';
    *data = text;
    *size = used;
    return TARE_OK;
}

enum tare_file_kind tare_file_kind_of(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) return TARE_FILE_NONE;
    if (S_ISREG(info.st_mode)) return TARE_FILE_REGULAR;
    return S_ISDIR(info.st_mode) ? TARE_FILE_DIRECTORY : TARE_FILE_OTHER;
}

/* A path of PATH_MAX bytes or more cannot be opened either. */
enum tare_file_kind tare_file_kind_in(const char *folder, const char *name) {
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name);
    return size > 0 && (size_t)size < sizeof path ? tare_file_kind_of(path) : TARE_FILE_NONE;
}

int64_t tare_file_size(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (int64_t)info.st_size : -1;
}

bool tare_file_list_add(struct tare_file_list *list, const char *name) {
    char *copy;
    if (!TARE_GROW(list->names, list->count, list->capacity)) return false;
    copy = tare_strdup(name);
    if (!copy) return false;
    list->names[list->count++] = copy;
    return true;
}

void tare_file_list_free(struct tare_file_list *list) {
    for (size_t i = 0; i < list->count; i++)
        tare_free(list->names[i]);
    tare_free(list->names);
    memset(list, 0, sizeof *list);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

tare_status tare_file_list(struct tare_file_list *out, const char *folder) {
    tare_status status = TARE_OK;
    struct dirent *entry;
    DIR *stream = tare_file_must_fail() ? NULL : opendir(folder);

    memset(out, 0, sizeof *out);
    if (!stream) return tare_file_error("cannot list", folder);
    while (status == TARE_OK && (errno = 0, entry = readdir(stream))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (!tare_file_list_add(out, entry->d_name)) status = TARE_NO_MEMORY;
    }
    if (status == TARE_OK && errno) status = tare_file_error("cannot list", folder);
    closedir(stream);
    if (status != TARE_OK)
        tare_file_list_free(out);
    else if (out->count)
        qsort(out->names, out->count, sizeof *out->names, by_bytes);
    return status;
}

tare_status tare_file_glob(struct tare_file_list *out, const char *pattern) {
    glob_t found = { 0 };
    size_t first = out->count;
    tare_status status = TARE_OK;
    int result;

    if (!strpbrk(pattern, "*?[") || tare_file_kind_of(pattern) != TARE_FILE_NONE)
        return tare_file_list_add(out, pattern) ? TARE_OK : TARE_NO_MEMORY;
    result = tare_file_must_fail() ? GLOB_ABORTED : glob(pattern, GLOB_NOSORT, NULL, &found);
    if (result == GLOB_NOMATCH)
        status = TARE_FAIL(TARE_NOT_FOUND, "no file matches '%s'", pattern);
    else if (result == GLOB_NOSPACE)
        status = TARE_FAIL(TARE_NO_MEMORY, "out of memory for the files of '%s'", pattern);
    else if (result != 0)
        status = TARE_FAIL(TARE_IO, "cannot list the files of '%s'", pattern);
    for (size_t i = 0; status == TARE_OK && i < found.gl_pathc; i++)
        if (!tare_file_list_add(out, found.gl_pathv[i])) status = TARE_NO_MEMORY;
    globfree(&found);
    if (status == TARE_OK) qsort(out->names + first, out->count - first, sizeof *out->names, by_bytes);
    return status;
}

tare_status tare_file_make_folders(const char *path, size_t *existed) {
    size_t length = strlen(path), there = 0;
    char *part = tare_strdup(path);
    tare_status status = TARE_OK;

    if (!part) return TARE_NO_MEMORY;
    for (size_t end = 1; status == TARE_OK && end <= length; end++) {
        if ((part[end] != '/' && part[end] != '\0') || part[end - 1] == '/') continue;
        part[end] = '\0';
        if (tare_file_kind_of(part) == TARE_FILE_DIRECTORY)
            there = end;
        else if (tare_file_must_fail() || (mkdir(part, 0777) != 0 && errno != EEXIST))
            status = tare_file_error("cannot make folder", part);
        else if (tare_file_kind_of(part) != TARE_FILE_DIRECTORY)
            status = TARE_FAIL(TARE_IO, "cannot make folder '%s': a file has that name", part);
        part[end] = path[end];
    }
    if (existed) *existed = there;
    tare_free(part);
    return status;
}

void tare_file_remove_made_folders(char *path, size_t existed) {
    size_t length = strlen(path);
    while (length > existed && rmdir(path) == 0) {
        while (length > 0 && path[length - 1] != '/')
            length--;
        while (length > 0 && path[length - 1] == '/')
            length--;
        path[length] = '\0';
    }
}

static int open_unnamed_in(const char *folder) {
    char path[4096];
    int fd;
    if (snprintf(path, sizeof path, "%s/tare-XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

int tare_file_open_unnamed(void) {
    const char *folder = getenv("TMPDIR");
    if (folder && *folder) return open_unnamed_in(folder);
    const int fd = open_unnamed_in("/var/tmp");
    return fd >= 0 ? fd : open_unnamed_in("/tmp");
}

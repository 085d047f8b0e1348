/* Temporary siblings that become the real thing by a rename. */
#include "base/output.h"
#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_SIZE = 1 << 16, MOST_SIBLINGS = 1000 };

/* "folder/.name.tmp-PID-n" beside `path`; NULL when memory is out. */
static char *sibling(const char *path, int number) {
    char *folder = tare_path_folder(path), *joined = NULL;
    const char *base = tare_path_base(path);
    char name[NAME_MAX + 1];
    int keep = (int)sizeof name - 48; /* a long name is cut: the temporary one must fit, too */
    if (!folder) return NULL;
    snprintf(name, sizeof name, ".%.*s.tmp-%ld-%d", keep, base, (long)getpid(), number);
    joined = strchr(path, '/') ? tare_path_join(folder, name) : tare_strdup(name);
    tare_free(folder);
    return joined;
}

/* Makes a new file (make_folder: folder) with the first free sibling name. */
static tare_status make_sibling(char **out, int *fd, const char *path, bool make_folder) {
    *out = NULL;
    for (int number = 0; number < MOST_SIBLINGS; number++) {
        char *name = sibling(path, number);
        int result;
        if (!name) return TARE_NO_MEMORY;
        if (tare_file_must_fail())
            result = -1;
        else
            result = make_folder ? mkdir(name, 0777) : open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
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
    return TARE_FAIL(TARE_IO, "cannot create a temporary name beside '%s': all are taken", path);
}

static void keep_error(char *text, size_t size) {
    snprintf(text, size, "%s", tare_error_text());
}

/* ---- files ---- */

static tare_status open_direct(struct tare_output_file *out) {
    if (strcmp(out->path, "-") == 0)
        out->fd = tare_file_must_fail() ? -1 : dup(STDOUT_FILENO);
    else
        out->fd = tare_file_must_fail() ? -1 : open(out->path, O_WRONLY | O_CLOEXEC);
    return out->fd < 0 ? tare_file_error("cannot open", out->path) : TARE_OK;
}

tare_status tare_output_file_begin(struct tare_output_file *out, const char *path) {
    enum tare_file_kind kind = tare_file_kind_of(path);
    char *real = kind == TARE_FILE_REGULAR ? realpath(path, NULL) : NULL; /* a link stays one */
    tare_status status;

    memset(out, 0, sizeof *out);
    out->fd = -1;
    out->path = tare_strdup(real ? real : path);
    free(real);
    out->buffer = tare_malloc(BUFFER_SIZE);
    if (!out->path || !out->buffer)
        status = TARE_NO_MEMORY;
    else if (kind == TARE_FILE_DIRECTORY)
        status = TARE_FAIL(TARE_IO, "cannot create '%s': it is a folder", path);
    else if (kind == TARE_FILE_OTHER || strcmp(path, "-") == 0)
        status = open_direct(out);
    else
        status = make_sibling(&out->temporary, &out->fd, out->path, false);
    out->open = status == TARE_OK;
    if (status != TARE_OK) tare_output_file_abort(out);
    return status;
}

static tare_status write_at(struct tare_output_file *out, const char *data, size_t size, off_t at) {
    while (size) {
        ssize_t done = -1;
        if (!tare_file_must_fail()) done = at < 0 ? write(out->fd, data, size) : pwrite(out->fd, data, size, at);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno == ESPIPE) return TARE_FAIL(TARE_UNSUPPORTED, "'%s' cannot be rewritten", out->path);
        if (done < 0) return tare_file_error("cannot write", out->path);
        if (at >= 0) at += done;
        data += done;
        size -= (size_t)done;
    }
    return TARE_OK;
}

static tare_status flush(struct tare_output_file *out) {
    size_t used = out->used;
    out->used = 0;
    return write_at(out, out->buffer, used, -1);
}

tare_status tare_output_file_write(struct tare_output_file *out, const void *data, size_t size) {
    if (size > BUFFER_SIZE - out->used) TARE_TRY(flush(out));
    out->offset += size;
    if (size >= BUFFER_SIZE) return write_at(out, data, size, -1);
    if (size) memcpy(out->buffer + out->used, data, size);
    out->used += size;
    return TARE_OK;
}

tare_status tare_output_file_patch(struct tare_output_file *out, uint64_t offset, const void *data, size_t size) {
    if (offset > out->offset || size > out->offset - offset)
        return TARE_FAIL(TARE_INTERNAL, "'%s' is patched behind its end", out->path);
    TARE_TRY(flush(out));
    return write_at(out, data, size, (off_t)offset);
}

static tare_status sync_folder_of(const char *path) {
    char *folder = tare_path_folder(path);
    tare_status status = TARE_NO_MEMORY;
    int fd;
    if (!folder) return status;
    fd = tare_file_must_fail() ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        status = tare_file_error("cannot open", folder);
    else if (fsync(fd) != 0 && errno != EINVAL)
        status = tare_file_error("cannot sync", folder);
    else
        status = TARE_OK;
    if (fd >= 0) close(fd);
    tare_free(folder);
    return status;
}

tare_status tare_output_file_commit(struct tare_output_file *out) {
    tare_status status = TARE_OK;
    int result;
    TARE_CHECK(flush(out));
    if (out->temporary && (tare_file_must_fail() || (fsync(out->fd) != 0 && errno != EINVAL)))
        status = tare_file_error("cannot sync", out->temporary);
    result = close(out->fd);
    out->fd = -1;
    if (status == TARE_OK && result != 0) status = tare_file_error("cannot write", out->path);
    if (status != TARE_OK || !out->temporary) goto done;
    if (tare_file_must_fail() || rename(out->temporary, out->path) != 0) {
        status = tare_file_error("cannot create", out->path);
        goto done;
    }
    tare_free(out->temporary);
    out->temporary = NULL;
    status = sync_folder_of(out->path);
done:
    tare_output_file_abort(out);
    return status;
}

void tare_output_file_abort(struct tare_output_file *out) {
    if (out->open && out->fd >= 0) close(out->fd);
    if (out->temporary) unlink(out->temporary);
    tare_free(out->temporary);
    tare_free(out->path);
    tare_free(out->buffer);
    memset(out, 0, sizeof *out);
    out->fd = -1;
}

tare_status tare_file_write(const char *path, const void *data, size_t size) {
    struct tare_output_file out;
    tare_status status;
    TARE_TRY(tare_output_file_begin(&out, path));
    status = tare_output_file_write(&out, data, size);
    if (status == TARE_OK) return tare_output_file_commit(&out);
    tare_output_file_abort(&out);
    return status;
}

/* ---- folders ---- */

/* The path without slashes at its end; NULL when memory is out. */
static char *trimmed(const char *path) {
    char *copy = tare_strdup(path);
    size_t length = copy ? strlen(copy) : 0;
    while (length > 1 && copy[length - 1] == '/')
        copy[--length] = '\0';
    return copy;
}

static tare_status check_free(const char *path, bool overwrite) {
    struct stat info;
    if (lstat(path, &info) != 0) return TARE_OK;
    if (!overwrite || tare_file_kind_of(path) != TARE_FILE_DIRECTORY)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Output directory already exists: %s", path);
    return TARE_OK;
}

tare_status tare_output_dir_begin(struct tare_output_dir *out, const char *path, bool overwrite) {
    tare_status status = TARE_NO_MEMORY;
    char *parent = NULL;

    memset(out, 0, sizeof *out);
    if (!*path) return TARE_FAIL(TARE_INVALID_ARGUMENT, "the output directory has an empty name");
    out->overwrite = overwrite;
    out->existed = SIZE_MAX; /* no parent is ours yet */
    out->path = trimmed(path);
    parent = out->path ? tare_path_folder(out->path) : NULL;
    if (!parent) goto done;
    TARE_CHECK(check_free(out->path, overwrite));
    TARE_CHECK(tare_file_make_folders(parent, &out->existed));
    TARE_CHECK(make_sibling(&out->temporary, NULL, out->path, true));
done:
    tare_free(parent);
    if (status != TARE_OK) tare_output_dir_abort(out);
    return status;
}

/* Moves the folder into place. An old one ends under the temporary name. */
static tare_status move_in(struct tare_output_dir *out, bool *replaced) {
    bool there;
    *replaced = false;
    TARE_TRY(check_free(out->path, out->overwrite));
    there = tare_file_kind_of(out->path) == TARE_FILE_DIRECTORY;
    if (tare_file_must_fail()) return tare_file_error("cannot create", out->path);
    if (renameat2(AT_FDCWD, out->temporary, AT_FDCWD, out->path, there ? RENAME_EXCHANGE : RENAME_NOREPLACE) == 0) {
        *replaced = there;
        return TARE_OK;
    }
    if (errno == EEXIST) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Output directory already exists: %s", out->path);
    if (errno != EINVAL && errno != ENOSYS) return tare_file_error("cannot create", out->path);
    /* A file system without the flags: the old folder must go first. */
    if (there) TARE_TRY(tare_file_remove_tree(out->path));
    if (rename(out->temporary, out->path) != 0) return tare_file_error("cannot create", out->path);
    return TARE_OK;
}

static void end_dir(struct tare_output_dir *out) {
    tare_free(out->path);
    tare_free(out->temporary);
    memset(out, 0, sizeof *out);
}

tare_status tare_output_dir_commit(struct tare_output_dir *out) {
    bool replaced;
    tare_status status;
    TARE_CHECK(tare_file_sync_tree(out->temporary));
    TARE_CHECK(move_in(out, &replaced));
    if (replaced) status = tare_file_remove_tree(out->temporary);
    if (status == TARE_OK) status = sync_folder_of(out->path);
    end_dir(out);
    return status;
done:
    tare_output_dir_abort(out);
    return status;
}

void tare_output_dir_abort(struct tare_output_dir *out) {
    char text[4096];
    char *parent = out->path ? tare_path_folder(out->path) : NULL;
    keep_error(text, sizeof text);
    if (out->temporary && tare_file_remove_tree(out->temporary) != TARE_OK) tare_error_set(text);
    /* rmdir leaves a parent alone that holds something else by now. */
    while (parent && strlen(parent) > out->existed && rmdir(parent) == 0) {
        char *upper = tare_path_folder(parent);
        tare_free(parent);
        parent = upper;
    }
    tare_free(parent);
    end_dir(out);
    tare_error_set(text);
}

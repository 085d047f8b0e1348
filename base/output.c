/* Output files: written under a temporary name and renamed when they are complete and synced. */
#include "base/output.h"
#include "base/alloc.h"
#include "base/control.h"
#include "base/file.h"
#include "base/file_lost.h"
#include "base/output_sibling.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_SIZE = 1 << 16, LARGEST_WRITE = 1 << 24 };

static tare_status open_direct(struct tare_output_file *out) {
    if (strcmp(out->path, "-") == 0)
        out->fd = tare_file_must_fail() ? -1 : dup(STDOUT_FILENO);
    else
        out->fd = tare_file_must_fail() ? -1 : open(out->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    return out->fd < 0 ? tare_file_error("cannot open", out->path) : TARE_OK;
}

/* Whether the path leads to an open file that was deleted (/proc/self/fd/N): it has no name to be renamed to. */
static bool is_deleted(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 0;
}

static tare_status begin(struct tare_output_file *out, const char *path, bool held) {
    enum tare_file_kind kind = tare_file_kind_of(path);
    char room[PATH_MAX];
    const char *real = kind == TARE_FILE_REGULAR && !is_deleted(path) ? realpath(path, room)
                                                                      : NULL; /* a link stays: its target is replaced */
    tare_status status;

    memset(out, 0, sizeof *out);
    out->fd = out->lock.fd = -1;
    out->path = tare_strdup(real ? real : path);
    out->buffer = tare_malloc(BUFFER_SIZE);
    if (!out->path || !out->buffer)
        status = TARE_NO_MEMORY;
    else if (!*path)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "the output file has an empty name");
    else if (kind == TARE_FILE_DIRECTORY)
        status = TARE_FAIL(TARE_IO, "cannot create '%s': it is a folder", path);
    else if (kind == TARE_FILE_OTHER || is_deleted(path) || strcmp(path, "-") == 0)
        status = open_direct(out);
    else
        status = held ? TARE_OK : tare_output_lock(&out->lock, out->path);
    if (status == TARE_OK && out->fd < 0) status = tare_sibling_make_file(&out->temporary, &out->fd, out->path);
    out->open = status == TARE_OK;
    if (status != TARE_OK) tare_output_file_abort(out);
    return status;
}

tare_status tare_output_file_begin(struct tare_output_file *out, const char *path) {
    return begin(out, path, false);
}

tare_status tare_output_file_begin_held(struct tare_output_file *out, const char *path) {
    return begin(out, path, true);
}

static tare_status write_at(struct tare_output_file *out, const char *data, size_t size, off_t at) {
    while (size) {
        const size_t piece = size < LARGEST_WRITE ? size : LARGEST_WRITE;
        ssize_t done = -1;
        TARE_TRY(tare_control_check());
        if (!tare_file_must_fail()) done = at < 0 ? write(out->fd, data, piece) : pwrite(out->fd, data, piece, at);
        if (done < 0 && errno == EINTR) continue;
        const char *lost = done < 0 && errno == EFAULT ? tare_file_note_lost(data) : NULL;
        if (lost) return tare_file_lost_error(lost);
        if (done < 0 && errno == ESPIPE) return TARE_FAIL(TARE_UNSUPPORTED, "'%s' cannot be rewritten", out->path);
        if (done < 0) return tare_file_error("cannot write", out->path);
        if (at >= 0) at += done;
        data += done;
        size -= (size_t)done;
    }
    return TARE_OK;
}

/* After a failure the file has a gap, also when the caller goes on and later writes succeed. */
static tare_status append(struct tare_output_file *out, const void *data, size_t size) {
    tare_status status = write_at(out, data, size, -1);
    out->gap = out->gap || status != TARE_OK;
    return status;
}

static tare_status flush(struct tare_output_file *out) {
    size_t used = out->used;
    out->used = 0;
    return append(out, out->buffer, used);
}

tare_status tare_output_file_write(struct tare_output_file *out, const void *data, size_t size) {
    if (size > BUFFER_SIZE - out->used) TARE_TRY(flush(out));
    out->offset += size;
    if (size >= BUFFER_SIZE) return append(out, data, size);
    if (size) memcpy(out->buffer + out->used, data, size);
    out->used += size;
    return TARE_OK;
}

tare_status tare_output_file_patch(struct tare_output_file *out, uint64_t offset, const void *data, size_t size) {
    if (offset > out->offset || size > out->offset - offset)
        return TARE_FAIL(TARE_INTERNAL, "'%s' is patched after its end", out->path);
    TARE_TRY(flush(out));
    return write_at(out, data, size, (off_t)offset);
}

tare_status tare_output_file_commit(struct tare_output_file *out) {
    tare_status status = TARE_OK;
    int result;
    if (out->gap) status = TARE_FAIL(TARE_IO, "cannot complete '%s': a part of it could not be written", out->path);
    if (status != TARE_OK) goto done;
    TARE_CHECK(flush(out));
    if (out->temporary && (tare_file_must_fail() || !tare_file_sync(out->fd)))
        status = tare_file_error("cannot sync", out->temporary);
    result = close(out->fd);
    out->fd = -1;
    if (status == TARE_OK && result != 0) status = tare_file_error("cannot write", out->path);
    if (status != TARE_OK || !out->temporary) goto done;
    TARE_CHECK(tare_control_verify());
    if (tare_file_must_fail() || rename(out->temporary, out->path) != 0) {
        status = tare_file_error("cannot create", out->path);
        goto done;
    }
    tare_control_note_commit();
    tare_free(out->temporary);
    out->temporary = NULL;
    status = tare_sync_folder_of(out->path);
done:
    tare_output_file_abort(out);
    return status;
}

void tare_output_file_abort(struct tare_output_file *out) {
    if (out->open && out->fd >= 0) close(out->fd);
    if (out->temporary) unlink(out->temporary);
    tare_output_unlock(&out->lock);
    tare_free(out->temporary);
    tare_free(out->path);
    tare_free(out->buffer);
    memset(out, 0, sizeof *out);
    out->fd = out->lock.fd = -1;
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

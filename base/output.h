/* Files and folders for writing. Each is made under a temporary name beside its place and moved there when it is
 * complete and synced, so that a failure leaves nothing half-written and what was there before is untouched. */
#ifndef TARE_BASE_OUTPUT_H
#define TARE_BASE_OUTPUT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file, written in order through a buffer. "-" is standard output; a device or pipe is written directly. */
struct tare_output_file {
    char *path, *temporary; /* temporary: NULL when written directly */
    int fd;
    bool open;
    bool overwrite;
    char *buffer;
    size_t used;
    uint64_t offset; /* bytes handed in so far */
};
/* Folders on the way must exist. An existing file is replaced at commit. */
tare_status tare_output_file_begin(struct tare_output_file *out, const char *path) TARE_WARN_UNUSED;
tare_status tare_output_file_write(struct tare_output_file *out, const void *data, size_t size) TARE_WARN_UNUSED;
/* Overwrites bytes that were written before. TARE_UNSUPPORTED for a pipe. */
tare_status tare_output_file_patch(struct tare_output_file *out, uint64_t offset, const void *data,
                                   size_t size) TARE_WARN_UNUSED;
/* Flushes, syncs, moves to the final path. On failure the temporary file is gone; ends the struct either way. */
tare_status tare_output_file_commit(struct tare_output_file *out) TARE_WARN_UNUSED;
/* Removes the temporary file. Safe on a zeroed struct and after commit. Keeps the error text. */
void tare_output_file_abort(struct tare_output_file *out);

/* Writes a whole file in one go: begin, write, commit. */
tare_status tare_file_write(const char *path, const void *data, size_t size) TARE_WARN_UNUSED;

/* A folder: write into `temporary`, then commit. */
struct tare_output_dir {
    char *path, *temporary;
    bool overwrite;
    size_t existed; /* length of the part of the parent's path that was there before */
};
/* Makes ".NAME.tmp-PID-n" beside `path` (and missing parents). TARE_INVALID_ARGUMENT "Output directory already exists:
 * D" when something is there and overwrite is false, or when it is no folder. */
tare_status tare_output_dir_begin(struct tare_output_dir *out, const char *path, bool overwrite) TARE_WARN_UNUSED;
/* Syncs all files and moves the folder to its path, exchanging it with an old one that is then removed. On failure the
 * temporary folder is gone and the old one in place; ends the struct either way. */
tare_status tare_output_dir_commit(struct tare_output_dir *out) TARE_WARN_UNUSED;
/* Removes the temporary folder and the parents that begin made. Safe on a zeroed struct. Keeps the error text. */
void tare_output_dir_abort(struct tare_output_dir *out);

#endif

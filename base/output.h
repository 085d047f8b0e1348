/* Files and folders for writing. Each is made under a temporary name next to its final path and renamed when it is
 * complete and synced, so that a failure leaves nothing half-written and what was there before is untouched. */
#ifndef TARE_BASE_OUTPUT_H
#define TARE_BASE_OUTPUT_H

#include "base/output_lock.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file, written sequentially through a buffer. "-" is standard output. Devices, pipes and deleted
 * files (/proc/self/fd/N) are written directly. */
struct tare_output_file {
    char *path, *temporary; /* temporary: NULL if written directly */
    struct tare_output_lock lock;
    int fd;
    bool open;
    bool gap; /* a write failed: bytes are missing, and the file cannot be completed */
    char *buffer;
    size_t used;
    uint64_t offset; /* bytes passed to write so far */
};
/* The parent folder must exist. An existing file is replaced at commit. The file is locked until commit or abort:
 * TARE_IO if another process writes it. */
tare_status tare_output_file_begin(struct tare_output_file *out, const char *path) TARE_WARN_UNUSED;
/* The same without the lock: the caller holds it. */
tare_status tare_output_file_begin_held(struct tare_output_file *out, const char *path) TARE_WARN_UNUSED;
tare_status tare_output_file_write(struct tare_output_file *out, const void *data, size_t size) TARE_WARN_UNUSED;
/* Overwrites bytes already written. TARE_UNSUPPORTED for a pipe. */
tare_status tare_output_file_patch(struct tare_output_file *out, uint64_t offset, const void *data,
                                   size_t size) TARE_WARN_UNUSED;
/* Flushes, syncs, and renames to the final path. On failure the temporary file is removed. The struct is released in
 * either case. */
tare_status tare_output_file_commit(struct tare_output_file *out) TARE_WARN_UNUSED;
/* Removes the temporary file. Safe on a zeroed struct and after commit. Keeps the error text. */
void tare_output_file_abort(struct tare_output_file *out);

/* Writes a whole file: begin, write, commit. */
tare_status tare_file_write(const char *path, const void *data, size_t size) TARE_WARN_UNUSED;

/* What an output folder may replace. */
struct tare_output_rules {
    bool overwrite;    /* a folder that is not empty may be replaced, if all its entries are parts of `what` */
    const char *input; /* a folder that is read: the output must not be it, contain it or be inside it. NULL: none */
    bool (*is_part)(const char *name); /* whether an entry of this name belongs to such an output; NULL: all do */
    const char *what;                  /* "a SavedModel", for the error text */
};
/* TARE_INVALID_ARGUMENT when a file or folder to write is a file or folder that is read, contains it or is inside it,
 * also by another name; links and mounts are resolved. "-", and inputs that cannot be found, are passed over. */
tare_status tare_output_check_apart(const char *path, const char *input) TARE_WARN_UNUSED;
/* The same for several inputs. */
tare_status tare_output_check_all_apart(const char *path, const char *const *inputs, size_t count) TARE_WARN_UNUSED;

/* Whether a folder could be written there now: nothing exists at `path`, an empty folder does, or one that `rules`
 * allow to be replaced. For commands that check before they work. The errors are those of tare_output_dir_begin. */
tare_status tare_output_dir_check(const char *path, const struct tare_output_rules *rules) TARE_WARN_UNUSED;

/* A folder: create its contents in `temporary`, then commit. */
struct tare_output_dir {
    char *path, *temporary;
    struct tare_output_rules rules;
    size_t existed; /* length of the part of the parent's path that existed before */
    bool in_place;  /* a mount point, or its parent is read-only: `temporary` is inside `path` */
    bool adds;      /* by tare_output_dir_begin_adding */
    struct tare_output_lock lock;
    int guard; /* locks `temporary` */
};
/* Locks the output, makes ".NAME.tmp-PID-n" next to `path` (and missing parents), and removes such folders of killed
 * runs. An empty folder is always replaced. NULL rules: nothing else is. The strings of `rules` must live until commit
 * or abort. TARE_IO if another process writes the output. TARE_INVALID_ARGUMENT: "Output directory already exists: D",
 * an entry that is not part of such an output, or an output that is not apart from the input. */
tare_status tare_output_dir_begin(struct tare_output_dir *out, const char *path,
                                  const struct tare_output_rules *rules) TARE_WARN_UNUSED;
/* The same for files that are added to a folder, which is created if it does not exist: they are made in `temporary`,
 * which is inside `path`, and the commit moves them, replacing files of the same names. */
tare_status tare_output_dir_begin_adding(struct tare_output_dir *out, const char *path) TARE_WARN_UNUSED;
/* Syncs all files and moves the folder to its path, exchanging it with an old one that is then removed. On failure the
 * temporary folder is removed and the old one is in place; ends the struct either way. */
tare_status tare_output_dir_commit(struct tare_output_dir *out) TARE_WARN_UNUSED;
/* Removes the temporary folder and the parents that begin created. Safe on a zeroed struct. Keeps the error text. */
void tare_output_dir_abort(struct tare_output_dir *out);
/* Moves a complete and synced folder to `path` on the same file system, as commit does. The caller holds the lock of
 * `path`. `from` no longer exists then; on failure it still does. */
tare_status tare_output_move(const char *from, const char *path,
                             const struct tare_output_rules *rules) TARE_WARN_UNUSED;
#endif

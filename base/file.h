/* Files and folders for reading, and the tree operations that models need. Files are written with
 * base/output.h, so that no incomplete file remains after a failure.
 *
 * Every failure is TARE_IO (TARE_NOT_FOUND when the path does not exist); the text contains the path and the reason. */
#ifndef TARE_BASE_FILE_H
#define TARE_BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A whole file, mapped read-only. `data` is never NULL, not even for an empty file, so that pointer arithmetic is
 * valid. */
struct tare_mapping {
    const uint8_t *data;
    size_t size;
};
/* Maps a regular file; up to 1 MiB is read instead. The file may be removed or replaced by rename while it is mapped.
 * If it becomes shorter, the missing bytes are 0, and tare_control_check and tare_control_verify (base/control.h) fail
 * with TARE_IO from then on, for the call that mapped it and for later ones of its family (base/file_lost.h). */
tare_status tare_file_map(struct tare_mapping *out, const char *path) TARE_WARN_UNUSED;
/* Releases the physical memory of a range of a mapping; its next access reads from the file again. For single passes
 * over large files. Only for memory of tare_file_map. */
void tare_file_forget(const void *data, size_t size);
/* Unmaps and zeroes the mapping. No-op for a zeroed one. */
void tare_file_unmap(struct tare_mapping *mapping);

/* Reads a whole file ("-": standard input, also pipes) into memory with a NUL after the last byte, not counted
 * in *size. Release *data with tare_free. */
tare_status tare_file_read(char **data, size_t *size, const char *path) TARE_WARN_UNUSED;

/* Bytes of the UTF-8 byte order mark at the start of a text, which some editors write and readers skip: 3 or 0. */
size_t tare_file_mark_size(const void *text, size_t size);

/* Opens for reading; "-" opens standard input. *fd must be closed with tare_file_close (which leaves 0 open). */
tare_status tare_file_open(int *fd, const char *path) TARE_WARN_UNUSED;
/* Reads up to `size` bytes; *got is 0 only at the end of the file. `path` is used in the error text. */
tare_status tare_file_read_some(size_t *got, int fd, void *data, size_t size, const char *path) TARE_WARN_UNUSED;
void tare_file_close(int fd);

enum tare_file_kind { TARE_FILE_NONE, TARE_FILE_REGULAR, TARE_FILE_DIRECTORY, TARE_FILE_OTHER };
/* The kind of file at the path, after following links; TARE_FILE_NONE also if it cannot be accessed. */
enum tare_file_kind tare_file_kind_of(const char *path);
/* The same for "folder/name", without an allocation that could fail. */
enum tare_file_kind tare_file_kind_in(const char *folder, const char *name);
/* Size of a regular file in bytes, -1 if there is none. */
int64_t tare_file_size(const char *path);

/* "folder/name" ("name" if folder is empty); NULL if out of memory. Release with tare_free. */
char *tare_path_join(const char *folder, const char *name);
/* The part after the last slash ("" for a path that ends in one). */
const char *tare_path_base(const char *path);
/* The part before the last slash ("." when there is none, "/" for the root). Release with tare_free. */
char *tare_path_folder(const char *path);
/* The last part of a path without trailing slashes; its length in *size. "a/b/" has "b", "/" has "/". */
const char *tare_path_last(size_t *size, const char *path);
/* The absolute path, with links resolved, of something that need not exist; NULL if out of memory. Release with
 * tare_free. */
char *tare_path_resolve(const char *path);
/* Whether both lead to one file, through links too, or would if it existed. */
bool tare_path_is_same(const char *a, const char *b);
/* Whether `path`, which need not exist, is `folder` or below it, through links and mounts too; never for what is not a
 * folder. */
tare_status tare_path_is_inside(bool *inside, const char *path, const char *folder) TARE_WARN_UNUSED;

/* A list of names or paths. */
struct tare_file_list {
    char **names;
    size_t count, capacity;
};
/* The names in a folder except "." and "..", in byte order. */
tare_status tare_file_list(struct tare_file_list *out, const char *folder) TARE_WARN_UNUSED;
/* Appends the paths that match a shell pattern (*, ?, [ab]) to `out`, in byte order. A string without pattern
 * characters, or one that names an existing file, is appended as it is. TARE_NOT_FOUND if nothing matches. */
tare_status tare_file_glob(struct tare_file_list *out, const char *pattern) TARE_WARN_UNUSED;
/* Appends a copy; false if out of memory. */
bool tare_file_list_add(struct tare_file_list *list, const char *name);
void tare_file_list_free(struct tare_file_list *list);

/* Creates a folder and its missing parents. *existed (unless NULL) is the length of the part of `path` that existed. */
tare_status tare_file_make_folders(const char *path, size_t *existed) TARE_WARN_UNUSED;
/* Removes again the folders at and above `path` that tare_file_make_folders created, as far as they are empty. Shortens
 * `path` in place: it needs no memory. */
void tare_file_remove_made_folders(char *path, size_t existed);
/* Copies a file, or a folder with its content, to a path that does not exist. Only regular files and folders below
 * `root` are read: a link to one of them is copied as what it points to, a link within a folder that was itself reached
 * by a link only if it points to a file. TARE_INVALID_ARGUMENT with the path: any other link, a pipe, a device. */
tare_status tare_file_copy_tree(const char *root, const char *from, const char *to) TARE_WARN_UNUSED;
/* TARE_INVALID_ARGUMENT with the path when `path` is a link that leaves the folder `root`, or is neither a regular file
 * nor a folder. What does not exist passes. */
tare_status tare_file_check_inside(const char *root, const char *path) TARE_WARN_UNUSED;
/* Removes a file, link or folder with all that is in it. A path that does not exist is no failure. */
tare_status tare_file_remove_tree(const char *path) TARE_WARN_UNUSED;
/* Calls fsync on all files and folders of a tree. */
tare_status tare_file_sync_tree(const char *path) TARE_WARN_UNUSED;
/* fsync of one open file, repeated when a signal interrupts it; true where the file system cannot sync. errno is set.
 */
bool tare_file_sync(int fd);
/* fsync of a folder, so that the names in it are durable. */
tare_status tare_file_sync_folder(const char *folder) TARE_WARN_UNUSED;

/* For tests: makes the n-th file operation from now (open, map, read, write, sync, rename, mkdir; 1: the next) fail,
 * once, in any thread; 0 disables it. */
void tare_file_fail_at(int64_t n);
/* For modules that make system calls themselves: counts one operation; true if it must fail (errno is set). */
bool tare_file_must_fail(void);

/* "what 'path': reason" from errno; TARE_NOT_FOUND for ENOENT and ENOTDIR, else TARE_IO. */
tare_status tare_file_error(const char *what, const char *path);

/* A new unlinked file in $TMPDIR, else in /var/tmp, or in /tmp where that fails; -1 with errno set if none can be
 * created. */
int tare_file_open_unnamed(void);

#endif

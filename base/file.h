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

/* A whole file, mapped read-only. `data` is never NULL, also for an empty file, so pointer arithmetic is safe. */
struct tare_mapping {
    const uint8_t *data;
    size_t size;
};
/* Maps a regular file; the file may be removed or replaced by rename while it is mapped. */
tare_status tare_file_map(struct tare_mapping *out, const char *path) TARE_WARN_UNUSED;
/* Gives back the memory that a part of a mapping takes now; what is there comes from the file again when it is next
 * looked at. For going over large files once. Only for memory of tare_file_map. */
void tare_file_forget(const void *data, size_t size);
/* Safe on a zeroed mapping; leaves a zeroed one. */
void tare_file_unmap(struct tare_mapping *mapping);

/* Reads a whole file ("-": standard input, also pipes) into memory with a NUL after the last byte, not counted
 * in *size. Release *data with tare_free. */
tare_status tare_file_read(char **data, size_t *size, const char *path) TARE_WARN_UNUSED;

/* Opens for reading; "-" opens standard input. *fd must be closed with tare_file_close (which leaves 0 open). */
tare_status tare_file_open(int *fd, const char *path) TARE_WARN_UNUSED;
/* Reads up to `size` bytes; *got is 0 only at the end of the file. `path` is for the message. */
tare_status tare_file_read_some(size_t *got, int fd, void *data, size_t size, const char *path) TARE_WARN_UNUSED;
void tare_file_close(int fd);

enum tare_file_kind { TARE_FILE_NONE, TARE_FILE_REGULAR, TARE_FILE_DIRECTORY, TARE_FILE_OTHER };
/* What is at the path, links followed; TARE_FILE_NONE also when it cannot be looked at. */
enum tare_file_kind tare_file_kind_of(const char *path);
/* Bytes of a regular file, -1 when there is none. */
int64_t tare_file_size(const char *path);

/* "folder/name" ("name" when folder is empty); NULL when memory is out. Release with tare_free. */
char *tare_path_join(const char *folder, const char *name);
/* The part after the last slash ("" for a path that ends in one). */
const char *tare_path_base(const char *path);
/* The part before the last slash ("." when there is none, "/" for the root). Release with tare_free. */
char *tare_path_folder(const char *path);

/* The names in a folder without "." and "..", in byte order. */
struct tare_file_list {
    char **names;
    size_t count, capacity;
};
tare_status tare_file_list(struct tare_file_list *out, const char *folder) TARE_WARN_UNUSED;
/* The paths that a shell pattern (*, ?, [ab]) stands for, in byte order; a text without pattern characters, or with
 * them but naming an existing file, stands for itself. TARE_NOT_FOUND when a pattern fits nothing. Appends to `out`. */
tare_status tare_file_glob(struct tare_file_list *out, const char *pattern) TARE_WARN_UNUSED;
/* Appends a copy; false when memory is out. */
bool tare_file_list_add(struct tare_file_list *list, const char *name);
void tare_file_list_free(struct tare_file_list *list);

/* mkdir -p. *made (may be NULL) gets the length of the part of `path` that was there before. */
tare_status tare_file_make_folders(const char *path, size_t *existed) TARE_WARN_UNUSED;
/* Copies a file, or a folder with its content, to a path that does not exist. Only regular files and folders below
 * `root` are read: a link to one of them is copied as what it points to, a link within a folder that was itself reached
 * by a link only if it points to a file. TARE_INVALID_ARGUMENT with the path: any other link, a pipe, a device. */
tare_status tare_file_copy_tree(const char *root, const char *from, const char *to) TARE_WARN_UNUSED;
/* TARE_INVALID_ARGUMENT with the path when `path` is a link that leaves the folder `root`, or is neither a regular file
 * nor a folder. What does not exist passes. */
tare_status tare_file_check_inside(const char *root, const char *path) TARE_WARN_UNUSED;
/* Removes a file, link or folder with all that is in it. A path that does not exist is no failure. */
tare_status tare_file_remove_tree(const char *path) TARE_WARN_UNUSED;
/* fsync of all files and folders of a tree. */
tare_status tare_file_sync_tree(const char *path) TARE_WARN_UNUSED;
/* fsync of one open file, repeated when a signal interrupts it; true where the file system cannot sync. errno is set.
 */
bool tare_file_sync(int fd);
/* fsync of a folder, so that the names in it are durable. */
tare_status tare_file_sync_folder(const char *folder) TARE_WARN_UNUSED;

/* Makes the n-th operation on files from now (open, map, read, write, sync, rename, mkdir; 1 = the next) fail, once,
 * in any thread; 0 turns it off. For tests. */
void tare_file_fail_at(int64_t n);
/* Operations since the last tare_file_fail_at. */
int64_t tare_file_operations(void);
/* Counts one operation; true when it must fail (errno is set). For modules that call the system themselves. */
bool tare_file_must_fail(void);

/* "what 'path': reason" from errno; TARE_NOT_FOUND for ENOENT and ENOTDIR, else TARE_IO. */
tare_status tare_file_error(const char *what, const char *path);

#endif

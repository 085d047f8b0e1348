/* Temporary names next to an output: ".NAME.tmp-PID-n" and ".NAME.old-PID-n" in its folder. Private to base/output*.c.
 */
#ifndef TARE_BASE_OUTPUT_SIBLING_H
#define TARE_BASE_OUTPUT_SIBLING_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* ".NAME" and an ending of at most 45 bytes, as a file name: of a long name, the beginning and a hash of all. */
void tare_sibling_name(char *out, size_t size, const char *name, const char *ending);
/* Creates a new file or folder with the first free temporary name of `path` and removes what killed runs left under
 * such names. *out is released with tare_free; *fd is open for reading and writing and locked. */
tare_status tare_sibling_make_file(char **out, int *fd, const char *path) TARE_WARN_UNUSED;
tare_status tare_sibling_make_folder(char **out, const char *path) TARE_WARN_UNUSED;
/* An empty folder ".NAME.old-PID-n", to be replaced by an old output. */
tare_status tare_sibling_make_aside(char **out, const char *path) TARE_WARN_UNUSED;
/* Moves an old output back that a killed run had moved away, if nothing is at `path`, and removes old outputs that are
 * replaced. The caller holds the lock of `path`. */
tare_status tare_sibling_restore(const char *path) TARE_WARN_UNUSED;
void tare_sibling_remove_old(const char *path);
/* Removes what killed runs left of new outputs of any name in the folder. */
void tare_sibling_sweep(const char *folder);
/* Whether a file name is a temporary one of an output named `base`. */
bool tare_sibling_is_temporary(const char *name, const char *base);
/* fsync of the folder that contains `path`, so that a rename in it is durable. */
tare_status tare_sync_folder_of(const char *path) TARE_WARN_UNUSED;

#endif

/* Temporary names next to an output: ".NAME.tmp-PID-n" in its folder. Private to base/output*.c. */
#ifndef TARE_BASE_OUTPUT_SIBLING_H
#define TARE_BASE_OUTPUT_SIBLING_H

#include "base/status.h"

#include <stdbool.h>

/* Creates a new file or folder with the first free temporary name of `path` and removes what killed runs left under
 * such names. *out is released with tare_free; *fd is open for reading and writing and locked. */
tare_status tare_sibling_make_file(char **out, int *fd, const char *path) TARE_WARN_UNUSED;
tare_status tare_sibling_make_folder(char **out, const char *path) TARE_WARN_UNUSED;
/* Whether a file name is a temporary one, of the output with this name (NULL: of any). */
bool tare_sibling_is_temporary(const char *name, const char *base);
/* fsync of the folder that contains `path`, so that a rename in it is durable. */
tare_status tare_sync_folder_of(const char *path) TARE_WARN_UNUSED;

#endif

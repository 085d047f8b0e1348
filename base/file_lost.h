/* Mapped files that became shorter while they were read (base/file_map.c). For base/control.c and base/output.c: others
 * learn of it from tare_control_check and tare_control_verify. */
#ifndef TARE_BASE_FILE_LOST_H
#define TARE_BASE_FILE_LOST_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Files lost since the process began. */
int64_t tare_file_lost_count(void);
/* Compares the sizes of all mapped files with those they had, and counts the shorter ones as lost. */
void tare_file_compare_sizes(void);
/* TARE_IO with the name of the file that was lost last. */
tare_status tare_file_lost_error(void) TARE_WARN_UNUSED;
/* Whether the data is in a mapped file that is lost: a system call that reads it fails with EFAULT instead of a signal.
 */
bool tare_file_note_lost(const void *data);

#endif

/* One writer per output: a lock file ".NAME.lock" next to the file or folder that is written, locked with flock and
 * with the writer's process id in it.
 *
 * The lock belongs to the open file, so a killed process holds none, and two threads of one process exclude each other
 * too. tare_output_file_begin and tare_output_dir_begin take it; a command that works on one output for long takes it
 * first. On a file system without locks, every attempt succeeds. */
#ifndef TARE_BASE_OUTPUT_LOCK_H
#define TARE_BASE_OUTPUT_LOCK_H

#include "base/status.h"

#include <stdbool.h>

struct tare_output_lock {
    char *path; /* of the lock file; NULL: not locked */
    int fd;
};
/* Locks the output at `path`, whose folder must exist; "-" and NULL need no lock. TARE_IO with the process id if
 * another one writes it. A lock that a process left which no longer exists is waited for, up to two seconds: its
 * children may still be ending. */
tare_status tare_output_lock(struct tare_output_lock *lock, const char *path) TARE_WARN_UNUSED;
/* As tare_output_lock, with a lock file named after `name` in `folder`. */
tare_status tare_output_lock_in(struct tare_output_lock *lock, const char *folder, const char *name,
                                const char *output) TARE_WARN_UNUSED;
/* Removes the lock file. Safe on a zeroed struct. Does not change the error text. */
void tare_output_unlock(struct tare_output_lock *lock);
/* Whether a file name is that of the lock file of an output with the name `output`. */
bool tare_output_is_lock(const char *name, const char *output);

#endif

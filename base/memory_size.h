/* The memory that this process can use, and the caches in front of it. */
#ifndef TARE_BASE_MEMORY_SIZE_H
#define TARE_BASE_MEMORY_SIZE_H

#include <stddef.h>

/* Bytes of the machine's memory, or of the smallest limit of the control groups (containers, systemd units, batch jobs)
 * that the process is in. `root`: the folder above proc and sys, "" in
 * tare_memory_bytes. */
size_t tare_memory_bytes_at(const char *root);
size_t tare_memory_bytes(void);
/* Bytes of a core's second-level cache; 2 MiB where the system does not tell. */
size_t tare_cache_bytes(void);
/* For tests: as if it had this size; 0: its own. Not while other threads run. */
void tare_cache_set_bytes(size_t bytes);

#endif

/* The memory that this process can use. */
#ifndef TARE_BASE_MEMORY_SIZE_H
#define TARE_BASE_MEMORY_SIZE_H

#include <stddef.h>

/* Bytes of the machine's memory, or of the smallest limit of the control groups (containers, systemd units, batch jobs)
 * that the process is in. `root`: the folder above proc and sys, "" in
 * tare_memory_bytes. */
size_t tare_memory_bytes_at(const char *root);
size_t tare_memory_bytes(void);

#endif

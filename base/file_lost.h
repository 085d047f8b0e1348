/* The list of mapped files (base/file_map.c), and which of them became shorter while they were read. base/control.c and
 * base/output.c ask for lost files; others learn of them from tare_control_check and tare_control_verify.
 *
 * A lost file concerns the call that mapped it. What is still mapped at the end of that call, such as the checkpoint of
 * an open model, concerns all later calls of the same family, as long as it is mapped: its missing pages are zeros for
 * every reader. A family are the calls on one handle of libtare and on the handles made from it.
 *
 * Records are never freed, only used again, because a signal handler reads the list without a lock. */
#ifndef TARE_BASE_FILE_LOST_H
#define TARE_BASE_FILE_LOST_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- lost files ---- */

/* A reader of mapped files. */
struct tare_file_reader {
    uint64_t call;   /* a number for each call of the process */
    uint64_t family; /* the number of the call that began the family */
};
/* Files lost since the process began. */
int64_t tare_file_lost_count(void);
/* The name of a lost file that concerns the reader; NULL: none. */
const char *tare_file_lost_for(struct tare_file_reader reader);
/* The reader's call ends: files that are still mapped concern its family from now on. */
void tare_file_lost_end(struct tare_file_reader reader);
/* Compares the sizes of all mapped files with those they had, and counts the shorter ones as lost. */
void tare_file_compare_sizes(void);
/* TARE_IO with the name of the file. */
tare_status tare_file_lost_error(const char *name) TARE_WARN_UNUSED;
/* The name of the file if the data is in a mapped file that is lost, otherwise NULL: a system call that reads lost data
 * fails with EFAULT instead of a signal. */
const char *tare_file_note_lost(const void *data);

/* ---- the list, for base/file_map.c ---- */

struct tare_mapped_file {
    struct tare_mapped_file *next;
    _Atomic uintptr_t start; /* 0: unused */
    size_t size;             /* bytes of the file when it was mapped; set before `start`, as `family` and `call` */
    uint64_t family;         /* of the call that mapped it */
    _Atomic uint64_t call;   /* 0: it has ended */
    int fd;                  /* to compare the size; -1: unknown */
    atomic_bool lost;
    char name[512];
};

/* The mapping that contains the address; NULL: none. Async-signal-safe. */
struct tare_mapped_file *tare_mapped_file_find(const void *address);
/* Counts the file as lost, once. Async-signal-safe. */
void tare_mapped_file_lose(struct tare_mapped_file *file);
/* Adds a mapping, and takes the file descriptor over (-1: none). */
tare_status tare_mapped_file_add(void *data, size_t size, int fd, const char *path,
                                 struct tare_file_reader reader) TARE_WARN_UNUSED;
/* Compares the size a last time and closes the file descriptor. A lost file then concerns the call that unmaps it. */
void tare_mapped_file_remove(struct tare_mapped_file *file, struct tare_file_reader reader);
uintptr_t tare_page_size(void);
size_t tare_whole_pages(size_t size); /* rounded up */

#endif

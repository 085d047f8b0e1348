/* Programs run from tests: what they print, how they end, what they take. */
#ifndef TARE_TESTS_SUPPORT_PROCESS_H
#define TARE_TESTS_SUPPORT_PROCESS_H

#include <stddef.h>

struct process {
    int status;         /* exit status; 128 + n after signal n */
    double cpu_seconds; /* user and system */
    size_t peak_bytes;  /* resident */
    char *out, *err;    /* NUL-terminated; released by process_free */
    size_t out_size;
};

/* Runs argv[0] … NULL. Fails the running test when the program cannot be started. */
void process_run(struct process *process, const char *const *argv);
void process_free(struct process *process);
/* The tare program of this build (TARE_PROGRAM). */
const char *process_tare(void);

#endif

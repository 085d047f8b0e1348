/* Running programs from tests: output, exit status, CPU time and memory. */
#ifndef TARE_TESTS_SUPPORT_PROCESS_H
#define TARE_TESTS_SUPPORT_PROCESS_H

#include <stddef.h>

struct process {
    int status;         /* exit status; 128 + n after signal n */
    double cpu_seconds; /* user and system time */
    size_t peak_bytes;  /* peak resident set */
    char *out, *err;    /* NUL-terminated; release with process_free */
    size_t out_size;
};

/* Runs argv[0] … NULL. Fails the current test if the program cannot be started. */
void process_run(struct process *process, const char *const *argv);
void process_free(struct process *process);
/* The tare program of this build (TARE_PROGRAM). */
const char *process_tare(void);

#endif

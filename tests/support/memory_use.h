/* Peak memory of the process: tests of corrupt input check that a forged size was not allocated. */
#ifndef TARE_TESTS_MEMORY_USE_H
#define TARE_TESTS_MEMORY_USE_H

#include <stdint.h>
#include <sys/resource.h>

/* Peak resident set size in bytes; 0 under a sanitizer, whose own memory would be included. */
static inline int64_t memory_used(void) {
#if defined(__SANITIZE_ADDRESS__)
    return 0;
#else
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024;
#endif
}

#endif

/* How much memory the program has ever used: tests of damaged input look whether a forged size was believed. */
#ifndef TARE_TESTS_MEMORY_USE_H
#define TARE_TESTS_MEMORY_USE_H

#include <stdint.h>
#include <sys/resource.h>

/* Bytes of the largest resident set so far; 0 under a sanitizer, whose own memory would count. */
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

/* Float arrays between guard regions, for testing that kernels write exactly what they should. */
#ifndef TARE_TESTS_SUPPORT_GUARDED_H
#define TARE_TESTS_SUPPORT_GUARDED_H

#include <stdint.h>

/* Allocates `count` floats, 64-byte aligned, filled with a value that no kernel produces. */
float *guarded(int64_t count);
/* The same, filled with numbers of varying magnitude, so that a different order of additions changes the bits. */
float *guarded_random(int64_t count);
/* Asserts that the guards are intact and frees the array. */
void free_guarded(float *values, int64_t count);
/* `what` and `level` identify the case in the message. */
void assert_same_bits(const float *got, const float *expected, int64_t count, const char *what, const char *level);

#endif

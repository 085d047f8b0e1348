/* Arrays of floats between guards, for kernels that must write what they should and nothing else. */
#ifndef TARE_TESTS_SUPPORT_GUARDED_H
#define TARE_TESTS_SUPPORT_GUARDED_H

#include <stdint.h>

/* `count` floats, aligned to 64 bytes, of a value that no kernel makes. */
float *guarded(int64_t count);
/* The same with numbers of uneven magnitudes, so that another order of additions shows in the bits. */
float *guarded_random(int64_t count);
/* Asserts that the guards are whole. */
void free_guarded(float *values, int64_t count);
/* `what` and `level` name the case in the text. */
void assert_same_bits(const float *got, const float *expected, int64_t count, const char *what, const char *level);

#endif

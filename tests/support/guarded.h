/* Arrays with guard regions, for testing that kernels write exactly what they should. */
#ifndef TARE_TESTS_SUPPORT_GUARDED_H
#define TARE_TESTS_SUPPORT_GUARDED_H

#include <stddef.h>
#include <stdint.h>

/* Allocates `count` floats, 64-byte aligned, filled with a value that no kernel produces. */
float *guarded(int64_t count);
/* The same, filled with numbers of varying magnitude, so that a different order of additions changes the bits. */
float *guarded_random(int64_t count);
/* Asserts that the guards are intact and frees the array. */
void free_guarded(float *values, int64_t count);
/* `what` and `level` identify the case in the message. */
void assert_same_bits(const float *got, const float *expected, int64_t count, const char *what, const char *level);

/* Allocates `size` bytes of any type, aligned as kernels expect, followed by a guard; freed by tare_free. */
void *guarded_block(size_t size);
void assert_block_guard(const void *block, size_t size);
/* A number of all int8 values, -128 and 127 often. The sequence is the same in each process. */
int8_t random_int8(void);

#endif

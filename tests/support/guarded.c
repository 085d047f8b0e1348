#include "support/guarded.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 32 };
static const float guard_value = -12345.75f;

float *guarded(int64_t count) {
    float *block = tare_malloc_aligned((size_t)(count + 2 * GUARD) * sizeof *block);
    assert_non_null(block);
    for (int64_t i = 0; i < count + 2 * GUARD; i++)
        block[i] = guard_value;
    return block + GUARD;
}

void free_guarded(float *values, int64_t count) {
    for (int64_t i = 0; i < GUARD; i++) {
        if (values[-1 - i] != guard_value || values[count + i] != guard_value)
            fail_msg("guard %lld is %g and %g (expected %g)", (long long)i, (double)values[-1 - i],
                     (double)values[count + i], (double)guard_value);
    }
    tare_free(values - GUARD);
}

static uint32_t state = 1;
static float random_float(void) {
    state = state * 1664525u + 1013904223u;
    return ldexpf((float)(int32_t)state / 2147483648.0f, (int)(state >> 8 & 7) - 3);
}
float *guarded_random(int64_t count) {
    float *values = guarded(count);
    for (int64_t i = 0; i < count; i++)
        values[i] = random_float();
    return values;
}

void assert_same_bits(const float *got, const float *expected, int64_t count, const char *what, const char *level) {
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(got + i, expected + i, sizeof *got) != 0)
            fail_msg("%s at level %s: element %lld is %.9g (expected %.9g)", what, level, (long long)i, (double)got[i],
                     (double)expected[i]);
    }
}

enum { BLOCK_GUARD = 64, GUARD_BYTE = 0x5a };

void *guarded_block(size_t size) {
    void *block = tare_malloc_aligned(size + BLOCK_GUARD);
    assert_non_null(block);
    memset(block, GUARD_BYTE, size + BLOCK_GUARD);
    return block;
}

void assert_block_guard(const void *block, size_t size) {
    for (size_t i = 0; i < BLOCK_GUARD; i++)
        assert_int_equal(((const unsigned char *)block)[size + i], GUARD_BYTE);
}

int8_t random_int8(void) {
    static uint32_t int8_state = 7;
    int8_state = int8_state * 1664525u + 1013904223u;
    const int x = (int)(int8_state >> 24) - 128;
    return (int8_t)(int8_state >> 8 & 7 ? x : x < 0 ? -128 : 127);
}

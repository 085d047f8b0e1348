/* Maxima of bytes over windows equal plain loops at every level, for channels that fill vectors or do not, with padding
 * and windows that contain none of the input. */
#include "interpreter/kernels/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 7, MOST_CHANNELS = 70, MOST = 2 * (SIZE + 6) * (SIZE + 6) * MOST_CHANNELS };

static uint32_t seed = 9;
static uint8_t random_byte(void) {
    seed = seed * 1664525u + 1013904223u;
    return (uint8_t)(seed >> 24);
}

static int value(const uint8_t *bytes, int64_t at, bool is_signed) {
    return is_signed ? (int8_t)bytes[at] : bytes[at];
}

/* Element `c` of the window at (y, x) of image b. */
static int expected_max(const struct tare_pool *pool, const uint8_t *input, int64_t b, int64_t y, int64_t x, int64_t c,
                        bool is_signed) {
    int best = is_signed ? -128 : 0;
    for (int64_t i = 0; i < pool->size[1] * pool->size[2]; i++) {
        const int64_t h = y * pool->stride[1] - pool->pad[1] + i / pool->size[2];
        const int64_t w = x * pool->stride[2] - pool->pad[2] + i % pool->size[2];
        if (h < 0 || h >= pool->in[1] || w < 0 || w >= pool->in[2]) continue;
        const int v = value(input, ((b * pool->in[1] + h) * pool->in[2] + w) * pool->channels + c, is_signed);
        if (v > best) best = v;
    }
    return best;
}

static void check(const struct tare_pool *pool, bool is_signed) {
    static uint8_t input[MOST], output[MOST + 1];
    const int64_t lines = pool->out[1], columns = pool->out[2], channels = pool->channels;
    const int64_t count = pool->batch * lines * columns * channels;
    for (size_t i = 0; i < sizeof input; i++)
        input[i] = random_byte();
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level++) {
        memset(output, 0x5a, sizeof output);
        tare_pool_max_bytes_at(level, output, pool, input, is_signed);
        for (int64_t i = 0; i < count; i++) {
            const int64_t position = i / channels, line = position / columns;
            assert_int_equal(value(output, i, is_signed), expected_max(pool, input, line / lines, line % lines,
                                                                       position % columns, i % channels, is_signed));
        }
        assert_int_equal(output[count], 0x5a);
    }
}

static void pool__maxima_of_bytes(void **unused) {
    (void)unused;
    static const int64_t channels[] = { 1, 16, 31, 32, 33, 64, 70 };
    for (int i = 0; i < 42; i++) {
        const int64_t size = 1 + i % 3, stride = 1 + i / 3 % 2, pad = i % 4;
        const int64_t out = (SIZE + 2 * pad - size) / stride + 1;
        const struct tare_pool pool = { .batch = 1 + i % 2,
                                        .channels = channels[i % 7],
                                        .in = { 1, SIZE, SIZE },
                                        .out = { 1, out, out },
                                        .size = { 1, size, size },
                                        .stride = { 1, stride, stride },
                                        .pad = { 0, pad, pad } };
        check(&pool, i % 2 == 0);
        check(&pool, i % 2 != 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(pool__maxima_of_bytes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

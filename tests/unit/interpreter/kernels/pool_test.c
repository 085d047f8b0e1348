/* Maxima of bytes over windows equal plain loops at every level, for channels that fill vectors or do not, with padding
 * and windows that contain none of the input. Maxima and means of floats and of bfloat16 input have the bits of plain
 * loops, and means of bytes those of the floats that the bytes convert to. */
#include "interpreter/kernels/pool.h"

#include "base/tensor/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    SIZE = 7,
    MOST_CHANNELS = 70,
    MOST = 2 * (SIZE + 6) * (SIZE + 6) * MOST_CHANNELS,
    LARGE = 256,
    MOST_CODES = LARGE * LARGE * 33,
};

static uint32_t seed = 9;
static uint8_t random_byte(void) {
    seed = seed * 1664525u + 1013904223u;
    return (uint8_t)(seed >> 24);
}

static int value(const uint8_t *bytes, int64_t at, bool is_signed) {
    return is_signed ? (int8_t)bytes[at] : bytes[at];
}

/* Element `c` of the window at (y, x) of image b. */
static int expected_max(const struct tare_pooling *pool, const uint8_t *input, int64_t b, int64_t y, int64_t x,
                        int64_t c, bool is_signed) {
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

static void check(const struct tare_pooling *pool, bool is_signed) {
    static uint8_t input[MOST], output[MOST + 1];
    const int64_t lines = pool->out[1], columns = pool->out[2], channels = pool->channels;
    const int64_t count = pool->batch * lines * columns * channels;
    for (size_t i = 0; i < sizeof input; i++)
        input[i] = random_byte();
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
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

static void check_bfloat16(const struct tare_pooling *pool, bool average) {
    static uint16_t input[MOST];
    static float floats[MOST], output[MOST + 1], expected[MOST];
    const int64_t count = pool->batch * pool->out[1] * pool->out[2] * pool->channels;
    for (size_t i = 0; i < MOST; i++) {
        input[i] = (uint16_t)(random_byte() << 8 | random_byte());
        if ((input[i] & 0x7f80) == 0x7f80) input[i] = i % 50 == 0 ? 0x7fc0 : i % 50 == 1 ? 0xff80 : 0x8000;
        floats[i] = tare_float_from_bfloat16(input[i]);
    }
    if (average)
        tare_pool_average_f32_at(TARE_CPU_PLAIN, expected, pool, floats);
    else
        tare_pool_max_f32_at(TARE_CPU_PLAIN, expected, pool, floats);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        for (int form = 0; form < 2; form++) {
            memset(output, 0x5a, sizeof output);
            if (form == 0)
                tare_pool_bfloat16_at(level, output, pool, input, average);
            else if (average)
                tare_pool_average_f32_at(level, output, pool, floats);
            else
                tare_pool_max_f32_at(level, output, pool, floats);
            for (int64_t i = 0; i < count; i++)
                assert_true(memcmp(&output[i], &expected[i], sizeof *output) == 0 ||
                            (output[i] != output[i] && expected[i] != expected[i]));
            assert_int_equal(((unsigned char *)&output[count])[0], 0x5a);
        }
    }
}

static void check_means_of_codes(const struct tare_pooling *pool, bool is_signed, const uint8_t *input,
                                 int64_t elements) {
    static float floats[MOST_CODES], output[MOST + 1], expected[MOST];
    const int64_t count = pool->batch * pool->out[1] * pool->out[2] * pool->channels;
    for (int64_t i = 0; i < elements; i++)
        floats[i] = (float)value(input, i, is_signed);
    tare_pool_average_f32_at(TARE_CPU_PLAIN, expected, pool, floats);
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        memset(output, 0x5a, sizeof output);
        tare_pool_average_codes_at(level, output, pool, input, is_signed);
        for (int64_t i = 0; i < count; i++)
            assert_true(output[i] == expected[i] || (output[i] != output[i] && expected[i] != expected[i]));
        assert_int_equal(((unsigned char *)&output[count])[0], 0x5a);
    }
}

static void check_codes(const struct tare_pooling *pool) {
    static uint8_t input[MOST];
    for (size_t i = 0; i < sizeof input; i++)
        input[i] = random_byte();
    check_means_of_codes(pool, true, input, MOST);
    check_means_of_codes(pool, false, input, MOST);
}

static void check_bytes(const struct tare_pooling *pool) {
    check(pool, true);
    check(pool, false);
}

static void check_means_and_maxima(const struct tare_pooling *pool) {
    check_bfloat16(pool, true);
    check_bfloat16(pool, false);
}

/* Lines of a part are those of the whole. */
static void check_lines(const struct tare_pooling *pool) {
    static uint8_t input[MOST], expected[MOST], output[MOST];
    const int64_t line = pool->out[2] * pool->channels, lines = tare_pooling_lines(pool);
    for (size_t i = 0; i < sizeof input; i++)
        input[i] = random_byte();
    assert_int_equal(lines, pool->batch * pool->out[1]);
    tare_pool_max_bytes(expected, pool, input, true);
    for (int64_t at = 0; at < lines;) {
        const int64_t left = pool->out[1] - at % pool->out[1], count = left < 3 ? left : 3;
        struct tare_pooling part;
        const int64_t offset = tare_pooling_take_lines(&part, pool, at, count);
        tare_pool_max_bytes(output + at * line, &part, input + offset, true);
        at += count;
    }
    assert_memory_equal(output, expected, (size_t)(lines * line));
}

static void check_pools(void (*check_pool)(const struct tare_pooling *pool)) {
    static const int64_t channels[] = { 1, 16, 27, 32, 33, 12, 70 };
    for (int i = 0; i < 56; i++) {
        const int64_t size = i < 42 ? 1 + i % 3 : SIZE, stride = 1 + i / 3 % 2, pad = i % 4;
        const int64_t out = (SIZE + 2 * pad - size) / stride + 1;
        const struct tare_pooling pool = { .batch = 1 + i % 2,
                                           .channels = channels[i % 7],
                                           .in = { 1, SIZE, SIZE },
                                           .out = { 1, out, out },
                                           .size = { 1, size, size },
                                           .stride = { 1, stride, stride },
                                           .pad = { 0, pad, pad } };
        check_pool(&pool);
    }
}

static void pool__maxima_of_bytes(void **unused) {
    (void)unused;
    check_pools(check_bytes);
}

static void pool__bfloat16_as_converted(void **unused) {
    (void)unused;
    check_pools(check_means_and_maxima);
}

static void pool__means_of_codes(void **unused) {
    (void)unused;
    check_pools(check_codes);
}

/* Sums of the largest windows that are allowed, of bytes with the largest magnitude. */
static void pool__means_of_many_codes(void **unused) {
    static const uint8_t extremes[] = { 0x80, 0x7f, 0xff };
    static uint8_t input[MOST_CODES];
    const struct tare_pooling pool = { .batch = 1,
                                       .channels = 33,
                                       .in = { 1, LARGE, LARGE },
                                       .out = { 1, 1, 1 },
                                       .size = { 1, LARGE, LARGE },
                                       .stride = { 1, 1, 1 } };
    (void)unused;
    assert_int_equal(LARGE * LARGE, TARE_POOL_MOST_CODES);
    for (size_t i = 0; i < sizeof extremes; i++) {
        memset(input, extremes[i], sizeof input);
        check_means_of_codes(&pool, true, input, MOST_CODES);
        check_means_of_codes(&pool, false, input, MOST_CODES);
    }
}

static void pool__divided_by_lines(void **unused) {
    (void)unused;
    check_pools(check_lines);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(pool__maxima_of_bytes),
                                        cmocka_unit_test(pool__bfloat16_as_converted),
                                        cmocka_unit_test(pool__means_of_codes),
                                        cmocka_unit_test(pool__means_of_many_codes),
                                        cmocka_unit_test(pool__divided_by_lines) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Products of few rows against plain sums, in every form and at every level, for any number of columns and terms;
 * nothing outside the result is written. */
#include "interpreter/kernels/integer/gemv.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t seed = 9;
static uint32_t next(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 9;
}

struct product {
    int64_t m, n, k;
    enum tare_gemv_form form;
    int8_t *a, *b;
    float *x;
    void *packed;
};

static void begin(struct product *p) {
    p->a = malloc((size_t)(p->m * p->k)), p->b = malloc((size_t)(p->k * p->n));
    p->x = malloc((size_t)(p->m * p->k) * sizeof *p->x);
    for (int64_t i = 0; i < p->m * p->k; i++) {
        p->a[i] = (int8_t)(next() % 5 ? (int)(next() % 256) - 128 : next() % 2 ? -128 : 127);
        p->x[i] = (float)((int)(next() % 4001) - 2000) * 0.013f;
    }
    for (int64_t i = 0; i < p->k * p->n; i++)
        p->b[i] = (int8_t)(p->form == TARE_GEMV_NIBBLES ? (int)(next() % 16) - 8
                           : next() % 5                 ? (int)(next() % 256) - 128
                           : next() % 2                 ? -128
                                                        : 127);
    p->b[0] = -8, p->b[p->k * p->n - 1] = (int8_t)(p->form == TARE_GEMV_NIBBLES ? 7 : -128);
    assert_int_equal(tare_gemv_form_of(p->b, p->k * p->n), p->form);
    p->packed = tare_malloc_aligned(tare_gemv_packed_bytes(p->form, p->k, p->n));
    assert_non_null(p->packed);
    tare_gemv_pack(p->packed, p->form, p->b, p->k, p->n);
}

static void end(struct product *p) {
    free(p->a), free(p->b), free(p->x);
    tare_free(p->packed);
}

static void check_at(const struct product *p, enum tare_cpu_level level) {
    const int64_t count = p->m * p->n;
    int32_t *sums = malloc((size_t)(count + 16) * 4);
    float *real = malloc((size_t)(count + 16) * 4);
    void *scratch = tare_malloc_aligned(tare_gemv_scratch_bytes(p->m, p->k));
    memset(sums, 0x5a, (size_t)(count + 16) * 4), memset(real, 0x5a, (size_t)(count + 16) * 4);
    tare_gemv_int_at(level, sums, p->a, p->form, p->packed, p->m, p->n, p->k, NULL, scratch);
    tare_gemv_float_at(level, real, p->x, p->form, p->packed, p->m, p->n, p->k, NULL);
    for (int64_t i = 0; i < count; i++) {
        int32_t sum = 0;
        float chain = 0;
        for (int64_t k = 0; k < p->k; k++) {
            const int8_t w = p->b[k * p->n + i % p->n];
            sum += p->a[i / p->n * p->k + k] * w;
            chain = fmaf(p->x[i / p->n * p->k + k], w, chain);
        }
        if (sums[i] != sum || memcmp(&real[i], &chain, sizeof chain) != 0)
            fail_msg("level %s, form %d, %lld x %lld x %lld: element %lld is %d and %g (expected %d and %g)",
                     tare_cpu_level_name(level), (int)p->form, (long long)p->m, (long long)p->n, (long long)p->k,
                     (long long)i, sums[i], (double)real[i], sum, (double)chain);
    }
    for (int64_t i = 0; i < 64; i++) {
        assert_int_equal(((char *)(sums + count))[i], 0x5a);
        assert_int_equal(((char *)(real + count))[i], 0x5a);
    }
    free(sums), free(real);
    tare_free(scratch);
}

static void gemv__is_the_sum_at_every_level(void **unused) {
    (void)unused;
    static const int64_t columns[] = { 1, 15, 16, 17, 48, 63, 64, 65, 130 }, terms[] = { 1, 3, 4, 5, 8, 11, 64, 301 };
    for (int64_t m = 1; m <= TARE_GEMV_MOST_ROWS; m++)
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
            for (size_t j = 0; j < sizeof terms / sizeof *terms; j++)
                for (int form = TARE_GEMV_BYTES; form <= TARE_GEMV_NIBBLES; form++) {
                    struct product p = { m, columns[i], terms[j], (enum tare_gemv_form)form, NULL, NULL, NULL, NULL };
                    if (form == TARE_GEMV_BYTES && columns[i] * terms[j] < 2) continue;
                    begin(&p);
                    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
                         level = tare_cpu_next_level(level))
                        check_at(&p, level);
                    end(&p);
                }
}

static void gemv__is_for_few_rows_and_large_weights(void **unused) {
    (void)unused;
    assert_true(tare_gemv_is_for(1, 1024, 1024));
    assert_true(tare_gemv_is_for(4, 4096, 512));
    assert_false(tare_gemv_is_for(5, 4096, 4096));
    assert_false(tare_gemv_is_for(1, 1024, 1023));
    assert_false(tare_gemv_is_for(0, 4096, 4096));
    assert_false(tare_gemv_is_for(1, 0, 4096));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemv__is_the_sum_at_every_level),
        cmocka_unit_test(gemv__is_for_few_rows_and_large_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

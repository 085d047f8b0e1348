/* Products in double have the bits of the plain chain, for odd sizes and strides, at every level, and a row does not
 * depend on the other rows. */
#include "interpreter/kernels/gemm_double.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Exactly as large as needed, so that the sanitizers see an access outside. */
static double *new_random(int64_t count, uint64_t seed) {
    double *values = malloc((size_t)(count ? count : 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        values[i] = (double)(int64_t)(seed >> 11) / 4503599627370496.0 - 1;
    }
    return values;
}

enum { TRANSPOSED_A = 1, TRANSPOSED_B = 2 };

static void check(enum tare_cpu_level level, int64_t m, int64_t n, int64_t k, int64_t form) {
    const bool a_transposed = form & TRANSPOSED_A, b_transposed = form & TRANSPOSED_B;
    double *a = new_random(m * k, 1), *b = new_random(k * n, 2), *got = new_random(m * n, 3);
    double *scratch = new_random((int64_t)tare_gemm_double_scratch(k, n), 4);
    const struct tare_gemm_double_matrix left = { a, a_transposed ? 1 : k, a_transposed ? m : 1 };
    const struct tare_gemm_double_matrix right = { b, b_transposed ? 1 : n, b_transposed ? k : 1 };
    tare_gemm_double(level, got, &left, &right, m, n, k, scratch);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum = fma(a[i * left.row + p * left.column], b[p * right.row + j * right.column], sum);
            if (memcmp(&sum, &got[i * n + j], sizeof sum) != 0)
                fail_msg("%s, m=%lld n=%lld k=%lld: element (%lld, %lld) is %.17g, expected %.17g",
                         tare_cpu_level_name(level), (long long)m, (long long)n, (long long)k, (long long)i,
                         (long long)j, got[i * n + j], sum);
        }
    free(a), free(b), free(got), free(scratch);
}

static void gemm_double__bits_of_the_plain_chain_at_every_level(void **unused) {
    (void)unused;
    static const int64_t ns[] = { 1, 7, 8, 9, 15, 16, 17, 33, 50 }, ks[] = { 0, 1, 7, 255, 256, 257 };
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        for (int64_t m = 1; m <= 27; m++)
            check(level, m, ns[m % 9], ks[m % 6], m % 4);
        for (int64_t n = 1; n <= 40; n++) /* small products, with B in place */
            check(level, 1 + n * 7 % 23, n, 1 + n * 5 % 64, n % 4);
        for (int form = 0; form < 4; form++) {
            check(level, 16, 64, 64, form);   /* the largest of them … */
            check(level, 17, 64, 64, form);   /* … and one that is larger */
            check(level, 97, 20, 40, form);   /* a second block of rows */
            check(level, 193, 31, 13, form);  /* a third one */
            check(level, 100, 40, 520, form); /* k is cut twice */
        }
        check(level, 0, 5, 5, 0);
        check(level, 5, 0, 5, 0);
    }
}

static void gemm_double__a_row_is_the_same_bits_in_any_batch(void **unused) {
    (void)unused;
    enum { M = 110, N = 37, K = 300 };
    double *a = new_random(M * K, 5), *b = new_random(K * N, 6), *all = new_random(M * N, 7), *one = new_random(N, 8);
    double *scratch = new_random((int64_t)tare_gemm_double_scratch(K, N), 9);
    const struct tare_gemm_double_matrix right = { b, N, 1 };
    tare_gemm_double(tare_cpu_level(), all, &(struct tare_gemm_double_matrix){ a, K, 1 }, &right, M, N, K, scratch);
    for (int64_t i = 0; i < M; i++) {
        tare_gemm_double(tare_cpu_level(), one, &(struct tare_gemm_double_matrix){ a + i * K, K, 1 }, &right, 1, N, K,
                         scratch);
        assert_memory_equal(one, all + i * N, N * sizeof *one);
    }
    free(a), free(b), free(all), free(one), free(scratch);
}

static void gemm_double__refuses_sizes_that_overflow(void **unused) {
    (void)unused;
    assert_int_equal(tare_gemm_double_scratch(INT64_MAX / 2, 100), 0);
    assert_int_equal(tare_gemm_double_scratch(-1, 4), 0);
    assert_true(tare_gemm_double_scratch(3, 4) >= 48);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_double__bits_of_the_plain_chain_at_every_level),
        cmocka_unit_test(gemm_double__a_row_is_the_same_bits_in_any_batch),
        cmocka_unit_test(gemm_double__refuses_sizes_that_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

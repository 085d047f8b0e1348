/* OpenBLAS runs on the calling thread: loading it leaves no threads that wait, and products of large matrices start
 * none. */
#include "interpreter/kernels/lapack.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int count_threads(void) {
    DIR *folder = opendir("/proc/self/task");
    int count = -2; /* without "." and ".." */
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void open__starts_no_threads(void **state) {
    enum { N = 400 };
    const int before = count_threads();
    double *a = calloc(N * N, sizeof *a), *c = calloc(N * N, sizeof *c);
    (void)state;
    assert_true(a && c);
    assert_int_equal(tare_lapack_open(), TARE_OK);
    assert_int_equal(count_threads(), before);
    for (int i = 0; i < N * N; i++)
        a[i] = i % 7;
    tare_lapack_gemm(TARE_DT_DOUBLE, "NT", N, N, N, a, N, a, N, 1, c, N);
    for (int i = 0; i < N; i += 57) {
        double sum = 0;
        for (int k = 0; k < N; k++)
            sum += a[k * N + i] * a[k * N + 3];
        assert_true(c[3 * N + i] == sum);
    }
    assert_int_equal(tare_lapack_open(), TARE_OK);
    assert_int_equal(count_threads(), before);
    free(a), free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(open__starts_no_threads) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Sums of rows in double at every level: any number of rows and columns, in the order of the rows. */
#include "interpreter/kernels/rowwise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ROWS = 11, MOST_COLUMNS = 23 };

static uint32_t seed = 5;
static float next(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)((int32_t)seed >> 4) * (seed >> 8 & 3 ? 1e-3f : 1e20f); /* so that the order matters */
}

static void rowwise_sum__bits_of_the_plain_loop(void **unused) {
    (void)unused;
    for (int64_t rows = 0; rows <= MOST_ROWS; rows++) {
        for (int64_t columns = 1; columns <= MOST_COLUMNS; columns++) {
            float from[MOST_ROWS * MOST_COLUMNS];
            double expected[MOST_COLUMNS], got[MOST_COLUMNS + 1];
            for (int64_t i = 0; i < rows * columns; i++)
                from[i] = next();
            for (int64_t j = 0; j < columns; j++) {
                expected[j] = (double)j;
                for (int64_t i = 0; i < rows; i++)
                    expected[j] += (double)from[i * columns + j];
            }
            for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level();
                 level = tare_cpu_next_level(level)) {
                for (int64_t j = 0; j <= columns; j++)
                    got[j] = (double)j;
                tare_rowwise_sum_at(level, got, from, rows, columns);
                assert_memory_equal(got, expected, (size_t)columns * sizeof *got);
                assert_true(got[columns] == (double)columns);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rowwise_sum__bits_of_the_plain_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

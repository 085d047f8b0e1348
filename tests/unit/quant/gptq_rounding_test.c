/* Error-compensated rounding: the integers of tests/golden/gptq.py (which goes by the inverse Hessian), and what must
 * hold whatever they are. */
#include "quant/gptq_rounding.h"

#include "base/alloc.h"
#include "base/file.h"
#include "support/draw.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

/* One matrix to round. */
struct problem {
    int rows, columns, block, bits, act_order;
    double damp;
    const float *real;
    const double *hessian, *scales;
    const int8_t *expected;
};

static void take(void *to, const char **at, size_t size) {
    memcpy(to, *at, size);
    *at += size;
}

/* Rounds from all zeros, which any rounding is better than. */
static struct tare_compensated round_columns(int8_t *out, const struct problem *p, int threads, int first, int count) {
    const int blocks = p->block ? (p->rows + p->block - 1) / p->block : 1;
    const struct tare_qscheme scheme = { .bits = p->bits, .symmetric = true, .narrow = true };
    const struct tare_compensation how = { .real = p->real,
                                           .hessian = p->hessian,
                                           .damp = p->damp,
                                           .act_order = p->act_order,
                                           .first = first,
                                           .count = count,
                                           .threads = threads };
    const struct tare_shape shape = { .rank = 2, .dims = { p->rows, p->columns } };
    struct tare_quantized_weight weight = { .scales = (double *)(uintptr_t)p->scales,
                                            .n_blocks = blocks,
                                            .n_scales = blocks * p->columns,
                                            .bits = p->bits,
                                            .layout = { 1, p->rows, p->columns, p->block, false } };
    struct tare_compensated result;
    mini_ok(tare_tensor_new(&weight.values, TARE_DT_INT8, &shape));
    memcpy(weight.values.data, out, (size_t)(p->rows * p->columns));
    mini_ok(tare_round_compensated(&result, &weight, &scheme, &how));
    memcpy(out, weight.values.data, (size_t)(p->rows * p->columns));
    tare_tensor_reset(&weight.values);
    return result;
}

static struct tare_compensated round_problem(int8_t *out, const struct problem *p, int threads) {
    return round_columns(out, p, threads, 0, 0);
}

static const char *next_problem(struct problem *p, const char *at) {
    int32_t head[5];
    take(head, &at, sizeof head);
    *p = (struct problem){ head[0], head[1], head[2], head[3], head[4], 0, NULL, NULL, NULL, NULL };
    const size_t cells = (size_t)(p->rows * p->columns),
                 blocks = p->block ? (size_t)((p->rows + p->block - 1) / p->block) : 1;
    take(&p->damp, &at, sizeof p->damp);
    p->real = memcpy(tare_malloc(4 * cells), at, 4 * cells);
    at += 4 * cells;
    p->hessian = memcpy(tare_malloc(8 * (size_t)(p->rows * p->rows)), at, 8 * (size_t)(p->rows * p->rows));
    at += 8 * p->rows * p->rows;
    p->scales = memcpy(tare_malloc(8 * blocks * (size_t)p->columns), at, 8 * blocks * (size_t)p->columns);
    at += 8 * blocks * (size_t)p->columns;
    p->expected = (const int8_t *)at;
    return at + cells;
}

static void release(struct problem *p) {
    tare_free((void *)(uintptr_t)p->real);
    tare_free((void *)(uintptr_t)p->hessian);
    tare_free((void *)(uintptr_t)p->scales);
}

/* Calls `check` for each case of the golden file. */
static void each(void (*check)(const struct problem *p)) {
    char *data;
    size_t size;
    int32_t count;
    mini_ok(tare_file_read(&data, &size, TARE_SOURCE_DIR "/tests/golden/gptq.values"));
    const char *at = data;
    take(&count, &at, sizeof count);
    assert_in_range(count, 1, 100);
    for (int32_t i = 0; i < count; i++) {
        struct problem p;
        at = next_problem(&p, at);
        check(&p);
        release(&p);
    }
    assert_int_equal(at - data, size);
    tare_free(data);
}

static void check_golden(const struct problem *p) {
    int8_t got[70 * 35] = { 0 };
    round_problem(got, p, 1);
    for (int i = 0; i < p->rows * p->columns; i++)
        if (got[i] != p->expected[i])
            fail_msg("%d x %d, %d bits: row %d column %d is %d, expected %d", p->rows, p->columns, p->bits,
                     i / p->columns, i % p->columns, got[i], p->expected[i]);
}

static void integers__are_those_of_the_inverse_hessian(void **state) {
    (void)state;
    each(check_golden);
}

/* Columns that are rounded in two runs, and some that are not. */
static void check_columns(const struct problem *p) {
    int8_t got[70 * 35] = { 0 };
    const int middle = p->columns / 3 + 1, end = p->columns - 1;
    round_columns(got, p, 1, 0, middle);
    if (middle < end) round_columns(got, p, 1, middle, end - middle);
    for (int i = 0; i < p->rows * p->columns; i++) {
        const int expected = i % p->columns < end ? p->expected[i] : 0;
        if (got[i] != expected)
            fail_msg("row %d column %d is %d, expected %d", i / p->columns, i % p->columns, got[i], expected);
    }
}

static void columns__can_be_rounded_apart(void **state) {
    (void)state;
    each(check_columns);
}

/* More rows than blocks of the factor have, more columns than are rounded together. */
static void threads__change_nothing(void **state) {
    enum { ROWS = 300, COLUMNS = 70 };
    float *real = tare_malloc(ROWS * COLUMNS * sizeof *real);
    double *hessian = tare_calloc(ROWS * ROWS, sizeof *hessian), scales[COLUMNS];
    int8_t *one = tare_calloc(ROWS, COLUMNS), *three = tare_calloc(ROWS, COLUMNS);
    const struct problem p = { ROWS, COLUMNS, 0, 4, 1, 0.01, real, hessian, scales, NULL };
    uint64_t seed = 6;
    (void)state;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        real[i] = (float)(2 * draw_unit(&seed) - 1);
    for (int n = 0; n < COLUMNS; n++)
        scales[n] = 1.0 / 7;
    for (int sample = 0; sample < 400; sample++) {
        double x[ROWS], common = draw_unit(&seed);
        for (int i = 0; i < ROWS; i++)
            x[i] = common + draw_unit(&seed);
        for (int i = 0; i < ROWS * ROWS; i++)
            hessian[i] += x[i / ROWS] * x[i % ROWS];
    }
    round_problem(one, &p, 1);
    round_problem(three, &p, 3);
    assert_memory_equal(one, three, ROWS * COLUMNS);
    tare_free(real);
    tare_free(hessian);
    tare_free(one);
    tare_free(three);
}

/* Σ e' H e by the formula, damping included. */
static double error_of(const struct problem *p, const int8_t *q) {
    double sum = 0, mean = 0;
    for (int i = 0; i < p->rows; i++)
        mean += p->hessian[i * p->rows + i] / p->rows;
    for (int n = 0; n < p->columns; n++) {
        double e[70];
        for (int i = 0; i < p->rows; i++)
            e[i] = (double)p->real[i * p->columns + n] -
                   p->scales[(p->block ? i / p->block : 0) * p->columns + n] * q[i * p->columns + n];
        for (int i = 0; i < p->rows; i++)
            for (int j = 0; j < p->rows; j++)
                sum += e[i] * e[j] * (p->hessian[i * p->rows + j] + (i == j ? p->damp * mean : 0));
    }
    return sum;
}

static void check_better(const struct problem *p) {
    int8_t q[70 * 35];
    const int most = (1 << (p->bits - 1)) - 1;
    for (int i = 0; i < p->rows; i++)
        for (int n = 0; n < p->columns; n++) {
            const double scale = p->scales[(p->block ? i / p->block : 0) * p->columns + n];
            q[i * p->columns + n] = (int8_t)fmin(fmax(round((double)p->real[i * p->columns + n] / scale), -most), most);
        }
    const double nearest = error_of(p, q);
    const struct tare_compensated reported = round_problem(q, p, 2);
    const double gptq = error_of(p, q);
    if (!(fabs(reported.before / nearest - 1) < 1e-9) || !(fabs(reported.after / gptq - 1) < 1e-9) ||
        !(gptq < 0.7 * nearest))
        fail_msg("nearest %g (reported %g), compensated %g (reported %g)", nearest, reported.before, gptq,
                 reported.after);
}

static void the_output_error__is_less_than_that_of_rounding_to_nearest(void **state) {
    (void)state;
    each(check_better);
}

static void a_hessian_of_zeros__leaves_what_is_there(void **state) {
    const float real[4] = { 1, -2, 3, 4 };
    const double hessian[4] = { 0 }, scales[2] = { 1, 1 };
    const struct problem p = { 2, 2, 0, 8, 0, 0.01, real, hessian, scales, NULL };
    int8_t q[4] = { 9, 8, 7, 6 };
    const int8_t same[4] = { 9, 8, 7, 6 };
    (void)state;
    round_problem(q, &p, 1);
    assert_memory_equal(q, same, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers__are_those_of_the_inverse_hessian),
        cmocka_unit_test(columns__can_be_rounded_apart),
        cmocka_unit_test(threads__change_nothing),
        cmocka_unit_test(the_output_error__is_less_than_that_of_rounding_to_nearest),
        cmocka_unit_test(a_hessian_of_zeros__leaves_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

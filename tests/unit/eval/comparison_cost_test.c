/* Estimated times of networks beside what Google's compiler for TPUs says of them. */
#include "support/costed_networks.h"
#include "support/mini_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct costed_row rows[COSTED_MOST_ROWS];
static double seconds[COSTED_MOST_ROWS]; /* estimated; 0: not yet */
static size_t n_rows;

static int chip_of(const char *name) {
    int chip = 0;
    while (strcmp(tare_tpu_chips[chip].name, name) != 0)
        chip++;
    return chip;
}

/* One network is built once for each form and batch; of networks of several layers. */
static void estimate_all(void) {
    for (size_t i = 0; i < n_rows; i++) {
        struct tare_fused_cost cost;
        if (seconds[i] > 0) continue;
        costed_estimate(&cost, rows[i].layers, strcmp(rows[i].form, "int8") == 0, rows[i].batch);
        for (size_t k = i; k < n_rows; k++)
            if (strcmp(rows[k].network, rows[i].network) == 0 && strcmp(rows[k].form, rows[i].form) == 0 &&
                rows[k].batch == rows[i].batch)
                seconds[k] = cost.seconds[chip_of(rows[k].chip)];
    }
}

/* A layer by itself is not judged. */
static bool is_network(const struct costed_row *row) {
    const char *first = strchr(row->layers, ' ');
    return first && strchr(first + 1, ' ');
}

static void read_networks(void) {
    const size_t count = costed_read(rows);
    for (size_t i = 0; i < count; i++)
        if (is_network(&rows[i])) rows[n_rows++] = rows[i];
}

static int set_up(void **state) {
    (void)state;
    read_networks();
    estimate_all();
    return 0;
}

/* ---- comparisons ---- */

/* The chips that most rows are of. One program is cut into 176 pieces by the compiler, of 2,119 cycles each. */
static bool is_judged(const struct costed_row *row) {
    const bool is_cut = strcmp(row->network, "stem5") == 0 && strcmp(row->chip, "v6e") == 0 && row->batch == 8;
    return !is_cut && (strcmp(row->chip, "v5e") == 0 || strcmp(row->chip, "v6e") == 0);
}

static double clock_of(const char *chip) {
    return strcmp(chip, "v5e") == 0 ? 1.5e9 : 1.75e9;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rank_of(const double *values, size_t count, double value) {
    double rank = 0;
    for (size_t i = 0; i < count; i++)
        rank += values[i] < value ? 1 : values[i] == value ? 0.5 : 0;
    return rank;
}

static double spearman(const double *x, const double *y, size_t count) {
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < count; i++) {
        const double a = rank_of(x, count, x[i]) - (double)count / 2, b = rank_of(y, count, y[i]) - (double)count / 2;
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    return xy / sqrt(xx * yy);
}

static void times_above_20_microseconds__are_within_a_factor_of_two(void **state) {
    (void)state;
    for (size_t i = 0; i < n_rows; i++) {
        const double told = rows[i].cycles / clock_of(rows[i].chip), ratio = seconds[i] / told;
        if (!is_judged(&rows[i]) || told < 20e-6) continue;
        if (ratio < 0.5 || ratio > 2)
            fail_msg("%s %s on %s, batch %ld: %.3g µs, estimated %.3g", rows[i].network, rows[i].form, rows[i].chip,
                     (long)rows[i].batch, 1e6 * told, 1e6 * seconds[i]);
    }
}

struct quotients {
    double told[COSTED_MOST_ROWS], estimated[COSTED_MOST_ROWS], wrong[COSTED_MOST_ROWS];
    size_t count;
};

/* int8 ÷ bfloat16, of a network on a chip. */
static void add_quotient(struct quotients *q, size_t real, size_t integer) {
    const struct costed_row *f = &rows[real], *i = &rows[integer];
    if (strcmp(f->chip, i->chip) != 0 || f->batch != i->batch || strcmp(f->network, i->network) != 0) return;
    if (!is_judged(f) || strcmp(f->form, "bf16") != 0 || strcmp(i->form, "int8") != 0) return;
    q->told[q->count] = i->cycles / f->cycles;
    q->estimated[q->count] = seconds[integer] / seconds[real];
    q->wrong[q->count] = q->estimated[q->count] / q->told[q->count];
    print_message("%s %s %ld: %.2f, estimated %.2f\n", f->network, f->chip, (long)f->batch, q->told[q->count],
                  q->estimated[q->count]);
    q->count++;
}

/* The advice follows from it. */
static void the_quotient_of_int8_and_bfloat16__is_the_compilers(void **state) {
    static struct quotients q;
    size_t near = 0;
    (void)state;
    for (size_t i = 0; i < n_rows; i++)
        for (size_t k = 0; k < n_rows; k++)
            add_quotient(&q, i, k);
    for (size_t i = 0; i < q.count; i++)
        near += q.wrong[i] > 0.7 && q.wrong[i] < 1.4;
    qsort(q.wrong, q.count, sizeof *q.wrong, by_size);
    print_message("%zu networks, %zu of them 0.7 to 1.4, median %.2f, rank correlation %.2f\n", q.count, near,
                  q.wrong[q.count / 2], spearman(q.told, q.estimated, q.count));
    assert_true(q.count >= 50 && 100 * near >= 95 * q.count);
    assert_true(q.wrong[q.count / 2] > 0.9 && q.wrong[q.count / 2] < 1.1);
    assert_true(spearman(q.told, q.estimated, q.count) > 0.85);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_above_20_microseconds__are_within_a_factor_of_two),
        cmocka_unit_test(the_quotient_of_int8_and_bfloat16__is_the_compilers),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

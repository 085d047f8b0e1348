/* Numbers by example: the same values whatever their number, in memory that does not grow with it. */
#include "eval/auc.h"
#include "eval/reference_store.h"
#include "eval/series.h"
#include "eval/significance.h"
#include "support/mini_model.h"
#include "support/temp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beyond the windows of the files, the kernel maps pages around each access: up to 9 MB were seen. The values have 24
 * MB. */
enum { MANY = 3000000, RECORDS = 300000, SORTED = 1000003, MOST_GROWTH = 16 << 20 };

/* Begins a new measurement of the largest resident memory. */
static void reset_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) skip(); /* a kernel without it */
    fputs("5", file);
    fclose(file);
}

static size_t peak(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    size_t kibibytes = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %zu", &kibibytes) == 1) break;
    fclose(file);
    assert_true(kibibytes > 0);
    return kibibytes << 10;
}

static size_t begin_measuring(void) {
    reset_peak();
    return peak();
}

/* Under AddressSanitizer its shadow and the blocks that it keeps count, too. */
static void check_growth(const char *what, size_t before) {
#if defined(__SANITIZE_ADDRESS__)
    before = SIZE_MAX / 2;
#endif
    const size_t most = peak();
    if (most > before + MOST_GROWTH)
        fail_msg("%s: %zu MB more in memory (expected at most %d)", what, (most - before) >> 20, MOST_GROWTH >> 20);
}

static double value_at(size_t i) {
    return (double)(i * 2654435761u % 1000003) / 1000003;
}

/* Few values are in memory, so that an evaluation of few records runs where no file can be created. */
static void series__is_in_the_folder_of_temporary_files(void **state) {
    struct tare_series series = { 0 };
    tare_status status = TARE_OK;
    (void)state;
    setenv("TMPDIR", temp_path("nowhere"), 1);
    for (size_t i = 0; i < MANY / 100; i++)
        mini_ok(tare_series_add(&series, value_at(i)));
    while (series.count < MANY && status == TARE_OK)
        status = tare_series_add(&series, 0);
    mini_fails(status, "cannot create a temporary file of the evaluation: No such file or directory");
    setenv("TMPDIR", temp_folder(), 1);
    for (size_t i = series.count; i < MANY; i++)
        mini_ok(tare_series_add(&series, value_at(i)));
    unsetenv("TMPDIR");
    for (size_t i = 0; i < MANY / 100; i++)
        assert_true(series.values[i] == value_at(i));
    tare_series_reset(&series);
}

static void series__has_every_value_and_bounded_memory(void **state) {
    struct tare_series series = { 0 };
    double low, high, sum = 0;
    (void)state;
    const size_t before = begin_measuring();
    for (size_t i = 0; i < MANY; i++)
        mini_ok(tare_series_add(&series, value_at(i)));
    check_growth("adding", before); /* 24 MB of values, 48 MB of room */
    tare_mean_interval(&low, &high, &series);
    check_growth("the interval of the mean", before);
    for (size_t i = 0; i < MANY; i++) {
        if (series.values[i] != value_at(i)) fail_msg("value %zu is %g", i, series.values[i]);
        sum += series.values[i];
    }
    if (!(low < sum / MANY && sum / MANY < high && high - low < 1e-3)) fail_msg("%g to %g", low, high);
    tare_series_reset(&series);
}

static void paired_means__of_series_in_files_are_those_in_memory(void **state) {
    static double a[30000], b[30000];
    struct tare_series x = { 0 }, y = { 0 };
    (void)state;
    for (size_t i = 0; i < 30000; i++) {
        a[i] = i % 1000 == 7 ? NAN : value_at(i);
        b[i] = value_at(i + 5);
        mini_ok(tare_series_add(&x, a[i]));
        mini_ok(tare_series_add(&y, b[i]));
    }
    const struct tare_series a_series = { a, 30000, 0 }, b_series = { b, 30000, 0 };
    struct tare_paired in_files, in_memory;
    tare_paired_means(&in_files, &x, &y, TARE_TAIL_95);
    tare_paired_means(&in_memory, &a_series, &b_series, TARE_TAIL_95);
    assert_true(in_files.loss == in_memory.loss && in_files.low == in_memory.low && in_files.high == in_memory.high);
    assert_int_equal(in_files.examples, 30000 - 30);
    y.count--;
    tare_paired_means(&in_files, &x, &y, TARE_TAIL_95);
    assert_true(isnan(in_files.high));
    tare_series_reset(&x);
    tare_series_reset(&y);
}

static void references__of_many_records_are_not_in_memory(void **state) {
    const struct tare_shape shape = { .rank = 1, .dims = { 10 } };
    struct tare_reference_store store = { .n_outputs = 2 };
    struct tare_tensor outputs[2];
    (void)state;
    mini_ok(tare_tensor_new(&outputs[0], TARE_DT_FLOAT, &shape));
    mini_ok(tare_tensor_new(&outputs[1], TARE_DT_STRING, &shape));
    memset(outputs[0].data, 0, tare_tensor_bytes(&outputs[0]));
    for (int64_t i = 0; i < 10; i++)
        mini_ok(tare_tensor_set_string(&outputs[1], i, "a class", 7));
    const size_t before = begin_measuring();
    for (int64_t record = 0; record < RECORDS; record++) {
        TARE_DATA(float, &outputs[0])[3] = (float)record;
        mini_ok(tare_reference_store_add(&store, outputs));
    }
    check_growth("adding", before); /* 200 MB of outputs */
    for (int64_t record = 0; record < RECORDS; record++) {
        const struct tare_tensor *kept = tare_reference_store_get(&store, record);
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, &kept[1])[9];
        if (TARE_CONST_DATA(float, &kept[0])[3] != (float)record || memcmp(text->data, "a class", 7) != 0)
            fail_msg("record %lld is another one", (long long)record);
    }
    check_growth("reading", before);
    tare_reference_store_free(&store);
    tare_tensor_reset(&outputs[0]);
    tare_tensor_reset(&outputs[1]);
}

static void auc__of_many_scores_leaves_memory(void **state) {
    struct tare_auc auc = { 0 };
    (void)state;
    const size_t before = begin_measuring();
    for (size_t i = 0; i < MANY; i++)
        mini_ok(tare_auc_add(&auc, value_at(i), value_at(i) > 0.5));
    check_growth("adding", before); /* 120 MB of scores and ranks */
    tare_auc_finish(&auc);
    assert_float_equal(tare_auc_value(&auc), 1, 1e-12);
    check_growth("the area", before);
    tare_auc_reset(&auc);
}

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Orders that quicksorts are slow for, next to others. */
static int64_t number_of(int order, int64_t i) {
    const int64_t scattered = i * 2654435761 % SORTED;
    const int64_t numbers[] = { scattered, i, SORTED - i, scattered % 3, 7, i < SORTED / 2 ? i : SORTED - i, i % 1000 };
    return numbers[order];
}

static void sort__of_any_order_in_little_memory(void **state) {
    static int64_t expected[SORTED];
    (void)state;
    for (int order = 0; order < 7; order++) {
        int64_t *numbers = NULL;
        size_t count = 0, capacity = 0;
        for (; count < SORTED; count++) {
            mini_ok(TARE_SPILL_GROW(numbers, count, capacity));
            numbers[count] = expected[count] = number_of(order, (int64_t)count);
        }
        qsort(expected, SORTED, sizeof *expected, by_number);
        const size_t before = begin_measuring();
        tare_spill_sort(numbers, count, capacity, sizeof *numbers, by_number);
        check_growth("sorting", before);
        for (size_t i = 0; i < SORTED; i++)
            if (numbers[i] != expected[i]) fail_msg("order %d: number %zu is %lld", order, i, (long long)numbers[i]);
        tare_spill_free(numbers, capacity, sizeof *numbers);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(series__is_in_the_folder_of_temporary_files),
        cmocka_unit_test(series__has_every_value_and_bounded_memory),
        cmocka_unit_test(paired_means__of_series_in_files_are_those_in_memory),
        cmocka_unit_test(references__of_many_records_are_not_in_memory),
        cmocka_unit_test(auc__of_many_scores_leaves_memory),
        cmocka_unit_test(sort__of_any_order_in_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

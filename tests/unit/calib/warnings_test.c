/* Warnings and convergence of small calibrations whose contents are known. */
#include "calib/warnings.h"

#include "base/alloc.h"
#include "calib/convergence.h"
#include "calib/tally.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static const uint64_t fingerprint[2] = { 1, 2 };
static struct tare_tally *tally;

static int set_up(void **state) {
    (void)state;
    tally = tare_tally_new();
    return !tally;
}
static int tear_down(void **state) {
    (void)state;
    tare_tally_free(tally);
    return 0;
}

static struct tare_calibration *make(int records) {
    struct tare_calibration *c = tare_calibration_new(fingerprint, "observe=quantizable", false);
    assert_non_null(c);
    assert_int_equal(tare_calibration_add_input(c, "serving_default", "a.tfrecord", NULL), TARE_OK);
    if (records > 0) assert_int_equal(tare_record_set_add(&c->inputs[0].records, 0, records), TARE_OK);
    return c;
}

static void see(struct tare_calibration *c, const char *function, const char *node, int64_t record, float a, float b) {
    struct tare_calibration_tensor *tensor;
    const float values[] = { a, b };
    const struct tare_place place = { 0, record, record };
    struct tare_shape shape = tare_shape_make(2, 1, 2);
    struct tare_tensor value;
    assert_int_equal(tare_calibration_add_tensor(c, function, node, 0, &tensor), TARE_OK);
    assert_int_equal(tare_tensor_wrap(&value, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(&tensor->statistics, tally, &value, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
    tare_tensor_reset(&value);
}

static void assert_warnings(const struct tare_calibration *c, const char *const (*expected)[2], size_t count) {
    struct tare_calibration_warning_list list;
    assert_int_equal(tare_calibration_warnings(&list, c), TARE_OK);
    for (size_t i = 0; i < list.count && i < count; i++) {
        assert_string_equal(list.items[i].kind, expected[i][0]);
        assert_string_equal(list.items[i].text, expected[i][1]);
    }
    if (list.count != count)
        fail_msg("%zu warnings (expected %zu), the next: %s", list.count, count,
                 list.count > count ? list.items[count].text : expected[list.count][1]);
    tare_calibration_warning_list_free(&list);
}

static void good_calibration__has_no_warning(void **state) {
    (void)state;
    struct tare_calibration *c = make(200);
    for (int r = 0; r < 200; r++)
        see(c, "", "x", r, -1 - (float)(r % 7) / 100, 1 + (float)(r % 5) / 100);
    assert_warnings(c, NULL, 0);
    tare_calibration_free(c);
}

static void few_records__are_counted_by_signature(void **state) {
    (void)state;
    struct tare_calibration *c = make(199);
    assert_int_equal(tare_calibration_add_input(c, "other", "a", NULL), TARE_OK);
    assert_int_equal(tare_calibration_add_input(c, "other", "b", NULL), TARE_OK);
    assert_int_equal(tare_record_set_add(&c->inputs[0].records, 5, 105), TARE_OK);
    assert_int_equal(tare_record_set_add(&c->inputs[1].records, 0, 100), TARE_OK);
    static const char *const expected[][2] = {
        { "few_records", "only 199 records of signature 'serving_default' (200 or more are advised)" },
    };
    assert_warnings(c, expected, 1);
    tare_calibration_free(c);
}

static void no_record__is_all_there_is_to_say(void **state) {
    (void)state;
    struct tare_calibration *c = make(0);
    static const char *const expected[][2] = { { "no_records", "no record was counted" } };
    assert_int_equal(tare_calibration_add_tensor(c, "", "x", 0, NULL), TARE_OK);
    assert_warnings(c, expected, 1);
    tare_calibration_free(c);
}

static void bad_records__are_told_by_file(void **state) {
    (void)state;
    struct tare_calibration *c = make(200);
    struct tare_calibration_bad bad[] = {
        { 9, 900, (char[]){ "corrupt" }, (char[]){ "record 9: corrupted record at 900" } },
        { 4, 400, (char[]){ "refused" }, (char[]){ "record 4: key 'x' is missing" } }
    };
    for (int i = 0; i < 2; i++)
        assert_int_equal(tare_calibration_add_bad(c, 0, &bad[i]), TARE_OK);
    static const char *const expected[][2] = {
        { "bad_records", "2 records of 'a.tfrecord' passed over; the first: record 4: key 'x' is missing" },
    };
    assert_warnings(c, expected, 1);
    tare_calibration_free(c);
}

static void unfinished_run__is_told_first(void **state) {
    (void)state;
    struct tare_calibration *c = make(0);
    static const char *const expected[][2] = {
        { "unfinished", "this is the state of an interrupted run (calibrate --resume goes on with it)" },
        { "no_records", "no record was counted" },
    };
    c->unfinished = tare_strdup("limit 5");
    assert_warnings(c, expected, 2);
    tare_calibration_free(c);
}

static void set_function(struct tare_calibration *c, const char *name, int64_t records) {
    struct tare_calibration_function *function;
    assert_int_equal(tare_calibration_add_function(c, name, &function), TARE_OK);
    function->records = records;
}

static void unreached_sides__are_named_and_what_is_inside_them_is_not(void **state) {
    (void)state;
    struct tare_calibration *c = make(300);
    struct tare_coverage *coverage = &c->coverage;
    set_function(c, "f_then", 300);
    set_function(c, "f_else", 0);
    set_function(c, "inner_then", 0); /* of an If inside f_else */
    set_function(c, "inner_else", 0);
    set_function(c, "loop_body", 0);
    set_function(c, "loop_cond", 300);
    assert_int_equal(tare_coverage_add(coverage, "", "cond", "StatelessIf", 0, "f_then"), TARE_OK);
    assert_int_equal(tare_coverage_add(coverage, "", "cond", "StatelessIf", 1, "f_else"), TARE_OK);
    assert_int_equal(tare_coverage_add(coverage, "f_else", "inner", "If", 0, "inner_then"), TARE_OK);
    assert_int_equal(tare_coverage_add(coverage, "f_else", "inner", "If", 1, "inner_else"), TARE_OK);
    assert_int_equal(tare_coverage_add(coverage, "f_then", "loop", "While", 0, "loop_cond"), TARE_OK);
    assert_int_equal(tare_coverage_add(coverage, "f_then", "loop", "While", 1, "loop_body"), TARE_OK);
    assert_int_equal(tare_coverage_add(coverage, "f_then", "other", "If", 0, "loop_cond"), TARE_OK); /* shared */
    assert_int_equal(tare_coverage_add(coverage, "f_then", "other", "If", 1, "f_then"), TARE_OK);
    tare_coverage_count(coverage, "", "cond", 0, 300);
    tare_coverage_count(coverage, "f_then", "loop", 0, 300);
    tare_coverage_count(coverage, "f_then", "other", 1, 300);
    assert_int_equal(tare_calibration_add_tensor(c, "f_else", "conv", 0, NULL), TARE_OK);
    assert_int_equal(tare_calibration_add_tensor(c, "f_else", "dense", 0, NULL), TARE_OK);
    assert_int_equal(tare_calibration_add_tensor(c, "f_then", "skipped", 1, NULL), TARE_OK);
    static const char *const expected[][2] = {
        { "unreached_side",
          "no record took the else of StatelessIf 'cond' (function 'f_else'): its 2 observed tensors have no range" },
        { "unreached_side", "no record took the body of While 'loop' in function 'f_then' (function 'loop_body')" },
        { "unreached_side",
          "no record took the then of If 'other' in function 'f_then' (function 'loop_cond', which other nodes run)" },
        { "unreached_tensor", "1 observed tensor no record computed: 'skipped:1' of function 'f_then'" },
    };
    assert_warnings(c, expected, 4);
    tare_calibration_free(c);
}

static void unreached_functions__are_named_if_they_have_observed_tensors(void **state) {
    (void)state;
    struct tare_calibration *c = make(300);
    set_function(c, "used", 300);
    set_function(c, "sum", 0); /* of a reduction that is computed without it */
    set_function(c, "two", 0);
    set_function(c, "one", 0);
    assert_int_equal(tare_calibration_add_tensor(c, "two", "conv", 0, NULL), TARE_OK);
    assert_int_equal(tare_calibration_add_tensor(c, "two", "dense", 0, NULL), TARE_OK);
    assert_int_equal(tare_calibration_add_tensor(c, "one", "conv", 0, NULL), TARE_OK);
    static const char *const expected[][2] = {
        { "unreached_function", "no record reached function 'one' (1 observed tensor)" },
        { "unreached_function", "no record reached function 'two' (2 observed tensors)" },
    };
    assert_warnings(c, expected, 2);
    tare_calibration_free(c);
}

static void not_finite_values__are_named_by_their_first_record(void **state) {
    (void)state;
    struct tare_calibration *c = make(200);
    const char *const names[] = { "a", "b", "c", "d", "e", "f", "g" };
    for (int r = 0; r < 200; r++) {
        for (int t = 0; t < 7; t++)
            see(c, "", names[t], r, r == 17 || (r == 40 && t == 0) ? NAN : -1, r % 2 ? 1 : 0.5f);
        see(c, "fn", "log", r, r == 3 ? -INFINITY : 0, r % 2 ? 1 : 0.5f);
    }
    set_function(c, "fn", 200);
    static const char *const expected[][2] = {
        { "nan", "NaN in record 17 of 'a.tfrecord', the first in 7 tensors: 'a:0', 'b:0', 'c:0', 'd:0' and 3 more" },
        { "infinity", "infinity in record 3 of 'a.tfrecord', the first in 1 tensor: 'log:0' of function 'fn'" },
    };
    assert_warnings(c, expected, 2);
    tare_calibration_free(c);
}

static void outlier__is_named_with_the_range_without_it(void **state) {
    (void)state;
    struct tare_calibration *c = make(200);
    for (int r = 0; r < 200; r++) {
        float top = 5 + (float)(r % 11) / 100;
        see(c, "", "conv", r, -1, r == 120 ? 900 : top);
        see(c, "", "relu", r, 0, r == 120 ? 9 : top);
        see(c, "", "twice", r, 0, r == 120 || r == 121 ? 900 : top); /* two records agree */
    }
    static const char *const expected[][2] = {
        { "outlier", "record 120 of 'a.tfrecord' alone sets the range of 2 tensors: 'conv:0' has -1 … 900, without it "
                     "-1 … 5.1" },
    };
    assert_warnings(c, expected, 1);
    struct tare_range_without range;
    assert_true(tare_statistics_range_without(&range, &tare_calibration_find(c, "", "relu", 0)->statistics));
    assert_true(range.record == 120 && range.low == 0 && fabs(range.high - 5.1) < 1e-6 &&
                fabs(range.share - 5.1 / 9) < 1e-6);
    tare_calibration_free(c);
}

/* Zero belongs to every range: 100 … 104 and 100 … 110 are nearly the same one. */
static void outlier__counts_only_with_zero_in_the_range(void **state) {
    (void)state;
    struct tare_calibration *c = make(200);
    for (int r = 0; r < 200; r++)
        see(c, "", "x", r, 100, r == 7 ? 110 : 104);
    assert_warnings(c, NULL, 0);
    tare_calibration_free(c);
}

static void outlier__needs_other_records_to_differ_from(void **state) {
    (void)state;
    for (int records = 9; records <= 10; records++) {
        struct tare_calibration *c = make(records);
        for (int r = 0; r < records; r++)
            see(c, "", "x", r, -1, r == 4 ? 50 : 1);
        struct tare_calibration_warning_list list;
        assert_int_equal(tare_calibration_warnings(&list, c), TARE_OK);
        assert_int_equal(list.count, records == 9 ? 1 : 2);
        assert_string_equal(list.items[0].kind, records == 9 ? "few_records" : "outlier");
        tare_calibration_warning_list_free(&list);
        tare_calibration_free(c);
    }
}

static void constants__are_named(void **state) {
    (void)state;
    struct tare_calibration *c = make(200);
    for (int r = 0; r < 200; r++) {
        see(c, "", "dead", r, 0, 0);
        see(c, "", "alive", r, 0, r == 5 ? 1 : 0.9f);
    }
    static const char *const expected[][2] = {
        { "constant", "1 tensor with one value only (where it is a state that the model returns: --feedback "
                      "OUTPUT=INPUT): 'dead:0'" }
    };
    assert_warnings(c, expected, 1);
    tare_calibration_free(c);
}

static void convergence__has_the_range_of_the_first_records(void **state) {
    (void)state;
    struct tare_calibration *c = make(100);
    struct tare_convergence_point points[TARE_STATISTICS_BUCKETS];
    for (int r = 0; r < 100; r++)
        see(c, "", "x", r, -(float)r, 1);
    const struct tare_statistics *s = &tare_calibration_find(c, "", "x", 0)->statistics;
    size_t count = tare_convergence(points, s);
    assert_int_equal(count, 8); /* 1, 2, 4 … 128 */
    for (size_t i = 0; i < count; i++) {
        int64_t seen = points[i].records < 100 ? points[i].records : 100;
        assert_int_equal(points[i].records, (int64_t)1 << i);
        assert_true(points[i].low == (double)(1 - seen) && points[i].high == 1);
        assert_true(points[i].share == (double)seen / 100);
    }
    assert_int_equal(tare_convergence_records(points, count, 0.99), 128);
    assert_int_equal(tare_convergence_records(points, count, 0.5), 64);
    assert_int_equal(tare_convergence_records(points, count, 0.01), 1);
    tare_calibration_free(c);
}

static void convergence__of_nothing_has_no_point(void **state) {
    (void)state;
    struct tare_convergence_point points[TARE_STATISTICS_BUCKETS];
    struct tare_statistics s = { .samples = 0 };
    assert_int_equal(tare_convergence(points, &s), 0);
    assert_int_equal(tare_convergence_records(points, 0, 0.99), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_calibration__has_no_warning),
        cmocka_unit_test(few_records__are_counted_by_signature),
        cmocka_unit_test(no_record__is_all_there_is_to_say),
        cmocka_unit_test(unfinished_run__is_told_first),
        cmocka_unit_test(bad_records__are_told_by_file),
        cmocka_unit_test(unreached_sides__are_named_and_what_is_inside_them_is_not),
        cmocka_unit_test(unreached_functions__are_named_if_they_have_observed_tensors),
        cmocka_unit_test(not_finite_values__are_named_by_their_first_record),
        cmocka_unit_test(outlier__is_named_with_the_range_without_it),
        cmocka_unit_test(outlier__counts_only_with_zero_in_the_range),
        cmocka_unit_test(outlier__needs_other_records_to_differ_from),
        cmocka_unit_test(constants__are_named),
        cmocka_unit_test(convergence__has_the_range_of_the_first_records),
        cmocka_unit_test(convergence__of_nothing_has_no_point),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

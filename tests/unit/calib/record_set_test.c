/* Sets of records: runs that grow together, and refusal of what is there already. */
#include "calib/record_set.h"

#include "support/draw.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static void record_set__runs_join_whatever_the_order(void **state) {
    (void)state;
    struct tare_record_set set = { 0 };
    const int64_t order[] = { 4, 2, 0, 1, 3, 7, 6 };
    for (int i = 0; i < 7; i++)
        assert_int_equal(tare_record_set_add(&set, order[i], order[i] + 1), TARE_OK);
    assert_int_equal(set.count, 2);
    assert_int_equal(set.runs[0].first, 0);
    assert_int_equal(set.runs[0].end, 5);
    assert_int_equal(set.runs[1].first, 6);
    assert_int_equal(set.runs[1].end, 8);
    assert_int_equal(tare_record_set_size(&set), 7);
    assert_false(tare_record_set_has(&set, 5));
    assert_true(tare_record_set_has(&set, 7));
    assert_int_equal(tare_record_set_add(&set, 5, 6), TARE_OK);
    assert_int_equal(set.count, 1);
    tare_record_set_free(&set);
}

static void record_set__a_record_is_counted_once(void **state) {
    (void)state;
    struct tare_record_set set = { 0 }, other = { 0 };
    assert_int_equal(tare_record_set_add(&set, 3, 10), TARE_OK);
    assert_int_equal(tare_record_set_add(&set, 0, 4), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "record 3 is counted already");
    assert_int_equal(tare_record_set_add(&set, 15, 15), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_record_set_add(&other, 0, 2), TARE_OK);
    assert_int_equal(tare_record_set_add(&other, 9, 12), TARE_OK);
    assert_int_equal(tare_record_set_common(&set, &other), 9);
    assert_int_equal(tare_record_set_merge(&set, &other), TARE_INVALID_ARGUMENT);
    assert_int_equal(tare_record_set_size(&set), 7);
    tare_record_set_free(&set);
    tare_record_set_free(&other);
}

static void record_set__merging_random_parts_gives_the_whole(void **state) {
    (void)state;
    uint64_t seed = 2;
    struct tare_record_set parts[3] = { { 0 } }, whole = { 0 };
    for (int64_t i = 0; i < 500; i++)
        assert_int_equal(tare_record_set_add(&parts[draw_bits(&seed) % 3], i, i + 1), TARE_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tare_record_set_merge(&whole, &parts[i]), TARE_OK);
    assert_int_equal(whole.count, 1);
    assert_int_equal(tare_record_set_size(&whole), 500);
    for (int i = 0; i < 3; i++)
        tare_record_set_free(&parts[i]);
    tare_record_set_free(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_set__runs_join_whatever_the_order),
        cmocka_unit_test(record_set__a_record_is_counted_once),
        cmocka_unit_test(record_set__merging_random_parts_gives_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

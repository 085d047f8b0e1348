/* The switches that tests have over allocations. */
#include "base/alloc.h"
#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void largest__is_what_was_asked_for_since_the_last_call(void **state) {
    void *small, *large;
    (void)state;
    tare_alloc_largest();
    small = tare_malloc(10);
    large = tare_calloc(100, 20);
    assert_int_equal(tare_alloc_largest(), 2000);
    assert_int_equal(tare_alloc_largest(), 0);
    large = tare_realloc(large, 5, 30);
    assert_int_equal(tare_alloc_largest(), 150);
    tare_free(small);
    tare_free(large);
}

static void largest__counts_what_was_refused(void **state) {
    (void)state;
    tare_alloc_largest();
    assert_null(tare_calloc(SIZE_MAX / 2, 4));
    assert_true(tare_alloc_largest() == SIZE_MAX);
    tare_alloc_fail_at(1);
    assert_null(tare_malloc(77));
    tare_alloc_fail_at(0);
    assert_int_equal(tare_alloc_largest(), 77);
    tare_error_clear();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(largest__is_what_was_asked_for_since_the_last_call),
        cmocka_unit_test(largest__counts_what_was_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

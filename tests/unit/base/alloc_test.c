/* The switches that tests have over allocations. */
#include "base/alloc.h"
#include "base/control.h"
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

/* A report survives a failed allocation; the call that made it does not, and says which it was. */
static void a_failure_that_is_found_later__has_its_size(void **state) {
    struct tare_control control = { 0 };
    (void)state;
    tare_control_set(&control);
    tare_alloc_fail_at(1);
    assert_null(tare_malloc(77));
    tare_alloc_fail_at(0);
    tare_error_clear();
    assert_int_equal(tare_control_verify(), TARE_NO_MEMORY);
    assert_string_equal(tare_error_text(), "out of memory (expected 77 bytes)");
    tare_control_set(&control);
    tare_alloc_set_limit(1000);
    assert_null(tare_malloc(2000));
    tare_error_clear();
    assert_int_equal(tare_control_verify(), TARE_NO_MEMORY);
    assert_string_equal(tare_error_text(), "2000 bytes more than the memory limit allows (expected at most 1000)");
    tare_alloc_set_limit(0);
    tare_control_set(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(largest__is_what_was_asked_for_since_the_last_call),
        cmocka_unit_test(largest__counts_what_was_refused),
        cmocka_unit_test(a_failure_that_is_found_later__has_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

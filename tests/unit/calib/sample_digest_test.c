/* Digests of samples: sets that do not depend on the order of the samples or on how they were divided, and whose size
 * is bounded. */
#include "calib/sample_digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static uint64_t digest_of(float *values, int rank, int64_t rows, int64_t columns) {
    struct tare_shape shape = tare_shape_make(rank, rows, columns);
    struct tare_tensor tensor;
    uint64_t digest;
    assert_int_equal(tare_tensor_wrap(&tensor, TARE_DT_FLOAT, &shape, values, NULL, NULL), TARE_OK);
    digest = tare_sample_digest(&tensor, 1);
    tare_tensor_reset(&tensor);
    return digest;
}

static void digest__depends_on_shape_and_elements(void **state) {
    (void)state;
    float a[6] = { 1, 2, 3, 4, 5, 6 }, b[6] = { 1, 2, 3, 4, 5, 6 };
    assert_true(digest_of(a, 2, 2, 3) == digest_of(b, 2, 2, 3));
    assert_false(digest_of(a, 2, 2, 3) == digest_of(a, 2, 3, 2));
    b[5] = 7;
    assert_false(digest_of(a, 2, 2, 3) == digest_of(b, 2, 2, 3));
}

static void digest__does_not_join_strings(void **state) {
    (void)state;
    struct tare_str one[2] = { { .data = "ab", .size = 2 }, { .data = "c", .size = 1 } };
    struct tare_str two[2] = { { .data = "a", .size = 1 }, { .data = "bc", .size = 2 } };
    struct tare_shape shape = tare_shape_make(1, 2);
    struct tare_tensor x, y;
    assert_int_equal(tare_tensor_wrap(&x, TARE_DT_STRING, &shape, one, NULL, NULL), TARE_OK);
    assert_int_equal(tare_tensor_wrap(&y, TARE_DT_STRING, &shape, two, NULL, NULL), TARE_OK);
    assert_false(tare_sample_digest(&x, 1) == tare_sample_digest(&y, 1));
    tare_tensor_reset(&x);
    tare_tensor_reset(&y);
}

/* Digest i of 200,000; every value comes twice. */
static uint64_t digest_at(size_t i) {
    uint64_t x = (uint64_t)(i / 2) + 1;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static void assert_same(const struct tare_digest_set *a, const struct tare_digest_set *b) {
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->items, b->items, a->count * sizeof *a->items);
}

static void set__order_and_parts_leave_no_trace(void **state) {
    (void)state;
    for (size_t n = 10; n <= 200000; n *= 20000) {
        struct tare_digest_set whole = { 0 }, backward = { 0 }, parts[3] = { { 0 } };
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(tare_digest_set_add(&whole, digest_at(i)), TARE_OK);
            assert_int_equal(tare_digest_set_add(&backward, digest_at(n - 1 - i)), TARE_OK);
            assert_int_equal(tare_digest_set_add(&parts[i % 3], digest_at(i)), TARE_OK);
        }
        tare_digest_set_finish(&whole);
        tare_digest_set_finish(&backward);
        assert_same(&whole, &backward);
        for (size_t i = 0; i < 3; i++)
            tare_digest_set_finish(&parts[i]);
        assert_int_equal(tare_digest_set_merge(&parts[2], &parts[0]), TARE_OK);
        assert_int_equal(tare_digest_set_merge(&parts[2], &parts[1]), TARE_OK);
        assert_same(&whole, &parts[2]);
        assert_int_equal(whole.count, n / 2 > TARE_DIGESTS_MOST ? TARE_DIGESTS_MOST : n / 2);
        tare_digest_set_free(&whole);
        tare_digest_set_free(&backward);
        for (size_t i = 0; i < 3; i++)
            tare_digest_set_free(&parts[i]);
    }
}

/* A digest that is not in a full set is decided only below the greatest one that was kept. */
static void set__a_full_set_does_not_decide_all(void **state) {
    (void)state;
    struct tare_digest_set set = { 0 };
    size_t decided = 0, found = 0;
    assert_true(tare_digest_set_decides(&set, UINT64_MAX));
    assert_false(tare_digest_set_has(&set, 0));
    for (size_t i = 0; i < 200000; i++)
        assert_int_equal(tare_digest_set_add(&set, digest_at(i)), TARE_OK);
    tare_digest_set_finish(&set);
    for (size_t i = 0; i < 200000; i += 2) {
        decided += tare_digest_set_decides(&set, digest_at(i));
        found += tare_digest_set_has(&set, digest_at(i));
    }
    assert_int_equal(decided, TARE_DIGESTS_MOST);
    assert_int_equal(found, TARE_DIGESTS_MOST);
    assert_false(tare_digest_set_decides(&set, UINT64_MAX));
    tare_digest_set_free(&set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digest__depends_on_shape_and_elements),
        cmocka_unit_test(digest__does_not_join_strings),
        cmocka_unit_test(set__order_and_parts_leave_no_trace),
        cmocka_unit_test(set__a_full_set_does_not_decide_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

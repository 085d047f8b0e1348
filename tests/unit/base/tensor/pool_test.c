/* The buffer pool: recycling, and the limit on what is in use. */
#include "base/poison.h"
#include "base/tensor/tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static tare_status take(struct tare_tensor *out, struct tare_buffer_pool *pool, int elements) {
    struct tare_shape shape = tare_shape_make(1, elements);
    return tare_tensor_new_pooled(out, TARE_DT_FLOAT, &shape, pool);
}

static void pool__gives_freed_memory_again(void **state) {
    (void)state;
    struct tare_buffer_pool *pool = tare_buffer_pool_new();
    struct tare_tensor tensor;
    assert_int_equal(take(&tensor, pool, 1000), TARE_OK);
    const void *first = tensor.data;
    assert_true(tare_buffer_pool_bytes(pool) >= 4000);
    tare_tensor_reset(&tensor);
    assert_int_equal(tare_buffer_pool_bytes(pool), 0);
    assert_int_equal(take(&tensor, pool, 1000), TARE_OK);
    assert_ptr_equal(tensor.data, first);
    tare_buffer_pool_free(pool); /* the tensor keeps what it needs of it */
    tare_tensor_reset(&tensor);
}

static void pool__reports_the_most_bytes_in_use_since_the_last_call(void **state) {
    (void)state;
    struct tare_buffer_pool *pool = tare_buffer_pool_new();
    struct tare_tensor a, b;
    assert_int_equal(take(&a, pool, 1000), TARE_OK);
    assert_int_equal(take(&b, pool, 1000), TARE_OK);
    tare_tensor_reset(&b);
    assert_in_range(tare_buffer_pool_watch(pool), 8000, 10000);
    assert_in_range(tare_buffer_pool_watch(pool), 4000, 5000);
    tare_tensor_reset(&a);
    tare_buffer_pool_free(pool);
}

static void pool__refuses_more_than_its_limit(void **state) {
    (void)state;
    struct tare_buffer_pool *pool = tare_buffer_pool_new();
    struct tare_tensor a, b, c;
    tare_buffer_pool_limit(pool, 10000);
    assert_int_equal(take(&a, pool, 1000), TARE_OK);
    assert_int_equal(take(&b, pool, 1000), TARE_OK);
    assert_int_equal(take(&c, pool, 1000), TARE_NO_MEMORY);
    assert_non_null(strstr(tare_error_text(), "memory limit"));
    tare_tensor_reset(&a);
    assert_int_equal(take(&c, pool, 1000), TARE_OK);
    tare_tensor_reset(&b);
    tare_tensor_reset(&c);
    assert_int_equal(take(&a, pool, 2000), TARE_OK); /* what lay free made way */
    tare_tensor_reset(&a);
    tare_buffer_pool_free(pool);
}

/* Bytes that the pool counts for a buffer of `bytes`. */
static size_t counted(struct tare_buffer_pool *pool, int bytes) {
    struct tare_shape shape = tare_shape_make(1, bytes);
    struct tare_tensor tensor;
    assert_int_equal(tare_tensor_new_pooled(&tensor, TARE_DT_INT8, &shape, pool), TARE_OK);
    memset(tensor.data, 1, (size_t)bytes); /* a sanitizer finds a buffer that is too small */
    const size_t in_use = tare_buffer_pool_bytes(pool);
    tare_tensor_reset(&tensor);
    return in_use;
}

static void pool__rounds_up_by_at_most_a_quarter(void **state) {
    (void)state;
    struct tare_buffer_pool *pool = tare_buffer_pool_new();
    size_t last = 256;
    for (int bytes = 257; bytes <= 70000; bytes++) {
        const size_t size = counted(pool, bytes);
        assert_in_range(size, bytes, bytes + bytes / 4);
        assert_true(size >= last);
        if (size > last) assert_int_equal(bytes, last + 1); /* a boundary: sizes of a class are equal */
        last = size;
    }
    for (int power = 17; power < 27; power++) {
        assert_int_equal(counted(pool, 1 << power), 1 << power);
        assert_int_equal(counted(pool, (1 << power) + 1), 5 << (power - 2));
        assert_int_equal(counted(pool, 7 << (power - 2)), 7 << (power - 2));
        assert_int_equal(counted(pool, (7 << (power - 2)) + 1), 2 << power);
    }
    assert_int_equal(counted(pool, 1), 256);
    assert_int_equal(counted(pool, 256), 256);
    tare_buffer_pool_free(pool);
}

/* A recycled buffer is larger than its present elements; an access to the rest, or after the release, must not go
 * unnoticed. */
static void pool__lets_sanitizers_find_accesses_beyond_the_elements(void **state) {
    (void)state;
#if TARE_POISONS
    static const int counts[] = { 1001, 1021, 0, 1 };
    struct tare_buffer_pool *pool = tare_buffer_pool_new();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const size_t bytes = counts[i] ? (size_t)counts[i] * sizeof(float) : 16; /* empty: one element */
        struct tare_tensor tensor;
        assert_int_equal(take(&tensor, pool, counts[i]), TARE_OK);
        char *data = tensor.data;
        assert_null(__asan_region_is_poisoned(data, bytes));
        assert_true(__asan_address_is_poisoned(data + bytes));
        tare_tensor_reset(&tensor);
        assert_true(__asan_address_is_poisoned(data)); /* the pool keeps it */
    }
    tare_buffer_pool_free(pool);
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool__gives_freed_memory_again),
        cmocka_unit_test(pool__reports_the_most_bytes_in_use_since_the_last_call),
        cmocka_unit_test(pool__refuses_more_than_its_limit),
        cmocka_unit_test(pool__rounds_up_by_at_most_a_quarter),
        cmocka_unit_test(pool__lets_sanitizers_find_accesses_beyond_the_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Integers of 4 and 2 bits in bytes. */
#include "base/tensor/narrow.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static void bytes__are_narrow_integers_if_they_fit(void **state) {
    static const struct {
        int dtype, stored;
        int least, most;
    } rows[] = {
        { TARE_DT_INT4, TARE_DT_INT8, -8, 7 },
        { TARE_DT_UINT4, TARE_DT_UINT8, 0, 15 },
        { TARE_DT_INT2, TARE_DT_INT8, -2, 1 },
        { TARE_DT_UINT2, TARE_DT_UINT8, 0, 3 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int stored = rows[i].stored;
        struct tare_tensor bytes, narrow;
        assert_int_equal(tare_dtype_stored(rows[i].dtype), stored);
        assert_true(tare_dtype_fits_bytes(rows[i].dtype, TARE_DT_INT8));
        assert_false(tare_dtype_fits_bytes(rows[i].dtype, TARE_DT_INT32));
        assert_int_equal(tare_tensor_new(&bytes, stored, &(struct tare_shape){ .rank = 1, .dims = { 2 } }), TARE_OK);
        tare_tensor_set_i64(&bytes, 0, rows[i].least);
        tare_tensor_set_i64(&bytes, 1, rows[i].most);
        assert_int_equal(tare_tensor_share_narrow(&narrow, &bytes, rows[i].dtype), TARE_OK);
        assert_int_equal(narrow.dtype, rows[i].dtype);
        assert_int_equal(tare_tensor_get_i64(&narrow, 0), rows[i].least);
        assert_int_equal(tare_tensor_get_i64(&narrow, 1), rows[i].most);
        tare_tensor_reset(&narrow);
        tare_tensor_set_i64(&bytes, 1, rows[i].most + 1);
        assert_int_equal(tare_tensor_share_narrow(&narrow, &bytes, rows[i].dtype), TARE_INVALID_ARGUMENT);
        tare_tensor_reset(&bytes);
    }
    assert_int_equal(tare_dtype_stored(TARE_DT_INT32), TARE_DT_INT32);
    assert_false(tare_dtype_fits_bytes(TARE_DT_INT8, TARE_DT_INT8));
}

static void an_element_that_does_not_fit__is_named(void **state) {
    static const int8_t values[] = { 7, -8, 8 };
    struct tare_tensor bytes, narrow;
    (void)state;
    assert_int_equal(tare_tensor_from(&bytes, TARE_DT_INT8, &(struct tare_shape){ .rank = 1, .dims = { 3 } }, values),
                     TARE_OK);
    assert_int_equal(tare_tensor_share_narrow(&narrow, &bytes, TARE_DT_INT4), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "element 2 is 8 (expected -8 to 7, those of int4)");
    tare_tensor_reset(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes__are_narrow_integers_if_they_fit),
        cmocka_unit_test(an_element_that_does_not_fit__is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

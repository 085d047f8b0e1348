/* Shapes. */
#include "base/tensor/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void made__from_dims_of_any_integer_type(void **state) {
    const int64_t large = (int64_t)5 << 32;
    const uint8_t small = 200;
    (void)state;
    const struct tare_shape shape = tare_shape_make(4, large, 3, small, -1);
    assert_int_equal(shape.rank, 4);
    assert_true(shape.dims[0] == large && shape.dims[1] == 3 && shape.dims[2] == 200 && shape.dims[3] == -1);
    assert_int_equal(tare_shape_make(0).rank, 0);
}

static void elements__of_dims_whose_products_do_not_overflow(void **state) {
    const int64_t large = (int64_t)1 << 40;
    const struct {
        struct tare_shape shape;
        int64_t elements; /* -1: refused */
    } rows[] = {
        { tare_shape_make(0), 1 },
        { tare_shape_make(3, 2, 3, 4), 24 },
        { tare_shape_make(3, large, 0, 1 << 16), 0 },
        { tare_shape_make(3, 0, large, large), -1 },
        { tare_shape_make(3, large, large, 0), -1 },
        { tare_shape_make(2, INT64_MAX, 0), -1 }, /* more bytes than int64 counts, if 0 were 1 */
        { tare_shape_make(1, INT64_MAX / 16 + 1), -1 },
        { tare_shape_make(1, INT64_MAX / 16), INT64_MAX / 16 },
        { tare_shape_make(2, -1, 0), -1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t elements = -1;
        if (tare_shape_elements(&elements, &rows[i].shape) != TARE_OK) tare_error_clear();
        if (elements != rows[i].elements)
            fail_msg("row %zu: %lld elements (expected %lld)", i, (long long)elements, (long long)rows[i].elements);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made__from_dims_of_any_integer_type),
        cmocka_unit_test(elements__of_dims_whose_products_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

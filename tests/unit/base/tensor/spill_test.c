/* Tensors in files without a name. */
#include "base/tensor/spill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static struct tare_tensor numbers(void) {
    const struct tare_shape shape = tare_shape_make(2, 300, 7);
    struct tare_tensor tensor;
    assert_int_equal(tare_tensor_new(&tensor, TARE_DT_INT32, &shape), TARE_OK);
    for (int32_t i = 0; i < 2100; i++)
        TARE_DATA(int32_t, &tensor)[i] = i * i - 5;
    return tensor;
}

static void check(const struct tare_tensor *tensor) {
    assert_int_equal(tensor->dtype, TARE_DT_INT32);
    assert_int_equal(tensor->shape.dims[1], 7);
    for (int32_t i = 0; i < 2100; i++)
        assert_int_equal(TARE_CONST_DATA(int32_t, tensor)[i], i * i - 5);
}

static void spilled_tensor__has_its_elements(void **state) {
    struct tare_tensor tensor = numbers(), share;
    (void)state;
    assert_false(tare_tensor_is_spilled(&tensor));
    tare_tensor_spill(&tensor);
    assert_true(tare_tensor_is_spilled(&tensor));
    assert_false(tare_tensor_is_exclusive(&tensor)); /* the mapping is not to be written */
    tare_tensor_share(&share, &tensor);
    tare_tensor_reset(&tensor);
    check(&share);
    tare_tensor_reset(&share);
}

static void no_folder__leaves_it_in_memory(void **state) {
    struct tare_tensor tensor = numbers();
    (void)state;
    setenv("TMPDIR", "/nonexistent/folder", 1);
    tare_tensor_spill(&tensor);
    unsetenv("TMPDIR");
    assert_false(tare_tensor_is_spilled(&tensor));
    check(&tensor);
    tare_tensor_reset(&tensor);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spilled_tensor__has_its_elements),
        cmocka_unit_test(no_folder__leaves_it_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

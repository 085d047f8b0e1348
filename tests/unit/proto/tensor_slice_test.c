/* Parts of tensors: their text, what two of them share, the elements that are copied. */
#include "proto/tensor_slice.h"
#include "support/mini_model.h"

#include <stdio.h>
#include <string.h>

static void parse__reads_dimensions_and_extents(void **state) {
    struct tare_slice slice;
    struct tare_shape whole;
    (void)state;
    mini_ok(tare_slice_parse(&slice, &whole, "100 20 0,50:-"));
    assert_int_equal(whole.rank, 2);
    assert_int_equal(whole.dims[0], 100);
    assert_int_equal(whole.dims[1], 20);
    assert_int_equal(slice.start[0], 0);
    assert_int_equal(slice.shape.dims[0], 50);
    assert_int_equal(slice.start[1], 0);
    assert_int_equal(slice.shape.dims[1], 20);
    mini_ok(tare_slice_parse(&slice, &whole, "7 3,4"));
    assert_int_equal(slice.shape.rank, 1);
    assert_int_equal(slice.start[0], 3);
    assert_int_equal(slice.shape.dims[0], 4);
    mini_ok(tare_slice_parse(&slice, &whole, "0 4 -:4,0")); /* nothing of nothing */
}

static void parse__refuses_what_is_no_slice(void **state) {
    static const struct {
        const char *text, *part;
    } cases[] = { { "", "'' is not a slice (expected a string like '100 20 0,50:-')" },
                  { "eight", "is not a slice" },
                  { "8", "is not a slice" },
                  { "8 6", "is not a slice" },
                  { "8 6 0,3", "is not a slice" },
                  { "8 6 0,3:-:-", "is not a slice" },
                  { "8 6 0,3:- ", "is not a slice" },
                  { "8 6 -1,3:-", "is not a slice" },
                  { "8 6  0,3:-", "is not a slice" },
                  { "99999999999999999999 -", "is not a slice" },
                  { "1 1 1 1 1 1 1 1 1 1 1 1 1 -:-:-:-:-:-:-:-:-:-:-:-:-", "is not a slice" },
                  { "8 6 0,9:-", "slice '8 6 0,9:-': a slice is outside the tensor (dimension 0: 9 from 0 of 8)" },
                  { "8 9223372036854775807,9223372036854775807", "is outside the tensor" } };
    struct tare_slice slice;
    struct tare_shape whole;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        mini_fails(tare_slice_parse(&slice, &whole, cases[i].text), cases[i].part);
}

static struct tare_slice box(int64_t row, int64_t column, int64_t rows, int64_t columns) {
    return (struct tare_slice){ .start = { row, column }, .shape = { .rank = 2, .dims = { rows, columns } } };
}

static void overlap__is_what_both_hold(void **state) {
    const struct tare_slice a = box(0, 2, 3, 4), b = box(2, 0, 5, 3), far = box(3, 2, 1, 1), none = box(1, 2, 0, 4);
    struct tare_slice shared;
    (void)state;
    assert_true(tare_slice_overlap(&shared, &a, &b));
    assert_int_equal(shared.start[0], 2);
    assert_int_equal(shared.start[1], 2);
    assert_int_equal(shared.shape.dims[0], 1);
    assert_int_equal(shared.shape.dims[1], 1);
    assert_false(tare_slice_overlap(&shared, &a, &far));
    assert_false(tare_slice_overlap(&shared, &a, &none));
}

/* Rows 1-2, columns 1-3 of a table of tens and ones, taken from two boxes that lie across it. */
static void copy__takes_the_shared_elements(void **state) {
    const struct tare_slice expected = box(1, 1, 2, 3), above = box(0, 0, 2, 5), below = box(2, 1, 2, 4);
    const int32_t first[] = { 0, 1, 2, 3, 4, 10, 11, 12, 13, 14 }, second[] = { 21, 22, 23, 24, 31, 32, 33, 34 };
    const int32_t answer[] = { 11, 12, 13, 21, 22, 23 };
    struct tare_tensor out, a, b;
    (void)state;
    mini_ok(tare_tensor_new(&out, TARE_DT_INT32, &expected.shape));
    mini_ok(tare_tensor_from(&a, TARE_DT_INT32, &above.shape, first));
    mini_ok(tare_tensor_from(&b, TARE_DT_INT32, &below.shape, second));
    mini_ok(tare_slice_copy(&out, &expected, &a, &above));
    mini_ok(tare_slice_copy(&out, &expected, &b, &below));
    assert_memory_equal(out.data, answer, sizeof answer);
    tare_tensor_reset(&out);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
}

static void copy__takes_texts(void **state) {
    const struct tare_slice all = { .shape = { .rank = 1, .dims = { 3 } } };
    const struct tare_slice last = { .start = { 2 }, .shape = { .rank = 1, .dims = { 1 } } };
    struct tare_tensor source, out;
    (void)state;
    mini_ok(tare_tensor_new(&source, TARE_DT_STRING, &all.shape));
    mini_ok(tare_tensor_set_string(&source, 2, "last", 4));
    mini_ok(tare_tensor_new(&out, TARE_DT_STRING, &last.shape));
    mini_ok(tare_slice_copy(&out, &last, &source, &all));
    assert_int_equal(TARE_CONST_DATA(struct tare_str, &out)[0].size, 4);
    assert_memory_equal(TARE_CONST_DATA(struct tare_str, &out)[0].data, "last", 4);
    tare_tensor_reset(&source);
    tare_tensor_reset(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse__reads_dimensions_and_extents),
        cmocka_unit_test(parse__refuses_what_is_no_slice),
        cmocka_unit_test(overlap__is_what_both_hold),
        cmocka_unit_test(copy__takes_the_shared_elements),
        cmocka_unit_test(copy__takes_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

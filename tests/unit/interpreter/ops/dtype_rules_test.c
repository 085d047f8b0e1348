/* The rules of docs/numerics.md that hold for whole classes of ops, each by its name. */
#include "support/op_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct tolerance exact = { 0, 0, 0 };

#define GIVES(op, attrs, inputs, outputs)                                                                              \
    assert_true(op_case_check(op, attrs, (const char *const[]){ inputs, NULL },                                        \
                              (const char *const[]){ outputs, NULL }, exact))
#define BOTH(a, b) a, b

static void half__sums_in_float_and_rounds_once(void **state) {
    (void)state;
    /* in half 2048 + 1 is 2048: a sum rounded at each step would stay there */
    GIVES("Sum", "T: half", BOTH("half[4096] fill 1", "int32[1] 0"), "half[] 4096");
    GIVES("Mean", "T: half", BOTH("half[4096] fill 1", "int32[1] 0"), "half[] 1");
    GIVES("MatMul", "T: half", BOTH("half[1,4096] fill 1", "half[4096,1] fill 1"), "half[1,1] 4096");
    GIVES("Sum", "T: bfloat16", BOTH("bfloat16[1024] fill 1", "int32[1] 0"), "bfloat16[] 1024");
    GIVES("MatMul", "T: bfloat16", BOTH("bfloat16[1,1024] fill 1", "bfloat16[1024,1] fill 1"), "bfloat16[1,1] 1024");
    /* 65504 + 65504 fits no half, their mean does */
    GIVES("Mean", "T: half", BOTH("half[2] 65504 65504", "int32[1] 0"), "half[] 65504");
}

static void half__elementwise_results_are_those_of_float_rounded_to_even(void **state) {
    (void)state;
    GIVES("AddV2", "T: half", BOTH("half[2] 2048 2050", "half[2] 1 1"), "half[2] 2048 2052");
    GIVES("Mul", "T: bfloat16", BOTH("bfloat16[2] 1.0078125 3", "bfloat16[2] 1.0078125 0x1.56p-2"),
          "bfloat16[2] 1.015625 1");
    GIVES("Mul", "T: half", BOTH("half[2] 60000 0x1p-14", "half[2] 2 0x1p-11"), "half[2] inf 0");
    GIVES("Sigmoid", "T: half", "half[3] -inf 0 inf", "half[3] 0 0.5 1");
}

static void integer_division__rounds_as_the_op_says(void **state) {
    (void)state;
    GIVES("FloorDiv", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 2 2 -2 -2"), "int32[4] 3 -4 -4 3");
    GIVES("TruncateDiv", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 2 2 -2 -2"), "int32[4] 3 -3 -3 3");
    GIVES("Div", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 2 2 -2 -2"), "int32[4] 3 -3 -3 3");
    GIVES("FloorMod", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 3 3 -3 -3"), "int32[4] 1 2 -2 -1");
    GIVES("TruncateMod", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 3 3 -3 -3"), "int32[4] 1 -1 1 -1");
    GIVES("FloorDiv", "T: uint8", BOTH("uint8[2] 255 7", "uint8[2] 2 8"), "uint8[2] 127 0");
    GIVES("FloorDiv", "T: float", BOTH("float[4] 7 -7 7 -7", "float[4] 2 2 -2 -2"), "float[4] 3 -4 -4 3");
    GIVES("FloorMod", "T: float", BOTH("float[4] 7 -7 7 -7", "float[4] 3 3 -3 -3"), "float[4] 1 2 -2 -1");
}

static void integer_arithmetic__wraps(void **state) {
    (void)state;
    GIVES("AddV2", "T: int32", BOTH("int32[] 2147483647", "int32[] 1"), "int32[] -2147483648");
    GIVES("Mul", "T: int64", BOTH("int64[] 4611686018427387904", "int64[] 2"), "int64[] -9223372036854775808");
    GIVES("Sub", "T: uint8", BOTH("uint8[] 0", "uint8[] 1"), "uint8[] 255");
    GIVES("Neg", "T: int8", "int8[] -128", "int8[] -128");
    GIVES("Abs", "T: int32", "int32[] -2147483648", "int32[] -2147483648");
    GIVES("Sum", "T: int8", BOTH("int8[3] 100 100 100", "int32[1] 0"), "int8[] 44");
}

static void shift__counts_outside_of_the_width_are_the_nearest_inside(void **state) {
    (void)state;
    GIVES("LeftShift", "T: int32", BOTH("int32[4] 1 1 1 1", "int32[4] 0 31 32 -1"),
          "int32[4] 1 -2147483648 -2147483648 1");
    GIVES("RightShift", "T: int32", BOTH("int32[4] -8 -8 -8 -8", "int32[4] 1 31 99 -1"), "int32[4] -4 -1 -1 -8");
    GIVES("RightShift", "T: uint8", BOTH("uint8[3] 200 200 200", "uint8[3] 1 7 8"), "uint8[3] 100 1 1");
    GIVES("LeftShift", "T: int8", BOTH("int8[2] 1 -1", "int8[2] 7 9"), "int8[2] -128 -128");
}

static void cast__of_floats_truncates_and_what_does_not_fit_is_the_least_number(void **state) {
    (void)state;
    GIVES("Cast", "SrcT: float; DstT: int32", "float[6] 1.9 -1.9 3e9 -3e9 nan inf",
          "int32[6] 1 -1 -2147483648 -2147483648 -2147483648 -2147483648");
    GIVES("Cast", "SrcT: double; DstT: int64", "double[3] -2.5 1e30 nan",
          "int64[3] -2 -9223372036854775808 -9223372036854775808");
    GIVES("Cast", "SrcT: float; DstT: bool", "float[4] 0 -0 nan 0.1", "bool[4] 0 0 1 1");
    GIVES("Cast", "SrcT: int32; DstT: int8", "int32[3] 127 128 -129", "int8[3] 127 -128 127");
    GIVES("Cast", "SrcT: int64; DstT: float", "int64[2] 16777217 16777219", "float[2] 16777216 16777220");
    GIVES("Cast", "SrcT: float; DstT: half", "float[3] 65519 65520 0x1p-25", "half[3] 65504 inf 0");
    GIVES("Cast", "SrcT: bool; DstT: float", "bool[2] 1 0", "float[2] 1 0");
}

static void nan__is_kept_by_relu_and_reductions_and_in_the_first_operand_of_maximum(void **state) {
    (void)state;
    GIVES("Maximum", "T: float", BOTH("float[3] nan 1 nan", "float[3] 1 nan nan"), "float[3] nan 1 nan");
    GIVES("Minimum", "T: float", BOTH("float[3] nan 1 nan", "float[3] 1 nan nan"), "float[3] nan 1 nan");
    GIVES("Relu", "T: float", "float[2] nan -1", "float[2] nan 0");
    GIVES("Relu6", "T: float", "float[2] nan 7", "float[2] nan 6");
    GIVES("Max", "T: float", BOTH("float[3] 1 nan 2", "int32[1] 0"), "float[] nan");
    GIVES("Min", "T: float", BOTH("float[3] 1 nan 2", "int32[1] 0"), "float[] nan");
    GIVES("Sign", "T: float", "float[3] nan -0 2", "float[3] nan 0 1");
}

static void nan__compares_unequal_to_all(void **state) {
    (void)state;
    GIVES("Equal", "T: float", BOTH("float[2] nan nan", "float[2] nan 1"), "bool[2] 0 0");
    GIVES("NotEqual", "T: float", BOTH("float[2] nan nan", "float[2] nan 1"), "bool[2] 1 1");
    GIVES("Less", "T: float", BOTH("float[2] nan 1", "float[2] 1 nan"), "bool[2] 0 0");
    GIVES("GreaterEqual", "T: double", BOTH("double[2] nan 1", "double[2] 1 nan"), "bool[2] 0 0");
    GIVES("IsNan", "T: half", "half[3] nan inf 0", "bool[3] 1 0 0");
}

static void zero__times_nan_is_zero_where_the_op_says_so(void **state) {
    (void)state;
    GIVES("MulNoNan", "T: float", BOTH("float[2] nan inf", "float[2] 0 0"), "float[2] 0 0");
    GIVES("DivNoNan", "T: float", BOTH("float[3] 1 0 nan", "float[3] 0 0 0"), "float[3] 0 0 0");
    GIVES("Xdivy", "T: float", BOTH("float[2] 0 0", "float[2] 0 nan"), "float[2] 0 0");
    GIVES("Xlogy", "T: float", BOTH("float[2] 0 0", "float[2] 0 nan"), "float[2] 0 0");
    GIVES("Mul", "T: float", BOTH("float[] 0", "float[] nan"), "float[] nan");
}

static void rounding__goes_to_even(void **state) {
    (void)state;
    GIVES("Round", "T: float", "float[6] 0.5 1.5 2.5 -0.5 -1.5 -2.5", "float[6] 0 2 2 -0 -2 -2");
    GIVES("Rint", "T: double", "double[4] 0.5 1.5 -0.5 -1.5", "double[4] 0 2 -0 -2");
    GIVES("Round", "T: int32", "int32[2] 3 -3", "int32[2] 3 -3");
}

static void ties__of_top_k_and_arg_ops_go_to_the_first(void **state) {
    const char *const in[] = { "float[6] 2 3 3 1 3 2", "int32[] 4", NULL };
    const char *const out[] = { "float[4] 3 3 3 2", "int32[4] 1 2 4 0", NULL };
    (void)state;
    assert_true(op_case_check("TopKV2", "T: float", in, out, exact));
    GIVES("ArgMax", "T: float", BOTH("float[4] 1 5 5 2", "int32[] 0"), "int64[] 1");
    GIVES("ArgMin", "T: int32", BOTH("int32[4] 3 1 1 2", "int32[] 0"), "int64[] 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half__sums_in_float_and_rounds_once),
        cmocka_unit_test(half__elementwise_results_are_those_of_float_rounded_to_even),
        cmocka_unit_test(integer_division__rounds_as_the_op_says),
        cmocka_unit_test(integer_arithmetic__wraps),
        cmocka_unit_test(shift__counts_outside_of_the_width_are_the_nearest_inside),
        cmocka_unit_test(cast__of_floats_truncates_and_what_does_not_fit_is_the_least_number),
        cmocka_unit_test(nan__is_kept_by_relu_and_reductions_and_in_the_first_operand_of_maximum),
        cmocka_unit_test(nan__compares_unequal_to_all),
        cmocka_unit_test(zero__times_nan_is_zero_where_the_op_says_so),
        cmocka_unit_test(rounding__goes_to_even),
        cmocka_unit_test(ties__of_top_k_and_arg_ops_go_to_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The rules of docs/numerics.md that apply to whole classes of ops, one test per rule. */
#include "support/op_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct tolerance exact = { 0, 0, 0 };

#define EXPECT(op, attrs, inputs, outputs)                                                                             \
    assert_true(op_case_check(op, attrs, (const char *const[]){ inputs, NULL },                                        \
                              (const char *const[]){ outputs, NULL }, exact))
#define BOTH(a, b) a, b

static void half__sums_in_float_and_rounds_once(void **state) {
    (void)state;
    /* in half, 2048 + 1 is 2048: a sum rounded at each step would stop there */
    EXPECT("Sum", "T: half", BOTH("half[4096] fill 1", "int32[1] 0"), "half[] 4096");
    EXPECT("Mean", "T: half", BOTH("half[4096] fill 1", "int32[1] 0"), "half[] 1");
    EXPECT("MatMul", "T: half", BOTH("half[1,4096] fill 1", "half[4096,1] fill 1"), "half[1,1] 4096");
    EXPECT("Sum", "T: bfloat16", BOTH("bfloat16[1024] fill 1", "int32[1] 0"), "bfloat16[] 1024");
    EXPECT("MatMul", "T: bfloat16", BOTH("bfloat16[1,1024] fill 1", "bfloat16[1024,1] fill 1"), "bfloat16[1,1] 1024");
    /* 65504 + 65504 overflows half; their mean does not */
    EXPECT("Mean", "T: half", BOTH("half[2] 65504 65504", "int32[1] 0"), "half[] 65504");
}

static void half__elementwise_results_are_those_of_float_rounded_to_even(void **state) {
    (void)state;
    EXPECT("AddV2", "T: half", BOTH("half[2] 2048 2050", "half[2] 1 1"), "half[2] 2048 2052");
    EXPECT("Mul", "T: bfloat16", BOTH("bfloat16[2] 1.0078125 3", "bfloat16[2] 1.0078125 0x1.56p-2"),
           "bfloat16[2] 1.015625 1");
    EXPECT("Mul", "T: half", BOTH("half[2] 60000 0x1p-14", "half[2] 2 0x1p-11"), "half[2] inf 0");
    EXPECT("Sigmoid", "T: half", "half[3] -inf 0 inf", "half[3] 0 0.5 1");
}

static void integer_division__rounds_as_the_op_says(void **state) {
    (void)state;
    EXPECT("FloorDiv", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 2 2 -2 -2"), "int32[4] 3 -4 -4 3");
    EXPECT("TruncateDiv", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 2 2 -2 -2"), "int32[4] 3 -3 -3 3");
    EXPECT("Div", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 2 2 -2 -2"), "int32[4] 3 -3 -3 3");
    EXPECT("FloorMod", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 3 3 -3 -3"), "int32[4] 1 2 -2 -1");
    EXPECT("TruncateMod", "T: int32", BOTH("int32[4] 7 -7 7 -7", "int32[4] 3 3 -3 -3"), "int32[4] 1 -1 1 -1");
    EXPECT("FloorDiv", "T: uint8", BOTH("uint8[2] 255 7", "uint8[2] 2 8"), "uint8[2] 127 0");
    EXPECT("FloorDiv", "T: float", BOTH("float[4] 7 -7 7 -7", "float[4] 2 2 -2 -2"), "float[4] 3 -4 -4 3");
    EXPECT("FloorMod", "T: float", BOTH("float[4] 7 -7 7 -7", "float[4] 3 3 -3 -3"), "float[4] 1 2 -2 -1");
}

static void integer_arithmetic__wraps(void **state) {
    (void)state;
    EXPECT("AddV2", "T: int32", BOTH("int32[] 2147483647", "int32[] 1"), "int32[] -2147483648");
    EXPECT("Mul", "T: int64", BOTH("int64[] 4611686018427387904", "int64[] 2"), "int64[] -9223372036854775808");
    EXPECT("Sub", "T: uint8", BOTH("uint8[] 0", "uint8[] 1"), "uint8[] 255");
    EXPECT("Neg", "T: int8", "int8[] -128", "int8[] -128");
    EXPECT("Abs", "T: int32", "int32[] -2147483648", "int32[] -2147483648");
    EXPECT("Sum", "T: int8", BOTH("int8[3] 100 100 100", "int32[1] 0"), "int8[] 44");
}

static void shift__distances_outside_the_width_are_clamped(void **state) {
    (void)state;
    EXPECT("LeftShift", "T: int32", BOTH("int32[4] 1 1 1 1", "int32[4] 0 31 32 -1"),
           "int32[4] 1 -2147483648 -2147483648 1");
    EXPECT("RightShift", "T: int32", BOTH("int32[4] -8 -8 -8 -8", "int32[4] 1 31 99 -1"), "int32[4] -4 -1 -1 -8");
    EXPECT("RightShift", "T: uint8", BOTH("uint8[3] 200 200 200", "uint8[3] 1 7 8"), "uint8[3] 100 1 1");
    EXPECT("LeftShift", "T: int8", BOTH("int8[2] 1 -1", "int8[2] 7 9"), "int8[2] -128 -128");
}

static void cast__of_floats_truncates_and_out_of_range_values_become_the_minimum(void **state) {
    (void)state;
    EXPECT("Cast", "SrcT: float; DstT: int32", "float[6] 1.9 -1.9 3e9 -3e9 nan inf",
           "int32[6] 1 -1 -2147483648 -2147483648 -2147483648 -2147483648");
    EXPECT("Cast", "SrcT: double; DstT: int64", "double[3] -2.5 1e30 nan",
           "int64[3] -2 -9223372036854775808 -9223372036854775808");
    EXPECT("Cast", "SrcT: float; DstT: bool", "float[4] 0 -0 nan 0.1", "bool[4] 0 0 1 1");
    EXPECT("Cast", "SrcT: int32; DstT: int8", "int32[3] 127 128 -129", "int8[3] 127 -128 127");
    EXPECT("Cast", "SrcT: int64; DstT: float", "int64[2] 16777217 16777219", "float[2] 16777216 16777220");
    EXPECT("Cast", "SrcT: float; DstT: half", "float[3] 65519 65520 0x1p-25", "half[3] 65504 inf 0");
    EXPECT("Cast", "SrcT: bool; DstT: float", "bool[2] 1 0", "float[2] 1 0");
}

static void nan__is_preserved_by_relu_and_reductions_and_maximum(void **state) {
    (void)state;
    EXPECT("Maximum", "T: float", BOTH("float[3] nan 1 nan", "float[3] 1 nan nan"), "float[3] nan nan nan");
    EXPECT("Minimum", "T: float", BOTH("float[3] nan 1 nan", "float[3] 1 nan nan"), "float[3] nan nan nan");
    EXPECT("Relu", "T: float", "float[2] nan -1", "float[2] nan 0");
    EXPECT("Relu6", "T: float", "float[2] nan 7", "float[2] nan 6");
    EXPECT("Max", "T: float", BOTH("float[3] 1 nan 2", "int32[1] 0"), "float[] nan");
    EXPECT("Min", "T: float", BOTH("float[3] 1 nan 2", "int32[1] 0"), "float[] nan");
    EXPECT("Sign", "T: float", "float[3] nan -0 2", "float[3] nan 0 1");
}

static void nan__compares_unequal_to_all(void **state) {
    (void)state;
    EXPECT("Equal", "T: float", BOTH("float[2] nan nan", "float[2] nan 1"), "bool[2] 0 0");
    EXPECT("NotEqual", "T: float", BOTH("float[2] nan nan", "float[2] nan 1"), "bool[2] 1 1");
    EXPECT("Less", "T: float", BOTH("float[2] nan 1", "float[2] 1 nan"), "bool[2] 0 0");
    EXPECT("GreaterEqual", "T: double", BOTH("double[2] nan 1", "double[2] 1 nan"), "bool[2] 0 0");
    EXPECT("IsNan", "T: half", "half[3] nan inf 0", "bool[3] 1 0 0");
}

static void zero__times_nan_is_zero_in_the_no_nan_ops(void **state) {
    (void)state;
    EXPECT("MulNoNan", "T: float", BOTH("float[2] nan inf", "float[2] 0 0"), "float[2] 0 0");
    EXPECT("DivNoNan", "T: float", BOTH("float[3] 1 0 nan", "float[3] 0 0 0"), "float[3] 0 0 0");
    EXPECT("Xdivy", "T: float", BOTH("float[2] 0 0", "float[2] 0 nan"), "float[2] 0 0");
    EXPECT("Xlogy", "T: float", BOTH("float[2] 0 0", "float[2] 0 nan"), "float[2] 0 0");
    EXPECT("Mul", "T: float", BOTH("float[] 0", "float[] nan"), "float[] nan");
}

static void rounding__goes_to_even(void **state) {
    (void)state;
    EXPECT("Round", "T: float", "float[6] 0.5 1.5 2.5 -0.5 -1.5 -2.5", "float[6] 0 2 2 -0 -2 -2");
    EXPECT("Rint", "T: double", "double[4] 0.5 1.5 -0.5 -1.5", "double[4] 0 2 -0 -2");
    EXPECT("Round", "T: int32", "int32[2] 3 -3", "int32[2] 3 -3");
}

static void ties__of_top_k_and_arg_ops_go_to_the_first(void **state) {
    const char *const in[] = { "float[6] 2 3 3 1 3 2", "int32[] 4", NULL };
    const char *const out[] = { "float[4] 3 3 3 2", "int32[4] 1 2 4 0", NULL };
    (void)state;
    assert_true(op_case_check("TopKV2", "T: float", in, out, exact));
    EXPECT("ArgMax", "T: float", BOTH("float[4] 1 5 5 2", "int32[] 0"), "int64[] 1");
    EXPECT("ArgMin", "T: int32", BOTH("int32[4] 3 1 1 2", "int32[] 0"), "int64[] 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half__sums_in_float_and_rounds_once),
        cmocka_unit_test(half__elementwise_results_are_those_of_float_rounded_to_even),
        cmocka_unit_test(integer_division__rounds_as_the_op_says),
        cmocka_unit_test(integer_arithmetic__wraps),
        cmocka_unit_test(shift__distances_outside_the_width_are_clamped),
        cmocka_unit_test(cast__of_floats_truncates_and_out_of_range_values_become_the_minimum),
        cmocka_unit_test(nan__is_preserved_by_relu_and_reductions_and_maximum),
        cmocka_unit_test(nan__compares_unequal_to_all),
        cmocka_unit_test(zero__times_nan_is_zero_in_the_no_nan_ops),
        cmocka_unit_test(rounding__goes_to_even),
        cmocka_unit_test(ties__of_top_k_and_arg_ops_go_to_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The harness itself: tensors as text, comparisons, and that wrong expectations are seen. */
#include "support/op_case.h"
#include "support/op_family.h"
#include "support/tensor_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct tolerance exact = { 0, 0, 0 };

static bool agree(const char *got, const char *expected, struct tolerance tolerance, struct tare_strbuf *why) {
    struct tare_tensor a, b;
    assert_int_equal(tensor_from_text(&a, got), TARE_OK);
    assert_int_equal(tensor_from_text(&b, expected), TARE_OK);
    const bool good = tensors_agree(why, &a, &b, tolerance);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    return good;
}

static void text__makes_tensors_of_every_class(void **state) {
    static const char *const texts[] = {
        "float32[2,2] 1 2.5 -inf nan",   "int64[] -9223372036854775808", "bool[2] 1 0",
        "string[2] \"a\\n\" \"\"",       "complex64[1] (1,-2)",          "float16[1] 0.5",
        "uint64[1] 18446744073709551615"
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tare_tensor tensor;
        struct tare_strbuf back = { 0 };
        assert_int_equal(tensor_from_text(&tensor, texts[i]), TARE_OK);
        tensor_to_text(&back, &tensor, 10);
        assert_string_equal(tare_strbuf_text(&back), texts[i]);
        tare_strbuf_free(&back);
        tare_tensor_reset(&tensor);
    }
}

static void text__with_a_fault_is_refused(void **state) {
    static const char *const texts[] = { "float[2] 1", "float[1] 1 2", "int32[1] x", "nothing[1] 1", "float[2 1 2" };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct tare_tensor tensor;
        assert_int_not_equal(tensor_from_text(&tensor, texts[i]), TARE_OK);
        assert_string_not_equal(tare_error_text(), "");
    }
}

static void comparison__without_tolerance_wants_the_bits(void **state) {
    struct tare_strbuf why = { 0 };
    (void)state;
    assert_true(agree("float[2] nan 1", "float[2] nan 1", exact, &why));
    assert_false(agree("float[1] 0", "float[1] -0", exact, &why));
    assert_false(agree("float[1] 1", "double[1] 1", exact, &why));
    assert_false(agree("float[1,1] 1", "float[1] 1", exact, &why));
    assert_false(agree("string[1] \"a\"", "string[1] \"b\"", exact, &why));
    tare_strbuf_free(&why);
}

static void comparison__names_place_and_values(void **state) {
    struct tare_strbuf why = { 0 };
    (void)state;
    assert_false(agree("int32[2,2] 1 2 3 4", "int32[2,2] 1 2 5 6", exact, &why));
    assert_string_equal(tare_strbuf_text(&why), "[1,0] is 3, expected 5 (2 of 4 elements differ)");
    tare_strbuf_free(&why);
}

static void comparison__counts_representable_values(void **state) {
    struct tare_strbuf why = { 0 };
    (void)state;
    assert_true(agree("float[1] 0x1.000002p0", "float[1] 1", (struct tolerance){ 0, 0, 1 }, &why));
    assert_false(agree("float[1] 0x1.000004p0", "float[1] 1", (struct tolerance){ 0, 0, 1 }, &why));
    assert_true(agree("float[1] 0x1p-149", "float[1] -0x1p-149", (struct tolerance){ 0, 0, 2 }, &why));
    assert_false(agree("float[1] nan", "float[1] 1", (struct tolerance){ 1, 1, 9 }, &why));
    assert_false(agree("float[1] inf", "float[1] 1", (struct tolerance){ 1, 1, 9 }, &why));
    tare_strbuf_free(&why);
}

/* Runs a case whose complaint is meant to come, without showing it. */
static bool passes_quietly(const char *op, const char *attrs, const char *const *inputs, const char *const *outputs) {
    const int kept = dup(STDERR_FILENO);
    assert_non_null(freopen("/dev/null", "w", stderr));
    const bool good = op_case_check(op, attrs, inputs, outputs, exact);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    return good;
}

static void harness__sees_wrong_expectations(void **state) {
    const char *const in[] = { "float[2] -1 2", NULL }, *const right[] = { "float[2] 0 2", NULL };
    const char *const value[] = { "float[2] 0 3", NULL }, *const shape[] = { "float[1,2] 0 2", NULL };
    const char *const dtype[] = { "double[2] 0 2", NULL }, *const wrong_in[] = { "int32[2] -1 2", NULL };
    (void)state;
    assert_true(op_case_check("Relu", "T: float", in, right, exact));
    assert_false(passes_quietly("Relu", "T: float", in, value));
    assert_false(passes_quietly("Relu", "T: float", in, shape));
    assert_false(passes_quietly("Relu", "T: float", in, dtype));
    assert_false(passes_quietly("Relu", "T: float", wrong_in, right));
    assert_false(passes_quietly("Relu", "T: float; nothing: 1", in, right));
    assert_false(passes_quietly("NoSuchOp", NULL, in, right));
}

static void coverage__counts_texts_and_goldens(void **state) {
    (void)state;
    struct op_coverage *coverage = op_coverage_load(TARE_SOURCE_DIR);
    assert_non_null(coverage);
    assert_true(op_coverage_count(coverage, "AddV2") > 20);
    assert_int_equal(op_coverage_count(coverage, "NoSuchOp"), 0);
    op_coverage_free(coverage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text__makes_tensors_of_every_class),
        cmocka_unit_test(text__with_a_fault_is_refused),
        cmocka_unit_test(comparison__without_tolerance_wants_the_bits),
        cmocka_unit_test(comparison__names_place_and_values),
        cmocka_unit_test(comparison__counts_representable_values),
        cmocka_unit_test(harness__sees_wrong_expectations),
        cmocka_unit_test(coverage__counts_texts_and_goldens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

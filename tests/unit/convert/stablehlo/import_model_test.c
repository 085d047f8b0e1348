/* The self-checking modules of the test data: each computes whether its outputs are the expected ones. */
#include "support/mini_model.h"
#include "support/models.h"

#include "base/file.h"
#include "convert/saved_model.h"
#include "interpreter/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

/* Modules whose outputs differ by more than 1e-4, absolutely, and why:
 * - elementary functions and powers of numbers so large that 1e-4 is less than a unit in the last place;
 * - overflowed complex products (integer_pow_*overflow): infinity in another part;
 * - the convolution in bfloat16: rounded once, the expected sums at every step;
 * - complex convolutions of three real ones, whose terms sum to 572 and 603 in magnitude: one rounding of such a sum is
 *   3e-5, and a chain of 60 of them differs from the exact result (-153.15064 + 61.46308 i) by 1.4e-4;
 * - triangular_solve in half: -53.5625 is the exact solution (-53.5568) rounded once, the expected one was computed in
 *   half. */
static const char *const large_numbers[] = {
    "atanh_shape_float16_20_20",
    "conv_general_dilated_dtype_precision_lhs_bfloat16_2_3_9_10__rhs_bfloat16_3_3_4_5__windowstrides__1_1-"
    "4096332469216216157",
    "conv_general_dilated_dtype_precision_lhs_complex64_2_3_9_10__rhs_complex64_3_3_4_5__windowstrides__"
    "11475331900101565681",
    "conv_general_dilated_preferred_lhs_complex64_2_3_9_10__rhs_complex64_3_3_4_5__windowstrides__1_1__"
    "pa6616031714311913514",
    "cos_shape_complex64_20_20",
    "cumprod_dtype_by_fun_shape_complex64_8_9__associative_scan_reductions_axis_0_reverse_False",
    "cumprod_dtype_by_fun_shape_complex64_8_9__axis_0_reverse_False",
    "expm1_shape_float32_20_20",
    "integer_pow_dtypes_shape_complex64_20_30__y_-3",
    "integer_pow_negative_overflow_shape_bfloat16_20_30__y_-127",
    "integer_pow_negative_overflow_shape_complex64_20_30__y_-127",
    "integer_pow_overflow_shape_complex64_20_30__y_127",
    "log1p_shape_float16_20_20",
    "logistic_shape_complex64_20_20",
    "triangular_solve_dtypes_a_float16_4_4__b_float16_4_1__leftside_True_lower_False_transposea_False_"
    "con7082299047671998699",
};

static bool is_large(const char *file) {
    for (size_t i = 0; i < sizeof large_numbers / sizeof *large_numbers; i++)
        if (strncmp(file, large_numbers[i], strlen(large_numbers[i])) == 0) return true;
    return false;
}

enum verdict { PASSED, UNEQUAL, NOT_IMPORTED, NOT_RUN, RUN_WITH_ARGUMENTS, NO_CHECK, VERDICTS };

/* Runs a signature without inputs; a check that does not hold is the error. */
/* Runs a module with arguments, which has nothing to compare: unknown dimensions and scalar integers, which are
 * dimensions in the modules of shape polymorphism, are 4. */
static enum verdict run_with_arguments(struct tare_graph_model *model) {
    const struct tare_signature *signature = &model->signatures[0];
    struct tare_tensor *inputs = calloc(signature->n_inputs + 1, sizeof *inputs);
    struct tare_tensor *outputs = calloc(signature->n_outputs + 1, sizeof *outputs);
    struct tare_session *session;
    assert_non_null(inputs);
    assert_non_null(outputs);
    for (size_t i = 0; i < signature->n_inputs; i++) {
        struct tare_shape shape = signature->inputs[i].shape;
        for (int d = 0; d < shape.rank; d++)
            if (shape.dims[d] < 0) shape.dims[d] = 4;
        mini_ok(tare_tensor_new(&inputs[i], signature->inputs[i].dtype, &shape));
        for (int64_t k = 0; k < inputs[i].elements; k++) {
            if (inputs[i].dtype == TARE_DT_BOOL)
                TARE_DATA(uint8_t, &inputs[i])[k] = k % 2;
            else
                tare_tensor_set_c128(&inputs[i], k, shape.rank == 0 ? 4 : (double)(1 + k % 3));
        }
    }
    mini_ok(tare_session_new(&session, model, NULL));
    const tare_status status = tare_session_run_signature(session, signature, inputs, outputs);
    for (size_t i = 0; i < signature->n_outputs && status == TARE_OK; i++)
        tare_tensor_reset(&outputs[i]);
    for (size_t i = 0; i < signature->n_inputs; i++)
        tare_tensor_reset(&inputs[i]);
    tare_session_free(session);
    free(inputs), free(outputs);
    return status == TARE_OK ? RUN_WITH_ARGUMENTS : NOT_RUN;
}

static enum verdict run_signature(struct tare_graph_model *model) {
    const struct tare_signature *signature = &model->signatures[0];
    struct tare_session *session;
    struct tare_tensor result;
    if (signature->n_inputs) return run_with_arguments(model);
    if (signature->n_outputs != 1 || signature->outputs[0].dtype != TARE_DT_BOOL) return NO_CHECK;
    mini_ok(tare_session_new(&session, model, NULL));
    const tare_status status = tare_session_run_signature(session, signature, NULL, &result);
    if (status == TARE_OK) {
        assert_true(TARE_CONST_DATA(uint8_t, &result)[0]);
        tare_tensor_reset(&result);
    }
    tare_session_free(session);
    return status == TARE_OK ? PASSED : strstr(tare_error_text(), "[check.eq at byte ") ? UNEQUAL : NOT_RUN;
}

static enum verdict check_module(const char *path) {
    struct tare_graph_model *model;
    enum verdict verdict = NOT_IMPORTED;
    if (tare_saved_model_load(&model, path, NULL) != TARE_OK) {
        if (!strstr(tare_error_text(), "the module has no function 'main'")) fail_msg("%s", tare_error_text());
        return NO_CHECK;
    }
    if (!model->module_error)
        verdict = run_signature(model);
    else
        print_message("%s\n", model->module_error);
    tare_model_free(model);
    return verdict;
}

static void check_folder(const char *name) {
    size_t counts[VERDICTS] = { 0 };
    char path[1200];
    struct tare_file_list list = { 0 };
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mini_ok(tare_file_list(&list, path));
    for (size_t i = 0; i < list.count; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, name, list.names[i]);
        tare_error_clear();
        const enum verdict verdict = check_module(path);
        counts[verdict]++;
        if (verdict == NOT_RUN) print_message("%s: %s\n", list.names[i], tare_error_text());
        if (verdict == UNEQUAL && !is_large(list.names[i])) fail_msg("%s: %s", list.names[i], tare_error_text());
    }
    tare_file_list_free(&list);
    print_message(
        "%zu passed, %zu unequal, %zu not imported, %zu not run, %zu ran with arguments, %zu without a check\n",
        counts[PASSED], counts[UNEQUAL], counts[NOT_IMPORTED], counts[NOT_RUN], counts[RUN_WITH_ARGUMENTS],
        counts[NO_CHECK]);
    assert_true(counts[RUN_WITH_ARGUMENTS] >= 334);
    assert_true(counts[PASSED] >= 2215);
    assert_true(counts[UNEQUAL] <= sizeof large_numbers / sizeof *large_numbers);
    assert_int_equal(counts[NOT_IMPORTED], 0);
    assert_int_equal(counts[NOT_RUN], 0);
}

static void modules__compute_what_they_expect(void **state) {
    (void)state;
    check_folder("testdata");
}
static void modules_of_a_newer_version__compute_the_same(void **state) {
    (void)state;
    check_folder("testdata-1.8");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules__compute_what_they_expect),
        cmocka_unit_test(modules_of_a_newer_version__compute_the_same),
    };
    folder = test_data("stablehlo");
    return folder ? cmocka_run_group_tests(tests, NULL, NULL) : TEST_SKIPPED;
}

/* Ops of StableHLO against what tests/golden/stablehlo_ops.py computes from their definitions: the modules check their
 * results themselves. */
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "support/models.h"

#include "convert/saved_model.h"
#include "interpreter/session.h"

#include <stdio.h>
#include <string.h>

/* Runs main of a module. */
static tare_status run_main(struct tare_tensor *output, const char *name, const struct tare_tensor *inputs) {
    char path[1200];
    struct tare_graph_model *model;
    struct tare_session *session;
    snprintf(path, sizeof path, "%s/tests/golden/stablehlo/%s%s.mlirbc", TARE_SOURCE_DIR,
             strncmp(name, "random_", 7) == 0 ? "" : "ops_", name);
    mini_ok(tare_saved_model_load(&model, path, NULL));
    if (model->module_error) fail_msg("%s: %s", name, model->module_error);
    mini_ok(tare_session_new(&session, model, NULL));
    const tare_status status = tare_session_run_signature(session, &model->signatures[0], inputs, output);
    tare_session_free(session);
    tare_model_free(model);
    return status;
}

/* Runs main of a module that returns true after all checks. */
static tare_status run_module(const char *name) {
    struct tare_tensor done;
    const tare_status status = run_main(&done, name, NULL);
    if (status == TARE_OK) tare_tensor_reset(&done);
    return status;
}

static void structure__tuples_tokens_maps_and_selections(void **state) {
    (void)state;
    mini_ok(run_module("structure"));
}
static void numbers__batch_normalization_and_complex_numbers(void **state) {
    (void)state;
    mini_ok(run_module("numbers"));
}
static void windows__of_several_operands_and_scatters(void **state) {
    (void)state;
    mini_ok(run_module("windows"));
}
static void windows__of_several_operands_and_computed_sizes(void **state) {
    (void)state;
    mini_ok(run_module("dynamic_windows"));
}
static void convolutions__in_groups_of_the_batch(void **state) {
    (void)state;
    mini_ok(run_module("batch_groups"));
}
/* The approximation and the composite, but not the approximation with another coefficient. */
static void elementary__functions_are_one_op(void **state) {
    struct tare_graph_model *model;
    size_t count = 0;
    (void)state;
    mini_ok(run_module("elementary"));
    mini_ok(tare_saved_model_load(&model, TARE_SOURCE_DIR "/tests/golden/stablehlo/ops_elementary.mlirbc", NULL));
    for (size_t i = 0; i < model->n_functions; i++)
        count += graph_count(model->functions[i], "Erf");
    assert_int_equal(count, 3);
    tare_model_free(model);
}
static void shardy__manual_computations_run_on_one_device(void **state) {
    (void)state;
    mini_ok(run_module("shardy"));
}
static void modules__of_several_devices_are_refused(void **state) {
    static const char *const names[] = { "shard_shape", "shardy_devices" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tare_graph_model *model;
        char path[256];
        snprintf(path, sizeof path, TARE_SOURCE_DIR "/tests/golden/stablehlo/ops_%s.mlirbc", names[i]);
        mini_ok(tare_saved_model_load(&model, path, NULL));
        assert_non_null(model->module_error);
        assert_non_null(strstr(model->module_error, "communication between several devices"));
        tare_model_free(model);
    }
}
static void bits__are_those_of_xla(void **state) {
    (void)state;
    mini_ok(run_module("bits"));
}
static void top__elements_are_in_total_order(void **state) {
    (void)state;
    mini_ok(run_module("top"));
}
static void quantized__is_dequantize_op_quantize(void **state) {
    (void)state;
    mini_ok(run_module("quantized"));
}
static void narrow__types_are_rounded_or_wrapped_once(void **state) {
    (void)state;
    mini_ok(run_module("narrow"));
}
static void small_floats__are_rounded_as_xla_does(void **state) {
    (void)state;
    mini_ok(run_module("small_floats"));
}
static void packed_bits__of_bytes_and_words(void **state) {
    (void)state;
    mini_ok(run_module("packed_bits"));
}
static void small_floats__of_a_caller_are_rounded(void **state) {
    static const float values[] = { 1.3F, -0.2F, 2.6F, 9 }, doubled[] = { 3, 0, 6, 6 };
    const struct tare_shape shape = { .rank = 1, .dims = { 4 } };
    struct tare_tensor x, output;
    (void)state;
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
    memcpy(x.data, values, sizeof values);
    mini_ok(run_main(&output, "small_argument", &x));
    for (int i = 0; i < 4; i++)
        assert_float_equal(TARE_DATA(float, &output)[i], doubled[i], 0);
    tare_tensor_reset(&output);
    tare_tensor_reset(&x);
}
static void edges__of_dtypes_dimension_numbers_and_sizes(void **state) {
    (void)state;
    mini_ok(run_module("edges"));
}
static void corners__of_signed_zeros_nan_initial_values_and_roundings(void **state) {
    (void)state;
    mini_ok(run_module("corners"));
}
/* The module is not imported, for a reason that contains `words`. */
static void expect_error(const char *name, const char *words) {
    char path[1200];
    struct tare_graph_model *model;
    snprintf(path, sizeof path, "%s/tests/golden/stablehlo/ops_%s.mlirbc", TARE_SOURCE_DIR, name);
    if (tare_saved_model_load(&model, path, NULL) != TARE_OK) {
        if (!strstr(tare_error_text(), words)) fail_msg("%s: %s", name, tare_error_text());
        return;
    }
    assert_non_null(model->module_error);
    if (!strstr(model->module_error, words)) fail_msg("%s: %s", name, model->module_error);
    tare_model_free(model);
}
static void types__that_no_op_has_are_reported_with_their_place(void **state) {
    (void)state;
    expect_error("wrong_type", "function 'main': op vhlo.real_v1 at byte ");
    expect_error("wrong_type", "complex64 is not in the list of allowed values: float, double");
}
static void operands__too_few_or_of_too_low_rank_are_an_error(void **state) {
    (void)state;
    expect_error("reduce_of_none", "expected 2 operands, got 0");
    expect_error("reduce_window_of_none", "expected 2 operands, got 0");
    expect_error("sort_of_none", "expected 1 operands, got 0");
    expect_error("cholesky_of_vector", "a matrix of rank 1");
}
static void regions__with_other_arguments_or_results_are_an_error(void **state) {
    (void)state;
    expect_error("if_without_result", "function 'main': op vhlo.if_v1 at byte ");
    expect_error("if_without_result", "its function or region returns 0 tensors (expected 1)");
    /* its index is a constant: the branch is chosen at import */
    expect_error("case_of_other_result", "result 0 is int32 by its operands and attributes (declared as float32)");
    expect_error("while_of_other_condition", "result 0 of its function or region is int32 (expected bool)");
    expect_error("while_of_other_argument", "argument 0 of its function or region is int32 (expected float32)");
    expect_error("while_of_two_results", "1 operands and 2 results");
    expect_error("map_of_other_argument", "argument 0 of its function or region is int32 (expected float32)");
    expect_error("map_of_other_result", "result 0 of its function or region is int32 (expected float32)");
    expect_error("call_of_other_argument", "argument 0 of its function or region is int32 (expected float32)");
}
static void results__of_other_types_than_declared_are_an_error(void **state) {
    (void)state;
    expect_error("transpose_to_other_shape", "op vhlo.transpose_v1 at byte ");
    expect_error("transpose_to_other_shape", "result 0 has the shape [3,2] by its operands and attributes (declared as "
                                             "[2,3])");
    expect_error("slice_to_other_shape", "result 0 has the shape [1] by its operands and attributes (declared as [2])");
    expect_error("negate_to_other_type", "function 'main': op vhlo.negate_v1 at byte ");
    expect_error("negate_to_other_type", "result 0 is float32 by its operands and attributes (declared as float64)");
    expect_error("reshape_of_other_size", "Input to reshape is a tensor with 2 values, but the requested shape has 6");
    expect_error("region_of_other_shape", "op vhlo.transpose_v1 at byte ");
    expect_error("region_of_other_shape", "result 0 has the shape [3,2] by its operands and attributes (declared as "
                                          "[2,3])");
}
static void operands__that_would_have_to_be_broadcast_are_an_error(void **state) {
    (void)state;
    expect_error("add_of_other_shapes", "op vhlo.add_v1 at byte ");
    expect_error("add_of_other_shapes", "operand 0 has the shape [1,3] (expected the result's, [2,3])");
    expect_error("select_of_other_shapes", "operand 0 has the shape [2] (expected the result's, [2,2])");
    expect_error("clamp_of_other_shapes", "operand 1 has the shape [1] (expected the result's, [2])");
}
/* Modules of tests/golden/stablehlo_random.py. */
static void random__modules_of_general_dimension_numbers(void **state) {
    static const char *const names[] = { "dot_general", "convolution", "reduce_window", "pad", "gather", "scatter" };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[80];
        struct tare_tensor done;
        snprintf(path, sizeof path, "random_%s", names[i]);
        mini_ok(run_main(&done, path, NULL));
        tare_tensor_reset(&done);
    }
}
static void calls__nested_too_deeply_are_an_error(void **state) {
    (void)state;
    expect_error("deep_calls", "calls and regions are nested more than 250 deep");
}
static void collectives__of_one_process_return_their_operands(void **state) {
    (void)state;
    mini_ok(run_module("collectives"));
}

static bool has_function(const struct tare_graph_model *model, const char *name) {
    for (size_t i = 0; i < model->n_functions; i++)
        if (strstr(model->functions[i]->name, name)) return true;
    return false;
}

static void calls__of_a_function_with_one_call_are_inlined(void **state) {
    struct tare_graph_model *model;
    (void)state;
    mini_ok(run_module("calls"));
    mini_ok(tare_saved_model_load(&model, TARE_SOURCE_DIR "/tests/golden/stablehlo/ops_calls.mlirbc", NULL));
    assert_false(has_function(model, "once"));
    assert_true(has_function(model, "twice"));
    tare_model_free(model);
}
static void assertion__that_does_not_hold_is_an_error_with_its_text(void **state) {
    (void)state;
    mini_fails(run_module("assertion"), "assertion failed: [the batch ] [4] [ is not divisible by ] [5]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structure__tuples_tokens_maps_and_selections),
        cmocka_unit_test(numbers__batch_normalization_and_complex_numbers),
        cmocka_unit_test(windows__of_several_operands_and_scatters),
        cmocka_unit_test(windows__of_several_operands_and_computed_sizes),
        cmocka_unit_test(convolutions__in_groups_of_the_batch),
        cmocka_unit_test(elementary__functions_are_one_op),
        cmocka_unit_test(shardy__manual_computations_run_on_one_device),
        cmocka_unit_test(modules__of_several_devices_are_refused),
        cmocka_unit_test(bits__are_those_of_xla),
        cmocka_unit_test(top__elements_are_in_total_order),
        cmocka_unit_test(quantized__is_dequantize_op_quantize),
        cmocka_unit_test(narrow__types_are_rounded_or_wrapped_once),
        cmocka_unit_test(small_floats__are_rounded_as_xla_does),
        cmocka_unit_test(packed_bits__of_bytes_and_words),
        cmocka_unit_test(small_floats__of_a_caller_are_rounded),
        cmocka_unit_test(edges__of_dtypes_dimension_numbers_and_sizes),
        cmocka_unit_test(corners__of_signed_zeros_nan_initial_values_and_roundings),
        cmocka_unit_test(operands__too_few_or_of_too_low_rank_are_an_error),
        cmocka_unit_test(regions__with_other_arguments_or_results_are_an_error),
        cmocka_unit_test(results__of_other_types_than_declared_are_an_error),
        cmocka_unit_test(operands__that_would_have_to_be_broadcast_are_an_error),
        cmocka_unit_test(random__modules_of_general_dimension_numbers),
        cmocka_unit_test(calls__nested_too_deeply_are_an_error),
        cmocka_unit_test(types__that_no_op_has_are_reported_with_their_place),
        cmocka_unit_test(collectives__of_one_process_return_their_operands),
        cmocka_unit_test(calls__of_a_function_with_one_call_are_inlined),
        cmocka_unit_test(assertion__that_does_not_hold_is_an_error_with_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

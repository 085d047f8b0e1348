/* QuantizationOptions as text: spellings of every release, TensorFlow's defaults, its validation errors. */
#include "support/mini_model.h"

#include "convert/options.h"
#include "quant/recipe.h"

#include <stdio.h>
#include <string.h>

static struct tare_arena arena;

static int empty_arena(void **state) {
    (void)state;
    tare_arena_free(&arena);
    return 0;
}

static tare_status parse(struct tare_converter_options *out, const char *text) {
    char whole[4096];
    snprintf(whole, sizeof whole, "external_feature_configs { quantization_options { %s } }", text);
    return tare_converter_options_parse(out, &arena, whole, strlen(whole), NULL);
}

static struct tare_quantization read(const char *text) {
    struct tare_converter_options options;
    mini_ok(parse(&options, text));
    assert_true(options.has_quantization);
    return options.quantization;
}

static void refuses(const char *text, const char *part) {
    struct tare_converter_options options;
    mini_fails(parse(&options, text), part);
    tare_error_clear();
}

static void assert_algorithm(const struct tare_quantization *q, const char *expected) {
    struct tare_algorithm_choice choice;
    mini_ok(tare_algorithm_parse(&choice, expected));
    assert_true(tare_algorithm_equal(&q->plan.setting.algorithm, &choice));
}

static void empty_options__have_the_defaults(void **state) {
    struct tare_quantization q = read("");
    (void)state;
    assert_ptr_equal(q.plan.setting.method, &tare_method_static);
    assert_algorithm(&q, "min_max");
    assert_int_equal(q.n_signatures, 1);
    assert_string_equal(q.signatures[0], "serving_default");
    assert_false(q.plan.keep_variables);
    assert_false(q.plan.two_inputs);
    assert_int_equal(q.plan.min_elements, 0);
    assert_null(q.plan.recipe);
}

static void method__every_spelling(void **state) {
    static const struct {
        const char *text;
        const struct tare_quant_method *method;
    } spellings[] = {
        { "quantization_method { experimental_method: STATIC_RANGE }", &tare_method_static },
        { "quantization_method: STATIC_RANGE", &tare_method_static },
        { "quantization_method: 'WEIGHT_ONLY'", &tare_method_weight_only },
        { "quantization_method: METHOD_DYNAMIC_RANGE_INT8", &tare_method_dynamic },
        { "quantization_method { experimental_method: DYNAMIC_RANGE }", &tare_method_dynamic },
        { "quantization_method { experimental_method: WEIGHT_ONLY }", &tare_method_weight_only },
        { "quantization_method { experimental_method: EXPERIMENTAL_METHOD_UNSPECIFIED }", &tare_method_static },
        { "quantization_method { preset_method: METHOD_STATIC_RANGE_INT8 }", &tare_method_static },
        { "quantization_method { preset_method: METHOD_DYNAMIC_RANGE_INT8 }", &tare_method_dynamic },
        { "quantization_method { preset_method: METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8 }", &tare_method_weight_only },
        { "quantization_method { preset_method: METHOD_NO_QUANTIZE }", NULL },
        { "quantization_method { preset_method: METHOD_UNSPECIFIED }", &tare_method_static },
        { "quantization_method { method: METHOD_UNSPECIFIED }", &tare_method_static },
        { "quantization_precision: PRECISION_W8A8", &tare_method_static },
        { "quantization_precision: PRECISION_FULL", NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (read(spellings[i].text).plan.setting.method != spellings[i].method)
            fail_msg("%s gives another method", spellings[i].text);
}

static void components__int8_int32_and_int4_weights(void **state) {
    const struct tare_quantization q = read(
        "quantization_method { preset_method: METHOD_STATIC_RANGE_INT8 "
        "quantization_component_specs { quantization_component: COMPONENT_WEIGHT tensor_type: TENSORTYPE_INT_4 } "
        "quantization_component_specs { quantization_component: COMPONENT_BIAS tensor_type: TENSORTYPE_INT_32 } }");
    (void)state;
    assert_int_equal(q.plan.setting.bits, 4);
    refuses("quantization_method { quantization_component_specs { quantization_component: COMPONENT_ACTIVATION "
            "tensor_type: TENSORTYPE_INT_4 } }",
            "Only int8 precision is supported for input operands.");
    refuses("quantization_method { quantization_component_specs { quantization_component: COMPONENT_BIAS tensor_type: "
            "TENSORTYPE_INT_8 } }",
            "Only int32 precision is supported for bias.");
    refuses("quantization_method { quantization_component_specs { quantization_component: COMPONENT_WEIGHT "
            "tensor_type: TENSORTYPE_INT_8 } "
            "quantization_component_specs { quantization_component: COMPONENT_WEIGHT tensor_type: TENSORTYPE_INT_8 } }",
            "Only 3 components are needed for METHOD_STATIC_RANGE_INT8");
    refuses("quantization_method { experimental_method: WEIGHT_ONLY quantization_component_specs { "
            "quantization_component: COMPONENT_ACTIVATION tensor_type: TENSORTYPE_INT_8 } }",
            "Only 1 components are needed for METHOD_STATIC_RANGE_WEIGHT_ONLY_INT8");
    refuses("quantization_method: STATIC", "has no value 'STATIC'; expected METHOD_UNSPECIFIED, METHOD_NO_QUANTIZE, ");
}

/* Method of a node after the rules of `q`; by default static. */
static const struct tare_quant_method *method_of(const struct tare_quantization *q, const char *op, const char *name) {
    struct tare_quant_setting setting = q->plan.setting;
    struct tare_graph_model *model = mini_model_new();
    struct tare_node *node = tare_graph_add(tare_model_add_function(model, "body"), op, name);
    bool by_rule;
    mini_ok(tare_quant_recipe_apply(&setting, &by_rule, NULL, q->plan.recipe, node));
    tare_model_free(model);
    return setting.method;
}

static void units__match_ops_by_name_and_nodes_by_expression(void **state) {
    const struct tare_quantization q = read("unit_wise_quantization_specs { unit { op_type: \"Conv2D\" } "
                                            "unit { node_name: \".*head.*\" func_name: \"bo.y\" } "
                                            "quantization_method { preset_method: METHOD_NO_QUANTIZE } }");
    (void)state;
    assert_null(method_of(&q, "Conv2D", "x"));
    assert_ptr_equal(method_of(&q, "Conv2DX", "x"), &tare_method_static);
    assert_null(method_of(&q, "MatMul", "a/head/b"));
    assert_ptr_equal(method_of(&q, "MatMul", "a/tail/b"), &tare_method_static);
}

static void units__of_older_layouts(void **state) {
    const struct tare_quantization a =
        read("unit_wise_quantization_precision { unit_type: UNIT_OP unit_name: \"Conv2D\" "
             "quantization_precision: PRECISION_FULL }");
    const struct tare_quantization b = read(
        "unit_wise_quantization_spec { unit_type: UNIT_NODE unit_name: \"a.*\" "
        "quantization_component_spec { quantization_component: COMPONENT_WEIGHT tensor_type: TENSORTYPE_INT_4 } }");
    (void)state;
    assert_null(method_of(&a, "Conv2D", "x"));
    assert_ptr_equal(method_of(&a, "MatMul", "x"), &tare_method_static);
    assert_ptr_equal(method_of(&b, "MatMul", "a"), &tare_method_static);
    assert_int_equal(tare_quant_recipe_rule(b.plan.recipe, 0)->setting.bits, 4);
}

static void units__faults(void **state) {
    (void)state;
    refuses("unit_wise_quantization_specs { }", "UnitWiseQuantizationSpec must contain at least one unit.");
    refuses("unit_wise_quantization_specs { unit { func_name: \"f\" } }",
            "Either `op_type` or `node_name` must be specified.");
    refuses("unit_wise_quantization_specs { unit { op_type: \"MatMul\" } quantization_method { preset_method: "
            "METHOD_DYNAMIC_RANGE_INT8 } }",
            "Currently unit-wise quantization spec only supports NO_QUANTIZE and same quantization method as the "
            "top-level `quantization_method`");
    refuses("unit_wise_quantization_specs { unit { node_name: \"(\" } quantization_method { preset_method: "
            "METHOD_NO_QUANTIZE } }",
            "is not a regular expression");
}

static void granularity__follows_the_flag(void **state) {
    (void)state;
    assert_int_equal(read("").plan.setting.granularity, TARE_PER_CHANNEL);
    assert_int_equal(read("enable_per_channel_quantization: true").plan.setting.granularity, TARE_PER_CHANNEL);
    assert_int_equal(read("enable_per_channel_quantization: false").plan.setting.granularity, TARE_PER_TENSOR);
    assert_int_equal(read("op_set: TF").plan.setting.granularity, TARE_PER_TENSOR);
    assert_int_equal(read("op_set: UNIFORM_QUANTIZED").plan.setting.granularity, TARE_PER_TENSOR);
    assert_int_equal(read("op_set: UNIFORM_QUANTIZED enable_per_channel_quantization: true").plan.setting.granularity,
                     TARE_PER_CHANNEL);
    assert_int_equal(read("op_set: TF extensions { granularity: \"per_channel\" }").plan.setting.granularity,
                     TARE_PER_CHANNEL);
    refuses("enable_per_channel_quantization: true op_set: TF",
            "Currently, per-channel quantization is supported for Uniform");
    refuses("enable_per_channel_quantization: true quantization_method { experimental_method: DYNAMIC_RANGE }",
            "Currently, per-channel quantization is supported for Uniform Quantized opset, weight only quantization, "
            "or XLA "
            "opset with static range quantization.");
}

static void op_set__what_does_not_go_together(void **state) {
    (void)state;
    read("op_set: XLA");
    assert_int_equal(read("op_set: UNIFORM_QUANTIZED").plan.op_set, TARE_OP_SET_UNIFORM_QUANTIZED);
    assert_int_equal(read("op_set: TF").plan.op_set, TARE_OP_SET_TF);
    read("op_set: OP_SET_UNSPECIFIED");
    refuses("op_set: STABLEHLO", "op_set must be TF, XLA or UNIFORM_QUANTIZED (got STABLEHLO)");
    refuses("op_set: TF quantization_method { experimental_method: WEIGHT_ONLY }",
            "TF/Uniform quantized opset does not support weight-only.");
    refuses("op_set: STABLEHLO quantization_method { experimental_method: DYNAMIC_RANGE }",
            "StableHLO quantized opset currently only supports static range quantization via TF Quantizer.");
}

static void calibration__names_and_defaults(void **state) {
    static const struct {
        const char *text, *algorithm;
    } cases[] = {
        { "calibration_options { calibration_method: CALIBRATION_METHOD_MIN_MAX }", "min_max" },
        { "calibration_options { calibration_method: CALIBRATION_METHOD_AVERAGE_MIN_MAX }", "average_min_max" },
        { "calibration_options { calibration_method: CALIBRATION_METHOD_HISTOGRAM_PERCENTILE }", "percentile" },
        { "calibration_options { calibration_method: CALIBRATION_METHOD_HISTOGRAM_PERCENTILE calibration_parameters { "
          "initial_num_bins: 10 } }",
          "percentile:min_percentile=0.001,max_percentile=99.999" },
        { "calibration_options { calibration_method: CALIBRATION_METHOD_HISTOGRAM_PERCENTILE calibration_parameters { "
          "min_percentile: 0.25 max_percentile: 99.5 } }",
          "percentile:min_percentile=0.25,max_percentile=99.5" },
        { "calibration_options { calibration_method: CALIBRATION_METHOD_HISTOGRAM_MSE_BRUTEFORCE }", "mse" },
        { "calibration_options { calibration_method: CALIBRATION_METHOD_HISTOGRAM_MSE_MAX_FREQUENCY }", "mse" },
        { "calibration_options { calibration_method: CALIBRATION_METHOD_HISTOGRAM_MSE_SYMMETRIC }", "mse_symmetric" },
        { "extensions { algorithm: \"entropy\" }", "entropy" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tare_quantization q = read(cases[i].text);
        assert_algorithm(&q, cases[i].algorithm);
    }
}

static void datasets__match_the_signatures_both_ways(void **state) {
    struct tare_quantization q =
        read("representative_datasets { key: \"serving_default\" value { tfrecord_file_path: \"a\" } }");
    (void)state;
    assert_int_equal(q.n_datasets, 1);
    assert_string_equal(q.datasets[0].path, "a");
    q = read("signature_keys: \"s\" calibration_options { representative_datasets { signature_key: \"s\" tf_record { "
             "path: \"b\" } } }");
    assert_string_equal(q.datasets[0].signature, "s");
    assert_string_equal(q.datasets[0].path, "b");
    refuses("signature_keys: [\"a\", \"b\"] representative_datasets { key: \"a\" value { tfrecord_file_path: \"x\" } }",
            "The signature keys and the keys of representative dataset map do not match. Signature keys: {'a', 'b'}, "
            "representative dataset map: {'a'}.");
    refuses("representative_datasets { key: \"b\" value { tfrecord_file_path: \"x\" } }", "do not match");
    refuses("representative_datasets { key: \"serving_default\" value { } }",
            "Unsupported Representative Dataset filetype");
}

static void min_elements__static_looks_at_tables_alone(void **state) {
    struct tare_quantization q =
        read("min_num_elements_for_weights: 5000 quantization_method { experimental_method: WEIGHT_ONLY }");
    (void)state;
    assert_int_equal(q.plan.min_elements, 5000);
    assert_null(q.warning);
    q = read("min_num_elements_for_weights: 5000");
    assert_int_equal(q.plan.min_elements, 0);
    assert_int_equal(q.plan.min_table_elements, 5000);
    assert_non_null(q.warning);
}

static void freeze__both_forms(void **state) {
    (void)state;
    assert_false(read("freeze_all_variables: true").plan.keep_variables);
    assert_true(read("freeze_all_variables: false").plan.keep_variables);
    assert_false(read("freeze_all_variables { enabled: true }").plan.keep_variables);
    assert_true(read("freeze_all_variables { enabled: false }").plan.keep_variables);
}

static void others__have_tensorflows_words(void **state) {
    (void)state;
    assert_true(read("enable_two_input_tensors: true").plan.two_inputs);
    read("experimental_enable_tpu_model_support: true force_graph_mode_calibration: true tags: \"serve\"");
    refuses("enable_legacy_weight_only: true",
            "Legacy weight-only is deprecated. Use weight-only quantization method.");
    refuses("debugger_config { log_dir_path: \"/tmp\" }", "Debugger is enabled but debugger type was not specified.");
    refuses("debugger_options { debugger_type: DEBUGGER_TYPE_WHOLE_MODEL }",
            "Debugger type whole model verify was used but unquantized_dump_model_path was not specified.");
}

static void extensions__say_what_tensorflow_cannot(void **state) {
    const struct tare_quantization q =
        read("quantization_method { experimental_method: WEIGHT_ONLY } extensions { weight_bits: 4 granularity: "
             "\"per_block:64\" full_range_weights: true depthwise: true symmetric_activations: true integer_adds: true "
             "recipe: \"op=MatMul -> float\" passes: \"smooth_quant:alpha=0.75,bias_correction\" }");
    (void)state;
    assert_int_equal(q.plan.setting.bits, 4);
    assert_int_equal(q.plan.setting.granularity, TARE_PER_BLOCK);
    assert_int_equal(q.plan.setting.block, 64);
    assert_true(q.plan.setting.full_range && q.plan.depthwise && q.plan.setting.symmetric && q.plan.integer_adds);
    assert_null(method_of(&q, "MatMul", "x"));
    assert_string_equal(q.plan.passes[0]->name, "smooth_quant");
    assert_true(q.plan.passes[0]->parameters[0].value == 0.75);
    assert_ptr_equal(q.plan.passes[1], &tare_quant_pass_bias_correction);
    refuses("extensions { passes: \"smoth_quant\" }", "did you mean 'smooth_quant'");
    assert_int_equal(read("extensions { activation_bits: 16 }").plan.setting.activation_bits, 16);
    refuses("extensions { activation_bits: 4 }", "activations of 4 bits (expected 8 or 16)");
    refuses("extensions { weight_bits: 3 }", "weights of 3 bits (expected 8 or 4)");
    refuses("extensions { granularity: \"per_block:64\" }", "method static has no weights in blocks");
    refuses("extensions { recipe: \"op=MatMul -> flot\" }", "recipe:1: unknown method 'flot'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(empty_options__have_the_defaults, empty_arena),
        cmocka_unit_test_teardown(method__every_spelling, empty_arena),
        cmocka_unit_test_teardown(components__int8_int32_and_int4_weights, empty_arena),
        cmocka_unit_test_teardown(units__match_ops_by_name_and_nodes_by_expression, empty_arena),
        cmocka_unit_test_teardown(units__of_older_layouts, empty_arena),
        cmocka_unit_test_teardown(units__faults, empty_arena),
        cmocka_unit_test_teardown(granularity__follows_the_flag, empty_arena),
        cmocka_unit_test_teardown(op_set__what_does_not_go_together, empty_arena),
        cmocka_unit_test_teardown(calibration__names_and_defaults, empty_arena),
        cmocka_unit_test_teardown(datasets__match_the_signatures_both_ways, empty_arena),
        cmocka_unit_test_teardown(min_elements__static_looks_at_tables_alone, empty_arena),
        cmocka_unit_test_teardown(freeze__both_forms, empty_arena),
        cmocka_unit_test_teardown(others__have_tensorflows_words, empty_arena),
        cmocka_unit_test_teardown(extensions__say_what_tensorflow_cannot, empty_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
